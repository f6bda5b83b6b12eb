/*
 * How long an attempt may take: to start, to run, and to hold GPUs without using them. A GPU counts
 * as unused while every look finds it used by less than IDLE_BELOW percent; one of which that is
 * not known counts as used. A time without looks says nothing: it counts anew from there.
 */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/fetch/fetch.h"
#include "worker/gpus.h"
#include "worker/job.h"
#include "worker/ship/ship.h"

enum { IDLE_BELOW = 5, IDLE_LOOKS = 8, IDLE_GAP_LOOKS = 3, IDLE_MS_MIN = 100, BODY_MAX = 4096 };

static void on_limit(void *arg);
/* Look → judge → warn (tried again while the GPUs are idle) or stop. */
static void on_idle_look(void *arg);
static void idle_warn(struct job *j);
static void idle_on_warned(void *arg, const struct fetch_reply *reply, const struct err *e);

void job_limits_init(struct job *j)
{
	loop_timer_init(&j->limit, j->agent->loop, on_limit, j);
	loop_timer_init(&j->idle.look, j->agent->loop, on_idle_look, j);
	buf_init(&j->idle.body, BODY_MAX);
}

void job_limits_cancel(struct job *j)
{
	loop_timer_cancel(&j->limit);
	loop_timer_cancel(&j->idle.look);
	if (j->idle.request != NULL)
		fetch_cancel(j->idle.request);
}

static void on_limit(void *arg)
{
	struct job *j = arg;

	(void)job_stop(j, j->rec.started_at == 0 ? REASON_START_TIMEOUT : REASON_TIMEOUT);
}

/* Several looks fit into the time; otherwise as often as the GPUs are looked at anyway. */
static int64_t idle_every_ms(const struct job *j)
{
	int64_t ms = j->task.gpu_idle / 1000 / IDLE_LOOKS;

	if (ms > GPUS_EVERY_S * 1000)
		return GPUS_EVERY_S * 1000;
	return ms < IDLE_MS_MIN ? IDLE_MS_MIN : ms;
}

/* Microseconds since the command has begun. An init of an earlier version tells the calendar's time
 * only. */
static int64_t has_run(const struct job *j)
{
	if (j->status.started_elapsed != 0)
		return clock_elapsed(&clock_real) - j->status.started_elapsed;
	return clock_now(&clock_real) - j->rec.started_at;
}

void job_limits_watch(struct job *j)
{
	int64_t left = j->task.time_limit - has_run(j);

	loop_timer_cancel(&j->limit);
	if (j->rec.stop != REASON_NONE)
		return;
	if (j->task.time_limit > 0)
		loop_timer_set(&j->limit, left > 0 ? left / 1000 + 1 : 0);
	if (j->task.gpu_idle <= 0 || j->task.devices.n == 0)
		return;
	j->idle.seen =
		gpus_looks(j->agent->gpus); /* what was seen before the command says nothing */
	loop_timer_set(&j->idle.look, idle_every_ms(j));
}

/* ---- in words ------------------------------------------------------------------------------- */

bool job_stop_fails(enum reason stop)
{
	return stop == REASON_TIMEOUT || stop == REASON_START_TIMEOUT || stop == REASON_GPU_IDLE ||
	       stop == REASON_PREEMPTED;
}

const char *job_stop_text(struct job *j)
{
	static const char *const waits[] = { [JOB_ASSIGNED] = "it waited for its devices",
		[JOB_PREPARING] = "code and data were not there",
		[JOB_STARTING] = "container or process was not up",
		[JOB_RUNNING] = "the command had not begun" };
	char limit[CLOCK_SPAN_TEXT_MAX];
	size_t phase = (size_t)j->rec.phase;

	if (j->rec.stop == REASON_GPU_IDLE)
		return j->idle.text;
	if (j->rec.stop == REASON_TIMEOUT && j->task.time_limit > 0)
		(void)str_print(j->idle.text, sizeof j->idle.text,
			"the command ran for %s, the limit of timeouts.run",
			clock_format_span(limit, j->task.time_limit));
	else if (j->rec.stop == REASON_START_TIMEOUT && j->task.start_timeout > 0)
		(void)str_print(j->idle.text, sizeof j->idle.text,
			"not started within %s, the limit of timeouts.start: %s",
			clock_format_span(limit, j->task.start_timeout),
			waits[phase < sizeof waits / sizeof *waits ? phase : JOB_RUNNING]);
	else
		return "";
	return j->idle.text;
}

/* ---- GPUs that are not used ----------------------------------------------------------------- */

/* The most used of them, in percent; 100 when that is not known of one. */
static int use_of(const struct job *j)
{
	int most = 0;

	for (size_t i = 0; i < j->task.devices.n; i++) {
		int use = gpus_use(j->agent->gpus, *list_at(&j->task.devices, struct str, i));
		if (use < 0)
			return 100;
		most = use > most ? use : most;
	}
	return most;
}

static void idle_text(struct job *j)
{
	char limit[CLOCK_SPAN_TEXT_MAX];
	size_t n = j->task.devices.n;

	(void)str_print(j->idle.text, sizeof j->idle.text,
		"%s %s used by %d %% at most for %s, the limit of timeouts.gpu_idle",
		n == 1 ? "its GPU" : "its GPUs", n == 1 ? "was" : "were", j->idle.most,
		clock_format_span(limit, j->task.gpu_idle));
}

/* A look found them so little used. Several must have, for as long as the limit. */
static bool idle_long_enough(struct job *j, int use)
{
	struct job_idle *i = &j->idle;
	int64_t now = clock_elapsed(&clock_real);
	int64_t gap = IDLE_GAP_LOOKS * idle_every_ms(j) * 1000 + CLOCK_SECOND;

	if (i->looks == 0 || now - i->last > gap) {
		i->since = now;
		i->looks = 0;
		i->most = 0;
	}
	i->last = now;
	i->looks++;
	i->most = use > i->most ? use : i->most;
	return now - i->since >= j->task.gpu_idle && i->looks >= IDLE_LOOKS / 2;
}

static void idle_judge(struct job *j)
{
	struct job_idle *i = &j->idle;
	int use = use_of(j);

	if (use >= IDLE_BELOW) {
		i->looks = 0;
		i->warned = false;
		return;
	}
	if (!idle_long_enough(j, use) || i->warned || i->request != NULL)
		return;
	idle_text(j);
	if (j->task.gpu_idle_stop)
		(void)job_stop(j, REASON_GPU_IDLE);
	else
		idle_warn(j);
}

static void on_idle_look(void *arg)
{
	struct job *j = arg;

	if (j->rec.phase != JOB_RUNNING || j->rec.stop != REASON_NONE)
		return;
	if (j->idle.seen != gpus_looks(j->agent->gpus)) {
		j->idle.seen = gpus_looks(j->agent->gpus);
		idle_judge(j);
	}
	gpus_look(j->agent->gpus);
	loop_timer_set(&j->idle.look, idle_every_ms(j));
}

static void idle_warn(struct job *j)
{
	const struct attempt_warning w = { j->task.epoch, STR("gpu_idle"), str_c(j->idle.text) };
	const struct ship_target to = { j->agent->loop, j->agent->http, j->task.attempt.p,
		j->task.epoch };

	log_warn("GPUs are not used", LOG_STR("attempt", j->task.attempt),
		LOG_S("why", j->idle.text));
	buf_clear(&j->idle.body);
	field_encode(attempt_warning_fields, &w, &j->idle.body);
	j->busy++;
	j->idle.request =
		ship_document(&to, "POST", "warning", buf_str(&j->idle.body), idle_on_warned, j);
}

/* One that did not arrive is sent with a later look. */
static void idle_on_warned(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct job *j = arg;
	struct err e = { .code = ERR_OK };

	j->idle.request = NULL;
	j->idle.warned = ship_outcome(reply, failed, &e) != SHIP_AGAIN;
	(void)job_returned(j);
}
