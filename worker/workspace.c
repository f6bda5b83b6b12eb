#include "worker/workspace.h"

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "lib/vcs/url.h"
#include "lib/vcs/vcs.h"
#include "worker/ship/ship.h"
#include "worker/stage.h"

#include <unistd.h>

enum { WINDOW = 6, ROUNDS_MAX = 4, ARENA_MAX = 1 << 20 };

struct workspace {
	struct workspace_args in;
	struct arena *a;
	struct stage stage;
	void (*next)(struct workspace *w); /* what the timer starts */
	struct loop_timer again;
	struct retry wait;
	bool working, cancelled;

	struct vcs_source source;
	struct vcs_checkout_args checkout;
	struct vcs_op *op;

	struct cache_wait *waits[WINDOW];
	struct slot {
		struct workspace *w;
		int i;
	} slots[WINDOW];
	size_t asked; /* of stage.missing */
	int waiting, rounds;
	struct err failed; /* the first failure of a round */
};

/* Folders → checkout → rounds of: place what is cached, get what is missing. */
static void workspace_prepare(struct workspace *w);
static void workspace_on_prepared(void *arg);
static void workspace_checkout(struct workspace *w);
static void workspace_on_checkout(void *arg, const struct vcs_tree *tree, const struct err *e);
static void workspace_stage(struct workspace *w);
static void workspace_on_staged(void *arg);
static void workspace_get(struct workspace *w);
static void workspace_on_got(void *arg, const struct err *e);
static void workspace_end(struct workspace *w, enum reason reason, const char *message);

static void on_timer(void *arg)
{
	struct workspace *w = arg;

	if (w->cancelled)
		workspace_end(w, REASON_CANCELLED, "");
	else
		w->next(w);
}

/* From a timer, so that nothing happens inside the call that asks for it. */
static void start_soon(struct workspace *w, void (*next)(struct workspace *w), int64_t ms)
{
	w->next = next;
	loop_timer_set(&w->again, ms);
}

struct workspace *workspace_start(const struct workspace_args *a)
{
	struct workspace *w = mem_new_of(struct workspace);

	w->in = *a;
	w->a = arena_new(ARENA_MAX);
	w->stage.cache = a->cache;
	w->stage.task = a->task;
	w->stage.dir = a->dir;
	w->stage.kept = a->kept;
	/* Whoever owns a file can change it: only root may hand out the cache's own. */
	w->stage.link = geteuid() == 0;
	cache_hold(a->cache);
	loop_timer_init(&w->again, a->loop, on_timer, w);
	start_soon(w, workspace_prepare, 0);
	return w;
}

void workspace_cancel(struct workspace *w)
{
	if (w->cancelled)
		return;
	w->cancelled = true;
	atomic_store(&w->stage.stop, true);
	if (w->op != NULL)
		vcs_cancel(w->op);
	for (int i = 0; i < WINDOW; i++)
		if (w->waits[i] != NULL)
			cache_cancel(w->waits[i]);
	if (w->op == NULL && w->waiting == 0 && !w->working)
		loop_timer_set(&w->again, 0);
}

static void workspace_end(struct workspace *w, enum reason reason, const char *message)
{
	workspace_cb *done = w->in.done;
	void *arg = w->in.arg;
	char text[sizeof w->failed.msg];

	*w->in.ret_resumed = w->stage.resumed;
	(void)str_print(text, sizeof text, "%s", message);
	loop_timer_cancel(&w->again);
	cache_release(w->in.cache);
	stage_done(&w->stage);
	arena_drop(w->a);
	mem_free(w);
	done(arg, reason, text);
}

static void workspace_fail(struct workspace *w, enum reason reason, const struct err *e)
{
	if (e->code == ERR_NO_SPACE)
		reason = REASON_DISK_FULL;
	else if (e->code == ERR_SUPERSEDED)
		reason = REASON_SUPERSEDED;
	workspace_end(w, reason, e->msg);
}

/* ---- folders -------------------------------------------------------------------------------- */

static void run_prepare(void *arg)
{
	stage_prepare(arg);
}

static void run_stage(void *arg)
{
	stage_run(arg);
}

/* The work belongs to the stage; its completion to us. */
static void on_prepare_done(void *arg)
{
	struct stage *s = arg;

	workspace_on_prepared((char *)s - offsetof(struct workspace, stage));
}

static void on_stage_done(void *arg)
{
	struct stage *s = arg;

	workspace_on_staged((char *)s - offsetof(struct workspace, stage));
}

static void workspace_prepare(struct workspace *w)
{
	struct err e;

	w->working = true;
	if (work_submit(w->in.loop, run_prepare, on_prepare_done, &w->stage, &e) < 0) {
		w->working = false;
		start_soon(w, workspace_prepare, ship_wait(&w->wait, NULL));
	}
}

static void workspace_on_prepared(void *arg)
{
	struct workspace *w = arg;

	w->working = false;
	if (w->cancelled)
		workspace_end(w, REASON_CANCELLED, "");
	else if (w->stage.err.code != ERR_OK)
		workspace_fail(w, REASON_STAGING_FAILED, &w->stage.err);
	else if (w->in.task->repository.n != 0)
		workspace_checkout(w);
	else
		workspace_stage(w);
}

/* ---- checkout ------------------------------------------------------------------------------- */

static void workspace_checkout(struct workspace *w)
{
	const struct worker_conf *c = w->in.conf;
	const struct assignment *task = w->in.task;

	arena_drop(w->a); /* of the try before */
	w->a = arena_new(ARENA_MAX);
	w->source = (struct vcs_source){
		.helper = c->git_program.n != 0 ? c->git_program.p : NULL,
		.cache = arena_printf(w->a, "%s/git", c->work_dir.p).p,
		.url = task->repository.p,
		.allow = (c->allow_local_git ? (unsigned)VCS_ALLOW_LOCAL : 0) |
			 (c->allow_http_git ? (unsigned)VCS_ALLOW_HTTP : 0),
		.credentials = c->git_credentials,
		.ca_file = c->ca_file.n != 0 ? c->ca_file.p : NULL,
	};
	w->checkout = (struct vcs_checkout_args){
		.commit = task->commit.p,
		.dir = arena_printf(w->a, "%s/code", w->in.dir).p,
	};
	w->op = vcs_checkout(w->in.loop, w->a, &w->source, &w->checkout, workspace_on_checkout, w);
}

static void workspace_on_checkout(void *arg, const struct vcs_tree *tree, const struct err *e)
{
	struct workspace *w = arg;

	(void)tree;
	w->op = NULL;
	if (w->cancelled) {
		workspace_end(w, REASON_CANCELLED, "");
	} else if (e->code == ERR_OK) {
		w->wait.tries = 0;
		workspace_stage(w);
	} else if (e->code == ERR_NETWORK || e->code == ERR_TIMEOUT || e->code == ERR_UNAVAILABLE) {
		if (w->wait.tries == 0)
			log_warn("repository not reached yet",
				LOG_STR("attempt", w->in.task->attempt), LOG_E(e));
		start_soon(w, workspace_checkout, ship_wait(&w->wait, NULL));
	} else {
		workspace_fail(w, REASON_CHECKOUT_FAILED, e);
	}
}

/* ---- staging -------------------------------------------------------------------------------- */

static void workspace_stage(struct workspace *w)
{
	struct err e;

	w->working = true;
	if (work_submit(w->in.loop, run_stage, on_stage_done, &w->stage, &e) < 0) {
		w->working = false;
		start_soon(w, workspace_stage, ship_wait(&w->wait, NULL));
	}
}

static void workspace_on_staged(void *arg)
{
	struct workspace *w = arg;

	w->working = false;
	if (w->cancelled) {
		workspace_end(w, REASON_CANCELLED, "");
	} else if (w->stage.err.code != ERR_OK) {
		workspace_fail(w, REASON_STAGING_FAILED, &w->stage.err);
	} else if (w->stage.n_missing == 0) {
		for (size_t i = 0; i < w->stage.n_held; i++)
			holds_data(w->in.holds, &w->stage.held[i]);
		workspace_end(w, REASON_NONE, "");
	} else if (++w->rounds > ROUNDS_MAX) {
		workspace_end(w, REASON_STAGING_FAILED, "the cache loses files as they come");
	} else {
		w->asked = 0;
		w->failed.code = ERR_OK;
		workspace_get(w);
	}
}

static void workspace_get(struct workspace *w)
{
	for (int i = 0; i < WINDOW && w->asked < w->stage.n_missing; i++) {
		if (w->waits[i] != NULL || w->failed.code != ERR_OK || w->cancelled)
			continue;
		const struct file *f = w->stage.missing[w->asked++];
		const struct cache_want want = { w->in.task->attempt.p, w->in.task->epoch,
			f->digest, f->size };
		w->slots[i] = (struct slot){ w, i };
		w->waiting++;
		w->waits[i] = cache_get(w->in.cache, &want, workspace_on_got, &w->slots[i]);
	}
}

static void workspace_on_got(void *arg, const struct err *e)
{
	const struct slot *slot = arg;
	struct workspace *w = slot->w;

	w->waits[slot->i] = NULL;
	w->waiting--;
	if (e->code != ERR_OK && w->failed.code == ERR_OK) {
		w->failed = *e;
		for (int i = 0; i < WINDOW; i++)
			if (w->waits[i] != NULL)
				cache_cancel(w->waits[i]);
	}
	workspace_get(w);
	if (w->waiting != 0)
		return;
	if (w->cancelled)
		workspace_end(w, REASON_CANCELLED, "");
	else if (w->failed.code != ERR_OK)
		workspace_fail(w, REASON_STAGING_FAILED, &w->failed);
	else
		workspace_stage(w);
}
