/*
 * Loads of the engine, for the benchmarks; each prints one JSON object.
 *
 *     bench_load submit PORT PROJECT TOKEN CONNECTIONS SECONDS
 *         Runs of one step, as fast as the server answers.
 *     bench_load dispatch PORT PROJECT TOKEN WORKERS RATE SECONDS
 *         WORKERS parked workers, RATE runs of one step a second: from the first byte of each
 *         submission to the last byte of the assignment in a worker's hand.
 *     bench_load fill PORT PROJECT TOKEN RUNS STEPS
 *         RUNS runs of STEPS steps each, which nobody takes.
 *     bench_load finish PORT PROJECT TOKEN WORKERS RUNS STEPS
 *         The same with parked workers, who take every step, report that it runs, agree on an empty
 *         log, and report its success: from the first submission until all is stored.
 *     bench_load hold PORT PROJECT TOKEN WORKERS RUNS STEPS
 *         The same until every step runs; then says "held" and waits for the end of its input.
 */
#include "tests/bench/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 1 << 20, RUNS_MAX = 1 << 20, SUBMITTERS = 32, ENROLLERS = 32, HELD_MAX = 2000 };
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum phase { TAKEN, RUNNING, LOGGED, OVER };
struct attempt {
	char id[40];
	long epoch;
	enum phase phase;
};

struct worker {
	struct conn conn;
	char token[128], join[128];
	struct attempt *held;
	int n, logs_at; /* logs_at: whose log is agreed on next */
	bool parked;
};

static const char *project, *admin;
static bool finishing, holding; /* what workers do with what they get */
static long accepted, refused, taken, running, over, parked;
static double *started_at;
static struct times delays;
static char body[BODY_MAX];

static struct worker *workers_new(int n)
{
	struct worker *w = calloc((size_t)n + 1, sizeof *w);

	for (int i = 0; i < n; i++)
		w[i].held = calloc(HELD_MAX, sizeof *w[i].held);
	return w;
}

/* ---- workers ---- */

static void worker_sync(struct worker *w, bool wait)
{
	static const char *const names[] = { "preparing", "running", "finishing", "succeeded" };
	size_t n = (size_t)snprintf(body, sizeof body,
		"{\"boot_id\":\"b\",\"release\":\"bench\",\"runtimes\":[\"process\"],\"cpus\":1000,"
		"\"memory\":70368744177664,\"disk_free\":1099511627776,\"wait\":%s,\"attempts\":[",
		wait ? "true" : "false");

	for (int i = 0; i < w->n; i++)
		n += (size_t)snprintf(body + n, sizeof body - n,
			"%s{\"id\":\"%s\",\"epoch\":%ld,\"state\":\"%s\"%s}", i > 0 ? "," : "",
			w->held[i].id, w->held[i].epoch, names[w->held[i].phase],
			w->held[i].phase >= RUNNING ? ",\"started_at\":\"2026-01-01T00:00:00Z\""
						    : "");
	n += (size_t)snprintf(body + n, sizeof body - n, "]}");
	wire_send(&w->conn, "POST", "/api/v1/workers/self/sync", w->token, body, n);
}

static void worker_take(struct worker *w, char *reply)
{
	double now = wire_now();

	for (char *p = reply; (p = strstr(p, "\"attempt\":\"")) != NULL; p += 11) {
		char *epoch = strstr(p, "\"epoch\":"), *env = strstr(p, "\"env\":{\"T\":\"");
		struct attempt *a = &w->held[w->n];
		if (w->n == HELD_MAX || epoch == NULL)
			exit(1);
		w->n++;
		*a = (struct attempt){ .epoch = wire_number(epoch + 8), .phase = TAKEN };
		wire_pick(p, "attempt", a->id, sizeof a->id);
		taken++;
		if (env != NULL && started_at != NULL)
			times_add(&delays,
				(now - started_at[wire_number(env + 12) % RUNS_MAX]) * 1e3);
	}
}

static void worker_forget(struct worker *w, const char *reply)
{
	const char *p = strstr(reply, "\"forget\":[");
	int kept = 0;

	if (p == NULL)
		return;
	for (int i = 0; i < w->n; i++) {
		const char *id = strstr(p, w->held[i].id);
		if (id != NULL && w->held[i].phase == OVER)
			over++;
		else
			w->held[kept++] = w->held[i];
	}
	w->n = kept;
}

/* Agrees on the log of one attempt; false when all are agreed on. */
static bool worker_log(struct worker *w)
{
	char path[128];

	while (w->logs_at < w->n && w->held[w->logs_at].phase != RUNNING)
		w->logs_at++;
	if (w->logs_at >= w->n)
		return false;
	(void)snprintf(path, sizeof path, "/api/v1/workers/self/attempts/%s/log/final",
		w->held[w->logs_at].id);
	(void)snprintf(body, sizeof body,
		"{\"epoch\":%ld,\"length\":0,\"digest\":\"" EMPTY_SHA256 "\"}",
		w->held[w->logs_at].epoch);
	w->held[w->logs_at++].phase = LOGGED;
	wire_post(&w->conn, path, w->token, body);
	return true;
}

static bool worker_move(struct worker *w, enum phase from, enum phase to)
{
	bool moved = false;

	for (int i = 0; i < w->n; i++)
		if (w->held[i].phase == from) {
			w->held[i].phase = to;
			moved = true;
			running += to == RUNNING;
		}
	return moved;
}

/* After each answer: what was taken runs; what runs is logged; what is logged is over. */
static void worker_on_reply(struct conn *c, int status, char *reply)
{
	struct worker *w = c->mine;

	if (status != 200) {
		(void)fprintf(stderr, "a worker was answered %d: %.300s\n", status, reply);
		exit(1);
	}
	if (!w->parked) {
		w->parked = true;
		parked++;
	}
	worker_take(w, reply);
	worker_forget(w, reply);
	if ((finishing || holding) && worker_move(w, TAKEN, RUNNING)) {
		w->logs_at = 0;
		worker_sync(w, false);
	} else if (!finishing) {
		worker_sync(w, true);
	} else if (!worker_log(w)) {
		worker_sync(w, !worker_move(w, LOGGED, OVER));
	}
}

/* ---- enrolling, several at once ---- */

static struct worker *fleet;
static int fleet_n, enrolling, enrolled;

static void enrol_next(struct conn *c);

static void enrol_on_enrolled(struct conn *c, int status, char *reply)
{
	struct worker *w = c->mine;

	if (status / 100 != 2) {
		(void)fprintf(stderr, "enrol: %.300s\n", reply);
		exit(1);
	}
	wire_pick(reply, "token", w->token, sizeof w->token);
	enrolled++;
	enrol_next(c);
}

static void enrol_on_join(struct conn *c, int status, char *reply)
{
	struct worker *w = c->mine;

	if (status / 100 != 2) {
		(void)fprintf(stderr, "join token: %.300s\n", reply);
		exit(1);
	}
	wire_pick(reply, "token", w->join, sizeof w->join);
	(void)snprintf(body, sizeof body, "{\"name\":\"bench-%d-%d\"}", getpid(), (int)(w - fleet));
	c->done = enrol_on_enrolled;
	wire_post(c, "/api/v1/workers/enroll", w->join, body);
}

static void enrol_next(struct conn *c)
{
	if (enrolling == fleet_n)
		return;
	c->mine = &fleet[enrolling++];
	c->done = enrol_on_join;
	wire_post(c, "/api/v1/workers/join-tokens", admin, "{}");
}

/* Enrols them, and waits until all are parked. */
static void fleet_start(int n)
{
	struct conn c[ENROLLERS] = { 0 };

	fleet = workers_new(n);
	fleet_n = n;
	for (int i = 0; i < ENROLLERS; i++) {
		wire_open(&c[i], NULL);
		enrol_next(&c[i]);
	}
	while (enrolled < n)
		wire_turn(100);
	for (int i = 0; i < n; i++) {
		wire_open(&fleet[i].conn, worker_on_reply);
		fleet[i].conn.mine = &fleet[i];
		worker_sync(&fleet[i], false);
	}
	while (parked < n)
		wire_turn(100);
	for (double end = wire_now() + 1; wire_now() < end;)
		wire_turn(10);
	(void)fprintf(stderr, "parked\n");
}

/* ---- submissions ---- */

static void on_submitted(struct conn *c, int status, char *reply)
{
	(void)c;
	if (status == 201) {
		accepted++;
		return;
	}
	if (refused++ == 0)
		(void)fprintf(stderr, "refused: %d %.300s\n", status, reply);
}

static void submit(struct conn *c, long seq, int steps)
{
	char path[256];
	size_t n = (size_t)snprintf(body, sizeof body,
		"{\"source\":\"apiVersion: tidemill/v1\\nkind: Pipeline\\nmetadata: {name: "
		"bench}\\nspec:\\n  steps:\\n");

	for (int i = 0; i < steps; i++)
		n += (size_t)snprintf(body + n, sizeof body - n,
			"    s%d: {run: ['true'], resources: {cpus: 0.01, memory: 4MiB}, env: {T: "
			"'%ld'}}\\n",
			i, seq);
	n += (size_t)snprintf(body + n, sizeof body - n, "\"}");
	(void)snprintf(path, sizeof path, "/api/v1/projects/%s/runs", project);
	if (started_at != NULL)
		started_at[seq % RUNS_MAX] = wire_now();
	wire_send(c, "POST", path, admin, body, n);
}

static struct conn *submitters(int n)
{
	struct conn *s = calloc((size_t)n + 1, sizeof *s);

	for (int i = 0; i < n; i++)
		wire_open(&s[i], on_submitted);
	return s;
}

static void report(long sent, double seconds)
{
	times_sort(&delays);
	(void)printf(
		"{\"sent\":%ld,\"accepted\":%ld,\"refused\":%ld,\"assigned\":%ld,\"finished\":%"
		"ld,\"seconds\":%.3f,\"per_s\":%.1f",
		sent, accepted, refused, taken, over, seconds, (double)accepted / seconds);
	if (delays.n > 0)
		(void)printf(",\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f",
			times_at(&delays, .5), times_at(&delays, .9), times_at(&delays, .99),
			times_at(&delays, 1));
	(void)printf("}\n");
	(void)fflush(stdout);
}

static void run_submit(int connections, double seconds)
{
	struct conn *s = submitters(connections), *c;
	double begin = wire_now();
	long sent = 0;

	while (wire_now() - begin < seconds) {
		while ((c = wire_idle(s, connections)) != NULL)
			submit(c, sent++, 1);
		wire_turn(10);
	}
	report(sent, wire_now() - begin);
}

static void run_dispatch(int n, double rate, double seconds)
{
	struct conn *s = submitters(SUBMITTERS);
	long sent = 0;

	started_at = calloc(RUNS_MAX, sizeof *started_at);
	fleet_start(n);
	double begin = wire_now();
	while (wire_now() - begin < seconds) {
		struct conn *c = wire_idle(s, SUBMITTERS);
		double left = begin + (double)sent / rate - wire_now();
		if (left <= 0 && c != NULL)
			submit(c, sent++, 1);
		else
			wire_turn(1); /* to poll without a pause would take the servers' CPU */
	}
	double took = wire_now() - begin;
	for (double end = wire_now() + 10; taken < sent && wire_now() < end;)
		wire_turn(10);
	report(sent, took);
}

/* Submits all runs, then goes on until `count` has come to all steps. */
static void run_bulk(int n, long runs, int steps, const long *count)
{
	struct conn *s = submitters(SUBMITTERS), *c;
	long sent = 0;

	if (n > 0)
		fleet_start(n);
	double begin = wire_now();
	while (accepted + refused < runs || (count != NULL && *count < runs * steps)) {
		while (sent < runs && (c = wire_idle(s, SUBMITTERS)) != NULL)
			submit(c, sent++, steps);
		wire_turn(10);
		if (wire_now() - begin > 240) {
			(void)fprintf(stderr, "not all came in time\n");
			break;
		}
	}
	report(sent, wire_now() - begin);
}

/* Parks on, until nobody listens any more. */
static void hold(void)
{
	char end;

	(void)fprintf(stderr, "held\n");
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long a[3] = { 0 };

	if (argc < 7 || argc > 8) {
		(void)fprintf(stderr, "usage: see tests/bench/load.c\n");
		return 2;
	}
	for (int i = 0; i < argc - 5; i++)
		a[i] = wire_number(argv[5 + i]);
	wire_init((int)wire_number(argv[2]));
	project = argv[3];
	admin = argv[4];
	finishing = strcmp(mode, "finish") == 0;
	holding = strcmp(mode, "hold") == 0;
	if (strcmp(mode, "submit") == 0)
		run_submit((int)a[0], (double)a[1]);
	else if (strcmp(mode, "dispatch") == 0)
		run_dispatch((int)a[0], (double)a[1], (double)a[2]);
	else if (strcmp(mode, "fill") == 0)
		run_bulk(0, a[0], (int)a[1], NULL);
	else if (finishing)
		run_bulk((int)a[0], a[1], (int)a[2], &over);
	else if (holding)
		run_bulk((int)a[0], a[1], (int)a[2], &running);
	else
		return 2;
	if (holding)
		hold();
	return 0;
}
