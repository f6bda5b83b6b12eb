/*
 * Why steps wait. `blocked` is the short form that stands in runs and steps: what was noted last,
 * without numbers that change by the second. `step_wait` is the whole answer, as things stand when
 * it is asked for.
 */
#ifndef API_QUEUE_H
#define API_QUEUE_H
#include "api/page.h"

/* Kinds beyond those of server/core/place_why.h: needs, group, backoff, new, placing, preparing. */
struct blocked {
	struct str kind, message, step;
	bool unsatisfiable; /* no worker could ever take it as things are */
	int64_t since;
};
extern const struct field blocked_fields[];

struct blocker {
	struct str kind, message;
	bool unsatisfiable;
	struct str what,
		value; /* a label, what GPUs must be, a model, a runtime, a pool, a group */
	struct str unit; /* of the amounts: gpus, bytes, millicpus */
	int64_t need, free, most; /* asked for; the most that one worker has free, and in all */
	bool has_need, has_free, has_most;
	struct str worker_id, worker; /* with the most free, or that is spoken of */
	struct str largest_id, largest; /* with the most in all */
	int64_t workers; /* how many were looked at */
	struct list steps; /* struct str: names of steps that are waited for */
	struct str run_id; /* the run that is waited for */
	int64_t until; /* when it ends by itself */
};

struct wait_edit {
	struct str kind, what, value;
	int64_t from, to;
	bool has_from, has_to;
};

/* What would let it start at once. */
struct wait_change {
	struct str message, worker_id, worker;
	struct list edits; /* struct wait_edit */
};

struct step_wait {
	struct str step_id, run_id, name, pipeline;
	int64_t number;
	int state; /* enum step_state */
	struct str pool;
	int64_t priority, position, of;
	double cpus;
	int64_t memory, gpus;
	int64_t queued_at, deadline;
	bool unsatisfiable;
	struct list blockers; /* struct blocker */
	int64_t earliest_start;
	struct wait_change start_now;
	bool has_start_now, has_pool, has_position;
	int64_t as_of;
};
extern const struct field step_wait_fields[];

/* What a project may hold at once, and holds. Without a limit: nominal is absent. */
struct quota_amount {
	int64_t nominal, borrow, used;
	bool has_nominal;
};
struct quota {
	struct str project;
	double weight;
	struct quota_amount gpus, steps;
};
extern const struct field quota_fields[];

struct quota_limit {
	int64_t nominal, borrow;
};
struct quota_put {
	double weight;
	struct quota_limit gpus, steps;
	bool has_gpus, has_steps;
};
extern const struct field quota_put_fields[];

struct queue_query {
	struct page_query page;
	struct str pool;
};
extern const struct field queue_query_fields[];

#endif
