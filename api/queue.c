#include "api/queue.h"

#include "api/run.h"

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define R           FIELD_READONLY
#define N           FIELD_NULLABLE
#define E           FIELD_OMIT_EMPTY

#define THIS blocked
const struct field blocked_fields[] = {
	{ "kind", FIELD_STR, R, AT(kind),
		.doc = "What kind of thing it is: gpus, memory, needs …" },
	{ "message", FIELD_STR, R | FIELD_TEXT, AT(message), .doc = "The same in words" },
	{ "unsatisfiable", FIELD_BOOL, R, AT(unsatisfiable),
		.doc = "No worker could ever take the step: the fleet or the step must change" },
	{ "step", FIELD_STR, R | E, AT(step), .doc = "Name of the step that waits" },
	{ "since", FIELD_TIME, R | N, AT(since), .doc = "When it was noted" },
	{ 0 },
};
#undef THIS

#define THIS blocker
static const struct field blocker_fields[] = {
	{ "kind", FIELD_STR, R, AT(kind),
		.doc = "pool, sensitivity, runtime, isolated, requires, avoids, gpus, memory, "
		       "cpus, disk, "
		       "together, nodes, kept, preempting, quota, offline, draining, needs, "
		       "parallel, "
		       "group, backoff, new, placing, preparing" },
	{ "message", FIELD_STR, R | FIELD_TEXT, AT(message), .doc = "The same in words" },
	{ "unsatisfiable", FIELD_BOOL, R, AT(unsatisfiable),
		.doc = "No waiting helps: the fleet or the step must change" },
	{ "what", FIELD_STR, R | E, AT(what),
		.doc = "A label's key, what the GPUs must be, a runtime, a pool, a group, a "
		       "project, what each worker of a gang must have, the step for which a worker "
		       "is kept" },
	{ "value", FIELD_STR, R | E, AT(value),
		.doc = "A label's value; the step for which the rest of a quota is kept" },
	{ "unit", FIELD_STR, R | E, AT(unit),
		.doc = "Of the amounts: gpus, bytes, millicpus, steps or workers" },
	{ "need", FIELD_INT, R | E, AT(need), HAS(has_need), .doc = "What it asks for" },
	{ "free", FIELD_INT, R | E, AT(free), HAS(has_free),
		.doc = "The most that one worker has free; of a quota: what is left; of nodes: "
		       "workers that have it free" },
	{ "most", FIELD_INT, R | E, AT(most), HAS(has_most),
		.doc = "The most that one worker has in all; of a quota: all of it; of nodes: "
		       "workers that have it in all" },
	{ "worker_id", FIELD_STR, R | E, AT(worker_id), .doc = "The worker with the most free" },
	{ "worker", FIELD_STR, R | E, AT(worker), .doc = "Its name" },
	{ "largest_id", FIELD_STR, R | E, AT(largest_id),
		.doc = "The worker with the most in all" },
	{ "largest", FIELD_STR, R | E, AT(largest), .doc = "Its name" },
	{ "workers", FIELD_INT, R, AT(workers),
		.doc = "How many workers it rules out; of nodes: those that are there" },
	{ "steps", FIELD_LIST, R, AT(steps), .item = FIELD_STR, .doc = "Steps that it waits for" },
	{ "run_id", FIELD_STR, R | E, AT(run_id), .doc = "The run that it waits for" },
	{ "until", FIELD_TIME, R | N, AT(until),
		.doc = "When it ends by itself; of `kept`: for when the worker is kept" },
	{ 0 },
};
#undef THIS

#define THIS wait_edit
static const struct field wait_edit_fields[] = {
	{ "kind", FIELD_STR, R, AT(kind),
		.doc = "nodes, gpus, memory, cpus, disk, time_limit, gpu_model, requires, avoids, "
		       "runtime, pool, resume" },
	{ "what", FIELD_STR, R | E, AT(what),
		.doc = "A label's key, a GPU model, a runtime, a pool" },
	{ "value", FIELD_STR, R | E, AT(value), .doc = "A label's value" },
	{ "from", FIELD_INT, R | E, AT(from), HAS(has_from),
		.doc = "The amount that it asks for; of time_limit: microseconds, 0 for none" },
	{ "to", FIELD_INT, R | E, AT(to), HAS(has_to), .doc = "The amount that would do" },
	{ 0 },
};
#undef THIS

#define THIS wait_change
static const struct field wait_change_fields[] = {
	{ "message", FIELD_STR, R | FIELD_TEXT, AT(message), .doc = "In words" },
	{ "worker_id", FIELD_STR, R, AT(worker_id),
		.doc = "The worker that would take it; empty when the change is of `nodes`" },
	{ "worker", FIELD_STR, R, AT(worker), .doc = "Its name" },
	{ "edits", FIELD_LIST, R, AT(edits), .sub = wait_edit_fields,
		.size = sizeof(struct wait_edit), .doc = "What would have to be other" },
	{ 0 },
};
#undef THIS

#define THIS step_wait
const struct field step_wait_fields[] = {
	{ "step_id", FIELD_STR, R, AT(step_id), .doc = "The step" },
	{ "run_id", FIELD_STR, R, AT(run_id), .doc = "Its run" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Name of the step" },
	{ "pipeline", FIELD_STR, R, AT(pipeline), .doc = "Name of the pipeline" },
	{ "number", FIELD_INT, R | E, AT(number), .doc = "Number of the run" },
	{ "state", FIELD_ENUM, R, AT(state), .names = step_state_names, .doc = "Where it is" },
	{ "pool", FIELD_STR, R | E, AT(pool), HAS(has_pool), .doc = "Pool whose workers it wants" },
	{ "priority", FIELD_INT, R | E, AT(priority), HAS(has_pool), .doc = "Greater goes first" },
	{ "position", FIELD_INT, R | E, AT(position), HAS(has_position),
		.doc = "Its place among the steps that wait for the pool, from 1" },
	{ "of", FIELD_INT, R | E, AT(of), HAS(has_position), .doc = "How many those are" },
	{ "cpus", FIELD_REAL, R | E, AT(cpus), HAS(has_pool), .doc = "Cores that it asks for" },
	{ "memory", FIELD_INT, R | E, AT(memory), HAS(has_pool), .doc = "Bytes of memory" },
	{ "gpus", FIELD_INT, R | E, AT(gpus), HAS(has_pool), .doc = "GPUs" },
	{ "queued_at", FIELD_TIME, R | N, AT(queued_at), .doc = "When it became ready" },
	{ "deadline", FIELD_TIME, R | N, AT(deadline),
		.doc = "When it fails if nobody has taken it" },
	{ "unsatisfiable", FIELD_BOOL, R, AT(unsatisfiable),
		.doc = "No waiting helps: the fleet or the step must change" },
	{ "blockers", FIELD_LIST, R, AT(blockers), .sub = blocker_fields,
		.size = sizeof(struct blocker),
		.doc = "What is in its way, the most telling first; none when it does not wait" },
	{ "earliest_start", FIELD_TIME, R | N, AT(earliest_start),
		.doc = "When the time limits of what runs let it start, if nothing new comes "
		       "before it" },
	{ "start_now", FIELD_OBJ, R | E, AT(start_now), HAS(has_start_now),
		.sub = wait_change_fields, .size = sizeof(struct wait_change),
		.doc = "The smallest change that would let it start at once" },
	{ "as_of", FIELD_TIME, R, AT(as_of), .doc = "When this was so" },
	{ 0 },
};
#undef THIS

#define THIS quota_amount
static const struct field quota_amount_fields[] = {
	{ "nominal", FIELD_INT, R | N, AT(nominal), HAS(has_nominal),
		.doc = "Granted: what others borrow gives way to it; null: no limit" },
	{ "borrow", FIELD_INT, R, AT(borrow),
		.doc = "What it may hold beyond that, after what is granted to others" },
	{ "used", FIELD_INT, R, AT(used), .doc = "What it holds now" },
	{ 0 },
};
#undef THIS
#define THIS quota
const struct field quota_fields[] = {
	{ "project", FIELD_STR, R, AT(project), .doc = "Name of the project" },
	{ "weight", FIELD_REAL, R, AT(weight),
		.doc = "Twice the weight, twice the share where projects compete" },
	{ "gpus", FIELD_OBJ, R, AT(gpus), .sub = quota_amount_fields,
		.size = sizeof(struct quota_amount), .doc = "GPUs" },
	{ "steps", FIELD_OBJ, R, AT(steps), .sub = quota_amount_fields,
		.size = sizeof(struct quota_amount), .doc = "Steps that hold a worker" },
	{ 0 },
};
#undef THIS

enum { QUOTA_MAX = 1000000 };
#define THIS quota_limit
static const struct field quota_limit_fields[] = {
	{ "nominal", FIELD_INT, FIELD_REQUIRED, AT(nominal), .max = QUOTA_MAX,
		.doc = "Granted: what others borrow gives way to it" },
	{ "borrow", FIELD_INT, 0, AT(borrow), .max = QUOTA_MAX,
		.doc = "What it may hold beyond that (0)" },
	{ 0 },
};
#undef THIS
#define THIS quota_put
const struct field quota_put_fields[] = {
	{ "weight", FIELD_REAL, 0, AT(weight), .rmin = 0.001, .rmax = 1000, .fallback = "1",
		.doc = "Twice the weight, twice the share where projects compete" },
	{ "gpus", FIELD_OBJ, 0, AT(gpus), HAS(has_gpus), .sub = quota_limit_fields,
		.size = sizeof(struct quota_limit), .doc = "GPUs; without it, no limit" },
	{ "steps", FIELD_OBJ, 0, AT(steps), HAS(has_steps), .sub = quota_limit_fields,
		.size = sizeof(struct quota_limit),
		.doc = "Steps that hold a worker; without it, no limit" },
	{ 0 },
};
#undef THIS

#define THIS queue_query
const struct field queue_query_fields[] = {
	PAGE_FIELDS(struct queue_query),
	{ "pool", FIELD_STR, FIELD_NAME, AT(pool), .doc = "Only steps that want this pool" },
	{ 0 },
};
#undef THIS
