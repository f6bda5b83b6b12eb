/* What the files of a plan share: plan.c leads, plan_ready.c says what becomes of steps that are
 * ready, plan_gang.c what the ranks of a gang are told, plan_write.c writes. */
#ifndef SERVER_SCHED_PLAN_INSIDE_H
#define SERVER_SCHED_PLAN_INSIDE_H
#include "api/pipeline.h"
#include "server/sched/plan.h"

struct plan {
	const struct plan_run *run;
	int64_t now;
	uint64_t random;
	struct arena *arena;
	int *states; /* of all steps, as they will be */
	bool *bad; /* by step: what needs it is skipped because something failed */
	bool ended; /* a step has ended at once when it became ready */
	const struct dag *dag;
	/* By step: what it has put out is only there once the plan is written, since the cache has
	 * it, or since it joins others. */
	bool *hit_now, *joined_now;
	struct step_updates steps;
	struct queue_rows queue;
	struct str *unqueue, *cancel_attempts, *cancel_reasons, *release, *tracking,
		*tracking_status;
	struct str *spec_ids, *specs; /* of late steps, filled in */
	bool wants_scope, leaves;
	struct map *wanted; /* names of values; NULL: none */
	struct str *wants; /* the same, in their order */
	size_t wants_n, wants_room;
	size_t open_bytes; /* of the specs of steps that have begun and not ended */
	size_t filled_bytes; /* of specs */
	struct plan_cache_want *cache_wants;
	size_t cache_wants_n;
	struct str *keyed, *keys; /* steps and their keys of the cache */
	struct str *hits, *hit_sources; /* steps that are taken from it, and from which */
	size_t keyed_n, cache_hits;
	int64_t hit_rows; /* of the latter */
	struct str *takers, *sources; /* steps that stand for another one */
	struct str *joined, *chosen; /* the same, by name; of steps with a matrix that choose */
	struct str *gatherers; /* steps that have the outputs of all their combinations */
	size_t takers_n, gatherers_n;
	size_t unqueue_n, cancel_n, release_n, tracking_n, specs_n;
	struct events events;
	int run_state;
	const char *run_reason;
	struct str run_message;
	bool run_changed;
};

struct plan_change {
	int state;
	struct str reason, message;
	int64_t user_failures, infra_failures, started_at;
};

void plan_set_step(struct plan *p, size_t i, const struct plan_change *c);
int plan_spec_of(
	struct plan *p, const struct plan_step *s, struct step_spec *ret, struct err *e) MUST_CHECK;
void plan_queue_step(struct plan *p, size_t i, const struct step_spec *spec, int64_t not_before);

void plan_note(
	struct plan *p, const char *type, struct str subject, struct str parent, struct str data);
struct str plan_step_data(
	struct plan *p, const struct plan_step *s, struct str reason, struct str worker_id);

void plan_stop_attempt(struct plan *p, const struct plan_step *s, struct str id,
	struct str worker_id, enum reason why);
/* Stops those ranks of a gang that go on and may not, releases those that may begin. */
void plan_lead_gang(struct plan *p, const struct plan_step *s);

/* All that the step needs has succeeded: into the queue, or its end. */
int plan_step_ready(struct plan *p, size_t i, struct err *e) MUST_CHECK;
/* Something that it needs did not succeed. */
void plan_skip_step(struct plan *p, const struct dag *d, size_t i);
/* No worker has it. */
void plan_cancel_step(struct plan *p, size_t i);
/* With what other steps have put out; false when the step is not ready after all: its values are to
 * be read first, others hold too much, or it has failed. */
bool plan_fill_in(struct plan *p, size_t i, struct step_spec *spec);
/* Whether the step is to be queued: else it is to be looked up first, or was found and has ended.
 */
bool plan_cache(struct plan *p, size_t i, const struct step_spec *spec);
bool plan_is_hit(const struct plan_step *s); /* the cache has the same */
/* It would read what is only there once the plan is written. */
bool plan_is_early(const struct plan *p, size_t i, const struct step_spec *spec);
void plan_add_cached(struct db_unit *u, const struct plan *p);
void plan_end_step(
	struct plan *p, size_t i, enum step_state state, enum reason reason, struct str message);
/* The statements of that, beside the states. */
void plan_add_ready(struct db_unit *u, const struct plan *p);

#endif
