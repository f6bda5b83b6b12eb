/* worker/job.h: what is forgotten while it is busy; saving beside other things that wait. */
#include "worker/job.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	char dir[40];
	struct agent *agent;
	struct job *job;
};

/* An attempt that is stored and does nothing, as if it had ended; `busy`: with that much in flight.
 */
static void begin(struct world *w, int busy)
{
	struct str argv[] = { STR("true") };
	int runtimes[] = { RUNTIME_PROCESS };
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
		.memory = 1 << 20,
		.cpus = 1 };
	struct err e;

	(void)alarm(20); /* what never comes about ends the program */
	(void)str_print(w->dir, sizeof w->dir, "/tmp/tidemill-unit-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->agent = mem_new_of(struct agent);
	w->agent->loop = loop_new();
	w->agent->conf.work_dir = str_c(w->dir);
	w->job = job_new(w->agent, &task, &e);
	assert_non_null(w->job);
	w->agent->jobs = w->job;
	w->agent->n_jobs = 1;
	w->job->busy += busy + 1; /* one: it does not begin */
	while (!w->job->stored)
		loop_step(w->agent->loop, true);
	w->job->busy--;
	w->job->rec.phase = JOB_ENDED;
}

static void end(struct world *w)
{
	struct err e;

	(void)alarm(0);
	loop_free(w->agent->loop);
	mem_free(w->agent);
	assert_int_equal(fs_remove_tree(w->dir, &e), 0);
}

static bool is_there(const struct world *w)
{
	char path[100];
	struct stat st;

	(void)str_print(path, sizeof path, "%s/attempts/att_1", w->dir);
	return stat(path, &st) == 0;
}

static void wait_until_gone(struct world *w)
{
	while (w->agent->n_jobs != 0)
		loop_step(w->agent->loop, true);
	loop_step(w->agent->loop, false); /* it is freed there */
	assert_false(is_there(w));
}

void test_job__forgotten_while_busy_goes_when_it_is_not(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 2);
	assert_true(job_forget(w.job));
	assert_false(job_forget(w.job));
	assert_false(w.job->removing);
	assert_false(job_returned(w.job));
	loop_step(w.agent->loop, false);
	assert_false(w.job->removing);
	assert_true(is_there(&w));
	assert_false(
		job_returned(w.job)); /* the last one; whoever called it goes on with the job */
	assert_false(w.job->removing);
	wait_until_gone(&w);
	end(&w);
}

void test_job__forgotten_with_nothing_in_flight_goes_at_once(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 0);
	assert_true(job_forget(w.job));
	assert_true(w.job->removing);
	wait_until_gone(&w);
	end(&w);
}

static int started, saved;

static void on_started(struct job *j)
{
	(void)j;
	started++;
}

static void on_saved(struct job *j)
{
	(void)j;
	saved++;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The queue of work is full when it is to be saved, while a start waits for its time. */
void test_job__save_that_waits_leaves_what_else_waits(void **state)
{
	struct world w;
	struct err e;
	size_t full = 0;

	(void)state;
	started = saved = 0;
	begin(&w, 0);
	job_later(w.job, on_started, 1);
	while (work_submit(w.agent->loop, nothing, nothing, NULL, &e) == 0)
		full++;
	assert_true(full >= WORK_QUEUE_MAX);
	job_save(w.job, on_saved);
	assert_int_equal(saved, 0);
	while (saved == 0 || started == 0)
		loop_step(w.agent->loop, true);
	assert_int_equal(started, 1);
	assert_int_equal(saved, 1);
	assert_true(job_forget(w.job));
	wait_until_gone(&w);
	end(&w);
}

/* Until its end is on disk the server is not told of it, whatever the saving waits for. */
void test_job__end_is_told_when_it_is_stored(void **state)
{
	struct sync_attempt told;
	struct world w;

	(void)state;
	begin(&w, 0);
	saved = 0;
	w.job->rec.result = ATTEMPT_FAILED;
	w.job->entering = true;
	job_report(w.job, &told);
	assert_int_equal(told.state, ATTEMPT_FINISHING);
	assert_true(job_forget(w.job));
	assert_false(w.job->removing);
	job_enter(w.job, JOB_ENDED, job_remove);
	wait_until_gone(&w);
	end(&w);
}
