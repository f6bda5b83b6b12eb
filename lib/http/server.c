#include "lib/http/server.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/http/inside.h"
#include "lib/http/router.h"
#include "lib/loop/defer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ACCEPTS_PER_TURN = 64, BACKLOG = 1024, TEXT_MAX = 1 << 20, PAUSE_MS = 100 };

struct http_listener {
	struct http_server *server;
	struct http_listener *next;
	struct loop_fd *watch;
	struct http_tls *tls;
	struct loop_timer pause;
	int fd;
};

struct ip_count {
	size_t n;
};

static size_t or_default(size_t v, size_t by_default)
{
	return v != 0 ? v : by_default;
}

static void defaults(struct http_config *c)
{
	struct http_limits *l = &c->limits;
	struct http_deadlines *d = &c->deadlines;
	int64_t *const ms[] = { &d->handshake, &d->head, &d->body, &d->body_rate, &d->write,
		&d->idle, &d->linger, &d->heartbeat };
	static const int64_t usual[] = { 10000, 10000, 30000, 1024, 30000, 75000, 2000, 15000 };

	l->request_line = or_default(l->request_line, 8192);
	l->header = or_default(l->header, 8192);
	l->head = or_default(l->head, 32768);
	l->headers = or_default(l->headers, H1_FIELDS_MAX);
	if (l->headers > H1_FIELDS_MAX)
		l->headers = H1_FIELDS_MAX;
	l->requests = or_default(l->requests, 1000);
	l->pipelined = or_default(l->pipelined, 16);
	l->connections = or_default(l->connections, 10000);
	l->per_ip = or_default(l->per_ip, 256);
	l->sse_backlog = or_default(l->sse_backlog, 256 << 10);
	for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
		if (*ms[i] == 0)
			*ms[i] = usual[i];
}

static void drain_over(void *arg)
{
	struct http_server *s = arg;
	http_drained_cb *fn = s->on_drained;

	s->on_drained = NULL;
	loop_timer_cancel(&s->drain_timer);
	if (fn != NULL)
		fn(s->drained_arg);
}

struct http_server *http_server_new(struct loop *l, const struct http_config *c)
{
	struct http_server *s = mem_new_of(struct http_server);

	s->loop = l;
	s->cfg = *c;
	defaults(&s->cfg);
	s->router = router_new(c->routes);
	s->by_ip = map_new();
	s->scratch = mem_new(READ_MAX, 1);
	buf_init(&s->text, TEXT_MAX);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	loop_timer_init(&s->drain_timer, l, drain_over, s);
	return s;
}

/* ---- connections by address ---- */

static struct str ip_key(const struct ip *ip)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = memcmp(ip->b, mapped, sizeof mapped) == 0;

	return (struct str){ (const char *)ip->b, v4 ? 16 : 8 };
}

void server_count(struct http_server *s, const struct ip *ip, int by)
{
	struct ip_count *n = map_get(s->by_ip, ip_key(ip));

	if (n == NULL) {
		n = mem_new_of(struct ip_count);
		map_put(s->by_ip, ip_key(ip), n);
	}
	if (by > 0)
		n->n++;
	else
		n->n--;
	if (n->n == 0)
		mem_free(map_remove(s->by_ip, ip_key(ip)));
}

bool server_is_proxy(const struct http_server *s, const struct ip *ip)
{
	for (size_t i = 0; i < s->cfg.n_proxies; i++)
		if (ip_net_has(&s->cfg.proxies[i], ip))
			return true;
	return false;
}

static bool has_room(const struct http_server *s, const struct ip *ip)
{
	const struct ip_count *n = map_get(s->by_ip, ip_key(ip));

	return s->n_conns < s->cfg.limits.connections &&
	       (n == NULL || n->n < s->cfg.limits.per_ip || server_is_proxy(s, ip));
}

/* A connection over the limits is told so when that costs nothing, and closed. */
static void turn_away(int fd, bool tls)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
				   "Content-Length: 0\r\nConnection: close\r\n\r\n";

	if (!tls && send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("a connection over the limit has left by itself", LOG_I("fd", fd));
	close(fd);
}

/* ---- listening ---- */

static void on_pause_over(void *arg)
{
	struct http_listener *l = arg;

	loop_fd_want(l->watch, LOOP_READ);
}

/* No descriptors left: one connection is refused with the spare one, and then all wait a little. */
static void out_of_descriptors(struct http_listener *l)
{
	struct http_server *s = l->server;
	int fd;

	if (s->spare_fd >= 0)
		close(s->spare_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		turn_away(fd, l->tls != NULL);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	log_warn("no file descriptors left for connections", LOG_I("connections", s->n_conns));
	loop_fd_want(l->watch, 0);
	loop_timer_set(&l->pause, PAUSE_MS);
}

static void on_accept(void *arg, int what)
{
	struct http_listener *l = arg;
	struct http_server *s = l->server;

	(void)what;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage sa;
		socklen_t n = sizeof sa;
		struct ip ip = { { 0 } };
		int fd = accept4(l->fd, (struct sockaddr *)&sa, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM)
				out_of_descriptors(l);
			return;
		}
		if (!ip_from_sockaddr((const struct sockaddr *)&sa, n, &ip) || !has_room(s, &ip))
			turn_away(fd, l->tls != NULL);
		else
			conn_new(s, fd, &ip, l->tls != NULL ? tls_accept(l->tls, fd) : NULL);
	}
}

static int bind_socket(
	int fd, const struct ip *ip, const char *address, int port, int *ret_port, struct err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	bool is_v4 = strchr(address, ':') == NULL;
	struct sockaddr *sa = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t n = is_v4 ? sizeof v4 : sizeof v6;
	int on = 1;
	char what[96];

	memcpy(&v6.sin6_addr, ip->b, 16);
	memcpy(&v4.sin_addr, ip->b + 12, 4);
	str_print(what, sizeof what, "on %s port %d", address, port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, sa, n) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, sa, &n) < 0)
		return err_errno(e, "listen", what);
	if (ret_port != NULL)
		*ret_port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
	return 0;
}

int http_server_listen(struct http_server *s, const char *address, int port, struct http_tls *tls,
	int *ret_port, struct err *e)
{
	struct http_listener *l;
	struct ip ip;
	int fd;

	if (!ip_parse(str_c(address), &ip) || port < 0 || port > 65535)
		return err_set(e, ERR_INVALID, "\"%s\" port %d is not an address to listen on",
			address, port);
	fd = socket(strchr(address, ':') != NULL ? AF_INET6 : AF_INET,
		SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(e, "make", "a socket");
	if (bind_socket(fd, &ip, address, port, ret_port, e) < 0) {
		close(fd);
		return -1;
	}
	l = mem_new_of(struct http_listener);
	l->server = s;
	l->tls = tls;
	l->fd = fd;
	l->watch = loop_fd_new(s->loop, fd, LOOP_READ, on_accept, l);
	loop_timer_init(&l->pause, s->loop, on_pause_over, l);
	l->next = s->listeners;
	s->listeners = l;
	return 0;
}

size_t http_server_connections(const struct http_server *s)
{
	return s->n_conns;
}

const char *server_date(struct http_server *s)
{
	int64_t now = clock_now(&clock_real) / CLOCK_SECOND;
	time_t t = (time_t)now;
	struct tm tm;

	if (now != s->date_s && gmtime_r(&t, &tm) != NULL) {
		s->date_s = now;
		if (strftime(s->date, sizeof s->date, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
			s->date[0] = '\0';
	}
	return s->date;
}

/* ---- the end ---- */

static void listeners_close(struct http_server *s)
{
	for (struct http_listener *l = s->listeners, *next; l != NULL; l = next) {
		next = l->next;
		loop_timer_cancel(&l->pause);
		loop_fd_free(l->watch);
		close(l->fd);
		mem_free(l);
	}
	s->listeners = NULL;
}

static void server_free(void *arg)
{
	struct http_server *s = arg;
	size_t at = 0;
	struct str key;
	void *n;

	while (map_next(s->by_ip, &at, &key, &n))
		mem_free(n);
	map_free(s->by_ip);
	router_free(s->router);
	buf_done(&s->text);
	mem_free(s->scratch);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	mem_free(s);
}

void server_note_gone(struct http_server *s)
{
	if (s->n_conns != 0 || s->n_calls != 0)
		return;
	if (s->freeing)
		loop_defer(s->loop, server_free, s);
	else if (s->draining && s->on_drained != NULL)
		loop_timer_set(&s->drain_timer, 0);
}

void http_server_drain(struct http_server *s, int64_t ms, http_drained_cb *on_done, void *arg)
{
	struct conn *next;

	s->draining = true;
	s->on_drained = on_done;
	s->drained_arg = arg;
	listeners_close(s);
	loop_timer_set(&s->drain_timer, ms);
	for (struct conn *c = s->conns; c != NULL; c = next) {
		next = c->next;
		c->keep_alive = false;
		if (c->state == CONN_HANDSHAKE || (c->call != NULL && c->call->unending)) {
			conn_close(c);
		} else if (c->state == CONN_IDLE) {
			c->closing = c->parting = true; /* after what is still being written */
			conn_kick(c);
		}
	}
	server_note_gone(s);
}

void http_server_free(struct http_server *s)
{
	if (s == NULL)
		return;
	s->draining = true;
	s->on_drained = NULL;
	loop_timer_cancel(&s->drain_timer);
	listeners_close(s);
	while (s->conns != NULL)
		conn_close(s->conns);
	/* Calls whose handlers have not let go yet still point here. */
	s->freeing = true;
	server_note_gone(s);
}
