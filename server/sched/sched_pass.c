/* One pass: what is free goes to what waits, as server/core/place decides; then the queue is asked
 * for it, and who got something is told. */
#include "api/pipeline.h"
#include "lib/base/log.h"
#include "lib/db/row.h"
#include "lib/json/json_write.h"
#include "server/sched/assignment.h"
#include "server/sched/fleet.h"
#include "server/sched/preempt.h"
#include "server/sched/sched_inside.h"
#include "server/store/credential.h"
#include "server/store/engine_store.h"
#include "server/store/sched_store.h"

enum {
	PASS_ARENA = 256 << 20,
	GIVEN_ARENA = 4 << 20,
	ASSIGN_MAX = 500,
	PASS_LONG_US = 5000,
	FEW_STEPS = 50,
	CLAIM_STEPS_MAX = 1000 /* with more that wait a pass takes too long to be made at once */
};
#define STEP_BYTES ((size_t)4096) /* what a step may take of a pass */

struct pass {
	struct sched *sched;
	struct arena *arena;
	struct place_snapshot snapshot;
	struct place_result result;
	struct assign_rows rows;
	struct list *gpus; /* of each row: struct str */
	struct preempt_rows preempts;
	size_t statement; /* the first of its unit that is the pass's */
};

static void sched_on_assigned(void *arg, const struct db_rows *rows, const struct err *e);

void sched_dirty(struct sched *s)
{
	s->dirty = true;
	if (sched_is_steady(s) && !s->passing)
		loop_timer_at(&s->pass, s->rest_until);
}

/* A queue that nobody can take is looked through again with each step that joins it, and that must
 * leave most of the loop to others. */
static void rest_after(struct sched *s, int64_t began, size_t placed)
{
	int64_t now = clock_elapsed(s->app->clock), took = now - began;

	if (placed == 0)
		s->rest_until = now + 3 * took;
	else
		s->rest_until = took > PASS_LONG_US ? now + took : 0;
}

static struct str devices_json(struct arena *a, const struct place_assignment *p)
{
	struct buf b;

	buf_init(&b, 16384);
	struct jsn_out w = jsn_out(&b);
	jsn_list_begin(&w);
	for (uint32_t i = 0; i < p->gpus_n; i++)
		jsn_str(&w, p->gpus[i]);
	jsn_list_end(&w);
	return buf_keep(&b, a);
}

static struct list copy_gpus(struct arena *a, const struct place_assignment *placed)
{
	struct list out = { arena_array_of(a, struct str, placed->gpus_n + 1), placed->gpus_n };

	for (uint32_t i = 0; i < placed->gpus_n; i++)
		*list_at(&out, struct str, i) = arena_str(a, placed->gpus[i]);
	return out;
}

/* Copies: the memory may lose a step or read a worker again before the answer comes. */
static void fill_rows(struct pass *p, size_t n)
{
	struct str **columns[] = { &p->rows.step_ids, &p->rows.attempt_ids, &p->rows.worker_ids,
		&p->rows.runtimes, &p->rows.devices, &p->rows.token_ids, &p->rows.token_macs };
	char id[ID_MAX];

	for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
		*columns[c] = arena_array_of(p->arena, struct str, n);
	p->rows.delivered = arena_array_of(p->arena, bool, n);
	p->rows.ranks = arena_array_of(p->arena, int64_t, n);
	p->gpus = arena_array_of(p->arena, struct list, n);
	for (size_t i = 0; i < n; i++) {
		const struct place_assignment *placed = &p->result.placed[i];
		p->rows.step_ids[i] = arena_str(p->arena, p->snapshot.steps[placed->step].id);
		p->rows.worker_ids[i] = arena_str(p->arena, p->snapshot.workers[placed->worker].id);
		p->gpus[i] = copy_gpus(p->arena, placed);
		p->rows.attempt_ids[i] =
			arena_str(p->arena, str_c(id_new(id, "at", p->sched->app->clock)));
		p->rows.delivered[i] = fleet_is_parked(p->sched->app->fleet, p->rows.worker_ids[i]);
		p->rows.ranks[i] = placed->rank;
		p->rows.runtimes[i] = str_c(runtime_names[placed->runtime]);
		p->rows.devices[i] = devices_json(p->arena, placed);
		struct credential_row token = credential_derive(
			p->sched->app->pepper, CREDENTIAL_JOB, p->rows.attempt_ids[i], p->arena);
		p->rows.token_ids[i] = token.id;
		p->rows.token_macs[i] = token.mac;
	}
	p->rows.n = n;
}

/* No gang is cut in two. */
static size_t as_many(const struct place_result *r)
{
	size_t n = r->placed_n < ASSIGN_MAX ? r->placed_n : ASSIGN_MAX;

	while (n < r->placed_n && r->placed[n].rank != 0)
		n--;
	return n;
}

/* What attempts hold counts only for steps that find no place; while few wait, it is looked for
 * only when there are such. */
static void place(struct pass *p, int64_t now)
{
	struct pool *pool = p->sched->pool;

	id_random(&p->snapshot.seed, sizeof p->snapshot.seed);
	if (p->snapshot.steps_n <= FEW_STEPS) {
		place_pass(&p->snapshot, p->arena, &p->result);
		if (p->result.waiting_n == 0)
			return;
	}
	pool_add_running(pool, now, p->arena, &p->snapshot);
	place_pass(&p->snapshot, p->arena, &p->result);
}

/* What is free goes to what waits; NULL when nothing is placed. What is decided is under way until
 * sched_on_assigned. */
static struct pass *pass_decide(struct sched *s)
{
	struct arena *a = arena_new(PASS_ARENA + pool_steps(s->pool) * STEP_BYTES);
	struct pass *p = arena_new_of(a, struct pass);
	int64_t next = 0, now = clock_now(s->app->clock), began = clock_elapsed(s->app->clock);

	p->sched = s;
	p->arena = a;
	pool_snapshot(s->pool, now, s->app->conf.worker_lost_after, fleet_last_seen, s->app->fleet,
		a, &p->snapshot, &next);
	place(p, now);
	pool_keep(s->pool, &p->snapshot, &p->result);
	rest_after(s, began, p->result.placed_n);
	if (next != 0)
		loop_timer_set(&s->pass, (next - now) / 1000 + 1);
	if (p->result.placed_n == 0 && p->result.preempted_n == 0) {
		arena_drop(a);
		s->dirty = next != 0;
		return NULL;
	}
	fill_rows(p, as_many(&p->result));
	s->dirty = p->result.placed_n > ASSIGN_MAX || next != 0;
	s->passing = true;
	s->on_the_way++;
	preempt_fill(&p->snapshot, &p->result, a, &p->preempts);
	return p;
}

static void pass_add(struct pass *p, struct db_unit *u)
{
	struct sched *s = p->sched;

	p->statement = db_unit_count(u);
	sched_store_assign(u, s->app->instance, lease_epoch(s->lease), &p->rows);
	if (p->preempts.attempts_n != 0)
		sched_store_preempt(u, s->app->instance, lease_epoch(s->lease), &p->preempts);
}

void sched_pass(void *arg)
{
	struct sched *s = arg;

	if (!sched_is_steady(s) || s->passing || !s->dirty)
		return;
	s->dirty = false;
	if (pool_steps(s->pool) == 0)
		return;
	struct pass *p = pass_decide(s);
	if (p == NULL)
		return;
	struct db_unit *u = db_unit(s->app->db, p->arena);
	pass_add(p, u);
	db_send(u, DB_WRITE, sched_on_assigned, p);
}

/* To a worker that waits here, with all it needs where that is in the row. */
static void tell(struct pass *p, const struct db_rows *rows, size_t i, size_t k)
{
	struct fleet *fleet = p->sched->app->fleet;
	struct assignment_size size;
	struct assignment *given;
	struct arena *a;
	struct err e;

	if (!p->rows.delivered[k] || !db_bool(rows, i, db_col(rows, "plain"))) {
		fleet_wake(fleet, p->rows.worker_ids[k]);
		return;
	}
	a = arena_new(GIVEN_ARENA);
	given = arena_new_of(a, struct assignment);
	if (assignment_read(p->sched->app, rows, i, a, given, &size, &e) == 0)
		fleet_hand(fleet, p->rows.worker_ids[k], a, given, size);
	else
		fleet_wake(fleet, p->rows.worker_ids[k]); /* it will meet the error, too */
	arena_drop(a);
}

/* The rows tell which of the assignments were made; GPUs are those that we asked for. */
static void take_over(struct pass *p, const struct db_rows *rows)
{
	size_t ord = rows->n != 0 ? db_col(rows, "ord") : 0;

	for (size_t i = 0; i < rows->n; i++) {
		size_t k = (size_t)db_int(rows, i, ord) - 1;
		BUG_ON(k >= p->rows.n);
		struct list before = db_list(rows, i, db_col(rows, "spared"), p->arena);
		pool_assigned(p->sched->pool,
			&(struct pool_given){ p->rows.step_ids[k], p->rows.attempt_ids[k],
				p->rows.worker_ids[k], &p->gpus[k], &before });
		tell(p, rows, i, k);
	}
	for (size_t i = 0; i < rows->n; i++)
		pool_remove_step(
			p->sched->pool, p->rows.step_ids[(size_t)db_int(rows, i, ord) - 1]);
}

/* They may have been stored by a leader that does not know so, or is none any more; as our own
 * their events wake nobody here. */
static void wake_all(const struct pass *p)
{
	for (size_t i = 0; i < p->rows.n; i++)
		fleet_wake(p->sched->app->fleet, p->rows.worker_ids[i]);
}

static void sched_on_assigned(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct pass *p = arg;
	struct sched *s = p->sched;

	s->passing = false;
	s->on_the_way--;
	if (!s->closing && (s->pool == NULL || e->code != ERR_OK))
		wake_all(p);
	if (s->closing || s->pool == NULL) {
		arena_drop(p->arena);
		sched_gone(s);
		return;
	}
	if (e->code == ERR_OK) {
		take_over(p, &rows[0]);
		if (p->preempts.attempts_n != 0)
			preempt_take_over(&p->preempts, &rows[1], s->pool, s->app->fleet,
				clock_now(s->app->clock));
		app_changed(s->app);
	} else {
		log_warn("assignments were not stored", LOG_E(e));
	}
	/* What was not handed out is not in the queue any more, or we do not lead: read it again.
	 */
	if (e->code != ERR_OK || rows[0].n != p->rows.n)
		s->reload = true;
	arena_drop(p->arena);
	sched_settle(s);
}

/* ---- with the unit that queues the steps ---- */

/* They are in memory for this pass only: whether they will be queued is not sure yet. */
struct pass *sched_claim(struct sched *s, struct db_unit *u, const struct queue_rows *rows)
{
	struct pass *p;

	if (s == NULL || !sched_is_steady(s) || s->passing || rows->n == 0 ||
		clock_elapsed(s->app->clock) < s->rest_until ||
		pool_steps(s->pool) + rows->n > CLAIM_STEPS_MAX)
		return NULL;
	bool dirty = s->dirty;
	pool_queue_steps(s->pool, rows, clock_now(s->app->clock));
	p = pass_decide(s);
	s->dirty = s->dirty || dirty;
	for (size_t i = 0; i < rows->n; i++)
		pool_remove_step(s->pool, rows->step_ids[i]);
	if (p == NULL)
		return NULL;
	pass_add(p, u);
	return p;
}

bool sched_claim_failed(const struct pass *p, const struct db_rows *rows)
{
	return p != NULL && !rows->fault->outcome_unknown && rows->fault->statement >= p->statement;
}

void sched_claimed(struct pass *p, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = p->sched;

	if (e->code == ERR_OK || db_outcome_unknown(rows)) {
		sched_on_assigned(p, e->code == ERR_OK ? rows + p->statement : rows, e);
		return;
	}
	s->passing = false; /* nothing was stored; what waited before waits still */
	s->on_the_way--;
	arena_drop(p->arena);
	if (s->closing) {
		sched_gone(s);
		return;
	}
	s->dirty = true;
	sched_settle(s);
}
