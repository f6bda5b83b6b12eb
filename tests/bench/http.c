/*
 * lib/http against floors measured in the same run: small JSON GETs per second of one core beside a
 * raw epoll loop that writes a fixed answer, memory of an idle SSE connection, and CPU of a 1 GiB
 * upload into SHA-256 beside read + SHA-256. Each server is a child of its own; its CPU time is
 * what the kernel reports at its end, so that the load generator's share of the cores does not
 * count. Median of the rounds. Prints JSON lines: {name, value, unit, floor, ratio, goal, ok}.
 */
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/crypto/hash.h"
#include "lib/http/reply.h"
#include "lib/http/server.h"
#include "lib/http/sse.h"
#include "lib/loop/loop.h"
#include "lib/loop/signal.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5, CLIENTS = 64, REQUESTS = 60000, STREAMS = 2000, PIECE = 256 << 10 };
static const int64_t upload_bytes = INT64_C(1) << 30;
static const char answer[] = "{\"id\":\"run_01kb9zv1f0m3s8q2x7w4t6\"}    ";

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

/* ---- the server under test ---- */

static struct loop *loop;

static void get_small(struct http_req *q)
{
	http_reply_json(q, 200, STR(answer));
}

static void put_on_body(void *arg, struct str bytes)
{
	hash_add(((struct http_req *)arg)->user, bytes);
}

static void put_on_end(void *arg)
{
	struct http_req *q = arg;
	unsigned char digest[HASH_SIZE];

	hash_end(q->user, digest);
	hash_free(q->user);
	http_reply_empty(q, 204);
}

static void put_on_abort(void *arg, const struct err *why)
{
	hash_free(((struct http_req *)arg)->user);
	http_reply_err(arg, why);
}

static void put(struct http_req *q)
{
	static const struct http_sink sink = { put_on_body, put_on_end, put_on_abort };

	q->user = hash_new();
	http_body_take(q, &sink, q);
}

static void stream_over(void *arg)
{
	(void)arg;
}

static void stream(struct http_req *q)
{
	sse_begin(q, stream_over, NULL);
}

static void on_term(void *arg, int signo)
{
	(void)arg, (void)signo;
	loop_stop(loop);
}

static const struct http_route routes[] = {
	{ "GET", "/small", get_small, HTTP_BODY_NONE, 0, NULL },
	{ "PUT", "/upload", put, HTTP_BODY_STREAM, 0, NULL },
	{ "GET", "/events", stream, HTTP_BODY_NONE, 0, NULL },
	{ .pattern = NULL },
};

static void serve_lib(int tell)
{
	struct http_config c = { .routes = routes,
		.limits = { .requests = 100000000, .per_ip = 100000 } };
	struct http_server *s;
	struct err e;
	int port = 0;

	log_set_level(LOG_WARN);
	loop = loop_new();
	s = http_server_new(loop, &c);
	must(http_server_listen(s, "127.0.0.1", 0, NULL, &port, &e) == 0, "listen");
	loop_signal_new(loop, SIGTERM, on_term, NULL);
	must(write(tell, &port, sizeof port) == (ssize_t)sizeof port, "write");
	loop_run(loop);
	_exit(0);
}

/* ---- the floors ---- */

static int raw_listen(int tell)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM, 0), port;

	must(bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 1000) == 0 &&
			getsockname(fd, (struct sockaddr *)&a, &n) == 0,
		"listen");
	port = ntohs(a.sin_port);
	must(write(tell, &port, sizeof port) == (ssize_t)sizeof port, "write");
	return fd;
}

/* epoll, read, write: what any server of this kind must do, with the same bytes as ours. */
static void serve_raw(int tell)
{
	static const char fixed[] =
		"HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 03:36:30 GMT\r\n"
		"Content-Type: application/json\r\nContent-Length: 40\r\n"
		"X-Request-Id: req_01m8n8d39zj3cvhm4151m0fy3p\r\n"
		"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\r\n"
		"{\"id\":\"run_01kb9zv1f0m3s8q2x7w4t6\"}    ";
	int at = raw_listen(tell), ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = at }, got[64];
	char in[4096];

	epoll_ctl(ep, EPOLL_CTL_ADD, at, &ev);
	for (;;) {
		int n = epoll_wait(ep, got, 64, -1);

		for (int i = 0; i < n; i++) {
			int fd = got[i].data.fd, on = 1;

			if (fd == at) {
				ev.data.fd = accept4(at, NULL, NULL, SOCK_NONBLOCK);
				setsockopt(ev.data.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
				epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
			} else if (read(fd, in, sizeof in) <= 0 ||
				   write(fd, fixed, sizeof fixed - 1) < 0) {
				close(fd);
			}
		}
	}
}

static void serve_raw_upload(int tell)
{
	static char in[PIECE];
	int fd = accept(raw_listen(tell), NULL, NULL);
	struct hash *h = hash_new();
	unsigned char digest[HASH_SIZE];
	int64_t total = 0;
	ssize_t n;

	while (total < upload_bytes && (n = read(fd, in, sizeof in)) > 0) {
		hash_add(h, (struct str){ in, (size_t)n });
		total += n;
	}
	hash_end(h, digest);
	must(write(fd, "HTTP/1.1 204 \r\n\r\n", 17) == 17, "write");
	for (;;)
		pause();
}

/* ---- running a server, and loading it ---- */

struct child {
	pid_t pid;
	int port;
};

static struct child start(void (*serve)(int tell))
{
	struct child c = { .pid = 0 };
	int fd[2];

	must(pipe(fd) == 0, "pipe");
	c.pid = fork();
	must(c.pid >= 0, "fork");
	if (c.pid == 0)
		serve(fd[1]);
	must(read(fd[0], &c.port, sizeof c.port) == (ssize_t)sizeof c.port, "start");
	close(fd[0]);
	close(fd[1]);
	return c;
}

/* CPU seconds that the child has used. */
static double stop(struct child c)
{
	struct rusage u;
	int status;

	kill(c.pid, SIGTERM);
	must(wait4(c.pid, &status, 0, &u) == c.pid, "wait");
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int dial(struct child c)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)c.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

static void say(int fd, const char *text)
{
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "write");
}

/* Requests a second of one core: each client has one request under way at a time. */
static double get_rate(void (*serve)(int tell))
{
	static const char ask[] = "GET /small HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n"
				  "Authorization: Bearer tdm_pat_0123456789ab\r\n\r\n";
	struct child c = start(serve);
	int ep = epoll_create1(0), done = 0, fds[CLIENTS];
	struct epoll_event ev = { .events = EPOLLIN }, got[CLIENTS];
	char in[4096];

	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = ev.data.fd = dial(c);
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev);
		say(fds[i], ask);
	}
	while (done < REQUESTS) {
		int n = epoll_wait(ep, got, CLIENTS, 5000);

		must(n > 0, "wait for answers");
		for (int i = 0; i < n; i++) {
			must(read(got[i].data.fd, in, sizeof in) > 100, "read");
			done++;
			say(got[i].data.fd, ask);
		}
	}
	double cpu = stop(c);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	close(ep);
	return done / cpu;
}

static double upload_cpu(void (*serve)(int tell))
{
	static char piece[PIECE];
	struct child c = start(serve);
	int fd = dial(c);
	char head[128];

	if (serve == serve_lib) {
		str_print(head, sizeof head,
			"PUT /upload HTTP/1.1\r\nHost: a\r\nContent-Length: %lld\r\n\r\n",
			(long long)upload_bytes);
		say(fd, head);
	}
	for (int64_t left = upload_bytes; left > 0;) {
		ssize_t n = write(fd, piece, left < PIECE ? (size_t)left : PIECE);

		must(n > 0, "write");
		left -= n;
	}
	must(read(fd, head, sizeof head) > 10, "read");
	double cpu = stop(c);
	close(fd);
	return cpu;
}

static double rss_kib(pid_t pid)
{
	char path[64], text[128] = "";
	struct str rest, word;
	uint64_t pages = 0;

	str_print(path, sizeof path, "/proc/%d/statm", (int)pid);
	FILE *f = fopen(path, "r");
	must(f != NULL && fgets(text, sizeof text, f) != NULL, path);
	fclose(f);
	rest = str_c(text); /* size resident … */
	must(str_next(&rest, ' ', &word) && str_next(&rest, ' ', &word) &&
			num_parse_u64(word, 1, UINT64_MAX, &pages),
		path);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void streams_open(struct child c, int *fds, int n)
{
	char in[4096];

	for (int i = 0; i < n; i++) {
		fds[i] = dial(c);
		say(fds[i], "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
		must(read(fds[i], in, sizeof in) > 100, "read");
	}
}

static double sse_kib(void)
{
	static int fds[STREAMS + 10];
	struct child c = start(serve_lib);

	streams_open(c, fds, 10); /* what comes with the first ones is not theirs */
	double before = rss_kib(c.pid);
	streams_open(c, fds + 10, STREAMS);
	double each = (rss_kib(c.pid) - before) / STREAMS;
	stop(c);
	for (int i = 0; i < STREAMS + 10; i++)
		close(fds[i]);
	return each;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, ascending);
	return v[n / 2];
}

static void line(
	const char *name, double value, const char *unit, double floor, double goal, bool ok)
{
	printf("{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", ", name, value, unit);
	if (floor > 0)
		printf("\"floor\": %.3f, \"ratio\": %.3f, ", floor, value / floor);
	else
		printf("\"floor\": null, \"ratio\": null, ");
	printf("\"goal\": %.3f, \"ok\": %s}\n", goal, ok ? "true" : "false");
	fflush(stdout);
}

int main(void)
{
	double ours[ROUNDS], raw[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		ours[i] = get_rate(serve_lib);
		raw[i] = get_rate(serve_raw);
	}
	double rate = median(ours, ROUNDS), most = median(raw, ROUNDS);
	line("http.get_per_s", rate, "requests/s/core", most, 30000, rate >= 30000);
	double each = sse_kib();
	line("http.sse_kb", each, "KiB/connection", 0, 4, each <= 4);
	for (int i = 0; i < 3; i++) {
		ours[i] = upload_cpu(serve_lib);
		raw[i] = upload_cpu(serve_raw_upload);
	}
	double cpu = median(ours, 3), least = median(raw, 3);
	line("http.upload_cpu_s", cpu, "CPU s/GiB", least, 1.5 * least, cpu <= 1.5 * least);
	return 0;
}
