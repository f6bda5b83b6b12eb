#include "api/pool.h"

#include "api/pipeline.h"

const char *const pool_policy_names[] = { "auto", "pack", "spread", NULL };
const char *const pool_preemption_names[] = { "none", "quota", "priority", NULL };
_Static_assert(sizeof pool_policy_names / sizeof *pool_policy_names == POOL_POLICY_COUNT + 1,
	"policies and names differ");
_Static_assert(
	sizeof pool_preemption_names / sizeof *pool_preemption_names == POOL_PREEMPT_COUNT + 1,
	"kinds of preemption and names differ");

#define AT(member) offsetof(struct THIS, member)
#define R          FIELD_READONLY
#define POLICY     "auto: GPUs are packed, steps without GPUs are spread; pack; spread"
#define PREEMPTION                                                                                 \
	"Who may end whose work: none; quota: a step within its project's quota that of who "      \
	"borrows; priority: that, and a greater priority that of a smaller one"

#define THIS worker_pool
const struct field worker_pool_fields[] = {
	{ "name", FIELD_STR, R, AT(name), .doc = "Name of the pool" },
	{ "policy", FIELD_ENUM, R, AT(policy), .names = pool_policy_names, .doc = POLICY },
	{ "sensitivity", FIELD_LIST, R, AT(sensitivity), .item = FIELD_ENUM,
		.names = sensitivity_names, .doc = "Steps of these may come here" },
	{ "preemption", FIELD_ENUM, R, AT(preemption), .names = pool_preemption_names,
		.doc = PREEMPTION },
	{ "workers", FIELD_INT, R, AT(workers), .doc = "Workers that belong to it" },
	{ "version", FIELD_INT, R, AT(version),
		.doc = "Moves with every change; the ETag. 0: nothing was set" },
	{ 0 },
};
#undef THIS
#define THIS worker_pool_put
const struct field worker_pool_put_fields[] = {
	{ "policy", FIELD_ENUM, 0, AT(policy), .names = pool_policy_names, .fallback = "auto",
		.doc = POLICY },
	{ "sensitivity", FIELD_LIST, 0, AT(sensitivity), .item = FIELD_ENUM,
		.names = sensitivity_names, .max = SENSITIVITY_COUNT,
		.doc = "Steps of these may come here (public, internal, confidential)" },
	{ "preemption", FIELD_ENUM, 0, AT(preemption), .names = pool_preemption_names,
		.fallback = "none", .doc = PREEMPTION },
	{ 0 },
};
#undef THIS
