/*
 * A load of HTTP/1.1 on one thread: parked workers and submitted runs, for the benchmarks.
 *
 *     bench_load dispatch PORT PROJECT ADMIN_TOKEN WORKERS RATE SECONDS
 *         Enrols WORKERS workers, parks them, submits RATE runs a second and measures from the
 * first byte of each submission to the last byte of the assignment in a worker's hand. bench_load
 * submit PORT PROJECT ADMIN_TOKEN CONNECTIONS SECONDS Submits as fast as the server answers.
 *
 * Prints one JSON object. Talks to 127.0.0.1 only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REPLY_MAX = 1 << 20, HELD_MAX = 4000, RUNS_MAX = 1 << 20, SUBMITTERS = 32 };

struct conn {
	int fd;
	char *reply;
	size_t got;
	bool busy;
	long seq; /* of the submission on its way */
	bool worker;
	char token[128];
	char (*held)[40]; /* attempts */
	long *epochs;
	int n_held;
};

static int port;
static const char *project, *admin;
static double started_at[RUNS_MAX], assigned_at[RUNS_MAX];
static long accepted, refused;

/* Decimal digits at p, as a number. */
static long number(const char *p)
{
	long n = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + (*p - '0');
	return n;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void conn_open(struct conn *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (c->reply == NULL)
		c->reply = malloc(REPLY_MAX);
	c->got = 0;
}

static void conn_send(
	struct conn *c, const char *path, const char *token, const char *body, size_t n)
{
	static char out[REPLY_MAX];
	int head = snprintf(out, sizeof out,
		"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "
		"application/json\r\n"
		"Content-Length: %zu\r\n\r\n",
		path, token, n);

	memcpy(out + head, body, n);
	for (size_t at = 0, end = (size_t)head + n; at < end;) {
		ssize_t w = write(c->fd, out + at, end - at);
		if (w < 0 && errno != EAGAIN)
			die("write");
		at += w > 0 ? (size_t)w : 0;
	}
	c->got = 0;
	c->busy = true;
}

/* The body, when the whole reply has come. */
static char *conn_read(struct conn *c, int *status)
{
	ssize_t n = read(c->fd, c->reply + c->got, REPLY_MAX - 1 - c->got);

	if (n <= 0) {
		close(c->fd);
		conn_open(c);
		c->busy = false;
		*status = 0;
		return c->reply;
	}
	c->got += (size_t)n;
	c->reply[c->got] = '\0';
	char *end = strstr(c->reply, "\r\n\r\n"),
	     *length = strcasestr(c->reply, "\r\ncontent-length:");
	if (end == NULL)
		return NULL;
	size_t body = length != NULL && length < end
			      ? (size_t)number(length + 17 + strspn(length + 17, " "))
			      : 0;
	if (c->got < (size_t)(end + 4 - c->reply) + body)
		return NULL;
	*status = (int)number(c->reply + 9);
	c->busy = false;
	return end + 4;
}

static char *call(struct conn *c, const char *path, const char *token, const char *body)
{
	char *reply;
	int status;

	conn_send(c, path, token, body, strlen(body));
	while ((reply = conn_read(c, &status)) == NULL)
		;
	if (status / 100 != 2) {
		fprintf(stderr, "%s: %s\n", path, reply);
		exit(1);
	}
	return reply;
}

/* The string after "key":" in a JSON text, into out. */
static char *pick(const char *json, const char *key, char *out, size_t size)
{
	char mark[64];
	const char *p;
	size_t n = 0;

	snprintf(mark, sizeof mark, "\"%s\":\"", key);
	p = strstr(json, mark);
	if (p == NULL)
		return NULL;
	for (p += strlen(mark); *p != '"' && n + 1 < size; p++)
		out[n++] = *p;
	out[n] = '\0';
	return out;
}

/* ---- workers ---- */

static void worker_enrol(struct conn *c, int i)
{
	char join[128], body[128];

	conn_open(c);
	if (pick(call(c, "/api/v1/workers/join-tokens", admin, "{}"), "token", join, sizeof join) ==
		NULL)
		exit(1);
	snprintf(body, sizeof body, "{\"name\":\"bench-%d-%d\"}", getpid(), i);
	if (pick(call(c, "/api/v1/workers/enroll", join, body), "token", c->token,
		    sizeof c->token) == NULL)
		exit(1);
	c->worker = true;
	c->held = calloc(HELD_MAX, sizeof *c->held);
	c->epochs = calloc(HELD_MAX, sizeof *c->epochs);
}

static void worker_sync(struct conn *c, bool wait)
{
	static char body[REPLY_MAX / 2];
	size_t n = (size_t)snprintf(body, sizeof body,
		"{\"boot_id\":\"b\",\"release\":\"bench\",\"runtimes\":[\"process\"],\"cpus\":1000,"
		"\"memory\":70368744177664,"
		"\"disk_free\":1099511627776,\"wait\":%s,\"attempts\":[",
		wait ? "true" : "false");

	for (int i = 0; i < c->n_held; i++)
		n += (size_t)snprintf(body + n, sizeof body - n,
			"%s{\"id\":\"%s\",\"epoch\":%ld,\"state\":\"preparing\"}", i > 0 ? "," : "",
			c->held[i], c->epochs[i]);
	n += (size_t)snprintf(body + n, sizeof body - n, "]}");
	conn_send(c, "/api/v1/workers/self/sync", c->token, body, n);
}

static void worker_took(struct conn *c, char *reply)
{
	double t = now();
	char *p = reply;

	while ((p = strstr(p, "\"attempt\":\"")) != NULL && c->n_held < HELD_MAX) {
		char *epoch = strstr(p, "\"epoch\":"), *env = strstr(p, "\"env\":{\"T\":\"");
		pick(p, "attempt", c->held[c->n_held], 40);
		c->epochs[c->n_held++] = epoch != NULL ? number(epoch + 8) : 0;
		if (env != NULL)
			assigned_at[number(env + 12) % RUNS_MAX] = t;
		p += 11;
	}
}

/* ---- submissions ---- */

static void submit(struct conn *c, long seq)
{
	static char body[1024], path[256];
	int n = snprintf(body, sizeof body,
		"{\"source\":\"apiVersion: tidemill/v1\\nkind: Pipeline\\nmetadata: {name: "
		"bench}\\nspec:\\n  steps:\\n"
		"    a: {run: ['true'], resources: {cpus: 0.01, memory: 4MiB}, env: {T: "
		"'%ld'}}\\n\"}",
		seq);

	snprintf(path, sizeof path, "/api/v1/projects/%s/runs", project);
	c->seq = seq;
	started_at[seq % RUNS_MAX] = now();
	conn_send(c, path, admin, body, (size_t)n);
}

static void on_reply(struct conn *c, int status, char *body)
{
	if (c->worker) {
		if (status == 200)
			worker_took(c, body);
		worker_sync(c, true);
	} else if (status == 201) {
		accepted++;
	} else {
		refused++;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(long sent, double seconds)
{
	double *ms = calloc((size_t)sent + 1, sizeof *ms);
	long n = 0;

	for (long i = 0; i < sent && i < RUNS_MAX; i++)
		if (assigned_at[i] != 0)
			ms[n++] = (assigned_at[i] - started_at[i]) * 1e3;
	qsort(ms, (size_t)n, sizeof *ms, by_value);
	printf("{\"sent\":%ld,\"accepted\":%ld,\"refused\":%ld,\"assigned\":%ld,\"per_s\":%.1f",
		sent, accepted, refused, n, (double)accepted / seconds);
	if (n > 0)
		printf(",\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f",
			ms[n / 2], ms[n * 9 / 10], ms[n * 99 / 100], ms[n - 1]);
	printf("}\n");
	free(ms);
}

/* One turn of the loop; handles whatever has come. */
static void turn(int ep, int wait_ms)
{
	struct epoll_event ev[256];
	int n = epoll_wait(ep, ev, 256, wait_ms);

	for (int i = 0; i < n; i++) {
		struct conn *c = ev[i].data.ptr;
		int fd = c->fd, status;
		char *body = conn_read(c, &status);
		if (c->fd != fd)
			epoll_ctl(ep, EPOLL_CTL_ADD, c->fd,
				&(struct epoll_event){ .events = EPOLLIN, .data.ptr = c });
		if (body != NULL)
			on_reply(c, status, body);
	}
}

static void watch(int ep, struct conn *c)
{
	epoll_ctl(ep, EPOLL_CTL_ADD, c->fd,
		&(struct epoll_event){ .events = EPOLLIN, .data.ptr = c });
}

static struct conn *idle(struct conn *list, int n)
{
	for (int i = 0; i < n; i++)
		if (!list[i].busy)
			return &list[i];
	return NULL;
}

static void run_dispatch(int workers, double rate, double seconds)
{
	struct conn *w = calloc((size_t)workers + 1, sizeof *w), *s = calloc(SUBMITTERS, sizeof *s);
	int ep = epoll_create1(EPOLL_CLOEXEC);
	long sent = 0;

	for (int i = 0; i < workers; i++)
		worker_enrol(&w[i], i);
	for (int i = 0; i < workers; i++) {
		watch(ep, &w[i]);
		worker_sync(&w[i], false);
	}
	for (double end = now() + 3; now() < end;)
		turn(ep, 10);
	for (int i = 0; i < SUBMITTERS; i++) {
		conn_open(&s[i]);
		watch(ep, &s[i]);
	}
	(void)fprintf(stderr, "parked\n");
	double begin = now();
	while (now() - begin < seconds) {
		struct conn *c = idle(s, SUBMITTERS);
		double due = begin + (double)sent / rate, left = due - now();
		if (left <= 0 && c != NULL)
			submit(c, sent++);
		else
			turn(ep, left > 0.001 ? 1 : 0);
	}
	double took = now() - begin;
	for (double end = now() + 3; now() < end;)
		turn(ep, 10);
	report(sent, took);
}

static void run_submit(int connections, double seconds)
{
	struct conn *s = calloc((size_t)connections + 1, sizeof *s);
	int ep = epoll_create1(EPOLL_CLOEXEC);
	long sent = 0;

	for (int i = 0; i < connections; i++) {
		conn_open(&s[i]);
		watch(ep, &s[i]);
	}
	double begin = now();
	while (now() - begin < seconds) {
		struct conn *c;
		while ((c = idle(s, connections)) != NULL)
			submit(c, sent++);
		turn(ep, 10);
	}
	report(sent, now() - begin);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 20000, 20000 };

	if (argc < 7) {
		fprintf(stderr, "usage: bench_load dispatch|submit PORT PROJECT TOKEN COUNT …\n");
		return 2;
	}
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (number(argv[5]) < 1 || number(argv[5]) > 100000)
		return 2;
	port = (int)number(argv[2]);
	project = argv[3];
	admin = argv[4];
	if (strcmp(argv[1], "dispatch") == 0 && argc == 8)
		run_dispatch(
			(int)number(argv[5]), (double)number(argv[6]), (double)number(argv[7]));
	else
		run_submit((int)number(argv[5]), (double)number(argv[6]));
	return 0;
}
