/* What the files of one closing share: window_close.c reads and counts, window_decide.c writes. */
#ifndef SERVER_SCHED_WINDOW_INSIDE_H
#define SERVER_SCHED_WINDOW_INSIDE_H
#include "lib/db/row.h"
#include "server/sched/judge.h"
#include "server/sched/launch.h"
#include "server/sched/reference_make.h"
#include "server/sched/window_close.h"
#include "server/store/monitor_store.h"

enum { CLOSE_PAGE = 4000, CLOSE_TRIES = 8 };

struct closing {
	struct app *app;
	struct arena *keep; /* the flow's own */
	struct arena *arena; /* of one try */
	struct str monitor_id, window_id;
	window_close_cb *cb;
	void *arg;
	unsigned tries;
	struct err err;
	struct window_closed_now done;
	/* the monitor */
	struct str project_id, project, name, model, model_id, alias, mutes;
	struct monitor_spec spec;
	int64_t version, spec_version;
	struct policy_state state; /* before */
	/* the window */
	int64_t made, start, end, revision, window_version;
	bool newest, moves; /* moves: the monitor's state follows */
	struct str first_before; /* policy state to be kept with it, when it is the first closing */
	/* what it is compared with */
	struct str model_version_id, training_data, model_version;
	struct str current_id, previous_id; /* of the alias */
	double level;
	bool has_level;
	struct str reference_id;
	int64_t layout;
	struct reference reference;
	struct judge_layout *layouts;
	size_t n_layouts;
	struct reference_want want;
	/* decisions before it was opened again */
	struct str earlier_id[POLICY_CAUSES], earlier_run[POLICY_CAUSES];
	/* counting */
	struct judge_counts *counts;
	struct judge_row rows[CLOSE_PAGE];
	size_t n_rows;
	struct buf bytes; /* cells of the page */
	struct str after; /* the last row id */
	bool last_page;
	/* deciding */
	struct judge_args args;
	struct judgement judgement;
	struct decision_row decisions[POLICY_CAUSES];
	size_t n_decisions;
	struct str decision_id; /* of the one that starts a retraining */
	struct launch launch;
	bool launching;
};

/* The numbers are there: decides, writes, starts what is to be started; ends in close_done,
 * close_fail or close_again. */
void close_decide(struct closing *c);
void close_done(struct closing *c);
void close_fail(struct closing *c); /* the error is in c->err */
void close_again(struct closing *c); /* something has changed: from the start */

#endif
