/*
 * What a command uses, brought to its tracking run. The init looks and writes (CTL_USAGE); here it
 * becomes points, which wait in memory while the server is away: when that is full, every second
 * sample goes, so that what is left still spans the whole time. Nothing waits for them but the last
 * word of the attempt, which keeps the devices: END_WAIT in all, whatever the server says of later.
 */
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/loop.h"
#include "worker/gpus.h"
#include "worker/host.h"
#include "worker/init/ctl.h"
#include "worker/job.h"
#include "worker/ship/ship.h"

#include <limits.h>

enum { SAMPLES_MAX = 64, END_TRIES = 3, BODY_MAX = 256 << 10, ARENA_MAX = 1 << 20 };
#define SEND_TIMEOUT (10 * CLOCK_SECOND)
#define END_WAIT     SEND_TIMEOUT /* what is on its way when it begins is over when it ends */
#define TIMEOUT_MIN  (CLOCK_SECOND / 100)

struct usage_sample {
	int64_t at_us;
	struct usage_point *points;
	size_t n;
};

/* Look → send, again and again → (the attempt is over) next. */
static void usage_send(void *arg);
static void usage_on_sent(void *arg, const struct fetch_reply *reply, const struct err *e);

void job_usage_init(struct job *j)
{
	loop_timer_init(&j->usage.again, j->agent->loop, usage_send, j);
	buf_init(&j->usage.body, BODY_MAX);
}

static void drop_first(struct job_usage *u, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mem_free(u->samples[i].points);
	u->n -= n;
	if (u->n != 0)
		memmove(u->samples, u->samples + n, u->n * sizeof *u->samples);
}

void job_usage_done(struct job *j)
{
	loop_timer_cancel(&j->usage.again);
	drop_first(&j->usage, j->usage.n);
	mem_free(j->usage.samples);
	buf_done(&j->usage.body);
}

void job_usage_cancel(struct job *j)
{
	loop_timer_cancel(&j->usage.again);
	if (j->usage.request != NULL)
		fetch_cancel(j->usage.request);
}

/* ---- looking -------------------------------------------------------------------------------- */

/* The one at hand stays for good: what is being sent is then sent once more, as the same points. */
static void make_room(struct job_usage *u)
{
	size_t kept = 0;

	if (u->samples == NULL)
		u->samples = mem_new(SAMPLES_MAX, sizeof *u->samples);
	if (u->n < SAMPLES_MAX)
		return;
	for (size_t i = 0; i < u->n; i++)
		if (i % 2 == 0)
			u->samples[kept++] = u->samples[i];
		else
			mem_free(u->samples[i].points);
	u->n = kept;
	u->sending = 0;
}

static struct usage_limits limits_of(const struct job *j, const struct usage *now)
{
	const struct agent *g = j->agent;
	bool host_network = str_is(g->conf.docker_network, "host") ||
			    (j->task.ranks > 1 && g->conf.gang_host_network);
	struct usage_limits l = { .cpus = now->whole && j->task.cpus > 0 ? j->task.cpus
									 : g->host.cpus,
		.memory = now->whole && j->task.memory > 0 ? j->task.memory : g->host.memory,
		.own_network = !host_network };

	(void)host_disk(j->dir, &l.disk_size, &l.disk_free);
	return l;
}

/* As they were seen last; a look is taken for the next time. */
static size_t gpu_points(struct job *j, struct usage_point *out)
{
	struct gpus *gpus = j->agent->gpus;
	uint64_t seen = j->usage.gpus_seen, looks = gpus_looks(gpus);
	size_t n = 0;

	j->usage.gpus_seen = looks;
	gpus_look(gpus);
	if (seen == 0 || seen == looks)
		return 0; /* before the command, or no news */
	for (size_t i = 0; i < j->task.devices.n; i++) {
		struct str uuid = *list_at(&j->task.devices, struct str, i);
		const struct device *d = gpus_find(gpus, uuid);
		if (d != NULL)
			n += usage_gpu_points((unsigned)i, gpus_use(gpus, uuid),
				gpus_memory_used(gpus, uuid), d->memory, out + n);
	}
	return n;
}

static void take(struct job *j, const struct usage *now)
{
	size_t most = USAGE_POINTS + USAGE_GPU_POINTS * j->task.devices.n, n;
	struct usage_point *points = mem_new(most, sizeof *points);
	const struct usage_limits l = limits_of(j, now);
	struct usage before = j->usage.last;

	if (before.at_us == 0 && j->fresh)
		before = usage_none(j->rec.started_at);
	n = usage_points(&before, now, &l, points);
	if (j->task.devices.n != 0)
		n += gpu_points(j, points + n);
	make_room(&j->usage);
	j->usage.samples[j->usage.n++] = (struct usage_sample){ now->at_us, points, n };
	j->usage.last = *now;
}

static bool look(struct job *j)
{
	struct usage now;
	char path[PATH_MAX];
	struct buf text;
	struct err e;
	bool news;

	if (j->usage.refused || j->task.no_system_metrics || j->task.tracking_run.n == 0 ||
		j->agent->conf.system_metrics_every <= 0 ||
		!str_print(path, sizeof path, "%s/" CTL_USAGE, j->ctl))
		return false;
	buf_init(&text, CTL_STATUS_MAX);
	news = fs_read(path, &text, &e) == 0;
	if (news)
		usage_read(buf_str(&text), &now);
	buf_done(&text);
	if (!news || now.at_us <= j->usage.last.at_us)
		return false;
	take(j, &now);
	return true;
}

void job_usage_look(struct job *j)
{
	if (look(j) && j->usage.request == NULL && !loop_timer_armed(&j->usage.again))
		usage_send(j);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void encode(struct job *j)
{
	struct job_usage *u = &j->usage;
	struct arena *a = arena_new(ARENA_MAX);
	struct attempt_metric *m = arena_array_of(a, struct attempt_metric, ATTEMPT_METRICS_MAX);
	int64_t rank = j->task.ranks > 1 ? j->task.rank : -1;
	char key[USAGE_KEY_MAX];
	size_t n = 0;

	for (u->sending = 0; u->sending < u->n; u->sending++) {
		const struct usage_sample *s = &u->samples[u->sending];
		if (n + s->n > ATTEMPT_METRICS_MAX)
			break;
		for (size_t i = 0; i < s->n; i++)
			m[n++] = (struct attempt_metric){
				arena_str(a, str_c(usage_key(key, &s->points[i], rank))),
				s->points[i].value, s->at_us
			};
	}
	const struct attempt_metrics all = { j->task.epoch, { m, n } };
	buf_clear(&u->body);
	field_encode(attempt_metrics_fields, &all, &u->body);
	arena_drop(a);
}

/* How long the attempt may still wait for it. */
static int64_t time_left(const struct job *j)
{
	return j->usage.next == NULL ? INT64_MAX : j->usage.until - loop_now(j->agent->loop);
}

static void usage_send(void *arg)
{
	struct job *j = arg;
	char path[SHIP_PATH_MAX];
	int64_t left = time_left(j);

	if (j->usage.request != NULL || j->usage.n == 0 || j->agent->closing)
		return;
	encode(j);
	(void)str_print(
		path, sizeof path, "/api/v1/workers/self/attempts/%s/metrics", j->task.attempt.p);
	const struct fetch_request q = { .method = "POST",
		.path = path,
		.headers = { "Content-Type: application/json" },
		.body = buf_str(&j->usage.body),
		.timeout = left > SEND_TIMEOUT  ? SEND_TIMEOUT
			   : left > TIMEOUT_MIN ? left
						: TIMEOUT_MIN };
	j->busy++;
	j->usage.request = fetch_start(j->agent->http, &q, usage_on_sent, j);
}

static void give_up(struct job *j, const struct err *e)
{
	log_info("system metrics not recorded", LOG_STR("attempt", j->task.attempt), LOG_E(e));
	drop_first(&j->usage, j->usage.n);
	j->usage.refused = true;
}

static void usage_on_sent(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct job *j = arg;
	struct job_usage *u = &j->usage;
	struct err e = { .code = ERR_OK };
	enum ship_outcome outcome = ship_outcome(reply, failed, &e);
	int64_t wait = 0;

	u->request = NULL;
	if (job_returned(j))
		return;
	if (outcome == SHIP_OK) {
		u->wait.tries = 0;
		drop_first(u, u->sending);
		u->sending = 0;
	} else {
		wait = ship_wait(&u->wait, reply);
	}
	if ((outcome != SHIP_OK && outcome != SHIP_AGAIN) ||
		(u->next != NULL && u->wait.tries > END_TRIES) ||
		(u->n != 0 && wait * 1000 >= time_left(j))) {
		if (e.code == ERR_OK)
			(void)err_set(&e, ERR_TIMEOUT, "the end of the attempt waits no longer");
		give_up(j, &e);
	}
	if (u->n != 0)
		loop_timer_set(&u->again, wait);
	else if (u->next != NULL)
		u->next(j);
}

void job_usage_wait(struct job *j, job_next_fn *next)
{
	if (j->usage.n == 0 && j->usage.request == NULL) {
		next(j);
		return;
	}
	j->usage.next = next;
	j->usage.until = loop_now(j->agent->loop) + END_WAIT;
	j->usage.wait.tries = 0;
	if (j->usage.request == NULL)
		loop_timer_set(&j->usage.again, 0);
}
