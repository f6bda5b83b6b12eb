/*
 * What no field of a pipeline file can check alone: names that refer to each other, names that
 * become environment variables, paths, images, and every ${…}. The caller fills plain structs from
 * the decoded file. Errors are ERR_INVALID with the pointer from the spec on
 * (/steps/train/env/PATH). Pure; scratch in the arena.
 */
#ifndef SERVER_CORE_SPEC_CHECK_H
#define SERVER_CORE_SPEC_CHECK_H
#include "server/core/dag.h"

enum { SPEC_ARGV_MAX = 256, SPEC_ARG_BYTES_MAX = 131071, SPEC_ARGV_BYTES_MAX = 1 << 20 };

/* The numbers of enum output_kind in api/pipeline.h. */
enum spec_output_kind {
	SPEC_OUTPUT_FILES,
	SPEC_OUTPUT_MODEL,
	SPEC_OUTPUT_PREDICTIONS,
	SPEC_OUTPUT_OBSERVATIONS,
	SPEC_OUTPUT_VALUE
};

struct spec_output {
	struct str name, path;
	int kind; /* enum spec_output_kind */
	struct str monitor;
};

struct spec_variable {
	struct str name, value;
};

struct spec_step {
	struct str name;
	const struct str *needs;
	const struct str *argv; /* the words of the command */
	bool shell; /* they were written as one text, for /bin/sh -c */
	const struct spec_variable *env;
	const struct spec_output *outputs;
	size_t needs_n, argv_n, env_n, outputs_n;
	struct str condition; /* "" when there is none */
	const struct str *matrix; /* keys */
	size_t matrix_n; /* 0: it has none */
	bool selects; /* one combination stands for the step */
	struct str image; /* "" when there is none; one with ${…} is checked once it is rendered */
	bool wants_image; /* a runtime that needs one is acceptable */
};

/* Another text with ${…}, outside of steps: training_data's from and to. */
struct spec_text {
	const char *at; /* its pointer: "/model/training_data/from" */
	struct str text;
};

struct spec {
	const struct spec_step *steps;
	const struct str *inputs, *datasets, *models; /* keys */
	size_t steps_n, inputs_n, datasets_n, models_n;
	const struct spec_text *texts;
	size_t texts_n;
	struct str model_from; /* STEP.OUTPUT; "" without a model */
	struct str training_dataset; /* a key of datasets; "" without one */
	struct str gate_predictions; /* STEP.OUTPUT; "" without a gate */
};

/* *ret_dag (may be NULL) is the checked graph. */
int spec_check(
	const struct spec *s, struct arena *a, struct dag *ret_dag, struct err *e) MUST_CHECK;

/* The parts, for other callers; errors have an empty pointer. */
int spec_check_path(struct str path, struct err *e) MUST_CHECK; /* relative, no "." or ".." */
int spec_check_env_name(struct str name, struct err *e) MUST_CHECK; /* valid, not reserved */
/* Finds STEP.OUTPUT; both names may hold dots, and exactly one reading must exist. */
int spec_find_output(const struct spec *s, struct str ref, size_t *ret_step, size_t *ret_output,
	struct err *e) MUST_CHECK;

#endif
