/*
 * Attempts as plain processes. tidemill-init gets a session of its own and outlives us; what we
 * know about it later comes from its control folder.
 */
#include "lib/base/mem.h"
#include "lib/loop/child.h"
#include "lib/loop/timer.h"
#include "worker/init/ctl.h"
#include "worker/runtime/launch.h"
#include "worker/runtime/rtjob.h"

#include <signal.h>
#include <unistd.h>

enum { LOOK_MS = 10, START_TRIES = 3000, END_TRIES = 1000 };

struct process {
	struct runtime head;
	struct rtcalls calls;
	char *init, *attempts, *install;
	struct launch_user user;
	struct err userless; /* why there is none */
	struct kid *kids;
};

/* An init that we started and have not reaped. */
struct kid {
	struct process *p;
	struct kid *next, *prev;
	struct loop_child *child;
	struct start *start; /* while a start waits for its first word */
	size_t n;
	char complaint[200]; /* what it said before it had its log */
};

struct start {
	struct rtcall call;
	struct process *p;
	const struct runtime_spec *spec;
	struct rtjob *job;
	struct kid *kid;
	struct loop_timer look;
	int tries;
	bool cancelled;
};

struct ending {
	struct rtcall call;
	struct process *p;
	struct loop_timer look;
	struct rtjob *job;
	int tries;
};

struct listing {
	struct rtcall call;
	struct rtjob *job;
};

/* Start: make the folders, start the init, wait for its first word. */
static void process_start(struct runtime *r, const struct runtime_spec *spec, runtime_note_cb *note,
	runtime_started_cb *done, void *arg);
static void start_on_made(void *arg);
static void start_on_look(void *arg);
/* Remove: end what runs, wait until it is gone, remove the secrets. */
static void process_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg);
static void remove_on_look(void *arg);
static void remove_on_removed(void *arg);
/* List: read the records. */
static void process_list(struct runtime *r, runtime_list_cb *done, void *arg);
static void list_on_read(void *arg);

static struct process *process_of(struct runtime *r)
{
	return (struct process *)(void *)r;
}

static void nothing_to_abandon(struct rtcall *c)
{
	(void)c;
}

/* ---- probe, poll, stop ---------------------------------------------------------------------- */

static void process_probe(struct runtime *r, runtime_about_cb *done, void *arg)
{
	struct process *p = process_of(r);
	struct rtcall *c = rtcall_new(&p->calls, sizeof *c, RTCALL_PROBE, nothing_to_abandon, arg);

	c->fn.about = done;
	c->about.ok = access(p->init, X_OK) == 0 && p->userless.code == ERR_OK;
	c->about.survives_daemon = c->about.gpus = true;
	(void)str_print(c->about.version, sizeof c->about.version, "%s", TIDEMILL_VERSION);
	if (c->about.ok)
		(void)str_print(c->about.note, sizeof c->about.note,
			"steps run as user %s (uid %u), without isolation or limits", p->user.name,
			(unsigned)p->user.uid);
	else if (p->userless.code != ERR_OK)
		(void)str_print(c->about.note, sizeof c->about.note, "%.250s", p->userless.msg);
	else
		(void)str_print(
			c->about.note, sizeof c->about.note, "%s cannot be executed", p->init);
	rtcall_settle(c, NULL);
}

static void process_poll(
	struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg)
{
	struct process *p = process_of(r);
	struct rtcall *c = rtcall_new(&p->calls, sizeof *c, RTCALL_POLL, nothing_to_abandon, arg);
	struct err e;

	c->fn.status = done;
	rtcall_set_ref(c, a);
	/* Held first: an init that ends in between has written its last word by then. */
	bool held = control_held(a->ctl);
	if (control_read(a->ctl, &c->status, NULL, &e) < 0) {
		rtcall_settle(c, &e);
		return;
	}
	bool alive = held || rtcall_find(&p->calls, RTCALL_START, a->attempt) != NULL;
	bool early = c->status.state == RUNTIME_PREPARING && control_fresh(a->ctl);
	if (!alive && !early && c->status.state != RUNTIME_ENDED &&
		c->status.state != RUNTIME_GONE) {
		control_seal(a->ctl);
		control_lost(&c->status, "the process was killed, or the host restarted");
	}
	if (control_past_start(&c->status))
		control_forget_env(a->secrets_dir);
	rtcall_settle(c, NULL);
}

static const int signals[] = {
	[RUNTIME_STOP_ASK] = SIGTERM,
	[RUNTIME_STOP_KILL] = SIGQUIT,
	[RUNTIME_STOP_FORCE] = SIGKILL,
};

static int stop_now(
	struct process *p, const struct runtime_ref *a, enum runtime_stop how, struct err *e)
{
	struct rtcall *starting = rtcall_find(&p->calls, RTCALL_START, a->attempt);
	struct runtime_status status;
	struct control_init init;

	if (starting != NULL) {
		struct start *s = (struct start *)(void *)starting;
		s->cancelled = true;
		/* A command that the init has just forked is in its group for a moment, and would
		 * be taken for one that has ended by itself. */
		if (s->kid != NULL && how == RUNTIME_STOP_FORCE)
			loop_child_kill(s->kid->child, SIGKILL);
		else if (s->kid != NULL)
			loop_child_signal(s->kid->child, signals[how]);
		/* Without a kid an init of an earlier worker may still be there. */
		if (s->kid != NULL || !control_held(a->ctl))
			return 0;
	}
	if (control_read(a->ctl, &status, &init, e) < 0)
		return -1;
	if (!control_held(a->ctl) || (status.state == RUNTIME_ENDED && how != RUNTIME_STOP_FORCE))
		return err_set(e, ERR_NOT_FOUND, "the attempt does not run");
	if (how == RUNTIME_STOP_FORCE) {
		control_kill(&init);
		return 0;
	}
	return control_signal(&init, signals[how], e);
}

static void process_stop(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
	runtime_done_cb *done, void *arg)
{
	struct process *p = process_of(r);
	struct rtcall *c = rtcall_new(&p->calls, sizeof *c, RTCALL_STOP, nothing_to_abandon, arg);
	struct err e;

	c->fn.done = done;
	rtcall_set_ref(c, a);
	rtcall_settle(c, stop_now(p, a, how, &e) < 0 ? &e : NULL);
}

/* ---- start ---------------------------------------------------------------------------------- */

static void start_detach(struct start *s)
{
	loop_timer_cancel(&s->look);
	if (s->kid != NULL)
		s->kid->start = NULL;
	s->kid = NULL;
}

static void start_abandon(struct rtcall *c)
{
	struct start *s = (struct start *)(void *)c;

	rtjob_abandon(s->job);
	start_detach(s);
}

static void start_end(struct start *s, const struct err *e)
{
	start_detach(s);
	s->call.started.blame =
		e != NULL && e->code == ERR_INVALID ? RUNTIME_BLAME_SPEC : RUNTIME_BLAME_HOST;
	rtcall_settle(&s->call, e);
}

static void process_start(struct runtime *r, const struct runtime_spec *spec, runtime_note_cb *note,
	runtime_started_cb *done, void *arg)
{
	struct process *p = process_of(r);
	struct start *s = rtcall_new(&p->calls, sizeof *s, RTCALL_START, start_abandon, arg);
	struct err e;

	(void)note;
	s->call.fn.started = done;
	s->p = p;
	loop_timer_init(&s->look, p->calls.loop, start_on_look, s);
	if (runtime_spec_check(spec, &e) < 0) {
		start_end(s, &e);
		return;
	}
	if (rtcall_find(&p->calls, RTCALL_START, spec->attempt) != NULL) {
		(void)err_set(&e, ERR_IN_PROGRESS, "the attempt is being started already");
		start_end(s, &e);
		return;
	}
	if (p->userless.code != ERR_OK) {
		(void)err_set(&e, ERR_UNAVAILABLE, "%.250s", p->userless.msg);
		start_end(s, &e);
		return;
	}
	s->spec = rtcall_copy_spec(s->call.a, spec);
	s->call.attempt = s->spec->attempt;
	s->job = rtjob_new(&s->call);
	s->job->make = (struct control_make){ s->spec, "process",
		arena_dup(s->call.a, str_c(p->install)), p->user.uid, p->user.gid };
	if (rtjob_submit(s->job, rtjob_run_make, start_on_made, &e) < 0) {
		s->job = NULL;
		start_end(s, &e);
	}
}

static void kid_on_stderr(void *arg, struct str bytes)
{
	struct kid *k = arg;
	size_t room = sizeof k->complaint - 1 - k->n;
	size_t n = bytes.n < room ? bytes.n : room;

	memcpy(k->complaint + k->n, bytes.p, n);
	k->n += n;
}

static void kid_unlink(struct kid *k)
{
	if (k->prev != NULL)
		k->prev->next = k->next;
	else
		k->p->kids = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	mem_free(k);
}

static void kid_on_done(void *arg, const struct loop_child_exit *x)
{
	struct kid *k = arg;
	struct start *s = k->start;
	struct runtime_status status;
	struct err e;

	(void)x;
	k->complaint[strcspn(k->complaint, "\n")] = '\0';
	bool begun = s != NULL && control_read(s->spec->ctl, &status, NULL, &e) == 0 &&
		     (status.state != RUNTIME_PREPARING || control_held(s->spec->ctl));
	if (begun) {
		/* It has had its say, or another init was there first and will. */
		s->kid = NULL;
	} else if (s != NULL) {
		if (s->cancelled)
			(void)err_set(&e, ERR_CANCELLED, "stopped before it began");
		else
			(void)err_set(&e, ERR_IO, "the init did not start: %s", k->complaint);
		start_end(s, &e);
	}
	kid_unlink(k);
}

static int spawn(struct start *s, struct err *e)
{
	struct process *p = s->p;
	const struct launch how = {
		.init = p->init,
		.spec = s->spec,
		.ctl = s->spec->ctl,
		.secrets = s->spec->secrets_dir,
		.workdir = s->spec->work,
		.as_user = geteuid() == 0,
		.uid = p->user.uid,
		.gid = p->user.gid,
	};
	struct kid *k = mem_new_of(struct kid);
	struct loop_child_spec child = {
		.argv = launch_argv(s->call.a, &how),
		.env = launch_env(s->call.a, s->spec, p->user.name, s->spec->work, true),
		.dir = "/",
		.on_stderr = kid_on_stderr,
		.on_done = kid_on_done,
		.arg = k,
	};

	k->child = loop_child_spawn(p->calls.loop, &child, e);
	if (k->child == NULL) {
		mem_free(k);
		return -1;
	}
	k->p = p;
	k->start = s;
	s->kid = k;
	k->next = p->kids;
	if (k->next != NULL)
		k->next->prev = k;
	p->kids = k;
	return 0;
}

static void start_on_made(void *arg)
{
	struct rtjob *j = arg;
	struct start *s = (struct start *)(void *)j->call;
	struct runtime_status status;
	struct err e = j->err;
	int rc = j->rc;

	rtjob_drop(j);
	if (s == NULL)
		return;
	s->job = NULL;
	if (rc == 0 && s->cancelled)
		rc = err_set(&e, ERR_CANCELLED, "stopped before it began");
	if (rc == 0)
		rc = control_read(s->spec->ctl, &status, NULL, &e);
	/* An earlier start of ours got as far as this; it is only waited for. */
	bool before = rc == 0 && (status.state != RUNTIME_PREPARING || control_held(s->spec->ctl));
	if (rc == 0 && !before)
		rc = spawn(s, &e);
	if (rc < 0)
		start_end(s, &e);
	else
		loop_timer_every(&s->look, LOOK_MS);
}

static void start_on_look(void *arg)
{
	struct start *s = arg;
	struct runtime_status status;
	struct err e;

	if (control_read(s->spec->ctl, &status, NULL, &e) < 0) {
		start_end(s, &e);
	} else if (status.state != RUNTIME_PREPARING) {
		start_end(s, NULL);
	} else if (++s->tries == START_TRIES) {
		(void)err_set(&e, ERR_TIMEOUT, "the init has not answered within %d s",
			START_TRIES * LOOK_MS / 1000);
		if (s->kid != NULL)
			loop_child_kill(s->kid->child, SIGKILL);
		start_end(s, &e);
	}
}

/* ---- list ----------------------------------------------------------------------------------- */

static void list_abandon(struct rtcall *c)
{
	rtjob_abandon(((struct listing *)(void *)c)->job);
}

static void process_list(struct runtime *r, runtime_list_cb *done, void *arg)
{
	struct process *p = process_of(r);
	struct listing *l = rtcall_new(&p->calls, sizeof *l, RTCALL_LIST, list_abandon, arg);
	struct err e;

	l->call.fn.list = done;
	l->job = rtjob_new(&l->call);
	l->job->attempts = arena_dup(l->call.a, str_c(p->attempts));
	l->job->runtime = "process";
	l->job->install = arena_dup(l->call.a, str_c(p->install));
	if (rtjob_submit(l->job, rtjob_run_list, list_on_read, &e) < 0)
		rtcall_settle(&l->call, &e);
}

static void list_on_read(void *arg)
{
	struct rtjob *j = arg;
	struct rtcall *c = j->call;

	if (c != NULL && j->rc == 0) {
		c->found = j->found;
		c->n_found = j->n_found;
		j->found = NULL;
	}
	if (c != NULL)
		rtcall_settle(c, j->rc < 0 ? &j->err : NULL);
	rtjob_drop(j);
}

/* ---- remove --------------------------------------------------------------------------------- */

static void remove_abandon(struct rtcall *c)
{
	struct ending *x = (struct ending *)(void *)c;

	rtjob_abandon(x->job);
	loop_timer_cancel(&x->look);
}

static void process_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg)
{
	struct process *p = process_of(r);
	struct ending *x = rtcall_new(&p->calls, sizeof *x, RTCALL_REMOVE, remove_abandon, arg);

	x->call.fn.done = done;
	x->p = p;
	rtcall_set_ref(&x->call, a);
	loop_timer_init(&x->look, p->calls.loop, remove_on_look, x);
	loop_timer_set(&x->look, 0);
}

static const struct err *time_out(struct err *e)
{
	(void)err_set(e, ERR_TIMEOUT, "the attempt does not end");
	return e;
}

static void remove_on_look(void *arg)
{
	struct ending *x = arg;
	struct err e;

	/* An init that is about to begin finds the folder sealed, or has begun and is seen here. */
	control_seal(x->call.ref.ctl);
	if (control_held(x->call.ref.ctl) ||
		rtcall_find(x->call.all, RTCALL_START, x->call.attempt) != NULL) {
		bool last = ++x->tries == END_TRIES;
		if (!last && stop_now(x->p, &x->call.ref, RUNTIME_STOP_FORCE, &e) < 0)
			last = e.code != ERR_NOT_FOUND;
		if (!last)
			loop_timer_set(&x->look, LOOK_MS);
		else if (x->tries == END_TRIES)
			rtcall_settle(&x->call, time_out(&e));
		else
			rtcall_settle(&x->call, &e);
		return;
	}
	x->job = rtjob_new(&x->call);
	x->job->secrets_dir = x->call.ref.secrets_dir;
	if (rtjob_submit(x->job, rtjob_run_remove, remove_on_removed, &e) < 0)
		rtcall_settle(&x->call, &e);
}

static void remove_on_removed(void *arg)
{
	struct rtjob *j = arg;

	if (j->call != NULL)
		rtcall_settle(j->call, j->rc < 0 ? &j->err : NULL);
	rtjob_drop(j);
}

/* ---- the runtime itself --------------------------------------------------------------------- */

static const char *process_path(
	const struct runtime *r, const struct runtime_spec *s, enum runtime_dir d)
{
	const char *const paths[RUNTIME_DIR_COUNT] = { s->work, s->in, s->out, s->secrets_dir };

	(void)r;
	return paths[d];
}

static void process_close(struct runtime *r)
{
	struct process *p = process_of(r);

	rtcalls_cancel(&p->calls);
	while (p->kids != NULL) {
		struct kid *k = p->kids;
		loop_child_forget(k->child);
		kid_unlink(k);
	}
	mem_free(p->init);
	mem_free(p->attempts);
	mem_free(p->install);
	mem_free(p);
}

static const struct runtime_ops ops = {
	.name = "process",
	.probe = process_probe,
	.start = process_start,
	.stop = process_stop,
	.poll = process_poll,
	.list = process_list,
	.remove = process_remove,
	.path = process_path,
	.close = process_close,
};

int runtime_process_new(
	struct loop *l, const struct runtime_process_config *c, struct runtime **ret, struct err *e)
{
	struct process *p = mem_new_of(struct process);

	p->head.ops = &ops;
	p->calls.loop = l;
	if (launch_user(&p->user, c->user, &p->userless) < 0 && !c->leftover) {
		*e = p->userless;
		mem_free(p);
		return -1;
	}
	p->init = mem_dup(c->init);
	p->attempts = mem_dup(c->attempts);
	p->install = mem_dup(c->install);
	*ret = &p->head;
	return 0;
}
