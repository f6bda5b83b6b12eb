/* server/sched/gang.h: what the ranks of a gang are to its step. */
#include "server/sched/gang.h"
#include "tests/unit/unit.h"

struct world {
	struct arena *a;
	struct gang_rank ranks[4];
	struct gang gang;
	struct gang_verdict v;
};

static void begin(struct world *w, size_t n)
{
	static const char *const workers[] = { "gpu-00", "gpu-01", "gpu-02", "gpu-03" };

	*w = (struct world){ .a = arena_new(1 << 20) };
	for (size_t i = 0; i < n; i++)
		w->ranks[i] = (struct gang_rank){
			.id = STR("att"), .worker = str_c(workers[i]), .state = ATTEMPT_PREPARING
		};
	w->gang.ranks = (struct list){ w->ranks, n };
}

static void fails(struct world *w, size_t rank, const char *reason, const char *message, int64_t at)
{
	w->ranks[rank].state = ATTEMPT_FAILED;
	w->ranks[rank].reason = str_c(reason);
	w->ranks[rank].message = str_c(message);
	w->ranks[rank].ended_at = at;
}

static void stopped(struct world *w, size_t rank, const char *reason)
{
	w->ranks[rank].state = ATTEMPT_CANCELLED;
	w->ranks[rank].reason = str_c(reason);
	w->ranks[rank].ended_at = 1000;
}

static void judge(struct world *w)
{
	gang_judge(&w->gang, w->a, &w->v);
}

static void end(struct world *w)
{
	arena_drop(w->a);
}

void test_gang__released_once_when_all_are_ready(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 3);
	w.ranks[0].ready = w.ranks[1].ready = true;
	judge(&w);
	assert_false(w.v.release);
	assert_false(w.v.stop);
	assert_int_equal(w.v.state, ATTEMPT_PREPARING);
	w.ranks[2].ready = true;
	judge(&w);
	assert_true(w.v.release);
	w.ranks[1].released = true; /* half of it was told before the server ended */
	judge(&w);
	assert_false(w.v.release);
	end(&w);
}

/* The step is where the rank is that is furthest behind; it began with the first. */
void test_gang__state_is_that_of_the_last(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 3);
	w.ranks[0].state = ATTEMPT_FINISHING;
	w.ranks[1].state = ATTEMPT_RUNNING;
	w.ranks[2].state = ATTEMPT_SUCCEEDED;
	w.ranks[0].started_at = 20;
	w.ranks[1].started_at = 10;
	judge(&w);
	assert_int_equal(w.v.state, ATTEMPT_RUNNING);
	assert_int_equal(w.v.started_at, 10);
	assert_false(w.v.stop);
	w.ranks[1].state = ATTEMPT_SUCCEEDED;
	w.ranks[0].state = ATTEMPT_SUCCEEDED;
	judge(&w);
	assert_int_equal(w.v.state, ATTEMPT_SUCCEEDED);
	assert_int_equal(w.v.reason.n, 0);
	end(&w);
}

void test_gang__the_first_that_fails_is_the_cause(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 4);
	for (size_t i = 0; i < 4; i++)
		w.ranks[i].state = ATTEMPT_RUNNING;
	fails(&w, 1, "exit_code", "the command ended with exit code 3", 500);
	judge(&w);
	assert_true(w.v.stop);
	assert_int_equal(w.v.state, ATTEMPT_PREPARING); /* until the last one has ended */
	fails(&w, 2, "signal", "the command was ended by SIGABRT", 600);
	stopped(&w, 0, "gang_stopped");
	stopped(&w, 3, "gang_stopped");
	judge(&w);
	assert_false(w.v.stop);
	assert_int_equal(w.v.state, ATTEMPT_FAILED);
	assert_true(str_is(w.v.reason, "exit_code"));
	assert_true(str_is(w.v.message, "rank 1 on gpu-01 ended with exit code 3; 2 other ranks "
					"were stopped; 1 more failed"));
	end(&w);
}

/* Others notice a lost worker by failing, and sooner than we do. */
void test_gang__a_fault_of_ours_goes_first(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 3);
	fails(&w, 0, "exit_code", "the command ended with exit code 1", 100);
	fails(&w, 1, "worker_lost", "The worker was not heard of for too long", 900);
	w.ranks[1].state = ATTEMPT_LOST;
	stopped(&w, 2, "gang_stopped");
	judge(&w);
	assert_true(str_is(w.v.reason, "worker_lost"));
	assert_true(str_is(w.v.message, "rank 1 on gpu-01: The worker was not heard of for too "
					"long; 1 other rank was stopped;"
					" 1 more failed"));
	fails(&w, 2, "preempted", "preempted by step train of project a", 50);
	judge(&w);
	assert_true(str_is(w.v.reason, "preempted"));
	end(&w);
}

void test_gang__who_was_not_ready_is_named(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 3);
	w.ranks[1].ready = true;
	fails(&w, 1, "start_timeout", "", 100);
	stopped(&w, 0, "gang_stopped");
	stopped(&w, 2, "gang_stopped");
	judge(&w);
	assert_true(str_is(w.v.message,
		"not all ranks were ready in time: rank 0 on gpu-00, rank 2 on gpu-02 not"));
	end(&w);
}

void test_gang__cancelled_by_somebody(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 2);
	stopped(&w, 0, "gang_stopped");
	stopped(&w, 1, "cancelled");
	judge(&w);
	assert_int_equal(w.v.state, ATTEMPT_CANCELLED);
	assert_true(str_is(w.v.reason, "cancelled"));
	end(&w);
}

/* With ray and mpi the others only serve rank 0. */
void test_gang__rank_0_leads(void **state)
{
	struct world w;

	(void)state;
	begin(&w, 2);
	w.ranks[0].state = ATTEMPT_SUCCEEDED;
	w.ranks[1].state = ATTEMPT_RUNNING;
	judge(&w);
	assert_false(w.v.stop);
	assert_int_equal(w.v.state, ATTEMPT_RUNNING);
	w.gang.led = true;
	judge(&w);
	assert_true(w.v.stop);
	fails(&w, 1, "exit_code", "the command ended with exit code 1", 2000);
	judge(&w);
	assert_int_equal(w.v.state, ATTEMPT_SUCCEEDED);
	assert_int_equal(w.v.reason.n, 0);
	end(&w);
}

void test_gang__is_read_as_the_database_has_it(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct gang g;
	struct err e;

	(void)state;
	assert_int_equal(
		gang_read(
			STR("[{\"id\": \"att_1\", \"worker_id\": \"wrk_1\", \"worker\": \"w1\","
			    " \"state\": \"lost\", \"reason\": \"worker_lost\", \"message\": \"m\","
			    " \"started_at\": 5, \"ended_at\": 7, \"ready\": true,"
			    " \"released\": true, \"stopping\": false}, {\"id\": \"att_2\"}]"),
			true, a, &g, &e),
		0);
	assert_int_equal(g.ranks.n, 2);
	assert_true(g.led);
	const struct gang_rank *r = list_at(&g.ranks, struct gang_rank, 0);
	assert_int_equal(r->state, ATTEMPT_LOST);
	assert_true(gang_rank_ended(r));
	assert_true(r->ready && r->released && !r->stopping);
	assert_int_equal(r->started_at, 5);
	assert_int_equal(r->ended_at, 7);
	assert_true(str_is(r->worker, "w1"));
	assert_false(gang_rank_ended(list_at(&g.ranks, struct gang_rank, 1)));
	assert_int_equal(gang_read(STR("["), false, a, &g, &e), -1);
	arena_drop(a);
}
