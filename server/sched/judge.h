/*
 * The numbers of a window: rows counted on the edges of a reference, a page at a time, then
 * compared with it, feature by feature, and what the policy makes of that. No I/O; for work
 * threads.
 */
#ifndef SERVER_SCHED_JUDGE_H
#define SERVER_SCHED_JUDGE_H
#include "lib/base/arena.h"
#include "server/core/policy.h"
#include "server/sched/reference.h"

/* A reference in whose order cells were written, seen from the one that they are compared with. */
struct judge_layout {
	int64_t id;
	const struct reference *written;
};

struct judge_row {
	double prediction, label; /* label NaN: none */
	int64_t layout;
	struct str cells;
};

struct judge_counts;
/* layouts and the reference outlive the counts, which lie in the arena. */
struct judge_counts *judge_counts_new(struct arena *a, const struct reference *ref,
	const struct judge_layout *layouts, size_t n_layouts);
/* ERR_CORRUPT when cells do not fit their layout. */
int judge_add(
	struct judge_counts *c, const struct judge_row *rows, size_t n, struct err *e) MUST_CHECK;

struct judge_args {
	const struct monitor_spec *spec;
	struct str mutes; /* JSON */
	int64_t start, end; /* of the window */
	bool has_level;
	double level; /* of the champion on its holdout */
	const char *model_version; /* for people */
};

struct judge_metric {
	struct str feature, metric, status;
	double value, critical, p, threshold; /* NaN: none */
	bool drifted;
};

struct judgement {
	const struct judge_metric *metrics;
	size_t n_metrics;
	struct policy_window window;
	struct policy_state before, after;
	struct policy_decision decision;
	const char *severity; /* ok, warn, alert, insufficient */
	double performance, drift_share; /* NaN: none */
	uint64_t left_out; /* rows with a label that are too large to be measured */
};
/* Compares and applies the policy: *state is what it was before. */
void judge_window(const struct judge_counts *c, const struct judge_args *args,
	const struct policy_state *state, struct arena *a, struct judgement *ret);
/* The decision's inputs for a cause, as a JSON object. */
struct str judge_inputs(const struct judgement *j, const struct judge_args *args,
	enum policy_cause cause, struct arena *a);

#endif
