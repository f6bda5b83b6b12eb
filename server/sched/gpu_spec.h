/*
 * What a step asks for in `resources.gpus`, as users write it: 2, "H100:4", "1g.18gb:1" or an
 * object. Read when a pipeline file is checked, and again by whoever places the step. Pure.
 */
#ifndef SERVER_SCHED_GPU_SPEC_H
#define SERVER_SCHED_GPU_SPEC_H
#include "api/pipeline.h"
#include "lib/json/json_read.h"
#include "server/core/gpus.h"

/* `json`: the value; "" and null want none. Pointers are relative to it: "" or "/memory". */
int gpu_spec_read(
	struct str json, struct arena *a, struct gpus_want *ret, struct err *e) MUST_CHECK;
int gpu_spec_of(
	const struct jsn *v, struct arena *a, struct gpus_want *ret, struct err *e) MUST_CHECK;

/* Of all steps, and of the defaults, before these are merged: what is wrong is named where it
 * stands, below "/defaults" or "/steps". */
int gpu_spec_check(const struct pipeline_spec *spec, struct arena *a, struct err *e) MUST_CHECK;

#endif
