#include "lib/http/inside.h"

#include "lib/base/mem.h"
#include "lib/loop/defer.h"

#include <event2/buffer.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Events from the loop read bytes and then call conn_process(), which moves on as far as it can and
 * finally settles what to wait for (conn_settle): reading, writing, and until when. Reading goes on
 * while a handler works, up to IN_WAITING_MAX bytes, because that is how a leaving client is seen.
 */

static void on_io(void *arg, int what);
static void on_timer(void *arg);
static void conn_read(struct conn *c);
static void conn_next(struct conn *c);
static void conn_settle(struct conn *c);
static bool wants_read(const struct conn *c);

static size_t in_max(const struct http_limits *l)
{
	return l->request_line + l->head + H1_LEADING_MAX + 8 + IN_ROOM + READ_MAX + IN_WAITING_MAX;
}

static void set_options(int fd)
{
	/* A peer that is gone without a word is noticed after 15 s of silence: what waits for it,
	 * and whoever counts as there because of it, must not be kept for longer. */
	int on = 1, user_timeout_ms = 30000, idle_s = 6, interval_s = 3, count = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

void conn_new(struct http_server *s, int fd, const struct ip *ip, struct ssl_st *ssl)
{
	struct conn *c = mem_new_of(struct conn);

	set_options(fd);
	c->server = s;
	c->fd = fd;
	c->ssl = ssl;
	c->ip = *ip;
	c->state = ssl != NULL ? CONN_HANDSHAKE : CONN_IDLE;
	c->in_due = c->out_due = NEVER;
	buf_init(&c->in, in_max(&s->cfg.limits));
	c->out = evbuffer_new();
	BUG_ON(c->out == NULL);
	c->next = s->conns;
	if (c->next != NULL)
		c->next->prev = c;
	s->conns = c;
	s->n_conns++;
	server_count(s, ip, 1);
	loop_timer_init(&c->timer, s->loop, on_timer, c);
	c->watch = loop_fd_new(s->loop, fd, LOOP_READ, on_io, c);
	conn_due(c, &c->in_due, ssl != NULL ? s->cfg.deadlines.handshake : s->cfg.deadlines.head);
}

static void conn_free(void *arg)
{
	struct conn *c = arg;

	evbuffer_free(c->out);
	buf_done(&c->in);
	mem_free(c->head);
	mem_free(c);
}

void conn_close(struct conn *c)
{
	struct http_server *s = c->server;
	struct http_call *k = c->call;

	if (c->state == CONN_DEAD)
		return;
	c->state = CONN_DEAD;
	loop_timer_cancel(&c->timer);
	loop_fd_free(c->watch);
	c->watch = NULL;
	if (c->ssl != NULL)
		tls_drop(c->ssl);
	c->ssl = NULL;
	close(c->fd);
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	s->n_conns--;
	server_count(s, &c->ip, -1);
	c->call = NULL;
	if (k != NULL)
		http_call_gone(k);
	loop_defer(s->loop, conn_free, c);
	server_note_gone(s);
}

/* ---- time ---- */

void conn_due(struct conn *c, int64_t *due, int64_t ms)
{
	int64_t first;

	if (c->state == CONN_DEAD)
		return;
	*due = ms == NEVER ? NEVER : loop_now(c->server->loop) + ms * 1000;
	first = c->in_due < c->out_due ? c->in_due : c->out_due;
	/* A timer that fires too early costs less than moving it with every request. */
	if (first != NEVER && (!loop_timer_armed(&c->timer) || c->timer.due_us > first))
		loop_timer_at(&c->timer, first);
}

static void window_over(struct conn *c)
{
	const struct http_deadlines *d = &c->server->cfg.deadlines;
	uint64_t least = (uint64_t)(d->body_rate * d->body / 1000);

	if (c->window >= least) {
		c->window = 0;
		conn_due(c, &c->in_due, d->body);
		return;
	}
	c->in_due = NEVER;
	http_call_body_broken(c->call, ERR_REQUEST_TIMEOUT, "The body came too slowly");
	conn_process(c);
}

static void in_due_passed(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		conn_refuse(c, ERR_REQUEST_TIMEOUT, "The head of the request took too long");
		conn_process(c);
		break;
	case CONN_CALL: window_over(c); break;
	case CONN_HANDSHAKE:
	case CONN_IDLE:
	case CONN_LINGER: conn_close(c); break;
	case CONN_DEAD: break;
	}
}

static void on_timer(void *arg)
{
	struct conn *c = arg;
	int64_t now = loop_now(c->server->loop);

	if (c->out_due <= now)
		conn_close(c);
	else if (c->in_due <= now)
		in_due_passed(c);
	else if (c->in_due != NEVER || c->out_due != NEVER)
		loop_timer_at(&c->timer, c->in_due < c->out_due ? c->in_due : c->out_due);
}

/* ---- events ---- */

static void handshake(struct conn *c)
{
	switch (tls_handshake(c->ssl)) {
	case TLS_DONE:
		c->state = CONN_IDLE;
		conn_due(c, &c->in_due, c->server->cfg.deadlines.head);
		loop_fd_want(c->watch, LOOP_READ);
		conn_read(c);
		break;
	case TLS_WANT_READ: loop_fd_want(c->watch, LOOP_READ); break;
	case TLS_WANT_WRITE: loop_fd_want(c->watch, LOOP_WRITE); break;
	case TLS_FAILED: conn_close(c); break;
	}
}

static void on_io(void *arg, int what)
{
	struct conn *c = arg;

	if (c->state == CONN_HANDSHAKE) {
		handshake(c);
		return;
	}
	if ((what & LOOP_WRITE) != 0)
		conn_process(c);
	if (c->state != CONN_DEAD && ((what & LOOP_READ) != 0 || c->read_wants_write))
		conn_read(c);
}

/* The client will send no more. What is being written to it still goes out. */
static void on_end(struct conn *c)
{
	struct http_call *k = c->call;
	bool unwritten = evbuffer_get_length(c->out) != 0;

	c->eof = true;
	c->keep_alive = false;
	if (k != NULL ? (k->on_close != NULL || !k->body_over) : !unwritten) {
		conn_close(c);
		return;
	}
	c->closing = c->closing || k == NULL;
	conn_process(c);
}

static void linger(struct conn *c)
{
	enum { LINGER_BYTES = 1 << 20 };
	ssize_t n = conn_read_bytes(c, c->server->scratch, READ_MAX);

	c->lingered += n > 0 ? (size_t)n : 0;
	if (n == 0 || n == -2 || c->lingered > LINGER_BYTES)
		conn_close(c);
}

/* Body bytes go from one large read to whoever takes the body, without a stop in c->in. */
static ssize_t read_body(struct conn *c)
{
	struct str p = { c->server->scratch, 0 };
	ssize_t n = conn_read_bytes(c, c->server->scratch, READ_MAX);
	size_t used;

	if (n <= 0)
		return n;
	p.n = (size_t)n;
	c->processing = true;
	used = http_call_feed(c->call, p);
	c->processing = false;
	if (c->state != CONN_DEAD)
		buf_add(&c->in, str_slice(p, used, p.n - used));
	return n;
}

static ssize_t read_more(struct conn *c)
{
	char *room;
	ssize_t n;

	if (c->call != NULL && c->in.n == 0 && http_call_wants_body(c->call))
		return read_body(c);
	if (c->yielded || (c->call != NULL && c->in.n >= IN_WAITING_MAX))
		return -1; /* a client that leaves now is seen when it is next written to */
	/* Behind an endless answer nothing is ever read as a request. */
	if (c->call != NULL && c->call->unending)
		return conn_read_bytes(c, c->server->scratch, READ_MAX);
	room = buf_room(&c->in, IN_ROOM);
	if (room == NULL) {
		/* Cannot be: heads are refused and bodies used up long before. */
		conn_close(c);
		return -1;
	}
	n = conn_read_bytes(c, room, IN_ROOM);
	if (n > 0)
		buf_grew(&c->in, (size_t)n);
	return n;
}

static void conn_read(struct conn *c)
{
	size_t total = 0;
	ssize_t n = 0;

	if (c->state == CONN_LINGER) {
		linger(c);
		return;
	}
	do {
		n = read_more(c);
		total += n > 0 ? (size_t)n : 0;
		if (c->state == CONN_DEAD)
			return;
	} while (n > 0 && total < READ_MAX && c->ssl != NULL && c->call != NULL);
	while (n > 0 && c->ssl != NULL && tls_pending(c->ssl) && total < READ_MAX) {
		n = read_more(c);
		total += n > 0 ? (size_t)n : 0;
		if (c->state == CONN_DEAD)
			return;
	}
	if (total != 0)
		conn_process(c);
	if (c->state == CONN_DEAD)
		return;
	if (n == 0)
		on_end(c);
	else if (n == -2)
		conn_close(c);
}

/* ---- the one mover ---- */

static void on_kick(void *arg)
{
	struct conn *c = arg;

	c->kicked = c->yielded = false;
	if (c->state == CONN_DEAD)
		return;
	conn_process(c);
	/* Bytes that OpenSSL holds already are announced by nobody else. */
	if (c->state != CONN_DEAD && c->ssl != NULL && tls_pending(c->ssl) && wants_read(c))
		conn_read(c);
}

void conn_kick(struct conn *c)
{
	if (c->kicked || c->processing || c->state == CONN_DEAD)
		return;
	c->kicked = true;
	loop_defer(c->server->loop, on_kick, c);
}

void conn_refuse(struct conn *c, enum err_code code, const char *why)
{
	struct http_call *k = http_call_new(c);
	struct err e;

	mem_free(c->head);
	c->head = NULL;
	c->keep_alive = false;
	k->phase = CALL_RUNNING;
	k->refused = true;
	err_set(&e, code, "%s", why);
	http_reply_err(&k->q, &e);
}

/* Whether a head could be taken from c->in: then there is a call. */
static bool conn_head(struct conn *c)
{
	struct http_server *s = c->server;
	const struct http_limits *l = &s->cfg.limits;
	struct http_call *k;

	if (c->head == NULL) {
		const struct h1_limits limits = { l->request_line, l->header, l->head, l->headers };

		c->head = mem_new_of(struct h1_head);
		h1_head_init(c->head, &limits);
	}
	switch (h1_head_feed(c->head, buf_str(&c->in))) {
	case H1_MORE:
		if (c->state == CONN_IDLE)
			conn_due(c, &c->in_due, s->cfg.deadlines.head);
		c->state = CONN_HEAD;
		return false;
	case H1_BAD: conn_refuse(c, c->head->code, c->head->why); return true;
	case H1_DONE: break;
	}
	k = http_call_new(c);
	c->requests++;
	c->keep_alive = c->head->keep_alive && c->requests < l->requests && !s->draining && !c->eof;
	http_call_begin(k, c->head, buf_str(&c->in));
	buf_drop_front(&c->in, c->head->size);
	mem_free(c->head);
	c->head = NULL;
	return true;
}

static bool conn_step(struct conn *c, size_t *begun)
{
	if (c->call == NULL) {
		if (c->closing || c->in.n == 0)
			return false;
		if (*begun == c->server->cfg.limits.pipelined) {
			c->processing = false;
			c->yielded = true;
			conn_kick(c);
			return false;
		}
		++*begun;
		return conn_head(c);
	}
	if (c->call->ended && (c->call->phase != CALL_DISCARD || c->call->body_over)) {
		conn_next(c);
		return true;
	}
	if (c->in.n != 0 && http_call_wants_body(c->call)) {
		size_t used = http_call_feed(c->call, buf_str(&c->in));

		if (c->state != CONN_DEAD)
			buf_drop_front(&c->in, used);
		return used != 0;
	}
	return http_call_step(c->call);
}

void conn_process(struct conn *c)
{
	size_t begun = 0;

	if (c->processing || c->state == CONN_DEAD)
		return;
	if (c->state != CONN_LINGER) {
		c->processing = true;
		while (c->state != CONN_DEAD && conn_step(c, &begun))
			;
		c->processing = false;
	}
	conn_flush(c);
	if (c->state != CONN_DEAD)
		conn_settle(c);
}

/* A body whose rest is small is read to its end, so that the connection can be kept. */
static bool can_discard(const struct http_call *k)
{
	return !k->expects && !k->aborted && k->body.framing == H1_BODY_LENGTH &&
	       k->body.left <= IN_WAITING_MAX;
}

bool conn_can_keep(const struct conn *c, const struct http_call *k)
{
	return c->keep_alive && !c->server->draining &&
	       (k->body_over || k->sink != NULL || can_discard(k));
}

/* The call is answered: what becomes of the connection. */
static void conn_next(struct conn *c)
{
	struct http_call *k = c->call;

	http_call_finish(k);
	k->sink = NULL;
	if (!k->body_over && c->keep_alive && can_discard(k)) {
		k->phase = CALL_DISCARD;
		return;
	}
	c->closing = c->closing || !k->body_over || !c->keep_alive || c->server->draining;
	c->call = NULL;
	k->conn = NULL;
	http_call_free_later(k);
	c->state = CONN_IDLE;
	conn_due(c, &c->in_due, c->server->cfg.deadlines.idle);
}

/* All is written and nothing more will be: a plain close() could make the kernel throw away what
 * the client has not read yet, so it is given time to close first. */
static void conn_end(struct conn *c)
{
	enum { PARTING_MS = 100 }; /* for a request that crosses our end on its way */

	if (c->eof) {
		conn_close(c);
		return;
	}
	if (c->ssl != NULL)
		tls_say_end(c->ssl);
	shutdown(c->fd, SHUT_WR);
	c->state = CONN_LINGER;
	buf_done(&c->in);
	conn_due(c, &c->in_due, c->parting ? PARTING_MS : c->server->cfg.deadlines.linger);
	loop_fd_want(c->watch, LOOP_READ);
}

static bool wants_read(const struct conn *c)
{
	if (c->eof || c->closing || c->yielded)
		return false;
	if (c->call == NULL || (c->in.n == 0 && http_call_wants_body(c->call)))
		return true;
	return c->in.n < IN_WAITING_MAX && c->call->body_over;
}

static void conn_settle(struct conn *c)
{
	size_t waiting = evbuffer_get_length(c->out);
	bool body = c->call != NULL && http_call_wants_body(c->call);

	if (c->in.n == 0)
		buf_done(&c->in); /* who only waits holds no buffer */
	if (c->state == CONN_LINGER)
		return;
	/* So much behind a request that is held that its end could not be seen any more. */
	if (c->in.n >= IN_WAITING_MAX && c->call != NULL && c->call->on_close != NULL &&
		!c->call->begun) {
		conn_close(c);
		return;
	}
	if (c->closing && waiting == 0 && c->call == NULL) {
		conn_end(c);
		return;
	}
	if (c->state == CONN_CALL) {
		if (!body) {
			c->in_due = NEVER;
		} else if (c->in_due == NEVER) {
			c->window = 0;
			conn_due(c, &c->in_due, c->server->cfg.deadlines.body);
		}
	}
	loop_fd_want(c->watch, (wants_read(c) ? LOOP_READ : 0) |
				       (waiting != 0 || c->read_wants_write ? LOOP_WRITE : 0));
	if (c->ssl != NULL && tls_pending(c->ssl) && wants_read(c))
		conn_kick(c);
}
