/*
 * Loads of the tracking API, as MLflow's clients put them; each prints one JSON object.
 *
 *     bench_track MODE PORT TOKEN CONNECTIONS SECONDS POINTS
 *
 * MODE metric: log-metric; batch: log-batch of POINTS points, of ten keys; create: runs/create;
 * history: get-history of one metric with 25,000 points. Each connection has a run of its own and
 * sends its next request when it is answered. No point comes twice. PORT may be that of MLflow's
 * own server (TOKEN ""), for comparison.
 */
#include "tests/bench/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 10, HISTORY = 25000, BATCH_MAX = 1000, WAIT_MAX = 120, BODY_MAX = 256 << 10 };
#define M "/api/2.0/mlflow/"

struct client {
	struct conn conn;
	char run[64];
	long seq;
};

static const char *token;
static char body[BODY_MAX], experiment[64];
static long done, points;
static struct times delays;

static void on_reply(struct conn *c, int status, char *reply)
{
	if (status != 200) {
		(void)fprintf(stderr, "answered %d: %.300s\n", status, reply);
		exit(1);
	}
	done++;
	times_add(&delays, (wire_now() - c->sent_at) * 1e3);
}

static void make_experiment(struct conn *c)
{
	(void)snprintf(body, sizeof body, "{\"name\":\"bench-%ld\"}", (long)(wire_now() * 1e6));
	wire_pick(wire_call(c, M "experiments/create", token, body), "experiment_id", experiment,
		sizeof experiment);
}

static void put_create(void)
{
	(void)snprintf(body, sizeof body,
		"{\"experiment_id\":\"%s\",\"start_time\":1700000000000,\"run_name\":\"bench\","
		"\"tags\":[{\"key\":\"mlflow.user\",\"value\":\"bench\"}]}",
		experiment);
}

static void make_run(struct client *c)
{
	put_create();
	wire_pick(
		wire_call(&c->conn, M "runs/create", token, body), "run_id", c->run, sizeof c->run);
}

static void put_batch(struct client *c, long n, int keys)
{
	int at = snprintf(body, sizeof body, "{\"run_id\":\"%s\",\"metrics\":[", c->run);

	for (long i = 0; i < n; i++, c->seq++)
		at += snprintf(body + at, sizeof body - (size_t)at,
			"%s{\"key\":\"metric_%ld\",\"value\":%.6f,\"timestamp\":%ld,\"step\":%ld}",
			i > 0 ? "," : "", c->seq % keys, 1.0 / (double)(c->seq + 1),
			1700000000000 + c->seq, c->seq / keys);
	(void)snprintf(body + at, sizeof body - (size_t)at, "]}");
}

static void send_metric(struct client *c)
{
	(void)snprintf(body, sizeof body,
		"{\"run_id\":\"%s\",\"key\":\"metric_%ld\",\"value\":%.6f,\"timestamp\":%ld,"
		"\"step\":%ld}",
		c->run, c->seq % KEYS, 1.0 / (double)(c->seq + 1), 1700000000000 + c->seq,
		c->seq / KEYS);
	c->seq++;
	wire_post(&c->conn, M "runs/log-metric", token, body);
}

static void send_batch(struct client *c)
{
	put_batch(c, points, KEYS);
	wire_post(&c->conn, M "runs/log-batch", token, body);
}

static void send_create(struct client *c)
{
	put_create();
	wire_post(&c->conn, M "runs/create", token, body);
}

static void send_history(struct client *c)
{
	char path[256];

	(void)snprintf(path, sizeof path,
		M "metrics/get-history?run_id=%s&metric_key=metric_0&max_results=%d", c->run,
		HISTORY);
	wire_send(&c->conn, "GET", path, token, "", 0);
}

static void make_history(struct client *c)
{
	for (int i = 0; i < HISTORY; i += BATCH_MAX) {
		put_batch(c, BATCH_MAX, 1);
		(void)wire_call(&c->conn, M "runs/log-batch", token, body);
	}
}

static const struct mode {
	const char *name;
	void (*send)(struct client *c);
	void (*prepare)(struct client *c); /* NULL: nothing more than a run */
} modes[] = {
	{ "metric", send_metric, NULL },
	{ "batch", send_batch, NULL },
	{ "create", send_create, NULL },
	{ "history", send_history, make_history },
};

static const struct mode *mode_of(const char *name)
{
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (strcmp(name, modes[i].name) == 0)
			return &modes[i];
	return NULL;
}

static void run(const struct mode *m, int n, double seconds)
{
	struct client *all = calloc((size_t)n, sizeof *all);
	double begin, sum = 0;

	for (int i = 0; i < n; i++) {
		wire_open(&all[i].conn, on_reply);
		if (i == 0)
			make_experiment(&all[i].conn);
		make_run(&all[i]);
		if (m->prepare != NULL)
			m->prepare(&all[i]);
	}
	begin = wire_now();
	/* A slow one is waited for until each connection has been answered once. */
	while (wire_now() - begin < seconds || (done < n && wire_now() - begin < WAIT_MAX)) {
		for (int i = 0; i < n; i++)
			if (!all[i].conn.busy)
				m->send(&all[i]);
		wire_turn(10);
	}
	double took = wire_now() - begin;
	if (done < n) {
		(void)fprintf(stderr, "no answer to each connection within %d s\n", WAIT_MAX);
		exit(1);
	}
	times_sort(&delays);
	for (size_t i = 0; i < delays.n; i++)
		sum += delays.ms[i];
	(void)printf("{\"requests\":%ld,\"per_s\":%.1f,\"points_per_s\":%.1f,\"mean_ms\":%.3f,"
		     "\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
		done, (double)done / took, (double)(done * points) / took, sum / (double)delays.n,
		times_at(&delays, .5), times_at(&delays, .99));
}

int main(int argc, char **argv)
{
	const struct mode *m = argc == 7 ? mode_of(argv[1]) : NULL;
	long n = m != NULL ? wire_number(argv[4]) : 0;

	points = m != NULL ? wire_number(argv[6]) : 0;
	if (m == NULL || n < 1 || points < 1 || points > BATCH_MAX) {
		(void)fprintf(stderr, "usage: see tests/bench/track.c\n");
		return 2;
	}
	wire_init((int)wire_number(argv[2]));
	token = argv[3][0] != '\0' ? argv[3] : NULL;
	run(m, (int)n, (double)wire_number(argv[5]));
	return 0;
}
