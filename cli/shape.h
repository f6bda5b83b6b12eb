/*
 * Values with parts of their own, as lines for people: "name<TAB>text<LF>" each, the name and its
 * tab left out where a part has none. A list of lines is laid out by view.c.
 */
#ifndef CLI_SHAPE_H
#define CLI_SHAPE_H
#include "lib/base/buf.h"
#include "lib/json/json_read.h"

typedef void shape_fn(const struct jsn *v, struct buf *out);

shape_fn shape_inputs; /* of a pipeline: by name, their rules */
shape_fn shape_steps; /* of a pipeline, in an order in which they can run */
shape_fn shape_dataset_refs, shape_model_refs; /* of a pipeline, by name */
shape_fn shape_triggers;
shape_fn shape_schedules; /* of a pipeline, the whole of it: when each starts a run next */
shape_fn shape_owed; /* runs that triggers could not start yet, and why */
shape_fn shape_model; /* what a pipeline registers, and its gate */
shape_fn shape_datasets; /* of a run or model version: [{name, dataset, number}] */
shape_fn shape_training_data;
shape_fn shape_checks; /* of a gate: verdict and sentence of each */
shape_fn shape_usage; /* of an attempt's evidence */
shape_fn shape_matches; /* of an attempt: log policies that lines matched */
shape_fn shape_lines; /* a list of texts, one a line */
shape_fn shape_devices; /* of a worker */
shape_fn shape_holds; /* of a worker */
shape_fn shape_command; /* the words of a step */
shape_fn shape_outputs; /* of a step: by name, kind, files and bytes */

#endif
