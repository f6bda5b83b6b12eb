#include "server/sched/monitor_rules.h"

#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "server/core/names.h"
#include "server/core/window.h"
#include "server/sched/spec.h"

enum { JSON_MAX = 1 << 20, INPUTS_MAX = 65536 };
#define SOME_DAY (10000 * CLOCK_DAY) /* a window to try templates with */

/* ---- checks ---- */

static int check_window(const struct monitor_spec *s, struct err *e)
{
	bool by_time = s->window.size.text.n != 0, by_rows = s->window.rows != 0;

	if (by_time == by_rows)
		return err_field(e, "/spec/window", "give either size or rows");
	if (by_time && !window_size_valid(s->window.size.span))
		return err_field(e, "/spec/window/size",
			"must be months (1mo, 1q, 1y) or exact time (1h, 1d, 1w), not both");
	return 0;
}

static int check_columns(const struct columns_spec *c, struct err *e)
{
	if (str_eq(c->id, c->time))
		return err_field(e, "/spec/columns/time", "must be a column of its own");
	if (str_eq(c->id, c->prediction) || str_eq(c->time, c->prediction))
		return err_field(
			e, "/spec/columns/prediction", "must not be the column of id or time");
	if (c->label.n != 0 && (str_eq(c->label, c->prediction) || str_eq(c->label, c->id) ||
				       str_eq(c->label, c->time)))
		return err_field(e, "/spec/columns/label", "must be a column of its own");
	return 0;
}

static int check_types(const struct monitor_spec *s, struct err *e)
{
	for (size_t i = 0; i < s->features.types.n; i++) {
		const struct field_pair *p = list_at(&s->features.types, struct field_pair, i);
		bool known = false;
		for (int t = 0; t < FEATURE_TYPE_COUNT; t++)
			known |= str_is(p->value, feature_type_names[t]);
		if (!known)
			return err_field(e, "/spec/features/types",
				"%.*s must be numeric or category, not %.*s",
				(int)(p->key.n < 64 ? p->key.n : 64), p->key.p, STR_ARG(p->value));
	}
	return 0;
}

static int check_weights(const struct monitor_spec *s, struct err *e)
{
	struct jsn_doc *doc;
	const char *fault = NULL;

	if (jsn_parse(s->features.weights, &doc, e) < 0)
		return -1;
	const struct jsn *v = jsn_root(doc);
	if (jsn_type(v) != JSN_OBJ && !(jsn_get_real(v, 0) == 1))
		fault = "must be 1, or an object of weights by feature";
	for (size_t i = 0; jsn_type(v) == JSN_OBJ && i < jsn_count(v); i++)
		if (!(jsn_get_real(jsn_at(v, i), -1) >= 0 && jsn_get_real(jsn_at(v, i), -1) <= 1e6))
			fault = "a weight must be a number from 0 to 1000000";
	jsn_doc_free(doc);
	return fault == NULL ? 0 : err_field(e, "/spec/features/weights", "%s", fault);
}

static int check_policy(const struct monitor_spec *s, struct err *e)
{
	const struct policy_spec *p = &s->policy;

	if (p->has_performance && !s->has_performance)
		return err_field(
			e, "/spec/performance", "is needed by the rule /spec/policy/performance");
	if (p->has_performance && s->columns.label.n == 0)
		return err_field(
			e, "/spec/columns/label", "is needed by the rule /spec/policy/performance");
	if (p->has_performance && p->performance.k > p->performance.n)
		return err_field(e, "/spec/policy/performance/k", "must not be above n");
	if (p->has_performance && p->performance.clear_ratio > p->performance.max_ratio)
		return err_field(
			e, "/spec/policy/performance/clear_ratio", "must not be above max_ratio");
	if (p->has_drift && p->drift.k > p->drift.n)
		return err_field(e, "/spec/policy/drift/k", "must not be above n");
	if (p->has_drift && p->drift.clear > p->drift.share)
		return err_field(e, "/spec/policy/drift/clear", "must not be above share");
	if (s->tests.categorical != TEST_PSI && s->tests.categorical != TEST_JENSEN_SHANNON)
		return err_field(e, "/spec/tests/categorical",
			"must be psi or jensen_shannon: categories have no order");
	if (s->tests.warn > s->tests.alert)
		return err_field(e, "/spec/tests/warn", "must not be above alert");
	return 0;
}

static int check_retrain(const struct monitor_spec *s, struct err *e)
{
	const struct policy_spec *p = &s->policy;
	bool retrains = (p->has_performance && p->performance.action == ACTION_RETRAIN) ||
			(p->has_drift && p->drift.action == ACTION_RETRAIN) ||
			(p->has_data_quality && p->data_quality.action == ACTION_RETRAIN);

	if (p->has_data_quality && p->data_quality.action == ACTION_RETRAIN)
		return err_field(e, "/spec/policy/data_quality/action",
			"broken data is never trained on: must not be retrain");
	if (retrains && !s->has_retrain)
		return err_field(e, "/spec/retrain", "is needed by a rule whose action is retrain");
	return 0;
}

int monitor_spec_check(const struct monitor_spec *spec, struct err *e)
{
	if (names_alias_check(spec->subject.alias, "/spec/subject/alias", e) < 0 ||
		check_window(spec, e) < 0 || check_columns(&spec->columns, e) < 0 ||
		check_types(spec, e) < 0 || check_weights(spec, e) < 0 ||
		check_policy(spec, e) < 0 || check_retrain(spec, e) < 0)
		return -1;
	return 0;
}

int monitor_spec_read(struct str json, struct arena *a, struct monitor_spec *ret, struct err *e)
{
	return field_decode_reply(monitor_spec_fields, json, a, ret, e);
}

/* ---- the inputs of a retraining ---- */

int monitor_inputs(const struct monitor_spec *spec, const struct spec_scope *scope, struct arena *a,
	struct str *ret, struct err *e)
{
	const struct list *inputs = &spec->retrain.inputs;
	struct buf b;
	int rc = 0;

	buf_init(&b, INPUTS_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	for (size_t i = 0; i < inputs->n && rc == 0; i++) {
		const struct field_pair *p = list_at(inputs, struct field_pair, i);
		struct str text = STR("");
		rc = spec_render_text(p->value, scope, a, &text, e);
		if (rc < 0) {
			e->field[0] = '\0';
			err_field_prefix(e, p->key.p);
			err_field_prefix(e, "inputs");
			err_field_prefix(e, "retrain");
			err_field_prefix(e, "spec");
		}
		jsn_key_str(&w, p->key);
		jsn_str(&w, text);
	}
	jsn_obj_end(&w);
	if (rc == 0 && buf_failed(&b))
		rc = err_field(
			e, "/spec/retrain/inputs", "have more than %d bytes as JSON", INPUTS_MAX);
	*ret = rc == 0 ? buf_keep(&b, a) : STR_NONE;
	if (rc < 0)
		buf_done(&b);
	return rc;
}

int monitor_inputs_check(
	const struct monitor_spec *spec, struct str pipeline_json, struct arena *a, struct err *e)
{
	struct spec_scope scope = { .window_start = SOME_DAY, .window_end = SOME_DAY + CLOCK_DAY };
	struct pipeline_spec pipeline;
	struct str inputs;

	if (monitor_inputs(spec, &scope, a, &inputs, e) < 0)
		return -1;
	if (pipeline_json.n == 0)
		return 0;
	if (field_decode_reply(pipeline_spec_fields, pipeline_json, a, &pipeline, e) < 0)
		return -1;
	if (spec_fill_inputs(&pipeline, inputs, true, a, &scope, e) == 0)
		return 0;
	err_field_prefix(e, "retrain");
	err_field_prefix(e, "spec");
	return -1;
}

/* ---- rules ---- */

enum stats_score monitor_score(const struct monitor_spec *spec)
{
	enum stats_score score = STATS_MAE;

	if (spec->has_performance)
		(void)stats_score_parse(str_c(gate_metric_names[spec->performance.metric]), &score);
	return score;
}

static struct policy_rule performance_rule(const struct monitor_spec *s)
{
	const struct performance_rule *r = &s->policy.performance;

	return (struct policy_rule){ .used = true,
		.action = (enum policy_action)r->action,
		.limit = r->max_ratio,
		.clear = r->clear_ratio,
		.k = (uint32_t)r->k,
		.n = (uint32_t)r->n,
		.clear_windows = 1 };
}

static struct policy_rule drift_rule(const struct monitor_spec *s)
{
	const struct drift_rule *r = &s->policy.drift;

	return (struct policy_rule){ .used = true,
		.action = (enum policy_action)r->action,
		.limit = r->share,
		.clear = r->clear,
		.k = (uint32_t)r->k,
		.n = (uint32_t)r->n,
		.clear_windows = (uint32_t)r->clear_windows };
}

struct policy_rules monitor_rules(const struct monitor_spec *spec)
{
	const struct policy_spec *p = &spec->policy;
	struct policy_rules r = { .metric = monitor_score(spec),
		.min_samples = (uint64_t)spec->min_samples,
		.cooldown = (uint32_t)p->cooldown,
		.backoff = p->backoff,
		.has_budget = p->has_budget,
		.has_pipeline = spec->has_retrain };

	if (p->has_performance)
		r.cause[POLICY_PERFORMANCE] = performance_rule(spec);
	if (p->has_drift)
		r.cause[POLICY_DRIFT] = drift_rule(spec);
	if (p->has_data_quality)
		r.cause[POLICY_DATA_QUALITY] = (struct policy_rule){ .used = true,
			.action = (enum policy_action)p->data_quality.action,
			.limit = 1,
			.clear = 1,
			.k = 1,
			.n = 1,
			.clear_windows = 1 };
	if (p->has_budget) {
		r.budget_runs = (uint32_t)p->budget.runs;
		r.budget_per = p->budget.per.span;
	}
	if (p->has_guard) {
		r.guard_windows = (uint32_t)p->guard.windows;
		r.guard_rollback = p->guard.rollback;
	}
	return r;
}

double monitor_weight(const struct monitor_spec *spec, struct str feature)
{
	struct jsn_doc *doc;
	struct err e;
	double weight = 1;

	if (spec->features.weights.n <= 1 || jsn_parse(spec->features.weights, &doc, &e) < 0)
		return 1;
	const struct jsn *v = jsn_root(doc);
	for (size_t i = 0; jsn_type(v) == JSN_OBJ && i < jsn_count(v); i++)
		if (str_eq(jsn_name(jsn_at(v, i)), feature))
			weight = jsn_get_real(jsn_at(v, i), 1);
	jsn_doc_free(doc);
	return weight;
}

/* ---- the stored state ---- */

static uint32_t get_u32(const struct jsn *v, const char *name)
{
	int64_t n = jsn_get_int(jsn_get(v, name), 0);

	return n >= 0 && n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void read_cause(const struct jsn *v, struct policy_cause_state *s)
{
	struct str level = jsn_get_str(jsn_get(v, "level"));

	for (enum policy_level l = POLICY_FINE; l < POLICY_LEVELS; l++)
		if (str_is(level, policy_level_name(l)))
			s->level = l;
	s->history = get_u32(v, "history");
	s->tested = get_u32(v, "tested");
	s->calm = get_u32(v, "calm");
	s->due = jsn_get_bool(jsn_get(v, "due"), false);
}

static void read_state(const struct jsn *v, struct policy_state *s)
{
	const struct jsn *muted = jsn_get(v, "muted_until"), *started = jsn_get(v, "started"),
			 *level = jsn_get(v, "guard_level");

	policy_init(s);
	for (enum policy_cause c = POLICY_PERFORMANCE; c < POLICY_CAUSES; c++)
		read_cause(jsn_get(v, policy_cause_name(c)), &s->cause[c]);
	s->cooldown = get_u32(v, "cooldown");
	s->refused = get_u32(v, "refused");
	s->guard = get_u32(v, "guard");
	s->has_guard_level = jsn_type(level) == JSN_REAL || jsn_type(level) == JSN_INT;
	s->guard_level = jsn_get_real(level, 0);
	s->open = jsn_get_bool(jsn_get(v, "open"), false);
	s->muted = jsn_type(muted) == JSN_STR && clock_parse(jsn_get_str(muted), &s->muted_until);
	for (size_t i = 0; i < jsn_count(started) && s->n_started < POLICY_BUDGET_MAX; i++)
		if (clock_parse(jsn_get_str(jsn_at(started, i)), &s->started[s->n_started]))
			s->n_started++;
}

int policy_state_read(struct str json, struct policy_state *ret, struct err *e)
{
	struct jsn_doc *doc;

	if (jsn_parse(json, &doc, e) < 0)
		return -1;
	read_state(jsn_root(doc), ret);
	jsn_doc_free(doc);
	return policy_state_sound(ret) ? 0
				       : err_set(e, ERR_CORRUPT, "a monitor's state is damaged");
}

static void write_cause(struct jsn_out *w, const struct policy_cause_state *s)
{
	jsn_obj_begin(w);
	jsn_key(w, "level");
	jsn_text(w, policy_level_name(s->level));
	jsn_key(w, "history");
	jsn_int(w, s->history);
	jsn_key(w, "tested");
	jsn_int(w, s->tested);
	jsn_key(w, "calm");
	jsn_int(w, s->calm);
	jsn_key(w, "due");
	jsn_bool(w, s->due);
	jsn_obj_end(w);
}

static void write_state(struct jsn_out *w, const struct policy_state *s)
{
	for (enum policy_cause c = POLICY_PERFORMANCE; c < POLICY_CAUSES; c++) {
		jsn_key(w, policy_cause_name(c));
		write_cause(w, &s->cause[c]);
	}
	jsn_key(w, "cooldown");
	jsn_int(w, s->cooldown);
	jsn_key(w, "refused");
	jsn_int(w, s->refused);
	jsn_key(w, "guard");
	jsn_int(w, s->guard);
	if (s->has_guard_level) {
		jsn_key(w, "guard_level");
		jsn_real(w, s->guard_level);
	}
	jsn_key(w, "open");
	jsn_bool(w, s->open);
	if (s->muted) {
		jsn_key(w, "muted_until");
		jsn_time(w, s->muted_until);
	}
	jsn_key(w, "started");
	jsn_list_begin(w);
	for (uint32_t i = 0; i < s->n_started; i++)
		jsn_time(w, s->started[i]);
	jsn_list_end(w);
}

struct str policy_state_write(const struct policy_state *s, struct arena *a)
{
	struct buf b;

	buf_init(&b, JSON_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	write_state(&w, s);
	jsn_obj_end(&w);
	return buf_keep(&b, a);
}

/* ---- mutes ---- */

bool monitor_muted(struct str mutes_json, struct str feature, int64_t at, struct str *ret_reason,
	struct arena *a)
{
	struct jsn_doc *doc;
	struct err e;
	bool muted = false;

	if (jsn_parse(mutes_json, &doc, &e) < 0)
		return false;
	for (size_t i = 0; i < jsn_count(jsn_root(doc)); i++) {
		const struct jsn *m = jsn_at(jsn_root(doc), i);
		int64_t until;
		if (!str_eq(jsn_get_str(jsn_get(m, "feature")), feature) ||
			!clock_parse(jsn_get_str(jsn_get(m, "until")), &until) || at >= until)
			continue;
		muted = true;
		*ret_reason = arena_str(a, jsn_get_str(jsn_get(m, "reason")));
	}
	jsn_doc_free(doc);
	return muted;
}

static void write_mute(struct jsn_out *w, const struct mute *m)
{
	jsn_obj_begin(w);
	jsn_key(w, "feature");
	jsn_str(w, m->feature);
	jsn_key(w, "until");
	jsn_time(w, m->until);
	jsn_key(w, "reason");
	jsn_str(w, m->reason);
	jsn_obj_end(w);
}

struct str monitor_mutes_with(struct str mutes_json, const struct mute *m, struct arena *a)
{
	struct jsn_doc *doc = NULL;
	struct buf b;
	struct err e;

	buf_init(&b, JSON_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_list_begin(&w);
	const struct jsn *old = jsn_parse(mutes_json, &doc, &e) == 0 ? jsn_root(doc) : NULL;
	for (size_t i = 0; i < jsn_count(old); i++) {
		struct buf one;
		if (str_eq(jsn_get_str(jsn_get(jsn_at(old, i), "feature")), m->feature))
			continue;
		buf_init(&one, JSON_MAX);
		jsn_write(jsn_at(old, i), &one);
		jsn_raw(&w, buf_str(&one));
		b.failed |= one.failed;
		buf_done(&one);
	}
	write_mute(&w, m);
	jsn_list_end(&w);
	jsn_doc_free(doc);
	return buf_keep(&b, a);
}
