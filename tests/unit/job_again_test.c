/* worker/job.h: attempts of an earlier process whose runtime or its daemon is not there any more.
 */
#include "worker/job.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "tests/unit/unit.h"
#include "worker/init/ctl.h"
#include "worker/runtime/control.h"
#include "worker/ship/watch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A runtime whose daemon answers after a while with what is given here. */
struct daemon {
	struct runtime head;
	struct loop_timer answer;
	struct runtime_status status;
	struct err err; /* to every call */
	runtime_status_cb *on_status;
	runtime_done_cb *on_done;
	void *arg;
	int stops, removes, polls;
};

struct world {
	char dir[40];
	struct agent *agent;
	struct job *job;
	struct daemon d;
	int lock;
};

static struct daemon *daemon_of(struct runtime *r)
{
	return (struct daemon *)(void *)r;
}

static void answer(void *arg)
{
	struct daemon *d = arg;
	runtime_status_cb *on_status = d->on_status;
	runtime_done_cb *on_done = d->on_done;

	d->on_status = NULL;
	d->on_done = NULL;
	if (on_status != NULL)
		on_status(d->arg, &d->status, &d->err);
	if (on_done != NULL)
		on_done(d->arg, &d->err);
}

static void ask(struct daemon *d, runtime_done_cb *done, void *arg)
{
	d->on_done = done;
	d->arg = arg;
	loop_timer_set(&d->answer, 5);
}

static void daemon_poll(
	struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg)
{
	struct daemon *d = daemon_of(r);

	(void)a;
	d->polls++;
	d->on_status = done;
	ask(d, d->on_done, arg);
}

static void daemon_stop(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
	runtime_done_cb *done, void *arg)
{
	(void)a;
	(void)how;
	daemon_of(r)->stops++;
	ask(daemon_of(r), done, arg);
}

static void daemon_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg)
{
	(void)a;
	daemon_of(r)->removes++;
	ask(daemon_of(r), done, arg);
}

static const struct runtime_ops ops = {
	.name = "docker", .poll = daemon_poll, .stop = daemon_stop, .remove = daemon_remove
};

/* One that was given an hour ago, and half an hour for its start. */
static void begin(struct world *w, enum job_phase phase)
{
	struct str argv[] = { STR("true") };
	int runtimes[] = { RUNTIME_DOCKER };
	const struct assignment task = { .attempt = STR("att_1"),
		.step = STR("stp_1"),
		.run = STR("run_1"),
		.project = STR("demo"),
		.pipeline = STR("p"),
		.step_name = STR("train"),
		.number = 1,
		.epoch = 1,
		.argv = { argv, 1 },
		.runtimes = { runtimes, 1 },
		.start_timeout = 1800 * CLOCK_SECOND,
		.memory = 1 << 20,
		.cpus = 1 };
	struct job *j;
	struct err e;

	(void)alarm(20); /* what never comes about ends the program */
	*w = (struct world){ .lock = -1 };
	(void)str_print(w->dir, sizeof w->dir, "/tmp/tidemill-unit-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->agent = mem_new_of(struct agent);
	w->agent->loop = loop_new();
	w->agent->watch = watch_new(w->agent->loop);
	w->agent->conf.work_dir = str_c(w->dir);
	w->d.head.ops = &ops;
	loop_timer_init(&w->d.answer, w->agent->loop, answer, &w->d);
	w->agent->runtimes[RUNTIME_DOCKER] =
		(struct agent_runtime){ .agent = w->agent, .r = &w->d.head, .listed = true };
	j = w->job = job_new(w->agent, &task, &e);
	assert_non_null(j);
	w->agent->jobs = j;
	w->agent->n_jobs = 1;
	j->busy++; /* it does not begin */
	while (!j->stored)
		loop_step(w->agent->loop, true);
	j->busy--;
	loop_timer_cancel(&j->limit);
	assert_int_equal(fs_mkdirs(j->ctl, 0700, &e), 0);
	j->rec.received_elapsed = clock_elapsed(&clock_real) - 3600 * CLOCK_SECOND;
	j->rec.phase = (int)phase;
	j->runtime = &w->d.head;
	j->admitted = true;
	j->unmaskable = true; /* its log stays out of this */
}

/* As its init does. */
static void hold(struct world *w)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[160];

	(void)str_print(path, sizeof path, "%s/" CTL_LOCK, w->job->ctl);
	w->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(w->lock >= 0);
	assert_int_equal(fcntl(w->lock, F_OFD_SETLK, &whole), 0);
	assert_true(control_held(w->job->ctl));
}

static void release(struct world *w)
{
	assert_int_equal(close(w->lock), 0);
}

/* One turn; what is waited for between two tries is not. */
static void turn(struct world *w)
{
	if (loop_timer_armed(&w->job->look))
		loop_timer_set(&w->job->look, 0);
	if (loop_timer_armed(&w->job->again))
		loop_timer_set(&w->job->again, 0);
	loop_step(w->agent->loop, true);
}

static void until_ended(struct world *w)
{
	while (w->job->rec.phase != JOB_ENDED || w->job->entering)
		turn(w);
}

static void end(struct world *w)
{
	struct err e;

	while (w->agent->n_jobs != 0)
		turn(w);
	loop_step(w->agent->loop, false); /* it is freed there */
	(void)alarm(0);
	watch_free(w->agent->watch);
	loop_free(w->agent->loop);
	mem_free(w->agent);
	assert_int_equal(fs_remove_tree(w->dir, &e), 0);
}

static void away(struct world *w)
{
	(void)err_set(&w->d.err, ERR_NETWORK, "the container daemon cannot be reached");
}

void test_job_again__without_its_daemon_for_good_it_is_lost(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_RUNNING);
	away(&w);
	job_resume(w.job);
	until_ended(&w);
	assert_int_equal(w.job->rec.result, ATTEMPT_FAILED);
	assert_int_equal(w.job->rec.reason, REASON_RUNTIME_FAILED);
	assert_non_null(strstr(w.job->message, "not offered"));
	assert_true(w.d.polls >= 10); /* a daemon may only be late */
	assert_false(w.job->admitted);
	assert_true(job_forget(w.job));
	end(&w);
}

void test_job_again__a_cancel_without_its_daemon_ends_it(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_RUNNING);
	away(&w);
	job_resume(w.job);
	assert_true(job_stop(w.job, REASON_CANCELLED));
	until_ended(&w);
	assert_int_equal(w.job->rec.result, ATTEMPT_CANCELLED);
	assert_false(w.job->admitted);
	assert_true(w.agent->runtimes[RUNTIME_DOCKER].listed);
	assert_true(job_forget(w.job));
	while (w.agent->runtimes[RUNTIME_DOCKER].listed) /* its container may still be there */
		turn(&w);
	end(&w);
}

/* The daemon is away, and what it has started runs on. */
void test_job_again__what_runs_without_its_daemon_keeps_its_devices(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_RUNNING);
	hold(&w);
	away(&w);
	job_resume(w.job);
	while (w.d.polls < 100)
		turn(&w);
	assert_int_equal(w.job->rec.phase, JOB_RUNNING);
	assert_true(w.job->admitted);
	release(&w);
	until_ended(&w);
	assert_false(w.job->admitted);
	assert_true(job_forget(w.job));
	end(&w);
}

/* One that is offered is waited for. */
void test_job_again__a_daemon_that_is_offered_is_waited_for(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_RUNNING);
	w.agent->runtimes[RUNTIME_DOCKER].offered = true;
	away(&w);
	job_resume(w.job);
	while (w.d.polls < 100)
		turn(&w);
	assert_int_equal(w.job->rec.phase, JOB_RUNNING);
	w.d.err.code = ERR_OK;
	w.d.status = (struct runtime_status){
		.state = RUNTIME_ENDED, .end = RUNTIME_END_EXITED, .code = 3, .started_us = 5
	};
	until_ended(&w);
	assert_int_equal(w.job->rec.reason, REASON_EXIT_CODE);
	assert_true(job_forget(w.job));
	end(&w);
}

void test_job_again__what_runs_without_a_runtime_keeps_its_devices(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_RUNNING);
	hold(&w);
	w.job->runtime = NULL;
	job_resume(w.job);
	until_ended(&w);
	assert_int_equal(w.job->rec.reason, REASON_RUNTIME_FAILED);
	assert_true(w.job->admitted);
	assert_true(job_forget(w.job));
	for (int i = 0; i < 20 && w.agent->n_jobs != 0; i++)
		turn(&w);
	assert_int_equal(w.agent->n_jobs, 1);
	assert_true(w.job->admitted);
	release(&w);
	end(&w);
}

void test_job_again__a_result_stands_without_its_runtime(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_FINISHING);
	w.job->rec.unstarted = false;
	w.job->rec.result = ATTEMPT_FAILED;
	w.job->rec.reason = REASON_EXIT_CODE;
	w.job->rec.has_exit_code = true;
	w.job->rec.exit_code = 3;
	w.job->runtime = NULL;
	job_resume(w.job);
	until_ended(&w);
	assert_int_equal(w.job->rec.reason, REASON_EXIT_CODE);
	assert_int_equal(w.job->rec.exit_code, 3);
	assert_false(w.job->admitted);
	assert_true(job_forget(w.job));
	end(&w);
}

/* What has ended and could not be removed may run on: the next process must know. */
void test_job_again__one_that_has_ended_and_runs_keeps_its_devices(void **state)
{
	struct world w;
	struct job *again;
	struct err e;

	(void)state;
	begin(&w, JOB_RUNNING);
	hold(&w);
	away(&w);
	w.job->rec.runtime = STR("docker");
	job_finish(w.job, ATTEMPT_FAILED, REASON_RUNTIME_FAILED, "");
	until_ended(&w);
	assert_true(w.job->admitted);
	again = job_adopt(w.agent, w.job->dir, &e);
	assert_non_null(again);
	assert_int_equal(again->rec.phase, JOB_ENDED);
	assert_true(again->admitted);
	job_free(again);
	release(&w);
	again = job_adopt(w.agent, w.job->dir, &e);
	assert_false(again->admitted);
	job_free(again);
	assert_true(job_forget(w.job));
	end(&w);
}

/* It began long ago, and its end is only heard of by and by. */
void test_job_again__the_time_of_its_start_is_over_only_when_it_has_not_begun(void **state)
{
	struct world w;

	(void)state;
	begin(&w, JOB_RUNNING);
	w.d.status = (struct runtime_status){ .state = RUNTIME_ENDED,
		.end = RUNTIME_END_LOST,
		.killer = RUNTIME_KILLER_CLIENT,
		.started_us = 5 };
	job_resume(w.job);
	until_ended(&w);
	assert_int_equal(w.job->rec.stop, REASON_NONE);
	assert_int_equal(w.job->rec.reason, REASON_KILLED_OUTSIDE);
	assert_true(job_forget(w.job));
	end(&w);

	begin(&w, JOB_RUNNING);
	w.d.status = (struct runtime_status){ .state = RUNTIME_PREPARING };
	job_resume(w.job);
	while (w.d.stops == 0)
		turn(&w);
	assert_int_equal(w.job->rec.stop, REASON_START_TIMEOUT);
	w.d.status = (struct runtime_status){ .state = RUNTIME_ENDED, .end = RUNTIME_END_LOST };
	until_ended(&w);
	assert_int_equal(w.job->rec.reason, REASON_START_TIMEOUT);
	assert_true(job_forget(w.job));
	end(&w);
}
