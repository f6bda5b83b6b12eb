#include "server/rest/metrics.h"

#include "api/route.h"
#include "lib/base/mem.h"
#include "lib/db/db.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "server/rest/events.h"
#include "server/rest/handlers.h"
#include "server/rest/logs.h"
#include "server/rest/rest.h"
#include "server/sched/fleet.h"
#include "server/sched/hub.h"
#include "server/sched/sched.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CLASSES = 6, BUCKETS = DB_BUCKETS, TEXT_MAX = 4 << 20, PROC_TEXT = 256 };

struct operation {
	uint64_t classes[CLASSES]; /* by the first digit of the status; 0: no answer */
	uint64_t buckets[BUCKETS]; /* by duration; streams are not in them */
	uint64_t sent, us;
};

struct metrics {
	struct operation *ops; /* one for each route, and one for what has none */
};

struct metrics *metrics_new(void)
{
	struct metrics *m = mem_new_of(struct metrics);

	m->ops = mem_new(routes_count + 1, sizeof *m->ops);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (m == NULL)
		return;
	mem_free(m->ops);
	mem_free(m);
}

void metrics_on_done(void *arg, const struct http_done *d)
{
	const struct app *app = arg;
	const struct route *r = rest_route_of(d->q);
	struct operation *op = &app->metrics->ops[r != NULL ? (size_t)(r - routes) : routes_count];
	size_t class = d->status >= 100 && d->status < 600 ? (size_t)d->status / 100 : 0, i = 0;

	op->classes[class]++;
	op->sent += d->sent;
	if (r != NULL && r->reply == REPLY_STREAM)
		return;
	op->us += (uint64_t)d->took_us;
	while ((double)d->took_us / 1e6 > db_bucket_s[i])
		i++;
	op->buckets[i]++;
}

/* ---- the text ---- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(
	struct buf *b, const char *name, const char *type, const char *help, double value)
{
	head(b, name, type, help);
	buf_addf(b, "%s %.15g\n", name, value);
}

static void histogram(struct buf *b, const char *name, const char *label, const char *value,
	const uint64_t *counts, uint64_t sum_us)
{
	uint64_t n = 0;

	for (int i = 0; i < BUCKETS; i++) {
		n += counts[i];
		if (i == BUCKETS - 1)
			buf_addf(b, "%s_bucket{%s=\"%s\",le=\"+Inf\"} %llu\n", name, label, value,
				(unsigned long long)n);
		else
			buf_addf(b, "%s_bucket{%s=\"%s\",le=\"%g\"} %llu\n", name, label, value,
				db_bucket_s[i], (unsigned long long)n);
	}
	buf_addf(b, "%s_sum{%s=\"%s\"} %.6f\n%s_count{%s=\"%s\"} %llu\n", name, label, value,
		(double)sum_us / 1e6, name, label, value, (unsigned long long)n);
}

static const char *op_name(size_t i)
{
	return i < routes_count ? routes[i].id : "none";
}

static uint64_t op_total(const struct operation *op)
{
	uint64_t n = 0;

	for (int k = 0; k < CLASSES; k++)
		n += op->classes[k];
	return n;
}

static void print_http(const struct app *app, struct buf *b)
{
	static const char *const class_names[CLASSES] = { "none", "1xx", "2xx", "3xx", "4xx",
		"5xx" };
	const struct operation *ops = app->metrics->ops;

	head(b, "tidemill_http_requests_total", "counter", "Requests by operation and status");
	for (size_t i = 0; i <= routes_count; i++)
		for (int k = 0; k < CLASSES; k++)
			if (ops[i].classes[k] != 0)
				buf_addf(b,
					"tidemill_http_requests_total{route=\"%s\",code=\"%s\"} "
					"%llu\n",
					op_name(i), class_names[k],
					(unsigned long long)ops[i].classes[k]);
	head(b, "tidemill_http_request_duration_seconds", "histogram",
		"Time from the head to the end of the answer, without streams");
	for (size_t i = 0; i <= routes_count; i++)
		if (op_total(&ops[i]) != 0 &&
			(i == routes_count || routes[i].reply != REPLY_STREAM))
			histogram(b, "tidemill_http_request_duration_seconds", "route", op_name(i),
				ops[i].buckets, ops[i].us);
	head(b, "tidemill_http_sent_bytes_total", "counter", "Bytes of answers, without heads");
	for (size_t i = 0; i <= routes_count; i++)
		if (ops[i].sent != 0)
			buf_addf(b, "tidemill_http_sent_bytes_total{route=\"%s\"} %llu\n",
				op_name(i), (unsigned long long)ops[i].sent);
	single(b, "tidemill_http_connections", "gauge", "Open connections",
		(double)http_server_connections(app->http));
}

static const char *const lane_names[DB_LANE_COUNT] = { "read", "write", "relaxed", "bulk" };

/* One metric with a value for each lane; `at` is the value's place in struct db_stats. */
struct lane_metric {
	const char *name, *type, *help;
	double (*value)(const struct db_stats *s);
};
#define LANE_VALUE(member)                                                                         \
	static double lane_##member(const struct db_stats *s)                                      \
	{                                                                                          \
		return (double)s->member;                                                          \
	}
LANE_VALUE(conns)
LANE_VALUE(up)
LANE_VALUE(queued)
LANE_VALUE(in_flight)
LANE_VALUE(done)
LANE_VALUE(failed)
LANE_VALUE(resent)
LANE_VALUE(timed_out)
LANE_VALUE(losses)

static const struct lane_metric lane_metrics[] = {
	{ "tidemill_db_connections_wanted", "gauge", "Connections that there should be",
		lane_conns },
	{ "tidemill_db_connections_up", "gauge", "Connections that can be used", lane_up },
	{ "tidemill_db_units_queued", "gauge", "Units that wait for a connection", lane_queued },
	{ "tidemill_db_units_in_flight", "gauge", "Units that have been sent", lane_in_flight },
	{ "tidemill_db_units_total", "counter", "Units that have succeeded", lane_done },
	{ "tidemill_db_units_failed_total", "counter", "Units that have failed", lane_failed },
	{ "tidemill_db_units_resent_total", "counter", "Units that were sent again", lane_resent },
	{ "tidemill_db_units_timed_out_total", "counter", "Units that waited for too long",
		lane_timed_out },
	{ "tidemill_db_connections_lost_total", "counter", "Connections that broke", lane_losses },
};

static void print_db(const struct app *app, struct buf *b)
{
	struct db_stats s[DB_LANE_COUNT];

	for (int lane = 0; lane < DB_LANE_COUNT; lane++)
		s[lane] = db_stats(app->db, (enum db_lane)lane);
	for (size_t i = 0; i < sizeof lane_metrics / sizeof lane_metrics[0]; i++) {
		const struct lane_metric *m = &lane_metrics[i];
		head(b, m->name, m->type, m->help);
		for (int lane = 0; lane < DB_LANE_COUNT; lane++)
			buf_addf(b, "%s{lane=\"%s\"} %.15g\n", m->name, lane_names[lane],
				m->value(&s[lane]));
	}
	head(b, "tidemill_db_unit_duration_seconds", "histogram", "Time on the wire");
	for (int lane = 0; lane < DB_LANE_COUNT; lane++)
		histogram(b, "tidemill_db_unit_duration_seconds", "lane", lane_names[lane],
			s[lane].run_buckets, s[lane].run_us);
}

static void print_parts(const struct app *app, struct buf *b)
{
	struct logs_stats logs = logs_stats(app->logs);

	single(b, "tidemill_scheduler_leading", "gauge", "1 while this server leads",
		sched_leading(app->sched));
	single(b, "tidemill_queue_pending_steps", "gauge",
		"Steps that wait for a worker, as the leader knows",
		(double)sched_pending(app->sched));
	single(b, "tidemill_workers_parked", "gauge", "Workers that wait here for work",
		(double)fleet_parked(app->fleet));
	single(b, "tidemill_log_ingest_bytes_total", "counter", "Bytes of logs that were stored",
		(double)logs.bytes);
	single(b, "tidemill_log_appends_total", "counter", "Pieces of logs that were stored",
		(double)logs.appends);
	single(b, "tidemill_log_followers", "gauge", "Clients that follow a log",
		(double)logs.followers);
	single(b, "tidemill_log_attempts_known", "gauge", "Logs that are kept in mind",
		(double)logs.attempts);
	single(b, "tidemill_event_streams", "gauge", "Streams of events",
		(double)streams_count(app->streams));
	single(b, "tidemill_events_told_total", "counter", "Events that the outbox has told",
		(double)streams_told(app->streams));
	single(b, "tidemill_event_position", "gauge", "Id of the newest event that was told",
		(double)hub_position(app->hub));
}

/* ---- the process ---- */

static double resident_bytes(void)
{
	char text[PROC_TEXT];
	uint64_t pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	const char *p = text;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	while (*p != ' ' && *p != '\0')
		p++;
	while (*p == ' ')
		p++;
	while (*p >= '0' && *p <= '9')
		pages = pages * 10 + (uint64_t)(*p++ - '0');
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	double n = 0;

	if (d == NULL)
		return 0;
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n - 1; /* the folder itself */
}

static double cpu_seconds(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void print_process(const struct app *app, struct buf *b)
{
	head(b, "tidemill_build_info", "gauge", "1, with the version as a label");
	buf_addf(b, "tidemill_build_info{version=\"%s\"} 1\n", TIDEMILL_VERSION);
	single(b, "tidemill_loop_slow_turns_total", "counter", "Turns that took more than 50 ms",
		(double)loop_slow_turns(app->loop));
	single(b, "tidemill_work_pending", "gauge", "Jobs of the work pool that are not done",
		(double)work_pending(app->loop));
	single(b, "process_resident_memory_bytes", "gauge", "Resident memory", resident_bytes());
	single(b, "process_open_fds", "gauge", "Open file descriptors", open_fds());
	single(b, "process_cpu_seconds_total", "counter", "User and system time", cpu_seconds());
	single(b, "process_start_time_seconds", "gauge", "When the server was started",
		(double)app->started_at / 1e6);
	single(b, "tidemill_uptime_seconds", "gauge", "Time since the start",
		(double)(clock_now(app->clock) - app->started_at) / 1e6);
}

void metrics_print(const struct app *app, struct buf *b)
{
	print_http(app, b);
	print_db(app, b);
	print_parts(app, b);
	print_process(app, b);
}

static void metrics_get(struct call *c)
{
	struct buf b;

	buf_init(&b, TEXT_MAX);
	metrics_print(c->app, &b);
	BUG_ON(buf_failed(&b));
	http_reply_bytes(c->req, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&b));
	buf_done(&b);
}

const struct binding metrics_bindings[] = {
	{ "server.metrics", metrics_get },
	{ 0 },
};
