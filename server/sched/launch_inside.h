/* What the files of a launch share: launch.c reads and checks, launch_write.c writes. */
#ifndef SERVER_SCHED_LAUNCH_INSIDE_H
#define SERVER_SCHED_LAUNCH_INSIDE_H
#include "api/pipeline.h"
#include "server/app.h"
#include "server/sched/launch.h"
#include "server/sched/plan.h"
#include "server/sched/spec.h"
#include "server/store/launch_store.h"

struct flow {
	struct app *app;
	struct arena *arena;
	const struct launch *in;
	launch_cb *cb;
	void *arg;
	struct err err;
	struct str run_id, pipeline_id, repository, ref, path, source, commit, inputs_json,
		models_json, spec_json;
	struct pipeline_file file;
	struct spec_scope scope;
	struct str *dataset_names, *dataset_ids; /* pinned */
	int64_t *dataset_numbers;
	size_t datasets_n;
	struct step_row *steps; /* by row */
	struct plan_run plan_run;
	bool has_matrix;
	bool look; /* by whoever is first, after the commit */
	struct list rows; /* struct spec_row */
	struct plan *plan; /* the first look at the run; NULL: left to progress_run */
};

/* Joins the group commit; the callback follows, or an error here. */
int launcher_add(struct flow *f, struct err *e) MUST_CHECK;

#endif
