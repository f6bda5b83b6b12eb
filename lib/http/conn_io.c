#include "lib/http/inside.h"

#include "lib/loop/loop.h"

#include <errno.h>
#include <event2/buffer.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t conn_read_bytes(struct conn *c, char *p, size_t n)
{
	ssize_t got;

	if (c->ssl != NULL)
		return tls_read(c->ssl, p, n, &c->read_wants_write);
	do
		got = read(c->fd, p, n);
	while (got < 0 && errno == EINTR);
	if (got >= 0)
		return got;
	return errno == EAGAIN ? -1 : -2;
}

/* Bytes written; -1: later; -2: broken. */
static ssize_t write_some(struct conn *c)
{
	ssize_t n;

	if (c->ssl == NULL) {
		n = evbuffer_write(c->out, c->fd);
		if (n >= 0)
			return n;
		return errno == EAGAIN || errno == EINTR ? -1 : -2;
	}
	n = (ssize_t)evbuffer_get_contiguous_space(c->out);
	n = tls_write(c->ssl, (const char *)evbuffer_pullup(c->out, n), (size_t)n);
	if (n > 0)
		evbuffer_drain(c->out, (size_t)n);
	return n;
}

void conn_flush(struct conn *c)
{
	bool moved = false;

	if (c->state == CONN_DEAD || c->state == CONN_HANDSHAKE)
		return;
	while (evbuffer_get_length(c->out) != 0) {
		ssize_t n = write_some(c);

		if (n == -2) {
			conn_close(c);
			return;
		}
		if (n <= 0)
			break;
		moved = true;
	}
	if (evbuffer_get_length(c->out) == 0)
		conn_due(c, &c->out_due, NEVER);
	else if (moved || c->out_due == NEVER)
		conn_due(c, &c->out_due, c->server->cfg.deadlines.write);
	if (c->call != NULL && moved)
		http_call_drained(c->call);
}
