#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/loop/child.h"
#include "lib/loop/defer.h"
#include "lib/loop/loop.h"
#include "lib/loop/signal.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct trace {
	struct loop *l;
	struct loop_timer a, b;
	struct buf seen;
	int count;
};

static void say_a(void *arg)
{
	buf_addc(&((struct trace *)arg)->seen, 'a');
}

static void say_b_and_stop(void *arg)
{
	struct trace *t = arg;

	buf_addc(&t->seen, 'b');
	loop_stop(t->l);
}

static void trace_init(struct trace *t)
{
	*t = (struct trace){ .l = loop_new() };
	buf_init(&t->seen, 1 << 20);
	loop_timer_init(&t->a, t->l, say_a, t);
	loop_timer_init(&t->b, t->l, say_b_and_stop, t);
}

static void trace_done(struct trace *t)
{
	loop_timer_cancel(&t->a);
	loop_timer_cancel(&t->b);
	buf_done(&t->seen);
	loop_free(t->l);
}

void test_timer__fires_in_order_and_not_when_cancelled(void **state)
{
	struct trace t;

	(void)state;
	trace_init(&t);
	loop_timer_set(&t.b, 8);
	loop_timer_set(&t.a, 2);
	loop_run(t.l);
	assert_string_equal(buf_str(&t.seen).p, "ab");
	loop_timer_set(&t.a, 1);
	loop_timer_cancel(&t.a);
	assert_false(loop_timer_armed(&t.a));
	loop_timer_set(&t.b, 5);
	loop_run(t.l);
	assert_string_equal(buf_str(&t.seen).p, "abb");
	trace_done(&t);
}

void test_timer__setting_again_moves_it(void **state)
{
	struct trace t;
	int64_t start = clock_elapsed(&clock_real);

	(void)state;
	trace_init(&t);
	loop_timer_set(&t.b, 60000);
	loop_timer_set(&t.b, 3);
	loop_run(t.l);
	assert_true(clock_elapsed(&clock_real) - start < 30 * CLOCK_SECOND);
	trace_done(&t);
}

struct many {
	struct loop_timer t;
	int64_t due;
	struct many_all *all;
};

struct many_all {
	struct loop *l;
	int64_t last;
	int left;
};

static void on_many(void *arg)
{
	struct many *m = arg;

	assert_true(m->due >= m->all->last);
	m->all->last = m->due;
	if (--m->all->left == 0)
		loop_stop(m->all->l);
}

void test_timer__heap_keeps_order_under_moves(void **state)
{
	struct many_all all = { .l = loop_new() };
	struct many *m = mem_new(500, sizeof *m);
	int64_t base = clock_elapsed(&clock_real);
	uint32_t x = 12345;

	(void)state;
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 500; i++) {
			x = x * 1664525 + 1013904223;
			if (round == 0)
				loop_timer_init(&m[i].t, all.l, on_many, &m[i]);
			m[i].all = &all;
			m[i].due = base + (int64_t)(x >> 8) % 20000;
			if (round == 1 && i % 3 == 0)
				loop_timer_cancel(&m[i].t);
			else
				loop_timer_at(&m[i].t, m[i].due);
		}
	all.left = 500;
	loop_run(all.l);
	assert_int_equal(all.left, 0);
	mem_free(m);
	loop_free(all.l);
}

static void on_tick(void *arg)
{
	struct trace *t = arg;

	if (++t->count == 3) {
		loop_timer_cancel(&t->a);
		loop_stop(t->l);
	}
}

void test_timer__periodic_until_cancelled(void **state)
{
	struct trace t;

	(void)state;
	trace_init(&t);
	loop_timer_init(&t.a, t.l, on_tick, &t);
	loop_timer_every(&t.a, 1);
	loop_run(t.l);
	assert_int_equal(t.count, 3);
	assert_false(loop_timer_armed(&t.a));
	trace_done(&t);
}

static void defer_twice(void *arg)
{
	struct trace *t = arg;

	buf_addc(&t->seen, 'd');
	if (t->count++ == 0)
		loop_defer(t->l, defer_twice, t);
}

void test_defer__runs_after_the_call_and_nests(void **state)
{
	struct trace t;

	(void)state;
	trace_init(&t);
	loop_defer(t.l, defer_twice, &t);
	assert_int_equal(t.seen.n, 0);
	loop_step(t.l, true);
	assert_int_equal(t.seen.n, 1);
	loop_step(t.l, true);
	assert_int_equal(t.seen.n, 2);
	trace_done(&t);
}

struct pipe_end {
	struct loop *l;
	struct loop_fd *w;
	int fd, calls;
};

static void on_readable_free(void *arg, int what)
{
	struct pipe_end *p = arg;

	assert_int_equal(what & LOOP_READ, LOOP_READ);
	p->calls++;
	loop_fd_free(p->w); /* inside its own callback */
	loop_stop(p->l);
}

void test_loop__watcher_may_be_freed_in_its_callback(void **state)
{
	struct pipe_end p = { .l = loop_new() };
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	p.fd = fd[0];
	p.w = loop_fd_new(p.l, fd[0], 0, on_readable_free, &p);
	assert_int_equal(write(fd[1], "xy", 2), 2);
	loop_step(p.l, false);
	assert_int_equal(p.calls, 0); /* nothing was wanted */
	loop_fd_want(p.w, LOOP_READ);
	loop_run(p.l);
	assert_int_equal(p.calls, 1);
	close(fd[0]);
	close(fd[1]);
	loop_free(p.l);
}

static void on_slow(void *arg)
{
	struct timespec t = { .tv_nsec = (LOOP_SLOW_MS + 10) * 1000000L };

	nanosleep(&t, NULL);
	loop_stop(arg);
}

/* How many bytes a slow turn says on stderr. */
static off_t slow_says(struct loop *l)
{
	FILE *said = tmpfile();
	int saved = dup(STDERR_FILENO);

	assert_non_null(said);
	assert_true(saved >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
	loop_defer(l, on_slow, l);
	loop_run(l);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	off_t n = lseek(fileno(said), 0, SEEK_END);
	(void)fclose(said);
	return n;
}

void test_loop__watchdog_counts_slow_turns(void **state)
{
	struct loop *l = loop_new();

	(void)state;
	assert_true(slow_says(l) > 0);
	assert_int_equal(loop_slow_turns(l), 1);
	loop_serves_nobody(l);
	assert_true(slow_says(l) == 0);
	assert_int_equal(loop_slow_turns(l), 2);
	loop_free(l);
}

static void on_usr1(void *arg, int signo)
{
	assert_int_equal(signo, SIGUSR1);
	loop_stop(arg);
}

void test_signal__arrives_on_the_loop(void **state)
{
	struct loop *l = loop_new();
	struct loop_signal *s = loop_signal_new(l, SIGUSR1, on_usr1, l);

	(void)state;
	kill(getpid(), SIGUSR1);
	loop_run(l);
	loop_signal_free(s);
	loop_free(l);
}

struct job {
	struct loop *l;
	atomic_int *ran;
	int *done;
};

static void job_run(void *arg)
{
	atomic_fetch_add(((struct job *)arg)->ran, 1);
}

static void job_done(void *arg)
{
	struct job *j = arg;

	++*j->done;
	if (work_pending(j->l) == 0)
		loop_stop(j->l);
}

void test_work__every_job_runs_and_completes_once(void **state)
{
	struct loop *l = loop_new();
	atomic_int ran = 0;
	int done = 0;
	struct job j = { l, &ran, &done };
	struct err e;

	(void)state;
	work_setup(l, 3, 200);
	for (int i = 0; i < 200; i++)
		assert_int_equal(work_submit(l, job_run, job_done, &j, &e), 0);
	assert_int_equal(done, 0); /* never inside the call */
	loop_run(l);
	assert_int_equal(done, 200);
	assert_int_equal(atomic_load(&ran), 200);
	assert_int_equal(work_submit(l, job_run, job_done, &j, &e), 0);
	loop_free(l); /* waits for it */
	assert_int_equal(done, 201);
}

static void job_wait(void *arg)
{
	char c;

	if (read(*(int *)arg, &c, 1) != 1)
		abort();
}

static void job_nothing(void *arg)
{
	(void)arg;
}

void test_work__queue_is_bounded(void **state)
{
	struct loop *l = loop_new();
	int fd[2], refused = 0;
	struct err e;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	work_setup(l, 1, 2);
	for (int i = 0; i < 5; i++)
		if (work_submit(l, job_wait, job_nothing, &fd[0], &e) < 0) {
			assert_int_equal(e.code, ERR_UNAVAILABLE);
			refused++;
		}
	/* One may or may not have been taken by the thread by now. */
	assert_in_range(refused, 2, 3);
	assert_int_equal(write(fd[1], "12345", 5), 5);
	loop_free(l);
	close(fd[0]);
	close(fd[1]);
}

struct kid {
	struct loop *l;
	struct buf out, err;
	struct loop_child *c;
	struct loop_child_exit x;
	int done;
};

static void kid_out(void *arg, struct str bytes)
{
	buf_add(&((struct kid *)arg)->out, bytes);
}

static void kid_err(void *arg, struct str bytes)
{
	buf_add(&((struct kid *)arg)->err, bytes);
}

static void kid_done(void *arg, const struct loop_child_exit *x)
{
	struct kid *k = arg;

	k->x = *x;
	k->done++;
	loop_stop(k->l);
}

static void kid_init(struct kid *k)
{
	*k = (struct kid){ .l = loop_new() };
	buf_init(&k->out, 8 << 20);
	buf_init(&k->err, 8 << 20);
}

static void kid_free(struct kid *k)
{
	buf_done(&k->out);
	buf_done(&k->err);
	loop_free(k->l);
}

static void kid_sh(struct kid *k, const char *script, struct loop_child_spec s)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct err e = { .code = ERR_OK };

	s.argv = argv;
	s.on_stdout = kid_out;
	s.on_stderr = kid_err;
	s.on_done = kid_done;
	s.arg = k;
	k->c = loop_child_spawn(k->l, &s, &e);
	assert_non_null(k->c);
	loop_run(k->l);
	assert_int_equal(k->done, 1);
}

void test_child__streams_status_and_clean_environment(void **state)
{
	const char *const env[] = { "A=1", NULL };
	struct kid k;

	(void)state;
	kid_init(&k);
	kid_sh(&k, "echo out; echo err >&2; echo $A ${HOME-none}; pwd; exit 7",
		(struct loop_child_spec){ .env = env, .dir = "/" });
	assert_string_equal(buf_str(&k.out).p, "out\n1 none\n/\n");
	assert_string_equal(buf_str(&k.err).p, "err\n");
	assert_int_equal(k.x.code, 7);
	assert_int_equal(k.x.signo, 0);
	assert_false(k.x.timed_out);
	kid_free(&k);
}

void test_child__input_larger_than_a_pipe_comes_back_whole(void **state)
{
	size_t n = 3 << 20;
	char *bytes = mem_new(n, 1);
	struct kid k;

	(void)state;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 7);
	kid_init(&k);
	kid_sh(&k, "/bin/cat", (struct loop_child_spec){ .input = { bytes, n } });
	assert_int_equal(k.out.n, n);
	assert_memory_equal(k.out.p, bytes, n);
	assert_int_equal(k.x.code, 0);
	mem_free(bytes);
	kid_free(&k);
}

void test_child__deadline_kills_the_whole_group(void **state)
{
	struct kid k;
	int64_t start = clock_elapsed(&clock_real);

	(void)state;
	kid_init(&k);
	kid_sh(&k, "/bin/sleep 100 & echo $!; wait",
		(struct loop_child_spec){ .deadline_ms = 100 });
	assert_true(k.x.timed_out);
	assert_int_equal(k.x.signo, SIGKILL);
	assert_true(clock_elapsed(&clock_real) - start < 20 * CLOCK_SECOND);
	kid_free(&k);
}

void test_child__finished_only_when_the_pipes_are_closed(void **state)
{
	struct kid k;

	(void)state;
	kid_init(&k);
	/* The shell exits at once; its grandchild still has the pipe and something to say. */
	kid_sh(&k, "(/bin/sleep 0.1; echo late) & exit 3", (struct loop_child_spec){ 0 });
	assert_string_equal(buf_str(&k.out).p, "late\n");
	assert_int_equal(k.x.code, 3);
	kid_free(&k);
}

void test_child__no_descriptor_leaks_into_it(void **state)
{
	struct kid k;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0); /* without close-on-exec, as a library may do */
	kid_init(&k);
	kid_sh(&k, "for f in /proc/self/fd/*; do echo ${f##*/}; done",
		(struct loop_child_spec){ 0 });
	/* 0, 1, 2 and the one that reads the folder. */
	assert_true(k.out.n <= strlen("0\n1\n2\n10\n"));
	close(fd[0]);
	close(fd[1]);
	kid_free(&k);
}

void test_child__limits_and_missing_programs(void **state)
{
	const char *const argv[] = { "/nonexistent/program", NULL };
	struct loop_child_spec s = { .argv = argv, .on_done = kid_done };
	struct err e = { .code = ERR_OK };
	struct kid k;

	(void)state;
	kid_init(&k);
	assert_null(loop_child_spawn(k.l, &s, &e));
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.msg, "/nonexistent/program"));
	kid_sh(&k, "ulimit -n; ulimit -f",
		(struct loop_child_spec){ .max_files = 33, .max_file = 512 });
	assert_string_equal(buf_str(&k.out).p, "33\n1\n");
	kid_free(&k);
}

static void kid_echo_then_close(void *arg, struct str bytes)
{
	struct kid *k = arg;

	buf_add(&k->out, bytes);
	loop_child_close_stdin(k->c);
}

void test_child__forgotten_lives_on(void **state)
{
	const char *const argv[] = { "/bin/sleep", "60", NULL };
	struct err e = { .code = ERR_OK };
	struct kid k;
	pid_t pid;

	(void)state;
	kid_init(&k);
	k.c = loop_child_spawn(
		k.l, &(struct loop_child_spec){ .argv = argv, .on_done = kid_done, .arg = &k }, &e);
	assert_non_null(k.c);
	pid = loop_child_pid(k.c);
	loop_child_forget(k.c);
	kid_free(&k);
	assert_int_equal(k.done, 0);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

void test_child__stdin_stays_open_until_closed(void **state)
{
	const char *const argv[] = { "/bin/cat", NULL };
	struct err e = { .code = ERR_OK };
	struct kid k;

	(void)state;
	kid_init(&k);
	k.c = loop_child_spawn(k.l,
		&(struct loop_child_spec){ .argv = argv,
			.keep_stdin = true,
			.on_stdout = kid_echo_then_close,
			.on_done = kid_done,
			.arg = &k },
		&e);
	assert_non_null(k.c);
	assert_int_equal(loop_child_write(k.c, STR("ping"), &e), 0);
	loop_run(k.l);
	assert_string_equal(buf_str(&k.out).p, "ping");
	assert_int_equal(k.x.code, 0);
	kid_free(&k);
}
