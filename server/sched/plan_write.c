/* Several plans, one statement for each table. */
#include "server/sched/plan_inside.h"

enum { ALL_ARENA = 256 << 20 };

struct all {
	struct run_moves runs;
	struct step_updates steps;
	struct queue_rows queue;
	struct events events;
	struct str *unqueue, *cancel_attempts, *cancel_reasons, *release, *tracking,
		*tracking_status, *look_ids;
	bool *looks;
	size_t unqueue_n, cancel_n, release_n, tracking_n, looks_n;
};

static void all_init(struct all *all, const struct plan *const *plans, size_t n, struct arena *a)
{
	size_t steps = 1, queue = 1, events = 1, unqueue = 1, cancel = 1, release = 1, tracking = 1;

	for (size_t i = 0; i < n; i++) {
		steps += plans[i]->steps.n;
		queue += plans[i]->queue.n;
		events += plans[i]->events.n;
		unqueue += plans[i]->unqueue_n;
		cancel += plans[i]->cancel_n;
		release += plans[i]->release_n;
		tracking += plans[i]->tracking_n;
	}
	*all = (struct all){ .unqueue = arena_array_of(a, struct str, unqueue),
		.cancel_attempts = arena_array_of(a, struct str, cancel),
		.cancel_reasons = arena_array_of(a, struct str, cancel),
		.release = arena_array_of(a, struct str, release),
		.tracking = arena_array_of(a, struct str, tracking),
		.tracking_status = arena_array_of(a, struct str, tracking),
		.look_ids = arena_array_of(a, struct str, n),
		.looks = arena_array_of(a, bool, n) };
	run_moves_init(&all->runs, n, a);
	step_updates_init(&all->steps, steps, a);
	queue_rows_init(&all->queue, queue, a);
	events_init(&all->events, events, a);
}

/* When the first of its steps began is when the run did. */
static void put_move(struct run_moves *m, const struct plan *p)
{
	size_t k = m->n++;

	m->ids[k] = p->run->id;
	m->versions[k] = p->run->version;
	m->no_state[k] = !p->run_changed;
	m->states[k] = str_c(run_state_names[p->run_state]);
	m->reasons[k] = str_c(p->run_reason);
	m->messages[k] = p->run_message.p != NULL ? p->run_message : STR("");
	m->no_start[k] = true;
	for (size_t i = 0; i < p->steps.n; i++)
		if (!p->steps.no_start[i] &&
			(m->no_start[k] || p->steps.started_at[i] < m->started_at[k])) {
			m->started_at[k] = p->steps.started_at[i];
			m->no_start[k] = false;
		}
}

static void all_put(struct all *all, const struct plan *p)
{
	put_move(&all->runs, p);
	step_updates_append(&all->steps, &p->steps);
	queue_rows_append(&all->queue, &p->queue);
	events_append(&all->events, &p->events);
	for (size_t i = 0; i < p->unqueue_n; i++)
		all->unqueue[all->unqueue_n++] = p->unqueue[i];
	for (size_t i = 0; i < p->cancel_n; i++) {
		all->cancel_reasons[all->cancel_n] = p->cancel_reasons[i];
		all->cancel_attempts[all->cancel_n++] = p->cancel_attempts[i];
	}
	for (size_t i = 0; i < p->release_n; i++)
		all->release[all->release_n++] = p->release[i];
	for (size_t i = 0; i < p->tracking_n; i++) {
		all->tracking[all->tracking_n] = p->tracking[i];
		all->tracking_status[all->tracking_n++] = p->tracking_status[i];
	}
	if (p->run->look || p->leaves) {
		all->look_ids[all->looks_n] = p->run->id;
		all->looks[all->looks_n++] = p->leaves;
	}
}

void plans_add(struct db_unit *u, const struct plan *const *plans, size_t n, int64_t now)
{
	struct arena *a = arena_new(ALL_ARENA);
	struct all all;

	all_init(&all, plans, n, a);
	for (size_t i = 0; i < n; i++)
		all_put(&all, plans[i]);
	engine_store_advance(u, &all.runs);
	engine_store_unqueue(u, all.unqueue, all.unqueue_n);
	engine_store_update_steps(u, &all.steps);
	for (size_t i = 0; i < n; i++) {
		if (!plans[i]->run->admitted)
			engine_store_run_admitted(u, plans[i]->run->id);
		plan_add_ready(u, plans[i]);
	}
	engine_store_look(u, all.look_ids, all.looks, all.looks_n);
	engine_store_queue(u, &all.queue);
	engine_store_cancel_attempts(u, all.cancel_attempts, all.cancel_reasons, all.cancel_n);
	engine_store_release_attempts(u, all.release, all.release_n);
	engine_store_tracking(u, all.tracking, all.tracking_status, all.tracking_n, now / 1000);
	engine_store_events(u, &all.events);
	arena_drop(a);
}
