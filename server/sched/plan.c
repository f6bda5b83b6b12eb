#include "server/sched/plan.h"

#include "api/pipeline.h"
#include "lib/base/map.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "server/core/fsm.h"
#include "server/core/retry.h"
#include "server/sched/gpu_spec.h"
#include "server/sched/log_policy.h"
#include "server/sched/plan_inside.h"
#include "server/sched/spec.h"

enum { REQUEST_MAX = 65536, DATA_MAX = 8192, STOP_US = 30000000 };

/* ---- pieces that are collected ---- */

void plan_note(
	struct plan *p, const char *type, struct str subject, struct str parent, struct str data)
{
	events_add(&p->events, p->run->project_id, type, subject);
	p->events.parents[p->events.n - 1] = parent;
	p->events.data[p->events.n - 1] = data;
}

struct str plan_step_data(
	struct plan *p, const struct plan_step *s, struct str reason, struct str worker_id)
{
	struct buf b;

	buf_init(&b, DATA_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "name");
	jsn_str(&w, s->name);
	jsn_key(&w, "reason");
	jsn_str(&w, reason);
	jsn_key(&w, "worker_id");
	jsn_str(&w, worker_id);
	if (plan_is_hit(s)) {
		jsn_key(&w, "reused_from");
		jsn_str(&w, s->cached->run);
	}
	jsn_obj_end(&w);
	return buf_keep(&b, p->arena);
}

static const char *const step_events[] = { "step.waiting", "step.queued", "step.assigned",
	"step.running", "step.finishing", "step.succeeded", "step.failed", "step.cancelled",
	"step.skipped" };

static const char *tracking_status_of(int state)
{
	switch ((enum step_state)state) {
	case STEP_RUNNING: return "RUNNING";
	case STEP_SUCCEEDED: return "FINISHED";
	case STEP_FAILED: return "FAILED";
	case STEP_CANCELLED:
	case STEP_SKIPPED: return "KILLED";
	case STEP_WAITING:
	case STEP_QUEUED:
	case STEP_ASSIGNED:
	case STEP_FINISHING:
	case STEP_STATE_COUNT: break;
	}
	return NULL;
}

/* What needs it is skipped because something failed. */
static bool is_bad(int state, struct str reason)
{
	return state == STEP_FAILED || state == STEP_CANCELLED ||
	       (state == STEP_SKIPPED && str_is(reason, reason_names[REASON_NEED_FAILED]));
}

void plan_set_step(struct plan *p, size_t i, const struct plan_change *c)
{
	const struct plan_step *s = &p->run->steps[i];
	const char *status = tracking_status_of(c->state);
	size_t k = p->steps.n++;

	p->states[i] = c->state;
	p->bad[i] = is_bad(c->state, c->reason);
	p->steps.ids[k] = s->id;
	p->steps.states[k] = str_c(step_state_names[c->state]);
	p->steps.reasons[k] = c->reason.p != NULL ? c->reason : STR("");
	p->steps.messages[k] = c->message.p != NULL ? c->message : STR("");
	p->steps.user_failures[k] = c->user_failures;
	p->steps.infra_failures[k] = c->infra_failures;
	p->steps.started_at[k] = c->started_at;
	p->steps.no_start[k] = c->started_at == 0;
	if (status != NULL) {
		p->tracking[p->tracking_n] = s->tracking_run;
		p->tracking_status[p->tracking_n++] = str_c(status);
	}
	plan_note(p, step_events[c->state], s->id, p->run->id,
		plan_step_data(p, s, p->steps.reasons[k], s->worker_id));
}

/* ---- queueing ---- */

/* How long its worker may be silent before the attempt is given up. One that ends itself is given
 * the time to do so. */
static int64_t lost_after(const struct step_spec *s)
{
	if (s->on_lost.policy == LOST_STOP)
		return clock_add(0, s->on_lost.self_stop_after.span, 1) + STOP_US;
	return clock_add(0, s->on_lost.lost_after.span, 1);
}

static void put_texts(struct jsn_out *w, const char *key, const struct list *names)
{
	if (names->n == 0)
		return;
	jsn_key(w, key);
	jsn_list_begin(w);
	for (size_t i = 0; i < names->n; i++)
		jsn_str(w, *list_at(names, struct str, i));
	jsn_list_end(w);
}

/* avoid: names of workers. */
static struct str request_json(struct plan *p, const struct step_spec *s, const struct list *avoid)
{
	struct buf b;

	buf_init(&b, REQUEST_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "runtimes");
	jsn_list_begin(&w);
	for (size_t i = 0; i < s->runtimes.n; i++)
		jsn_int(&w, *list_at(&s->runtimes, int, i));
	jsn_list_end(&w);
	jsn_key(&w, "gpus");
	jsn_raw(&w, s->resources.gpus.n != 0 ? s->resources.gpus : STR("null"));
	static const char *const keys[] = { "requires", "avoids" };
	const struct list *labels[] = { &s->placement.requires, &s->placement.avoids };
	for (size_t k = 0; k < 2; k++) {
		jsn_key(&w, keys[k]);
		jsn_obj_begin(&w);
		for (size_t i = 0; i < labels[k]->n; i++) {
			jsn_key_str(&w, list_at(labels[k], struct field_pair, i)->key);
			jsn_str(&w, list_at(labels[k], struct field_pair, i)->value);
		}
		jsn_obj_end(&w);
	}
	put_texts(&w, "avoid_workers", avoid);
	put_texts(&w, "data", &p->run->data);
	if (s->image.n != 0) {
		jsn_key(&w, "image");
		jsn_str(&w, s->image);
	}
	jsn_key(&w, "time_limit");
	jsn_int(&w, clock_add(0, s->time_limit.span, 1));
	jsn_key(&w, "sensitivity");
	jsn_int(&w, s->placement.sensitivity);
	jsn_key(&w, "preemptible");
	jsn_bool(&w, s->placement.preemptible);
	if (placement_ranks(&s->placement) != 0) {
		jsn_key(&w, "ranks");
		jsn_int(&w, placement_ranks(&s->placement));
	}
	jsn_key(&w, "lost_after");
	jsn_int(&w, lost_after(s));
	jsn_obj_end(&w);
	return buf_keep(&b, p->arena);
}

/* How many GPUs; the details are read again by the scheduler. */
static int64_t gpu_count(struct plan *p, struct str gpus_json)
{
	struct gpus_want want;
	struct err e;

	return gpu_spec_read(gpus_json, p->arena, &want, &e) == 0 ? want.count : 0;
}

int plan_spec_of(struct plan *p, const struct plan_step *s, struct step_spec *ret, struct err *e)
{
	if (s->parsed == NULL)
		return field_decode_reply(step_spec_fields, s->spec, p->arena, ret, e);
	*ret = *s->parsed;
	return 0;
}

void plan_queue_step(struct plan *p, size_t i, const struct step_spec *spec, int64_t not_before)
{
	const struct plan_step *s = &p->run->steps[i];
	size_t k = p->queue.n++;

	p->queue.run_ids[k] = p->run->id;
	p->queue.project_ids[k] = p->run->project_id;
	p->queue.step_ids[k] = s->id;
	p->queue.priorities[k] = spec->placement.priority;
	p->queue.cpus[k] = spec->resources.cpus;
	p->queue.memory[k] = spec->resources.memory;
	p->queue.disk[k] = spec->resources.disk;
	p->queue.gpus[k] = gpu_count(p, spec->resources.gpus);
	p->queue.pools[k] = spec->placement.pool.n != 0 ? spec->placement.pool : STR("default");
	p->queue.requests[k] = request_json(p, spec, &s->avoid_workers);
	p->queue.not_before[k] = not_before != 0 ? not_before : INT64_MIN;
	p->queue.deadlines[k] = spec->timeouts.queue.text.n != 0
					? clock_add(p->now, spec->timeouts.queue.span, 1)
					: INT64_MIN;
}

/* ---- what has become of attempts ---- */

static enum reason reason_of(struct str name)
{
	for (int i = 0; i < REASON_COUNT; i++)
		if (str_is(name, reason_names[i]))
			return (enum reason)i;
	return REASON_RUNTIME_FAILED;
}

/* An attempt has failed or was lost: again, or the end of the step. */
static int step_failed(struct plan *p, size_t i, struct err *e)
{
	const struct plan_step *s = &p->run->steps[i];
	struct step_spec spec;
	enum reason reason = reason_of(s->attempt_reason);
	enum retry_blame blame = (enum retry_blame)reason_blame(reason);
	struct retry_policy policy = retry_default;
	struct log_verdict said;

	if (field_decode_reply(step_spec_fields, s->spec, p->arena, &spec, e) < 0)
		return -1;
	policy.user = spec.retries.user;
	policy.infra = spec.retries.infra;
	policy.preempted = spec.retries.preempted;
	policy.first = clock_add(0, spec.retries.backoff.first.span, 1);
	policy.max = clock_add(0, spec.retries.backoff.max.span, 1);
	policy.factor = spec.retries.backoff.factor;
	log_policy_judge(s->log_matches, p->arena, &said);
	blame = said.avoid && blame == RETRY_BLAME_USER ? RETRY_BLAME_INFRA : blame;
	const struct retry_counts counts = { s->user_failures, s->infra_failures, s->preempted,
		s->attempts };
	/* Only an attempt that its worker never spoke of costs nothing. */
	bool begun = reason != REASON_WORKER_LOST || s->attempt_started_at != 0;
	struct retry_verdict v =
		retry_decide(&policy, &counts, blame, begun, p->random + i * 0x9e3779b97f4a7c15u);
	struct plan_change c = { .reason = s->attempt_reason,
		.message = s->attempt_message,
		.user_failures = v.user,
		.infra_failures = v.infra,
		.started_at = s->attempt_started_at,
		.state = STEP_FAILED };
	if (v.again && blame == RETRY_BLAME_USER && said.stop.n != 0) {
		v.again = false;
		c.message = arena_printf(p->arena, "%.*s; not tried again: %.*s",
			STR_ARG(s->attempt_message), STR_ARG(said.stop));
	}
	if (v.again)
		c.state = p->run->cancelling ? STEP_CANCELLED : STEP_QUEUED;
	plan_set_step(p, i, &c);
	if (c.state == STEP_QUEUED)
		plan_queue_step(p, i, &spec, p->now + v.delay);
	return 0;
}

static void step_follows(struct plan *p, size_t i, int state)
{
	const struct plan_step *s = &p->run->steps[i];

	if (state == s->state)
		return;
	plan_set_step(p, i,
		&(struct plan_change){ .state = state,
			.started_at = s->attempt_started_at,
			.message = s->attempt_message,
			.reason = s->attempt_reason,
			.user_failures = s->user_failures,
			.infra_failures = s->infra_failures });
}

static int look_at_attempt(struct plan *p, size_t i, struct err *e)
{
	const struct plan_step *s = &p->run->steps[i];

	if (s->state != STEP_ASSIGNED && s->state != STEP_RUNNING && s->state != STEP_FINISHING)
		return 0;
	switch ((enum attempt_state)s->attempt_state) {
	case ATTEMPT_ASSIGNED:
	case ATTEMPT_PREPARING: break;
	case ATTEMPT_RUNNING: step_follows(p, i, STEP_RUNNING); break;
	case ATTEMPT_FINISHING: step_follows(p, i, STEP_FINISHING); break;
	case ATTEMPT_SUCCEEDED: step_follows(p, i, STEP_SUCCEEDED); break;
	case ATTEMPT_CANCELLED: step_follows(p, i, STEP_CANCELLED); break;
	case ATTEMPT_FAILED:
	case ATTEMPT_LOST:
	case ATTEMPT_STATE_COUNT: return step_failed(p, i, e);
	}
	if (s->gang.ranks.n != 0)
		plan_lead_gang(p, s);
	else if (p->run->cancelling && s->attempt_state < ATTEMPT_SUCCEEDED &&
		 !s->attempt_cancelling)
		plan_stop_attempt(p, s, s->attempt_id, s->worker_id, REASON_CANCELLED);
	return 0;
}

/* Its time in the queue is over. */
static int look_at_deadline(struct plan *p, size_t i, struct err *e)
{
	const struct plan_step *s = &p->run->steps[i];
	struct step_spec spec;

	if (s->state != STEP_QUEUED || s->deadline == 0 || s->deadline > p->now ||
		p->run->cancelling)
		return 0;
	if (field_decode_reply(step_spec_fields, s->spec, p->arena, &spec, e) < 0)
		return -1;
	p->unqueue[p->unqueue_n++] = s->id;
	plan_set_step(p, i,
		&(struct plan_change){ .state = STEP_FAILED,
			.reason = str_c(reason_names[REASON_QUEUE_TIMEOUT]),
			.message = arena_printf(p->arena,
				"waited %.*s in the queue, the limit of "
				"timeouts.queue%s%.*s",
				STR_ARG(spec.timeouts.queue.text), s->blocked.n != 0 ? ": " : "",
				STR_ARG(s->blocked)),
			.user_failures = s->user_failures,
			.infra_failures = s->infra_failures });
	return 0;
}

/* ---- the graph and the run ---- */

static int build_dag(const struct plan_run *run, struct arena *a, struct dag *ret, struct err *e)
{
	struct dag_step *steps = arena_array_of(a, struct dag_step, run->n + 1);

	for (size_t i = 0; i < run->n; i++)
		steps[i] = (struct dag_step){ run->steps[i].name, run->steps[i].needs.items,
			run->steps[i].needs.n, run->steps[i].joins };
	return dag_build(steps, run->n, a, ret, e);
}

/* Again when a step has ended at once, which decides about others. */
static int follow_dag(struct plan *p, struct dag_next *next, struct err *e)
{
	struct dag dag;

	if (build_dag(p->run, p->arena, &dag, e) < 0)
		return -1;
	p->dag = &dag;
	do {
		p->ended = false;
		dag_advance(&dag, p->states, p->run->cancelling, p->arena, next);
		for (size_t i = 0; i < next->ready_n; i++)
			if (plan_step_ready(p, next->ready[i], e) < 0)
				return -1;
		for (size_t i = 0; i < next->skip_n; i++)
			plan_skip_step(p, &dag, next->skip[i]);
		for (size_t i = 0; i < next->cancel_n; i++)
			plan_cancel_step(p, next->cancel[i]);
	} while (p->ended);
	p->dag = NULL;
	return 0;
}

/* The run fails for the reason of the first step, in order, that failed. */
static void blame_step(struct plan *p)
{
	const struct plan_step *s = p->run->steps;
	size_t i = 0, k = 0;

	while (p->states[i] != STEP_FAILED)
		i++;
	while (k < p->steps.n && !str_eq(p->steps.ids[k], s[i].id))
		k++;
	bool now = k < p->steps.n;
	p->run_reason = arena_dup(p->arena, now ? p->steps.reasons[k] : s[i].reason);
	p->run_message = arena_printf(p->arena, "the step %.*s failed: %.*s", STR_ARG(s[i].name),
		STR_ARG(now ? p->steps.messages[k] : s[i].message));
}

static void move_run(struct plan *p, enum fsm_run_event event)
{
	int to = fsm_next(&fsm_run, p->run_state, (int)event);

	BUG_ON(to < 0);
	if (to == p->run_state)
		return;
	p->run_state = to;
	p->run_changed = true;
	plan_note(p, arena_printf(p->arena, "run.%s", run_state_names[to]).p, p->run->id, STR(""),
		STR("{}"));
}

/* A report may pass over a state, and an attempt may have failed since it began. Of steps that are
 * taken over, and those that join others, nothing runs. */
static bool has_begun(const struct plan *p)
{
	for (size_t i = 0; i < p->run->n; i++) {
		const struct plan_step *s = &p->run->steps[i];
		bool own = !s->joins && !s->reused && !plan_is_hit(s);
		if (p->states[i] == STEP_RUNNING || p->states[i] == STEP_FINISHING ||
			(p->states[i] == STEP_SUCCEEDED && own) || s->attempt_started_at != 0)
			return true;
	}
	return false;
}

static void conclude(struct plan *p, const struct dag_next *next)
{
	if (has_begun(p))
		move_run(p, FSM_RUN_START);
	switch (next->outcome) {
	case DAG_GOING: break;
	case DAG_SUCCEEDED:
		move_run(p, p->run->finishing_work ? FSM_RUN_FINISH : FSM_RUN_SUCCEED);
		break;
	case DAG_FAILED:
		blame_step(p);
		move_run(p, FSM_RUN_FAIL);
		break;
	case DAG_CANCELLED:
		p->run_reason = reason_names[REASON_CANCELLED];
		p->run_message = str_c(reason_sentence(REASON_CANCELLED));
		move_run(p, FSM_RUN_CANCEL);
		break;
	}
}

static struct plan *plan_new(const struct plan_run *run, struct arena *a)
{
	struct plan *p = arena_new_of(a, struct plan);
	size_t n = run->n + 1, ranks = n;

	for (size_t i = 0; i < run->n; i++)
		ranks += run->steps[i].gang.ranks.n;
	*p = (struct plan){ .run = run,
		.arena = a,
		.run_state = run->state,
		.run_reason = "",
		.states = arena_array_of(a, int, n),
		.bad = arena_array_of(a, bool, n),
		.hit_now = arena_array_of(a, bool, n),
		.joined_now = arena_array_of(a, bool, n),
		.spec_ids = arena_array_of(a, struct str, n),
		.specs = arena_array_of(a, struct str, n),
		.cache_wants = arena_array_of(a, struct plan_cache_want, n),
		.keyed = arena_array_of(a, struct str, n),
		.keys = arena_array_of(a, struct str, n),
		.hits = arena_array_of(a, struct str, n),
		.hit_sources = arena_array_of(a, struct str, n),
		.takers = arena_array_of(a, struct str, n),
		.sources = arena_array_of(a, struct str, n),
		.joined = arena_array_of(a, struct str, n),
		.chosen = arena_array_of(a, struct str, n),
		.gatherers = arena_array_of(a, struct str, n),
		.unqueue = arena_array_of(a, struct str, n),
		.cancel_attempts = arena_array_of(a, struct str, ranks),
		.cancel_reasons = arena_array_of(a, struct str, ranks),
		.release = arena_array_of(a, struct str, ranks),
		.tracking = arena_array_of(a, struct str, 2 * n),
		.tracking_status = arena_array_of(a, struct str, 2 * n) };
	step_updates_init(&p->steps, 2 * n, a);
	queue_rows_init(&p->queue, 2 * n, a);
	events_init(&p->events, 4 * ranks + 4, a);
	for (size_t i = 0; i < run->n; i++) {
		p->states[i] = run->steps[i].state;
		p->bad[i] = is_bad(run->steps[i].state, run->steps[i].reason);
	}
	return p;
}

/* Of those whose end was just seen nothing is held any more. */
static void count_open(struct plan *p)
{
	for (size_t i = 0; i < p->run->n; i++)
		if (p->states[i] >= STEP_QUEUED && p->states[i] <= STEP_FINISHING)
			p->open_bytes += p->run->steps[i].spec.n;
}

int plan_make(const struct plan_run *run, int64_t now, uint64_t random, struct arena *a,
	struct plan **ret_plan, struct err *e)
{
	struct plan *p = plan_new(run, a);
	struct dag_next next = { .outcome = DAG_GOING };

	*ret_plan = NULL;
	if (run->state > RUN_RUNNING || (!run->admitted && run->blocked && !run->cancelling))
		return 0;
	p->now = now;
	p->random = random;
	for (size_t i = 0; i < run->n; i++)
		if (look_at_attempt(p, i, e) < 0 || look_at_deadline(p, i, e) < 0)
			return -1;
	count_open(p);
	int rc = follow_dag(p, &next, e);
	map_free(p->wanted);
	p->wanted = NULL;
	if (rc < 0)
		return -1;
	conclude(p, &next);
	if (arena_check(a, e) < 0)
		return -1;
	if (p->steps.n != 0 || p->cancel_n != 0 || p->release_n != 0 || p->run_changed ||
		run->look || p->wants_scope || p->cache_wants_n != 0)
		*ret_plan = p;
	return 0;
}

int plan_run_state(const struct plan *p)
{
	return p->run_state;
}

int plan_step_state(const struct plan *p, size_t i)
{
	return p->states[i];
}

const struct queue_rows *plan_queue(const struct plan *p)
{
	return &p->queue;
}

const struct events *plan_events(const struct plan *p)
{
	return &p->events;
}
