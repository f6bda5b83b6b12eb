#include "tests/bench/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { IN_FIRST = 8192, HEAD_MAX = 1024, EVENTS = 256 };

static int port, ep;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

double wire_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

long wire_number(const char *p)
{
	long n = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + (*p - '0');
	return n;
}

void wire_pick(const char *json, const char *key, char *out, size_t size)
{
	char mark[64];
	const char *p;
	size_t n = 0;

	(void)snprintf(mark, sizeof mark, "\"%s\":", key);
	p = strstr(json, mark);
	if (p != NULL)
		p += strlen(mark) + strspn(p + strlen(mark), " \n");
	if (p == NULL || *p++ != '"') {
		(void)fprintf(stderr, "no \"%s\" in %.500s\n", key, json);
		exit(1);
	}
	while (*p != '"' && *p != '\0' && n + 1 < size)
		out[n++] = *p++;
	out[n] = '\0';
}

void wire_init(int to)
{
	struct rlimit files;

	port = to;
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		die("epoll");
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

static void dial(struct conn *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	int one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev) < 0)
		die("epoll_ctl");
	c->got = 0;
}

void wire_open(struct conn *c, wire_cb *done)
{
	c->done = done;
	c->fd = -1;
	c->cap = IN_FIRST;
	c->in = malloc(c->cap + 1);
}

static void write_all(struct conn *c, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(c->fd, p, n);
		if (w < 0 && errno != EAGAIN && errno != EINTR)
			die("write");
		p += w > 0 ? w : 0;
		n -= w > 0 ? (size_t)w : 0;
	}
}

void wire_send(struct conn *c, const char *method, const char *path, const char *token,
	const char *body, size_t n)
{
	static char *out;
	static size_t cap;
	int head;

	if (c->fd < 0)
		dial(c);
	if (cap < HEAD_MAX + n)
		out = realloc(out, cap = HEAD_MAX + n);
	head = snprintf(out, HEAD_MAX,
		"%s %s HTTP/1.1\r\nHost: x\r\nX-Tidemill-Project: bench\r\n%s%s%s"
		"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		method, path, token != NULL ? "Authorization: Bearer " : "",
		token != NULL ? token : "", token != NULL ? "\r\n" : "", n);
	if (head < 0 || head >= HEAD_MAX)
		die("head");
	memcpy(out + head, body, n);
	c->sent_at = wire_now();
	c->busy = true;
	c->got = 0;
	write_all(c, out, (size_t)head + n);
}

void wire_post(struct conn *c, const char *path, const char *token, const char *body)
{
	wire_send(c, "POST", path, token, body, strlen(body));
}

static void hang_up(struct conn *c)
{
	(void)close(c->fd);
	c->fd = -1;
}

/* The body, when the whole answer has come. A connection that was closed while it waited for
 * nothing, or that the answer ends (after so many requests), is opened again with the next request.
 */
static char *take(struct conn *c, int *ret_status)
{
	ssize_t n;
	char *end, *length, *last;
	size_t body;

	if (c->cap - c->got < IN_FIRST / 2)
		c->in = realloc(c->in, (c->cap *= 2) + 1);
	n = read(c->fd, c->in + c->got, c->cap - c->got);
	if (n <= 0) {
		if (c->busy)
			die("the server closed a connection");
		hang_up(c);
		return NULL;
	}
	c->got += (size_t)n;
	c->in[c->got] = '\0';
	end = strstr(c->in, "\r\n\r\n");
	if (end == NULL)
		return NULL;
	length = strcasestr(c->in, "\r\ncontent-length:");
	body = length != NULL && length < end
		       ? (size_t)wire_number(length + 17 + strspn(length + 17, " "))
		       : 0;
	if (c->got < (size_t)(end + 4 - c->in) + body)
		return NULL;
	*ret_status = (int)wire_number(c->in + 9);
	c->busy = false;
	last = strcasestr(c->in, "\r\nconnection: close");
	if (last != NULL && last < end)
		hang_up(c);
	return end + 4;
}

void wire_turn(int wait_ms)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(ep, ev, EVENTS, wait_ms);

	for (int i = 0; i < n; i++) {
		struct conn *c = ev[i].data.ptr;
		int status;
		char *body = take(c, &status);
		if (body != NULL && c->done != NULL)
			c->done(c, status, body);
	}
}

struct conn *wire_idle(struct conn *list, int n)
{
	for (int i = 0; i < n; i++)
		if (!list[i].busy)
			return &list[i];
	return NULL;
}

char *wire_call(struct conn *c, const char *path, const char *token, const char *body)
{
	wire_cb *done = c->done;
	char *reply = NULL;
	int status = 0;

	c->done = NULL;
	wire_post(c, path, token, body);
	while (reply == NULL)
		reply = take(c, &status);
	c->done = done;
	if (status / 100 != 2) {
		(void)fprintf(stderr, "%s: %d %.500s\n", path, status, reply);
		exit(1);
	}
	return reply;
}

void times_add(struct times *t, double ms)
{
	if (t->n == t->cap)
		t->ms = realloc(t->ms, (t->cap = t->cap > 0 ? 2 * t->cap : 4096) * sizeof *t->ms);
	t->ms[t->n++] = ms;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void times_sort(struct times *t)
{
	if (t->n > 1)
		qsort(t->ms, t->n, sizeof *t->ms, by_value);
}

double times_at(const struct times *t, double q)
{
	return t->n > 0 ? t->ms[(size_t)(q * (double)(t->n - 1))] : 0;
}
