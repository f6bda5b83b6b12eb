#include "worker/job.h"

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/work.h"
#include "worker/runtime/control.h"
#include "worker/secrets.h"
#include "worker/ship/logs.h"
#include "worker/ship/outputs.h"
#include "worker/ship/watch.h"
#include "worker/workspace.h"

#include <limits.h>
#include <sys/stat.h>

enum { ARENA_MAX = 48 << 20 };

static void on_again(void *arg);
static void on_resave(void *arg);
static void on_unbusy(void *arg);
/* A new job: its folder and the assignment are written, then the record. */
static void job_store(struct job *j);
static void run_store(void *arg);
static void on_stored(void *arg);

/* ---- making and freeing --------------------------------------------------------------------- */

static bool names_folder(struct str id)
{
	return id.n != 0 && id.n < RUNTIME_ID_MAX &&
	       strspn(id.p, "abcdefghijklmnopqrstuvwxyz0123456789_-") == id.n;
}

static int set_paths(struct job *j, struct err *e)
{
	const struct worker_conf *c = &j->agent->conf;

	if (!names_folder(j->task.attempt))
		return err_field(e, "/attempt", "cannot be the name of a folder");
	if (!names_folder(j->task.step))
		return err_field(e, "/step", "cannot be the name of a folder");
	j->dir = arena_printf(j->a, "%s/attempts/%s", c->work_dir.p, j->task.attempt.p).p;
	j->ctl = arena_printf(j->a, "%s/ctl", j->dir).p;
	j->secrets_dir =
		c->secrets_dir.n != 0
			? arena_printf(j->a, "%s/%s", c->secrets_dir.p, j->task.attempt.p).p
			: arena_printf(j->a, "%s/secrets", j->dir).p;
	job_checkpoint_paths(j);
	return 0;
}

static struct job *job_make(struct agent *g)
{
	struct job *j = mem_new_of(struct job);

	j->agent = g;
	j->a = arena_new(ARENA_MAX);
	buf_init(&j->text, ASSIGNMENT_MAX);
	loop_timer_init(&j->again, g->loop, on_again, j);
	loop_timer_init(&j->resave, g->loop, on_resave, j);
	loop_timer_init(&j->unbusy, g->loop, on_unbusy, j);
	job_timers_init(j);
	job_limits_init(j);
	job_usage_init(j);
	job_checkpoint_init(j);
	return j;
}

static void cancel_timers(struct job *j)
{
	job_limits_cancel(j);
	loop_timer_cancel(&j->again);
	loop_timer_cancel(&j->resave);
	loop_timer_cancel(&j->unbusy);
	loop_timer_cancel(&j->look);
	loop_timer_cancel(&j->force);
}

void job_free(struct job *j)
{
	BUG_ON(j->busy != 0);
	cancel_timers(j);
	loop_timer_cancel(&j->checkpoint.look);
	watch_remove(j->watch);
	ship_log_free(j->log);
	if (j->text.p != NULL)
		mem_wipe(j->text.p, j->text.cap);
	buf_done(&j->text);
	buf_done(&j->idle.body);
	job_usage_done(j);
	secrets_free(j->secrets);
	arena_drop(j->a);
	mem_free(j);
}

/* The assignment as text is both what is stored and a deep copy. */
static int copy_task(struct job *j, const struct assignment *task, struct err *e)
{
	field_encode(assignment_fields, task, &j->text);
	if (buf_failed(&j->text))
		return err_set(
			e, ERR_TOO_LARGE, "the assignment is larger than %d bytes", ASSIGNMENT_MAX);
	return field_decode_reply(assignment_fields, buf_str(&j->text), j->a, &j->task, e);
}

static void received_now(struct job *j)
{
	j->rec.received_elapsed = clock_elapsed(&clock_real);
	j->rec.boot = str_c(j->agent->host.boot_id);
}

struct job *job_new(struct agent *g, const struct assignment *task, struct err *e)
{
	struct job *j = job_make(g);

	if (copy_task(j, task, e) < 0 || set_paths(j, e) < 0) {
		job_free(j);
		return NULL;
	}
	j->fresh = true;
	received_now(j);
	if (j->task.start_timeout > 0)
		loop_timer_set(&j->limit, j->task.start_timeout / 1000 + 1);
	job_store(j);
	return j;
}

struct job *job_adopt(struct agent *g, const char *dir, struct err *e)
{
	struct job *j = job_make(g);
	const char *slash = strrchr(dir, '/');

	if (record_read(dir, j->a, &j->task, &j->rec, e) < 0 || set_paths(j, e) < 0) {
		job_free(j);
		return NULL;
	}
	if (slash == NULL || !str_is(j->task.attempt, slash + 1)) {
		(void)err_set(e, ERR_CONFLICT, "the folder is of another attempt");
		job_free(j);
		return NULL;
	}
	(void)str_print(j->message, sizeof j->message, "%.*s", STR_ARG(j->rec.message));
	j->rec.message = str_c(j->message);
	j->stored = true;
	/* One that has ended may not have been removed, and run on. */
	j->admitted =
		j->rec.phase > JOB_ASSIGNED && (j->rec.phase < JOB_ENDED || control_held(j->ctl));
	if (j->rec.phase > JOB_PREPARING)
		j->runtime = agent_runtime_again(g, j->rec.runtime);
	return j;
}

/* Milliseconds that are left for the start since it was last seen to go on. How long a host was
 * down nobody has counted. */
static int64_t start_left(struct job *j)
{
	int64_t now = clock_elapsed(&clock_real), noted = control_noted(j->ctl), since, left;

	if (!str_is(j->rec.boot, j->agent->host.boot_id))
		received_now(j);
	since = j->rec.received_elapsed;
	if (noted > since && noted <= now)
		since = noted;
	left = since + j->task.start_timeout - now;
	return left < 0 ? 0 : left / 1000 + 1;
}

static enum runtime_killer killer_of(struct str name)
{
	for (int k = 0; k < RUNTIME_KILLER_COUNT; k++)
		if (str_is(name, runtime_killer_name((enum runtime_killer)k)))
			return (enum runtime_killer)k;
	return RUNTIME_KILLER_NONE;
}

void job_start_limit(struct job *j)
{
	if (j->task.start_timeout > 0 && j->rec.started_at == 0 && j->rec.stop == REASON_NONE &&
		!loop_timer_armed(&j->limit))
		loop_timer_set(&j->limit, start_left(j));
}

/* How it ended was noted before its container went, and is not judged again without it. */
static void resume_finishing(struct job *j)
{
	struct err e;

	if (!j->rec.unstarted && control_read(j->ctl, &j->status, NULL, &e) < 0)
		log_warn("attempt cannot be looked at", LOG_STR("attempt", j->task.attempt),
			LOG_E(&e));
	j->status.killer = killer_of(j->rec.killer);
	job_finish(j, (enum attempt_state)j->rec.result, (enum reason)j->rec.reason, NULL);
}

static bool lacks_runtime(const struct job *j)
{
	return j->runtime == NULL && !j->rec.unstarted && j->rec.phase > JOB_PREPARING &&
	       j->rec.phase < JOB_FINISHING;
}

void job_resume(struct job *j)
{
	log_info("attempt found again", LOG_STR("attempt", j->task.attempt),
		LOG_S("phase", job_phase_names[j->rec.phase]));
	/* Whether a command that may run has begun is seen at the first look at it. */
	if (j->rec.phase < JOB_RUNNING)
		job_start_limit(j);
	if (lacks_runtime(j)) {
		job_finish(j, ATTEMPT_FAILED, REASON_RUNTIME_FAILED,
			"its runtime cannot be had on this worker any more");
		return;
	}
	switch ((enum job_phase)j->rec.phase) {
	case JOB_ASSIGNED: job_admit(j); break;
	case JOB_PREPARING:
		j->rec.phase = JOB_ASSIGNED;
		j->admitted = false;
		job_admit(j);
		break;
	case JOB_STARTING: job_start(j); break;
	case JOB_RUNNING: job_watch(j); break;
	case JOB_FINISHING: resume_finishing(j); break;
	case JOB_ENDED:
	case JOB_PHASE_COUNT: break;
	}
}

void job_close(struct job *j)
{
	cancel_timers(j);
	if (j->workspace != NULL)
		workspace_cancel(j->workspace);
	if (j->outputs != NULL)
		ship_outputs_cancel(j->outputs);
	job_checkpoint_cancel(j);
	job_usage_cancel(j);
	ship_log_free(j->log);
	j->log = NULL;
}

/* ---- storing -------------------------------------------------------------------------------- */

static void run_store(void *arg)
{
	struct job *j = arg;

	j->save_err.code = ERR_OK;
	if (fs_mkdirs(j->dir, 0711, &j->save_err) < 0)
		return;
	if (chmod(j->dir, 0711) < 0)
		(void)err_errno(&j->save_err, "open folder", j->dir);
	else
		(void)!record_write(j->dir, "assignment.json", buf_str(&j->text), &j->save_err);
}

static void job_store(struct job *j)
{
	struct err e;

	if (work_submit(j->agent->loop, run_store, on_stored, j, &e) < 0)
		job_later(j, job_store, 200);
	else
		j->busy++;
}

static void job_on_recorded(struct job *j)
{
	j->stored = true;
	agent_changed(j->agent);
	if (j->save_err.code != ERR_OK)
		job_finish(j, ATTEMPT_FAILED,
			j->save_err.code == ERR_NO_SPACE ? REASON_DISK_FULL : REASON_RUNTIME_FAILED,
			j->save_err.msg);
	else
		job_admit(j);
}

static void on_stored(void *arg)
{
	struct job *j = arg;

	if (job_returned(j))
		return;
	if (j->save_err.code != ERR_OK)
		job_on_recorded(j);
	else
		job_save(j, job_on_recorded);
}

static void run_save(void *arg)
{
	struct job *j = arg;

	j->save_err.code = ERR_OK;
	(void)!record_write(j->dir, "state.json", buf_str(&j->text), &j->save_err);
}

static void on_saved(void *arg)
{
	struct job *j = arg;

	j->saving = false;
	if (job_returned(j))
		return;
	if (j->save_err.code != ERR_OK)
		log_error("state of the attempt not stored", LOG_STR("attempt", j->task.attempt),
			LOG_E(&j->save_err));
	job_next_fn *next = j->after_save;
	if (j->save_again) {
		job_save(j, next);
		return;
	}
	j->entering = false;
	next(j);
}

static void on_resave(void *arg)
{
	struct job *j = arg;

	job_save(j, j->after_save);
}

void job_save(struct job *j, job_next_fn *next)
{
	struct err e;

	j->after_save = next;
	j->save_again = j->saving;
	if (j->saving)
		return;
	buf_clear(&j->text);
	record_encode(&j->rec, &j->text);
	if (work_submit(j->agent->loop, run_save, on_saved, j, &e) < 0) {
		loop_timer_set(&j->resave, 200);
		return;
	}
	loop_timer_cancel(&j->resave);
	j->saving = true;
	j->busy++;
}

void job_enter(struct job *j, enum job_phase phase, job_next_fn *next)
{
	j->rec.phase = (int)phase;
	j->entering = true;
	agent_changed(j->agent);
	job_save(j, next);
}

bool job_returned(struct job *j)
{
	BUG_ON(j->busy == 0);
	j->busy--;
	if (j->agent->closing)
		return true;
	if (j->busy == 0 && j->forget && j->rec.phase == JOB_ENDED && !j->removing)
		loop_timer_set(&j->unbusy, 0); /* whoever came back may still need it */
	return false;
}

static void on_unbusy(void *arg)
{
	job_remove(arg);
}

static void on_again(void *arg)
{
	struct job *j = arg;

	j->retry(j);
}

void job_later(struct job *j, job_next_fn *what, int64_t ms)
{
	j->retry = what;
	loop_timer_set(&j->again, ms);
}

/* ---- telling and being told ------------------------------------------------------------------ */

static enum attempt_state shown_state(const struct job *j)
{
	switch ((enum job_phase)j->rec.phase) {
	case JOB_ASSIGNED: return ATTEMPT_ASSIGNED;
	case JOB_PREPARING:
	case JOB_STARTING: return ATTEMPT_PREPARING;
	case JOB_RUNNING: return j->rec.started_at != 0 ? ATTEMPT_RUNNING : ATTEMPT_PREPARING;
	case JOB_FINISHING: return ATTEMPT_FINISHING;
	case JOB_ENDED:
	case JOB_PHASE_COUNT: break;
	}
	/* Told when it cannot be forgotten any more. */
	return j->entering ? ATTEMPT_FINISHING : (enum attempt_state)j->rec.result;
}

void job_report(const struct job *j, struct sync_attempt *out)
{
	const struct record *r = &j->rec;

	*out = (struct sync_attempt){ .id = j->task.attempt,
		.epoch = j->task.epoch,
		.state = (int)shown_state(j),
		.runtime = r->runtime,
		.started_at = r->started_at,
		.released = j->gang.released,
		.ready = j->gang.ready && r->phase == JOB_RUNNING && r->stop == REASON_NONE,
		.cancelling = r->stop != REASON_NONE };
	out->evidence = r->evidence; /* while it runs: which image */
	if (out->ready) {
		out->address = str_c(j->gang.here.address);
		out->port = j->gang.here.port;
	}
	if (r->phase < JOB_FINISHING)
		return;
	out->reason = str_c(reason_names[r->reason]);
	out->message = r->message;
	out->ended_at = r->ended_at;
	out->exit_code = r->exit_code;
	out->has_exit_code = r->has_exit_code;
	out->signal = r->signal;
	out->has_signal = r->has_signal;
}

bool job_holds(const struct job *j, struct str device)
{
	if (!j->admitted)
		return false;
	for (size_t i = 0; i < j->task.devices.n; i++)
		if (str_eq(*list_at(&j->task.devices, struct str, i), device))
			return true;
	return false;
}

struct runtime_ref job_ref(const struct job *j)
{
	return (struct runtime_ref){ j->task.attempt.p, j->ctl, j->secrets_dir };
}

static void stop_while_finishing(struct job *j)
{
	if (j->rec.stop == REASON_PREEMPTED || j->rec.stop == REASON_GANG_STOPPED)
		return; /* it holds nothing for long any more, and its checkpoint counts */
	job_checkpoint_cancel(j);
	if (j->outputs != NULL)
		ship_outputs_cancel(j->outputs);
	else if (j->rec.stop == REASON_SUPERSEDED)
		job_log_abandon(j);
}

bool job_stop(struct job *j, enum reason why)
{
	if (j->rec.phase == JOB_ENDED || j->rec.stop == (int)why ||
		(j->rec.stop != REASON_NONE && why != REASON_SUPERSEDED))
		return false;
	log_info("ending attempt", LOG_STR("attempt", j->task.attempt),
		LOG_S("reason", reason_names[why]), LOG_S("phase", job_phase_names[j->rec.phase]));
	j->rec.stop = (int)why;
	agent_changed(j->agent);
	switch ((enum job_phase)j->rec.phase) {
	case JOB_ASSIGNED: job_admit(j); break;
	case JOB_PREPARING:
		if (j->workspace != NULL)
			workspace_cancel(j->workspace);
		break;
	case JOB_STARTING:
	case JOB_RUNNING:
		if (j->entering) /* its beginning looks at it, and must not be left out */
			j->save_again = j->saving;
		else
			job_ask_to_end(j);
		break;
	case JOB_FINISHING: stop_while_finishing(j); break;
	case JOB_ENDED:
	case JOB_PHASE_COUNT: break;
	}
	return true;
}

bool job_forget(struct job *j)
{
	if (j->forget)
		return false;
	j->forget = true;
	if (j->rec.phase == JOB_ENDED)
		job_remove(j);
	else
		(void)job_stop(j, REASON_SUPERSEDED);
	return true;
}
