/*
 * Making a run: by API, by trigger or by decision, in the same way. Reads the pipeline (from the
 * request, the registry, or a git repository at an exact commit), checks it, fills and checks the
 * inputs, pins data sets and models, renders every ${…}, and writes run, steps and tracking runs in
 * one unit; many launches share a commit. Nothing is written when anything is wrong.
 */
#ifndef SERVER_SCHED_LAUNCH_H
#define SERVER_SCHED_LAUNCH_H
#include "api/run.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct app;
struct db_unit;

struct launch {
	struct str project_id, pipeline; /* the name of a registered pipeline, or */
	struct str source; /* the text of a file */
	struct str ref; /* "": the pipeline's own */
	struct str inputs; /* JSON object */
	bool loose_inputs; /* inputs are texts */
	struct str labels; /* JSON object */
	bool no_cache;
	const char *trigger; /* api, dataset, decision, … */
	struct str trigger_key, decision_id, actor;
	int64_t window_start, window_end; /* of a decision */
	/* Statements that belong to the same transaction, e.g. an idempotency key or a decision's
	 * row; may be NULL. Runs when the run's id is known. */
	void (*add)(void *arg, struct db_unit *u, struct str run_id);
	void *add_arg;
};

struct launched {
	struct run run; /* as reading it would give it, but for the names of project and maker */
	bool held; /* by its concurrency group: what is said of that must be read */
};
/* e->code is ERR_OK and made (in the arena) is the new run, or NULL and why there is none; rows:
 * with the fault of the unit, or NULL. Once, from the loop. The strings of *l must live until then.
 */
struct db_rows;
typedef void launch_cb(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e);
void launch_start(
	struct app *app, struct arena *a, const struct launch *l, launch_cb *cb, void *arg);

/* The group commit that launches share; owned by the app. */
struct launcher;
struct launcher *launcher_new(struct app *app);
void launcher_free(struct launcher *l);

#endif
