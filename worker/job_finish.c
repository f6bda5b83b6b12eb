/* From the end of a command to the last trace of its attempt. */
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/defer.h"
#include "lib/loop/work.h"
#include "worker/evidence.h"
#include "worker/init/ctl.h"
#include "worker/job.h"
#include "worker/runtime/control.h"
#include "worker/secrets.h"
#include "worker/ship/logs.h"
#include "worker/ship/outputs.h"
#include "worker/ship/watch.h"

#include <limits.h>

enum { REMOVE_TRIES = 6, SECRETS_ARENA = 8 << 20 };

/* Save → remove the container → agree on the log → outputs → checkpoint → what it used → save;
 * then wait for `forget`. */
static void finish_container(struct job *j);
static void finish_on_container(void *arg, const struct err *e);
static void finish_log(struct job *j);
static void finish_on_log(void *arg, const struct err *e);
static void finish_outputs(struct job *j);
static void finish_on_outputs(void *arg, enum reason reason, const char *message);
static void finish_end(struct job *j);
static void finish_usage(struct job *j);
static void finish_last(struct job *j);
static void finish_on_saved(struct job *j);
/* Forgotten: remove what the runtime has → the folder → the job. */
static void remove_retry(struct job *j);
static void remove_on_runtime(void *arg, const struct err *e);
static void remove_folder(struct job *j);
static void run_remove_folder(void *arg);
static void remove_on_folder(void *arg);

/* What people read, without what a message must not hold. */
static void set_message(struct job *j, enum reason why, const char *message)
{
	if (message == NULL)
		return; /* as it was */
	if (message[0] == '\0')
		message = reason_sentence(why);
	(void)str_print(j->message, sizeof j->message, "%s", message);
	agent_clean(j->message);
	j->rec.message = str_c(j->message);
}

static void set_result(
	struct job *j, enum attempt_state result, enum reason why, const char *message)
{
	j->rec.result = (int)result;
	j->rec.reason = (int)why;
	set_message(j, why, message);
}

void job_finish(struct job *j, enum attempt_state result, enum reason why, const char *message)
{
	j->rec.unstarted = j->rec.unstarted || j->rec.phase < JOB_RUNNING;
	set_result(j, result, why, message);
	if (j->rec.ended_at == 0)
		j->rec.ended_at = clock_now(&clock_real);
	j->wait.tries = 0; /* those of the start */
	job_limits_cancel(j);
	loop_timer_cancel(&j->look);
	loop_timer_cancel(&j->force);
	loop_timer_cancel(&j->again);
	watch_remove(j->watch);
	j->watch = NULL;
	job_usage_look(j);
	job_enter(j, JOB_FINISHING, finish_container);
}

/* ---- the container -------------------------------------------------------------------------- */

/* The init is the first process of what runs: without it nothing does, and none begins in a sealed
 * folder. Of a runtime that is offered the daemon is waited for: it may only be late. */
bool job_abandoned(const struct job *j, const struct err *e)
{
	if (e->code != ERR_NETWORK || agent_offers(j->agent, j->runtime))
		return false;
	control_seal(j->ctl);
	return !control_held(j->ctl);
}

static void finish_container(struct job *j)
{
	const struct runtime_ref ref = job_ref(j);

	if (j->runtime == NULL) {
		j->cleared = !control_held(j->ctl);
		finish_log(j);
		return;
	}
	j->busy++;
	runtime_remove(j->runtime, &ref, finish_on_container, j);
}

static void finish_on_container(void *arg, const struct err *e)
{
	struct job *j = arg;

	if (job_returned(j))
		return;
	if (e->code != ERR_OK && j->wait.tries < REMOVE_TRIES) {
		log_warn("attempt not removed yet", LOG_STR("attempt", j->task.attempt), LOG_E(e));
		job_later(j, finish_container, ship_wait(&j->wait, NULL));
		return;
	}
	j->wait.tries = 0;
	j->cleared = e->code == ERR_OK || job_abandoned(j, e);
	finish_log(j);
}

/* What may still run keeps its devices. */
static void give_devices_back(struct job *j)
{
	if (!j->cleared || !j->admitted)
		return;
	j->admitted = false;
	agent_devices_free(j->agent);
}

/* ---- log ------------------------------------------------------------------------------------ */

/* The log is masked with what the command was given; with other values it would tell it. */
int job_secrets(struct job *j, struct err *e)
{
	struct str digest;

	if (j->secrets_known)
		return 0;
	if (secrets_read(&j->agent->conf, &j->task, &j->secrets, e) < 0)
		return -1;
	digest = secrets_digest(j->secrets, j->a);
	if (j->rec.secrets.n != 0 && !str_eq(j->rec.secrets, digest)) {
		secrets_free(j->secrets);
		j->secrets = NULL;
		return err_set(e, ERR_CONFLICT, "the secrets have changed since the step began");
	}
	j->rec.secrets = digest;
	j->secrets_known = true;
	return 0;
}

void job_log_open(struct job *j)
{
	char spool[PATH_MAX], prologue[PATH_MAX];
	struct err e;

	if (j->log != NULL || j->unmaskable)
		return;
	if ((!j->rec.unstarted || j->rec.secrets.n != 0) && job_secrets(j, &e) < 0) {
		log_error("log stays on this host", LOG_STR("attempt", j->task.attempt), LOG_E(&e));
		j->unmaskable = true;
		return;
	}
	struct arena *a = arena_new(SECRETS_ARENA);
	const struct list hidden = secrets_hidden(j->secrets, a);
	(void)str_print(spool, sizeof spool, "%s/" CTL_SPOOL, j->ctl);
	(void)str_print(prologue, sizeof prologue, "%s/" CTL_PROLOGUE, j->ctl);
	const struct ship_log_args args = {
		.to = { j->agent->loop, j->agent->http, j->task.attempt.p, j->task.epoch },
		.spool = spool,
		.prologue = prologue,
		.token = j->task.token,
		.secrets = &hidden,
		.policies = &j->task.log_policies,
		.fresh = j->fresh,
		.done = finish_on_log,
		.arg = j,
	};
	j->log = ship_log_new(&args);
	arena_drop(a);
}

static void finish_log(struct job *j)
{
	const struct runtime_status *s = &j->status;

	if (j->rec.stop == REASON_SUPERSEDED) {
		set_result(j, ATTEMPT_CANCELLED, REASON_SUPERSEDED, "");
		finish_end(j);
		return;
	}
	job_log_open(j);
	if (j->log == NULL) {
		if (j->rec.result == ATTEMPT_SUCCEEDED)
			set_result(j, ATTEMPT_FAILED, REASON_SECRET_MISSING,
				"the secrets of the step cannot be had any more, so its log cannot "
				"be masked");
		finish_end(j);
		return;
	}
	j->agreeing = true;
	ship_log_end(j->log, s->dropped_bytes + s->lost_bytes,
		s->untold ? s->stdout_bytes + s->stderr_bytes : -1);
}

/* Also while the command runs, when the server says that another attempt has taken over. */
static void finish_on_log(void *arg, const struct err *e)
{
	struct job *j = arg;

	if (!j->agreeing) {
		(void)job_stop(j, REASON_SUPERSEDED);
		return;
	}
	j->agreeing = false;
	if (e->code == ERR_SUPERSEDED) {
		set_result(j, ATTEMPT_CANCELLED, REASON_SUPERSEDED, "");
		finish_end(j);
		return;
	}
	if (e->code != ERR_OK) {
		log_error("log not complete on the server", LOG_STR("attempt", j->task.attempt),
			LOG_E(e));
		if (j->rec.result == ATTEMPT_SUCCEEDED)
			set_result(j, ATTEMPT_FAILED, REASON_UPLOAD_FAILED, e->msg);
	}
	if (j->status.untold)
		j->status.dropped_bytes = ship_log_dropped(j->log);
	finish_outputs(j);
}

/* Superseded: the server will not take it. */
void job_log_abandon(struct job *j)
{
	if (!j->agreeing)
		return; /* finish_log will see it */
	j->agreeing = false;
	set_result(j, ATTEMPT_CANCELLED, REASON_SUPERSEDED, "");
	finish_end(j);
}

/* ---- outputs -------------------------------------------------------------------------------- */

static void finish_outputs(struct job *j)
{
	char root[PATH_MAX];

	/* Without its outputs it would be no success; a command that leaves none is done. */
	if (j->rec.result == ATTEMPT_SUCCEEDED && j->task.outputs.n != 0 &&
		(j->rec.stop == REASON_CANCELLED || j->rec.stop == REASON_SUPERSEDED))
		set_result(j, ATTEMPT_CANCELLED, (enum reason)j->rec.stop, "");
	if (j->rec.result != ATTEMPT_SUCCEEDED || j->task.outputs.n == 0) {
		finish_end(j);
		return;
	}
	(void)str_print(root, sizeof root, "%s/out", j->dir);
	const struct ship_outputs_args args = {
		.to = { j->agent->loop, j->agent->http, j->task.attempt.p, j->task.epoch },
		.root = root,
		.outputs = &j->task.outputs,
		.done = finish_on_outputs,
		.arg = j,
	};
	j->busy++;
	j->outputs = ship_outputs_start(&args);
}

static void finish_on_outputs(void *arg, enum reason reason, const char *message)
{
	struct job *j = arg;

	j->outputs = NULL;
	if (job_returned(j))
		return;
	if (reason == REASON_CANCELLED && j->rec.stop != REASON_NONE)
		set_result(j, ATTEMPT_CANCELLED, (enum reason)j->rec.stop, "");
	else if (reason == REASON_SUPERSEDED)
		set_result(j, ATTEMPT_CANCELLED, reason, "");
	else if (reason != REASON_NONE)
		set_result(j, ATTEMPT_FAILED, reason, message);
	finish_end(j);
}

/* ---- the last word -------------------------------------------------------------------------- */

static void finish_end(struct job *j)
{
	job_checkpoint_end(j, finish_usage);
}

static void finish_usage(struct job *j)
{
	job_usage_wait(j, finish_last);
}

/* A shell says in its output, and only there, which program it could not run. */
static void add_program(struct job *j, struct str tail)
{
	struct str rest = tail, line, last = STR_NONE;
	char text[256];

	if (j->rec.reason != REASON_EXIT_CODE ||
		(j->rec.exit_code != 126 && j->rec.exit_code != 127))
		return;
	while (tail.n != 0 && str_next(&rest, '\n', &line))
		last = str_trim(line).n != 0 ? str_trim(line) : last;
	if (last.n == 0)
		return;
	(void)str_print(text, sizeof text, "the command ended with exit code %d: %.*s",
		(int)j->rec.exit_code, STR_ARG(last));
	set_message(j, REASON_EXIT_CODE, text);
}

/* The command failed by itself: what its log says of that. */
static void add_match(struct job *j)
{
	struct list all = ship_log_matches(j->log, j->a);
	int oom = ship_log_near(j->log, "cuda-oom");
	const struct log_match *m = NULL;
	char text[sizeof j->message];

	if (j->rec.reason != REASON_EXIT_CODE && j->rec.reason != REASON_SIGNAL)
		return;
	for (size_t i = 0; i < all.n; i++) {
		const struct log_match *k = list_at(&all, struct log_match, i);
		if (m == NULL || k->policy == oom)
			m = k;
	}
	if (m == NULL)
		return;
	(void)str_print(text, sizeof text, "%.*s; %.*s in line %lld of its log: %.*s",
		STR_ARG(j->rec.message), STR_ARG(m->label.n != 0 ? m->label : m->match),
		(long long)m->line, STR_ARG(m->text));
	if (oom >= 0)
		j->rec.reason = REASON_CUDA_OOM;
	set_message(j, (enum reason)j->rec.reason, text);
}

static void finish_last(struct job *j)
{
	struct str tail = j->log != NULL ? ship_log_tail(j->log) : STR_NONE;

	add_program(j, tail);
	if (j->log != NULL)
		add_match(j);
	const struct evidence v = { .status = &j->status,
		.image = j->task.image,
		.image_id = j->rec.image_id,
		.image_ref = j->rec.image_ref,
		.image_fault = j->rec.image_fault,
		.log_tail = tail,
		.resumed = j->rec.resumed,
		.checkpoint = j->checkpoint.refused };
	j->rec.evidence = evidence_make(&v, j->a);
	ship_log_free(j->log);
	j->log = NULL;
	job_enter(j, JOB_ENDED, finish_on_saved);
}

static void finish_on_saved(struct job *j)
{
	log_info("attempt ended", LOG_STR("attempt", j->task.attempt),
		LOG_S("state", attempt_state_names[j->rec.result]),
		LOG_S("reason", reason_names[j->rec.reason]));
	agent_changed(j->agent);
	give_devices_back(j);
	agent_devices_free(j->agent); /* an attempt of the same step may wait */
	if (j->forget)
		job_remove(j);
}

/* ---- forgetting ----------------------------------------------------------------------------- */

void job_remove(struct job *j)
{
	const struct runtime_ref ref = job_ref(j);

	if (j->removing || j->busy != 0 || j->entering)
		return; /* job_returned or finish_on_saved comes here again */
	j->removing = true;
	if (j->runtime == NULL && control_held(j->ctl)) {
		log_warn("attempt not removed yet: it runs, and its runtime cannot be had",
			LOG_STR("attempt", j->task.attempt));
		job_later(j, remove_retry, ship_wait(&j->wait, NULL));
		return;
	}
	if (j->runtime == NULL) {
		j->cleared = true;
		give_devices_back(j);
		remove_folder(j);
		return;
	}
	j->busy++;
	runtime_remove(j->runtime, &ref, remove_on_runtime, j);
}

static void remove_retry(struct job *j)
{
	j->removing = false;
	job_remove(j);
}

static void remove_on_runtime(void *arg, const struct err *e)
{
	struct job *j = arg;

	if (job_returned(j))
		return;
	if (e->code != ERR_OK && !job_abandoned(j, e)) {
		log_warn("attempt not removed yet", LOG_STR("attempt", j->task.attempt), LOG_E(e));
		job_later(j, remove_retry, ship_wait(&j->wait, NULL));
		return;
	}
	if (e->code != ERR_OK)
		agent_left_over(j->agent, j->runtime);
	j->cleared = true;
	give_devices_back(j);
	remove_folder(j);
}

static void remove_folder(struct job *j)
{
	struct err e;

	if (work_submit(j->agent->loop, run_remove_folder, remove_on_folder, j, &e) < 0)
		job_later(j, remove_folder, 200);
	else
		j->busy++;
}

/* The record last: while there is one, somebody will come and go on. */
static void run_remove_folder(void *arg)
{
	struct job *j = arg;
	char path[PATH_MAX];
	static const char *const first[] = { "code", "in", "out", "ctl", NULL };

	j->save_err.code = ERR_OK;
	for (size_t i = 0; first[i] != NULL; i++)
		if (!str_print(path, sizeof path, "%s/%s", j->dir, first[i]) ||
			fs_remove_tree(path, &j->save_err) < 0)
			return;
	if (fs_remove_tree(j->secrets_dir, &j->save_err) == 0)
		(void)!fs_remove_tree(j->dir, &j->save_err);
}

static void free_job(void *arg)
{
	job_free(arg);
}

static void remove_on_folder(void *arg)
{
	struct job *j = arg;

	if (job_returned(j))
		return;
	if (j->save_err.code != ERR_OK) {
		log_warn("folder not removed yet", LOG_STR("attempt", j->task.attempt),
			LOG_E(&j->save_err));
		job_later(j, remove_folder, ship_wait(&j->wait, NULL));
		return;
	}
	agent_job_gone(j->agent, j);
	loop_defer(j->agent->loop, free_job, j);
}
