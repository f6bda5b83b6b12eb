/* What the files of finish share: finish.c leads, finish_read.c reads, finish_write.c
 * writes. */
#ifndef SERVER_SCHED_FINISH_INSIDE_H
#define SERVER_SCHED_FINISH_INSIDE_H
#include "lib/db/row.h"
#include "server/core/policy.h"
#include "server/sched/feed.h"
#include "server/sched/finish.h"
#include "server/sched/gate_read.h"
#include "server/sched/reference_build.h"
#include "server/store/model_store.h"

struct finish_output {
	struct str step_id, step, output, path;
	struct blob_id blob;
};

struct finish_step {
	struct str id, name, tracking_run, image_digest, metrics, state, message;
};

struct finish_dataset {
	struct str name, dataset, version_id;
	int64_t number;
};

struct finish_monitor {
	struct str id;
	int64_t version;
	struct policy_rules rules;
	struct policy_state state;
	bool watches, asked; /* the alias that may move; its decision started the run */
};

struct finishing;
typedef void finish_training_cb(struct finishing *f);

/* One run on its way to its end. Everything lies in the arena of the try, except the id. */
struct finishing {
	struct finish *all;
	struct app *app;
	struct str run_id; /* in keep */
	struct arena *keep, *arena;
	unsigned tries;
	struct err err;
	/* the run */
	struct str project_id, group, decision_id, repository, commit, created_by, models, pipeline;
	int64_t version;
	struct pipeline_spec spec;
	struct finish_output *outputs;
	struct finish_step *steps;
	struct finish_dataset *datasets;
	size_t n_outputs, n_steps, n_datasets;
	/* observations */
	size_t fed; /* outputs that have been looked at */
	struct feed feed;
	struct str note; /* what is to be said on success, of them and of what was left out; "" */
	bool left_out; /* the model comes from a step that was skipped */
	/* the model */
	struct str against_id, promote_id; /* the versions that have the aliases now */
	struct finish_monitor *monitors;
	size_t n_monitors;
	struct reference_source training;
	bool training_good; /* it has been read, in this try or in one before */
	struct gate_source gate_source;
	struct gate_verdict_made *gate;
	finish_training_cb *training_done;
	const char *verdict; /* none, promoted, refused, needs_approval */
	struct str verdict_reason;
};

/* A text of a row, in the arena of the try. */
struct str finish_text(struct finishing *f, const struct db_rows *r, size_t i, const char *name);
/* The run with its outputs, steps and data sets; the error is in f->err. */
int finish_read_run(struct finishing *f, const struct db_rows *rows) MUST_CHECK;
/* How the file declares the output, or NULL. */
const struct output_spec *finish_output_spec(
	const struct finishing *f, const struct finish_output *o);

/* Whether the training data is what the version will say of it: rows that monitors can compare
 * with. Ends in done() with f->err, never inside the call. */
void finish_training(struct finishing *f, finish_training_cb *done);

bool finish_is_output(const struct finish_output *o, struct str reference); /* "train.model" */
/* All that follows from success, or from a failure with the words in f->err, in one unit. */
void finish_add_success(struct finishing *f, struct db_unit *u);
void finish_add_failure(struct finishing *f, struct db_unit *u, const char *reason);
/* The verdict in f->gate, or what stands against it; fills verdict and verdict_reason. */
void finish_judge(struct finishing *f);

#endif
