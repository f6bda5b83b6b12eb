/*
 * From the text of a pipeline file to what runs: decoded by the field tables, defaults merged into
 * the steps, checked as a whole (server/core/spec_check), and rendered for one run.
 */
#ifndef SERVER_SCHED_SPEC_H
#define SERVER_SCHED_SPEC_H
#include "api/pipeline.h"
#include "lib/base/arena.h"
#include "server/core/dag.h"
#include "server/core/input.h"

/* Decodes YAML (or JSON, which is YAML) and checks everything that can be checked without a run. */
int spec_read(
	struct str text, struct arena *a, struct pipeline_file *ret, struct err *e) MUST_CHECK;

/* The words of a step's `run`: a list as it is, a string as /bin/sh -c. Items are struct str. */
int spec_argv(struct str run_json, struct arena *a, struct list *ret, struct err *e) MUST_CHECK;

/* What a step has put out, by its whole name: "steps.check.outputs.ok". */
typedef bool spec_output_find(void *arg, struct str name, struct str *ret);

/* What ${…} may stand for in one run. window: of a decision, 0 without one. */
struct spec_scope {
	struct str run_id;
	int64_t window_start, window_end;
	const struct input_rule *rules;
	const struct render_value *inputs; /* by rule */
	size_t inputs_n;
	spec_output_find *output; /* NULL: of none is known what it has put out */
	void *output_arg;
	struct list matrix; /* struct field_pair: of the step that is filled in */
	bool later; /* outputs come later */
};
/* The rules of the spec's inputs, in their order. */
int spec_input_rules(const struct pipeline_spec *spec, struct arena *a, struct input_rule **ret,
	struct err *e) MUST_CHECK;
/* Fills the inputs from a JSON object: typed values, or texts when `loose`. */
int spec_fill_inputs(const struct pipeline_spec *spec, struct str inputs_json, bool loose,
	struct arena *a, struct spec_scope *scope, struct err *e) MUST_CHECK;
/* The filled inputs as a JSON object. */
struct str spec_inputs_json(
	const struct pipeline_spec *spec, const struct spec_scope *scope, struct arena *a);
/* A step of a run: a step of the file, or a combination of its matrix. What has a matrix is a step
 * of the run as well, which joins its combinations. */
struct spec_row {
	struct step_spec spec; /* with its name */
	struct list needs; /* struct str: names of rows */
	bool late; /* it is filled in when it becomes ready */
	bool joins;
	struct list matrix; /* struct field_pair: the values of a combination */
	struct str matrix_of, metric; /* of a combination; "" */
	int64_t slots; /* how many of its like may be on their way; 0: all */
};
/* The rows of one step; combinations follow what joins them. *ret, which has room for
 * spec_rows_max(), grows. Errors point below the step. */
size_t spec_rows_max(const struct pipeline_spec *spec);
int spec_expand(
	const struct step_spec *s, struct arena *a, struct list *ret, struct err *e) MUST_CHECK;
/* What can be wrong with matrices only; *ret_keys: struct str, of the step's. */
int spec_matrix_keys(const struct step_spec *s, struct arena *a, struct list *ret_keys,
	struct err *e) MUST_CHECK;
int spec_matrix_check(const struct pipeline_spec *spec, struct arena *a, struct err *e) MUST_CHECK;

/* Replaces ${…} in conditions, commands, images, environment and training data, in place, and makes
 * the rows of the run (struct spec_row). What names something that comes later stays as it is. */
int spec_render(struct pipeline_spec *spec, const struct spec_scope *scope, struct arena *a,
	struct list *ret_rows, struct err *e) MUST_CHECK;
/* The same for one step, of which all must be known. */
int spec_render_step(struct step_spec *s, const struct spec_scope *scope, struct arena *a,
	struct err *e) MUST_CHECK;
/* The names of outputs that a step's texts hold, each once: struct str. */
void spec_wanted_outputs(const struct step_spec *s, struct arena *a, struct list *ret);
/* One text under a scope; for the inputs of a retraining. */
int spec_render_text(struct str text, const struct spec_scope *scope, struct arena *a,
	struct str *ret, struct err *e) MUST_CHECK;

#endif
