/*
 * What a command leaves for a later attempt. While it runs, its folder is looked at now and then,
 * and brought to the server when it has changed and has then been left alone for a moment; so a
 * worker that is lost costs the work since then. When the attempt ends without success, the folder
 * stays on this host (checkpoint.h), and goes to the server too when another attempt may follow.
 *
 * Of a gang rank 0's counts, which all ranks of the next attempt find; those of others are dropped.
 */
#include "lib/base/log.h"
#include "lib/loop/work.h"
#include "worker/job.h"
#include "worker/ship/outputs.h"

enum { SETTLE_MS = 1000, BUSY_MS = 200 };
#define SETTLE (2 * CLOCK_SECOND) /* what has changed within this may be in the middle of it */

/* Look → ship → (the attempt is over: keep →) next. */
static void checkpoint_look_now(struct job *j);
static void checkpoint_run_look(void *arg);
static void checkpoint_on_looked(void *arg);
static void checkpoint_ship(struct job *j);
static void checkpoint_on_shipped(void *arg, enum reason reason, const char *message);
static void checkpoint_keep_here(struct job *j);
static void checkpoint_run_keep(void *arg);
static void checkpoint_on_kept(void *arg);

static void on_look(void *arg)
{
	checkpoint_look_now(arg);
}

void job_checkpoint_paths(struct job *j)
{
	struct assigned_output *o = arena_new_of(j->a, struct assigned_output);

	*o = (struct assigned_output){ STR("checkpoint"), STR(CHECKPOINT_DIR), 0 };
	j->checkpoint.folder = (struct list){ o, 1 };
	j->checkpoint.root = arena_printf(j->a, "%s/out", j->dir).p;
	j->checkpoint.dir = arena_printf(j->a, "%s/" CHECKPOINT_DIR, j->checkpoint.root).p;
}

void job_checkpoint_init(struct job *j)
{
	loop_timer_init(&j->checkpoint.look, j->agent->loop, on_look, j);
}

static void look_in(struct job *j, int64_t ms)
{
	loop_timer_set(&j->checkpoint.look, ms);
}

static void look_next(struct job *j)
{
	if (j->agent->conf.checkpoint_every > 0)
		look_in(j, j->agent->conf.checkpoint_every / 1000);
}

void job_checkpoint_watch(struct job *j)
{
	if (j->task.rank == 0)
		look_next(j);
}

void job_checkpoint_cancel(struct job *j)
{
	loop_timer_cancel(&j->checkpoint.look);
	if (j->checkpoint.ship != NULL)
		ship_outputs_cancel(j->checkpoint.ship);
}

/* ---- looking -------------------------------------------------------------------------------- */

static void checkpoint_look_now(struct job *j)
{
	struct err e;

	if (j->checkpoint.looking || j->checkpoint.ship != NULL)
		return;
	if (work_submit(j->agent->loop, checkpoint_run_look, checkpoint_on_looked, j, &e) < 0) {
		look_in(j, BUSY_MS);
		return;
	}
	j->checkpoint.looking = true;
	j->busy++;
}

static void checkpoint_run_look(void *arg)
{
	struct job_checkpoint *k = &((struct job *)arg)->checkpoint;

	k->err.code = ERR_OK;
	(void)!checkpoint_look(k->dir, &k->seen, &k->err);
}

/* Another attempt may follow: a fault of the host, or one of the command that is tried again. */
static bool may_follow(const struct job *j)
{
	return reason_blame((enum reason)j->rec.reason) == BLAME_INFRA ||
	       j->rec.reason == REASON_GANG_STOPPED || j->task.user_retries > 0;
}

/* It stays on this host, and the attempt says so. */
static bool too_large(struct job *j)
{
	struct job_checkpoint *k = &j->checkpoint;
	int64_t most = j->task.checkpoint_max;

	if (most == 0 || k->seen.bytes <= most)
		return false;
	if (k->refused[0] == '\0')
		log_warn("checkpoint is too large for the server",
			LOG_STR("attempt", j->task.attempt), LOG_I("bytes", k->seen.bytes),
			LOG_I("most", most));
	(void)str_print(k->refused, sizeof k->refused,
		"not brought to the server: it has %lld bytes, and checkpoint-max there is %lld",
		(long long)k->seen.bytes, (long long)most);
	return true;
}

/* Looks found the same for a while. When its files were written says nothing: clocks are set, and a
 * command sets what times it likes. */
static bool is_settled(struct job_checkpoint *k)
{
	int64_t now = clock_elapsed(&clock_real);

	if (k->settling != k->seen.sum) {
		k->settling = k->seen.sum;
		k->since = now;
	}
	return now - k->since >= SETTLE;
}

static void checkpoint_on_looked(void *arg)
{
	struct job *j = arg;
	struct job_checkpoint *k = &j->checkpoint;
	bool over = k->next != NULL, changed;

	k->looking = false;
	if (job_returned(j))
		return;
	if (k->err.code != ERR_OK)
		log_warn("checkpoint cannot be looked at", LOG_STR("attempt", j->task.attempt),
			LOG_E(&k->err));
	changed = k->err.code == ERR_OK && k->seen.sum != 0 && k->seen.sum != k->shipped.sum &&
		  !too_large(j);
	if (over && (!changed || j->rec.unstarted || !may_follow(j)))
		checkpoint_keep_here(j);
	else if (over)
		checkpoint_ship(j);
	else if (!changed)
		look_next(j);
	else if (!is_settled(k))
		look_in(j, SETTLE_MS);
	else
		checkpoint_ship(j);
}

/* ---- to the server -------------------------------------------------------------------------- */

/* On a work thread, while nothing here is touched. */
static bool is_unchanged(void *arg)
{
	const struct job_checkpoint *k = &((const struct job *)arg)->checkpoint;
	struct checkpoint_state now;
	struct err e;

	return checkpoint_look(k->dir, &now, &e) == 0 && now.sum == k->seen.sum;
}

static void checkpoint_ship(struct job *j)
{
	const struct ship_outputs_args args = {
		.to = { j->agent->loop, j->agent->http, j->task.attempt.p, j->task.epoch },
		.root = j->checkpoint.root,
		.outputs = &j->checkpoint.folder,
		.unchanged = is_unchanged,
		.done = checkpoint_on_shipped,
		.arg = j,
	};

	j->busy++;
	j->checkpoint.ship = ship_outputs_start(&args);
}

static void checkpoint_on_shipped(void *arg, enum reason reason, const char *message)
{
	struct job *j = arg;
	struct job_checkpoint *k = &j->checkpoint;

	k->ship = NULL;
	if (job_returned(j))
		return;
	if (reason == REASON_NONE) {
		k->shipped = k->seen;
		k->refused[0] = '\0';
		log_info("checkpoint brought to the server", LOG_STR("attempt", j->task.attempt),
			LOG_I("files", k->seen.files));
	} else if (reason != REASON_CANCELLED && reason != REASON_SUPERSEDED) {
		log_info("checkpoint not brought to the server",
			LOG_STR("attempt", j->task.attempt), LOG_S("why", message));
	}
	if (k->next != NULL)
		job_checkpoint_end(j, k->next);
	else
		look_next(j);
}

/* ---- the end of the attempt ----------------------------------------------------------------- */

/* Whether an attempt may follow it. */
static bool counts(const struct job *j)
{
	return j->rec.result == ATTEMPT_FAILED || j->rec.reason == REASON_GANG_STOPPED;
}

void job_checkpoint_end(struct job *j, job_next_fn *next)
{
	struct job_checkpoint *k = &j->checkpoint;

	k->next = next;
	loop_timer_cancel(&k->look);
	if (k->ship != NULL && !counts(j))
		ship_outputs_cancel(k->ship);
	if (k->ship != NULL || k->looking)
		return; /* whose end leads here again */
	if (!counts(j) || j->task.rank != 0) {
		next(j);
	} else if (!k->looked) {
		k->looked = true;
		checkpoint_look_now(j);
	} else {
		checkpoint_keep_here(j);
	}
}

static void checkpoint_keep_here(struct job *j)
{
	struct err e;

	if (work_submit(j->agent->loop, checkpoint_run_keep, checkpoint_on_kept, j, &e) < 0)
		job_later(j, checkpoint_keep_here, BUSY_MS);
	else
		j->busy++;
}

static void checkpoint_run_keep(void *arg)
{
	struct job *j = arg;
	struct job_checkpoint *k = &j->checkpoint;
	char kept[512];

	k->err.code = ERR_OK;
	if (str_print(kept, sizeof kept, "%s/checkpoints", j->agent->conf.work_dir.p))
		(void)!checkpoint_keep(
			kept, j->task.step.p, j->task.number, k->root, &k->kept, &k->err);
}

static void checkpoint_on_kept(void *arg)
{
	struct job *j = arg;
	struct job_checkpoint *k = &j->checkpoint;

	if (job_returned(j))
		return;
	if (k->err.code != ERR_OK)
		log_warn(
			"checkpoint not kept", LOG_STR("attempt", j->task.attempt), LOG_E(&k->err));
	if (k->kept)
		agent_kept(j->agent, j->task.step, true);
	k->next(j);
}
