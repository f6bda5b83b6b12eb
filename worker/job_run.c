/* Watching a command, and ending it. */
#include "lib/base/log.h"
#include "worker/gpus.h"
#include "worker/host.h"
#include "worker/init/ctl.h"
#include "worker/job.h"
#include "worker/killed.h"
#include "worker/runtime/control.h"
#include "worker/ship/logs.h"
#include "worker/ship/watch.h"

#include <signal.h>

enum {
	LOOK_MS = 1000, /* beside the watch of the control folder */
	LOOK_BLIND_MS = 200, /* without one */
	FORCE_MS = 15000, /* after the grace of the init */
	DISK_LOW = 1 << 20,
	UNREACHABLE = 30 /* looks: a daemon that only restarts is back by then */
};

/* Look at the status (when the control folder changes, and now and then) → finish. */
static void job_look(struct job *j);
static void job_on_status(void *arg, const struct runtime_status *s, const struct err *e);
static void job_ended(struct job *j);
/* Ask it to end → after a while kill it → after a while by force. */
static void job_send_end(struct job *j);
static void job_on_end_sent(void *arg, const struct err *e);

static void on_look(void *arg)
{
	job_look(arg);
}

static void on_file(void *arg, const char *name)
{
	struct job *j = arg;

	if (strcmp(name, CTL_STATUS) == 0)
		loop_timer_set(&j->look, 0);
	else if (strcmp(name, CTL_USAGE) == 0)
		job_usage_look(j);
	else if (strcmp(name, CTL_SPOOL) == 0 && j->log != NULL)
		ship_log_wake(j->log);
}

static void on_force(void *arg)
{
	job_send_end(arg);
}

void job_timers_init(struct job *j)
{
	loop_timer_init(&j->look, j->agent->loop, on_look, j);
	loop_timer_init(&j->force, j->agent->loop, on_force, j);
}

void job_watch(struct job *j)
{
	j->watch = watch_add(j->agent->watch, j->ctl, on_file, j);
	job_log_open(j);
	job_checkpoint_watch(j);
	if (j->rec.stop != REASON_NONE)
		job_ask_to_end(j);
	job_look(j);
}

static void job_look(struct job *j)
{
	const struct runtime_ref ref = job_ref(j);

	if (j->polling || j->rec.phase != JOB_RUNNING)
		return;
	j->polling = true;
	j->busy++;
	loop_timer_cancel(&j->look);
	runtime_poll(j->runtime, &ref, job_on_status, j);
}

static void job_not_seen(struct job *j, const struct err *e)
{
	struct err none;

	log_warn("attempt cannot be looked at", LOG_STR("attempt", j->task.attempt), LOG_E(e));
	j->unreachable = e->code == ERR_NETWORK ? j->unreachable + 1 : 0;
	if (j->unreachable < UNREACHABLE || !job_abandoned(j, e)) {
		loop_timer_set(&j->look, LOOK_MS);
		return;
	}
	if (control_read(j->ctl, &j->status, NULL, &none) < 0 || j->status.state != RUNTIME_ENDED)
		control_lost(&j->status,
			"it does not run any more, and how it ended its runtime would know, which "
			"is not offered here any more and cannot be reached");
	job_ended(j);
}

static void job_on_status(void *arg, const struct runtime_status *s, const struct err *e)
{
	struct job *j = arg;

	j->polling = false;
	if (job_returned(j) || j->rec.phase != JOB_RUNNING)
		return;
	if (e->code != ERR_OK) {
		job_not_seen(j, e);
		return;
	}
	j->unreachable = 0;
	j->status = *s;
	if (s->started_us != 0 && !j->limited) {
		if (j->rec.started_at == 0)
			agent_changed(j->agent);
		j->rec.started_at = s->started_us;
		j->limited = true;
		job_limits_watch(j);
	}
	if (s->started_us == 0 && s->state != RUNTIME_ENDED && s->state != RUNTIME_GONE)
		job_start_limit(j);
	if (s->state == RUNTIME_WAITING)
		job_gang_wait(j);
	if (j->watch == NULL)
		job_usage_look(j);
	if (s->state == RUNTIME_ENDED || s->state == RUNTIME_GONE)
		job_ended(j);
	else if (!loop_timer_armed(&j->look))
		loop_timer_set(&j->look, j->watch != NULL ? LOOK_MS : LOOK_BLIND_MS);
}

/* ---- the end -------------------------------------------------------------------------------- */

static const char *sick_device(const struct job *j)
{
	for (size_t i = 0; i < j->task.devices.n; i++) {
		const struct device *d =
			gpus_find(j->agent->gpus, *list_at(&j->task.devices, struct str, i));
		if (d == NULL)
			return "a GPU of the attempt has vanished";
		if (d->health.n != 0)
			return d->health.p;
	}
	return NULL;
}

/* The command failed by itself: was it the host's fault? */
static enum reason host_fault(const struct job *j, enum reason otherwise, const char **message)
{
	const char *sick = sick_device(j);

	if (sick != NULL) {
		*message = sick;
		return REASON_GPU_FAULT;
	}
	if (j->status.lost_bytes > 0 || host_disk_free(j->agent->conf.work_dir.p) < DISK_LOW) {
		*message = "the worker's disk was full when the command ended";
		return REASON_DISK_FULL;
	}
	return otherwise;
}

static void finish_failed(struct job *j)
{
	const struct runtime_status *s = &j->status;
	const char *message = s->message;
	char text[KILLED_TEXT_MAX];
	enum reason why = REASON_RUNTIME_FAILED;

	if (killed_by(s, &why, text)) {
		job_finish(j, ATTEMPT_FAILED, why, text);
		return;
	}
	switch (s->end) {
	case RUNTIME_END_EXITED:
	case RUNTIME_END_SIGNALED:
		killed_words(s, text);
		message = text;
		why = host_fault(j, s->end == RUNTIME_END_EXITED ? REASON_EXIT_CODE : REASON_SIGNAL,
			&message);
		break;
	case RUNTIME_END_OOM: why = REASON_OOM_KILLED; break;
	case RUNTIME_END_NOT_STARTED: why = REASON_NOT_STARTED; break;
	case RUNTIME_END_LOST:
	case RUNTIME_END_NONE:
	case RUNTIME_END_COUNT: break;
	}
	job_finish(j, ATTEMPT_FAILED, why, message);
}

/* An init without a last word: about now, by what has elapsed since the start. */
static int64_t ended_now(const struct runtime_status *s)
{
	if (s->started_us == 0 || s->started_elapsed == 0)
		return clock_now(&clock_real);
	return s->started_us + clock_elapsed(&clock_real) - s->started_elapsed;
}

static void take_end(struct job *j)
{
	const struct runtime_status *s = &j->status;

	j->rec.ended_at = s->ended_us != 0 ? s->ended_us : ended_now(s);
	j->rec.killer = str_c(runtime_killer_name(s->killer));
	j->rec.has_exit_code = s->end == RUNTIME_END_EXITED ||
			       (s->end == RUNTIME_END_OOM && s->signo == 0 && s->code >= 0);
	j->rec.exit_code = j->rec.has_exit_code ? s->code : 0;
	j->rec.has_signal = s->signo > 0;
	j->rec.signal = s->signo;
}

/* It came to its own end before anything that was sent to end it: its own result stands. Ended by
 * force, the init may have had no time to say that it was us. */
static bool ended_by_itself(const struct runtime_status *s)
{
	return !s->stopped && !s->outside &&
	       (s->end == RUNTIME_END_EXITED || s->end == RUNTIME_END_OOM ||
		       (s->end == RUNTIME_END_SIGNALED && s->signo != SIGKILL));
}

static void job_ended(struct job *j)
{
	const struct runtime_status *s = &j->status;
	enum reason stop = ended_by_itself(s) ? REASON_NONE : (enum reason)j->rec.stop;

	take_end(j);
	if (s->state == RUNTIME_GONE)
		job_finish(j, ATTEMPT_FAILED, REASON_RUNTIME_FAILED,
			"the control folder of the attempt has vanished");
	else if (job_stop_fails(stop))
		job_finish(j, ATTEMPT_FAILED, stop, job_stop_text(j));
	else if (stop != REASON_NONE)
		job_finish(j, ATTEMPT_CANCELLED, stop, "");
	else if (s->deadman)
		job_finish(j, ATTEMPT_FAILED, REASON_WORKER_LOST,
			"the command ended itself: the worker had no word from the server for too "
			"long");
	else if (s->end == RUNTIME_END_EXITED && s->code == 0 && !s->outside)
		job_finish(j, ATTEMPT_SUCCEEDED, REASON_NONE, "");
	else
		finish_failed(j);
}

/* ---- ending it ------------------------------------------------------------------------------ */

void job_ask_to_end(struct job *j)
{
	if (j->asked == 0)
		job_save(j, job_send_end);
}

static void job_send_end(struct job *j)
{
	static const enum runtime_stop hows[] = { RUNTIME_STOP_ASK, RUNTIME_STOP_KILL,
		RUNTIME_STOP_FORCE };
	const struct runtime_ref ref = job_ref(j);

	if (j->stopping || (j->rec.phase != JOB_STARTING && j->rec.phase != JOB_RUNNING))
		return;
	j->stopping = true;
	j->busy++;
	runtime_stop(j->runtime, &ref, hows[j->asked < 2 ? j->asked : 2], job_on_end_sent, j);
	j->asked++;
}

static void job_on_end_sent(void *arg, const struct err *e)
{
	struct job *j = arg;

	j->stopping = false;
	if (job_returned(j))
		return;
	if (e->code != ERR_OK && e->code != ERR_NOT_FOUND)
		log_warn("attempt not ended yet", LOG_STR("attempt", j->task.attempt), LOG_E(e));
	if (j->rec.phase != JOB_STARTING && j->rec.phase != JOB_RUNNING)
		return;
	loop_timer_set(&j->force, FORCE_MS);
	if (j->rec.phase == JOB_RUNNING)
		job_look(j);
}
