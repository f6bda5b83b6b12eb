/* Preparing and starting an attempt. */
#include "lib/base/log.h"
#include "worker/evidence.h"
#include "worker/gpus.h"
#include "worker/job.h"
#include "worker/secrets.h"
#include "worker/ship/logs.h"
#include "worker/ship/ship.h"
#include "worker/task.h"
#include "worker/workspace.h"

enum { LOOK_AGAIN_MS = 2000, CUT_OFF_MS = 200, START_TRIES = 4, SPEC_ARENA = 8 << 20 };

/* Admit (devices, runtime) → prepare the workspace → start → watch (job_run.c). */
static void job_on_workspace(void *arg, enum reason reason, const char *message);
static void job_on_prepared(struct job *j);
static void job_on_started(void *arg, const struct runtime_started *s, const struct err *e);

/* ---- admission ------------------------------------------------------------------------------ */

/* An earlier attempt of the step that is not over here yet still has its checkpoint. */
static bool step_free(const struct job *j)
{
	for (const struct job *o = j->agent->jobs; o != NULL; o = o->next)
		if (o != j && str_eq(o->task.step, j->task.step) && o->task.epoch < j->task.epoch &&
			o->rec.phase < JOB_ENDED)
			return false;
	return true;
}

static bool devices_free(const struct job *j)
{
	for (size_t i = 0; i < j->task.devices.n; i++)
		for (const struct job *o = j->agent->jobs; o != NULL; o = o->next)
			if (o != j && job_holds(o, *list_at(&j->task.devices, struct str, i)))
				return false;
	return true;
}

/* False, and the job is over, when a device is not there or not well. */
static bool devices_well(struct job *j)
{
	char text[300];

	for (size_t i = 0; i < j->task.devices.n; i++) {
		struct str uuid = *list_at(&j->task.devices, struct str, i);
		const struct device *d = gpus_find(j->agent->gpus, uuid);
		if (d != NULL && d->health.n == 0)
			continue;
		(void)str_print(text, sizeof text, "GPU %.96s %s%.*s", uuid.p,
			d == NULL ? "is not there" : "is not well: ",
			d == NULL ? 0 : (int)d->health.n, d == NULL ? "" : d->health.p);
		job_finish(j, ATTEMPT_FAILED, REASON_GPU_FAULT, text);
		return false;
	}
	return true;
}

/* The first of the assignment's runtimes that this worker has. */
static const struct agent_runtime *choose_runtime(const struct job *j)
{
	for (size_t i = 0; i < j->task.runtimes.n; i++) {
		int kind = *list_at(&j->task.runtimes, int, i);
		if (kind >= 0 && kind < RUNTIME_COUNT && j->agent->runtimes[kind].offered)
			return &j->agent->runtimes[kind];
	}
	return NULL;
}

static void job_stopped_early(struct job *j)
{
	enum reason stop = (enum reason)j->rec.stop;

	job_finish(j, job_stop_fails(stop) ? ATTEMPT_FAILED : ATTEMPT_CANCELLED, stop,
		job_stop_text(j));
}

void job_admit(struct job *j)
{
	const struct agent_runtime *rt;

	if (j->rec.phase != JOB_ASSIGNED || !j->stored || j->busy != 0 || j->agent->closing)
		return;
	if (j->rec.stop != REASON_NONE) {
		job_stopped_early(j);
		return;
	}
	if (!devices_free(j) || !step_free(j))
		return; /* agent_devices_free calls again */
	if (!devices_well(j))
		return;
	rt = choose_runtime(j);
	if (rt == NULL) {
		job_finish(j, ATTEMPT_FAILED, REASON_RUNTIME_FAILED,
			"this worker offers none of the runtimes that the step allows");
		return;
	}
	if (!job_gang_reachable(j, rt->r)) {
		job_finish(j, ATTEMPT_FAILED, REASON_RUNTIME_FAILED,
			"containers on this worker are not reached by the step's other ranks: "
			"gang-host-network is not set there");
		return;
	}
	if (!rt->about.ok) {
		job_later(j, job_admit, LOOK_AGAIN_MS);
		return;
	}
	j->admitted = true;
	j->runtime = rt->r;
	j->rec.runtime = str_c(runtime_name(rt->r));
	job_enter(j, JOB_PREPARING, job_prepare);
}

/* ---- workspace ------------------------------------------------------------------------------ */

void job_prepare(struct job *j)
{
	const struct workspace_args args = { .loop = j->agent->loop,
		.cache = j->agent->cache,
		.holds = j->agent->holds,
		.conf = &j->agent->conf,
		.task = &j->task,
		.dir = j->dir,
		.kept = arena_printf(j->a, "%s/checkpoints", j->agent->conf.work_dir.p).p,
		.ret_resumed = &j->rec.resumed,
		.done = job_on_workspace,
		.arg = j };

	if (j->rec.stop != REASON_NONE) {
		job_stopped_early(j);
		return;
	}
	if (j->save_err.code == ERR_NO_SPACE) {
		job_finish(j, ATTEMPT_FAILED, REASON_DISK_FULL, j->save_err.msg);
		return;
	}
	j->busy++;
	j->workspace = workspace_start(&args);
}

static void job_on_workspace(void *arg, enum reason reason, const char *message)
{
	struct job *j = arg;

	j->workspace = NULL;
	if (job_returned(j))
		return;
	if (j->rec.stop != REASON_NONE)
		job_stopped_early(j);
	else if (reason != REASON_NONE)
		job_finish(j, reason == REASON_SUPERSEDED ? ATTEMPT_CANCELLED : ATTEMPT_FAILED,
			reason, message);
	else {
		if (j->task.ranks < 2) /* of a gang it lies where it was */
			agent_kept(j->agent, j->task.step, false);
		job_enter(j, JOB_STARTING, job_on_prepared);
	}
}

/* Nothing runs yet: without a record of it nothing may. */
static void job_on_prepared(struct job *j)
{
	struct err e;

	if (j->rec.stop != REASON_NONE)
		job_stopped_early(j);
	else if (j->save_err.code != ERR_OK)
		job_finish(j, ATTEMPT_FAILED,
			j->save_err.code == ERR_NO_SPACE ? REASON_DISK_FULL : REASON_RUNTIME_FAILED,
			j->save_err.msg);
	else if (j->task.secrets.n != 0 && !j->secrets_known && job_secrets(j, &e) == 0)
		/* Which ones it had is known before it has them. */
		job_enter(j, JOB_STARTING, job_on_prepared);
	else
		job_start(j);
}

/* ---- start ---------------------------------------------------------------------------------- */

/* The start goes on: its time limit counts from here. What it says stands in the log. */
static void on_note(void *arg, const char *text)
{
	struct job *j = arg;

	if (loop_timer_armed(&j->limit) && j->rec.started_at == 0)
		loop_timer_set(&j->limit, j->task.start_timeout / 1000 + 1);
	if (text == NULL)
		return;
	log_debug("starting", LOG_STR("attempt", j->task.attempt), LOG_S("note", text));
	job_log_open(j);
	if (j->log != NULL)
		ship_log_wake(j->log);
}

/* By now another worker may have been given what must not run twice. */
static bool is_cut_off(const struct job *j)
{
	return j->task.self_stop_after > 0 && agent_silence(j->agent) > j->task.self_stop_after;
}

void job_start(struct job *j)
{
	const struct task_spec_args in = { &j->task, &j->agent->conf, j->runtime, j->dir, j->ctl,
		j->secrets_dir };
	struct arena *a;
	struct runtime_spec spec;
	struct err e;

	if (j->rec.stop != REASON_NONE) {
		job_stopped_early(j);
		return;
	}
	if (is_cut_off(j)) {
		job_later(j, job_start, CUT_OFF_MS);
		return;
	}
	if (job_secrets(j, &e) < 0) {
		job_finish(j, ATTEMPT_FAILED, REASON_SECRET_MISSING, e.msg);
		return;
	}
	a = arena_new(SPEC_ARENA);
	task_spec(&in, a, &spec);
	secrets_spec(j->secrets, &j->task, a, &spec);
	spec.renewed_at = j->agent->renewed;
	j->busy++;
	runtime_start(j->runtime, &spec, on_note, job_on_started, j);
	arena_drop(a);
}

static enum reason start_reason(const struct runtime_started *s, const struct err *e)
{
	if (e->code == ERR_NO_SPACE)
		return REASON_DISK_FULL;
	switch (s->blame) {
	case RUNTIME_BLAME_SPEC: return REASON_NOT_STARTED;
	case RUNTIME_BLAME_IMAGE:
		return s->image_fault == RUNTIME_IMAGE_NOT_FOUND ? REASON_IMAGE_NOT_FOUND
								 : REASON_IMAGE_PULL;
	case RUNTIME_BLAME_GPU: return REASON_GPU_FAULT;
	case RUNTIME_BLAME_HOST: break;
	}
	return REASON_RUNTIME_FAILED;
}

static void job_on_started(void *arg, const struct runtime_started *s, const struct err *e)
{
	struct job *j = arg;

	if (job_returned(j) || j->rec.phase != JOB_STARTING)
		return;
	if (e->code == ERR_OK) {
		const struct evidence v = { .image = j->task.image,
			.image_id = j->rec.image_id = arena_str(j->a, str_c(s->image_id)),
			.image_ref = j->rec.image_ref = arena_str(j->a, str_c(s->image_ref)) };
		j->rec.evidence = evidence_image(&v, j->a);
		if (s->image_id[0] != '\0')
			holds_image(j->agent->holds, j->task.image, s->image_bytes);
		job_enter(j, JOB_RUNNING, job_watch);
	} else if (j->rec.stop != REASON_NONE) {
		job_stopped_early(j);
	} else if (err_retryable(e->code) && e->code != ERR_NO_SPACE &&
		   s->blame == RUNTIME_BLAME_HOST && j->wait.tries < START_TRIES) {
		log_warn("not started yet", LOG_STR("attempt", j->task.attempt), LOG_E(e));
		job_later(j, job_start, ship_wait(&j->wait, NULL));
	} else {
		j->rec.image_fault = str_c(runtime_image_fault_name(s->image_fault));
		job_finish(j, ATTEMPT_FAILED, start_reason(s, e), e->msg);
	}
}
