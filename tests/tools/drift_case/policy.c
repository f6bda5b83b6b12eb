#include "server/core/policy.h"
#include "tests/tools/drift_case/case.h"

#include <math.h>

static size_t policy_features(
	const json_t *window, const json_t *weights, struct policy_feature *ret)
{
	const char *key;
	json_t *v;
	size_t n = 0;

	if (json_object_size(json_object_get(window, "values")) > 64)
		die("too many features");
	json_object_foreach (json_object_get(window, "values"), key, v) {
		ret[n++] = (struct policy_feature){ .name = str_c(key),
			.tested = json_is_number(v),
			.value = json_number_value(v),
			.critical = number(window, "critical", (double)NAN),
			.seasonal = (double)NAN,
			.seasonal_critical = (double)NAN,
			.weight = number(weights, key, 1) };
	}
	return n;
}

static json_t *policy_trace(const struct policy_outcome *o)
{
	json_t *r = json_object(), *actions = json_array();

	if (o->warned)
		json_array_append_new(actions, json_string("warn"));
	if (o->alerted)
		json_array_append_new(actions, json_string("alert"));
	if (o->fired && o->action == POLICY_RETRAIN)
		json_array_append_new(actions, json_string("retrain"));
	if (o->alerted && o->stop != POLICY_NOT_STOPPED)
		json_array_append_new(actions, json_string("retrain_suppressed"));
	if (o->resolved)
		json_array_append_new(actions, json_string("resolved"));
	json_object_set_new(r, "verdict", json_string(policy_verdict_name(o->verdict)));
	json_object_set_new(r, "score", isnan(o->score) ? json_null() : real(o->score));
	json_object_set_new(r, "state", json_string(policy_level_name(o->after)));
	json_object_set_new(r, "actions", actions);
	return r;
}

/* The executable definition of the state machine: drift with the action retrain, and a retraining
 * that is over before the next window. */
const char *trigger_policy(struct test_case *t)
{
	struct policy_rules rules = { .min_samples = (uint64_t)number(t->params, "min_samples", 0),
		.cooldown = (uint32_t)number(t->params, "cooldown", 0),
		.backoff = 1,
		.has_pipeline = true };
	struct policy_feature features[64];
	struct policy_state state;
	json_t *trace = json_array();
	const json_t *v;
	size_t i;

	rules.cause[POLICY_DRIFT] = (struct policy_rule){ true, POLICY_RETRAIN,
		number(t->params, "share", 1), number(t->params, "clear", 0),
		(uint32_t)number(t->params, "k", 1), (uint32_t)number(t->params, "n", 1),
		(uint32_t)number(t->params, "clear_windows", 1) };
	policy_init(&state);
	json_array_foreach (json_object_get(t->cur, "windows"), i, v) {
		struct policy_window w = { .start = (int64_t)i * CLOCK_HOUR,
			.end = (int64_t)(i + 1) * CLOCK_HOUR,
			.rows = (uint64_t)number(v, "n", 0),
			.features = features };
		struct policy_decision d;

		w.n_features = policy_features(v, json_object_get(t->params, "weights"), features);
		for (size_t f = 0; f < w.n_features; f++)
			features[f].threshold = number(t->params, "threshold", 0.1);
		policy_apply(&rules, &state, &w, &d);
		state.open = false;
		json_array_append_new(trace, policy_trace(&d.cause[POLICY_DRIFT]));
		if (d.cause[POLICY_DRIFT].sentence[0] == 0)
			die("a decision without a sentence");
	}
	json_object_set_new(t->r, "trace", trace);
	return NULL;
}
