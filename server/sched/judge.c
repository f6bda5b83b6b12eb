#include "server/sched/judge.h"

#include "lib/base/mem.h"
#include "lib/stats/metric.h"
#include "lib/stats/perf.h"
#include "server/sched/monitor_rules.h"

#include <math.h>

/* From these on a window's data counts as broken. */
#define MISSING_DEFECT 0.1 /* more missing values than in the training data */
#define FRESH_DEFECT   0.5 /* rows of categories that the training data never had */
enum { METRICS_PER_FEATURE = 6, METRICS_OF_WINDOW = 5 };

struct judge_counts {
	const struct reference *ref;
	const struct judge_layout *layouts;
	size_t n_layouts;
	size_t **place; /* by layout: feature of ref + 1, or 0 */
	struct stats_counts **numeric;
	struct stats_categories **categories;
	bool *changed; /* rows came with another type */
	uint64_t rows, labelled;
	struct stats_regression regression;
	struct stats_classes classes;
};

/* ---- counting ---- */

static size_t find_feature(const struct reference *r, struct str name)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->features[i].name, name))
			return i + 1;
	return 0;
}

static void place_layout(struct judge_counts *c, struct arena *a, size_t k)
{
	const struct reference *written = c->layouts[k].written;

	c->place[k] = arena_array_of(a, size_t, written->n + 1);
	for (size_t i = 0; i < written->n; i++) {
		size_t at = find_feature(c->ref, written->features[i].name);
		if (at != 0 && c->ref->features[at - 1].type != written->features[i].type) {
			c->changed[at - 1] = true;
			at = 0;
		}
		c->place[k][i] = at;
	}
}

struct judge_counts *judge_counts_new(struct arena *a, const struct reference *ref,
	const struct judge_layout *layouts, size_t n_layouts)
{
	struct judge_counts *c = arena_new_of(a, struct judge_counts);

	c->ref = ref;
	c->layouts = layouts;
	c->n_layouts = n_layouts;
	c->place = arena_array_of(a, size_t *, n_layouts + 1);
	c->numeric = arena_array_of(a, struct stats_counts *, ref->n + 1);
	c->categories = arena_array_of(a, struct stats_categories *, ref->n + 1);
	c->changed = arena_array_of(a, bool, ref->n + 1);
	for (size_t i = 0; i < ref->n; i++)
		if (ref->features[i].type == FEATURE_NUMERIC) {
			c->numeric[i] = arena_new_of(a, struct stats_counts);
			stats_counts_init(c->numeric[i], ref->features[i].profile);
		} else {
			c->categories[i] = arena_new_of(a, struct stats_categories);
			stats_categories_init(c->categories[i], ref->features[i].categories);
		}
	for (size_t k = 0; k < n_layouts; k++)
		place_layout(c, a, k);
	return c;
}

static void add_cell(struct judge_counts *c, size_t feature, const struct cell *cell,
	double *column, size_t *filled)
{
	if (c->numeric[feature] != NULL)
		column[filled[feature]++] = cell->number;
	else if (cell->text.p != NULL)
		stats_categories_add(c->categories[feature], c->ref->features[feature].categories,
			cell->text, 1);
	else
		stats_categories_add_nulls(c->categories[feature], 1);
}

/* columns: room for n numbers for each feature. */
static int add_row(struct judge_counts *c, const struct judge_row *row, double *columns, size_t n,
	size_t *filled)
{
	struct str rest = row->cells;
	struct cell cell;
	size_t k = 0;

	while (k < c->n_layouts && c->layouts[k].id != row->layout)
		k++;
	if (k == c->n_layouts)
		return -1;
	const struct reference *written = c->layouts[k].written;
	for (size_t i = 0; i < written->n; i++) {
		if (!cell_take(&rest, written->features[i].type, &cell))
			return -1;
		if (c->place[k][i] != 0)
			add_cell(c, c->place[k][i] - 1, &cell, columns + (c->place[k][i] - 1) * n,
				filled);
	}
	return rest.n == 0 ? 0 : -1;
}

static void add_performance(struct judge_counts *c, const struct judge_row *row)
{
	c->rows++;
	if (isnan(row->label))
		return;
	c->labelled++;
	stats_regression_add(&c->regression, row->label, row->prediction);
	stats_classes_add(&c->classes, row->label, row->prediction, (double)NAN);
}

int judge_add(struct judge_counts *c, const struct judge_row *rows, size_t n, struct err *e)
{
	double *columns = mem_new(c->ref->n * n + 1, sizeof *columns);
	size_t *filled = mem_new(c->ref->n + 1, sizeof *filled);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = add_row(c, &rows[i], columns, n, filled);
		add_performance(c, &rows[i]);
	}
	for (size_t f = 0; f < c->ref->n && rc == 0; f++)
		if (c->numeric[f] != NULL)
			stats_counts_add(c->numeric[f], c->ref->features[f].profile,
				columns + f * n, filled[f]);
	mem_free(columns);
	mem_free(filled);
	return rc == 0 ? 0 : err_set(e, ERR_CORRUPT, "a stored row does not fit its layout");
}

/* ---- comparing ---- */

struct comparison {
	const struct judge_counts *c;
	const struct judge_args *args;
	struct arena *arena;
	struct stats_options options;
	struct judge_metric *metrics;
	size_t n_metrics;
	struct policy_feature *features;
	struct policy_defect *defects;
	size_t n_features, n_defects;
};

static enum stats_metric_kind kind_of(int test)
{
	switch ((enum test_kind)test) {
	case TEST_PSI: return STATS_METRIC_PSI;
	case TEST_KS: return STATS_METRIC_KS;
	case TEST_WASSERSTEIN: return STATS_METRIC_WASSERSTEIN;
	case TEST_JENSEN_SHANNON:
	case TEST_KIND_COUNT: break;
	}
	return STATS_METRIC_JS;
}

static void compare_feature(const struct comparison *x, size_t i, struct stats_compare *ret)
{
	const struct feature *f = &x->c->ref->features[i];

	if (x->c->changed[i])
		stats_compare_type_changed(ret);
	else if (f->type == FEATURE_NUMERIC)
		stats_compare_numeric(f->profile, x->c->numeric[i], &x->options, ret);
	else
		stats_compare_categories(f->categories, x->c->categories[i], &x->options, ret);
}

static void put_metric(struct comparison *x, size_t i, const struct stats_compare *cmp,
	enum stats_metric_kind kind, double threshold)
{
	const struct stats_metric *m = &cmp->metric[kind];

	x->metrics[x->n_metrics++] = (struct judge_metric){ .feature = x->c->ref->features[i].name,
		.metric = str_c(stats_metric_name(kind)),
		.status = str_c(cmp->status == STATS_OK && !isnan(threshold) && !isfinite(m->value)
					? "overflow"
					: stats_status_name(cmp->status)),
		.value = m->value,
		.critical = m->critical,
		.p = m->p,
		.threshold = threshold,
		.drifted = !isnan(threshold) && stats_drifted(cmp, kind, threshold, &x->options) };
}

static void put_defect(
	struct comparison *x, struct str feature, const char *what, double value, double limit)
{
	x->defects[x->n_defects++] = (struct policy_defect){
		.what = arena_printf(x->arena, "%s of %.*s", what, STR_ARG(feature)),
		.value = value,
		.limit = limit,
	};
}

static void find_defects(struct comparison *x, size_t i, const struct stats_compare *cmp)
{
	struct str name = x->c->ref->features[i].name;
	double missing = cmp->metric[STATS_METRIC_MISSING_RATE].value;
	double fresh = cmp->metric[STATS_METRIC_NEW_CATEGORY_RATE].value;

	if (cmp->status == STATS_TYPE_CHANGED)
		put_defect(x, name, "type", 1, 0);
	else if (cmp->status == STATS_ALL_MISSING && cmp->ref_missing_rate < 1)
		put_defect(x, name, "missing_rate", 1, cmp->ref_missing_rate + MISSING_DEFECT);
	else if (stats_drifted(cmp, STATS_METRIC_MISSING_RATE, MISSING_DEFECT, &x->options) &&
		 missing > cmp->ref_missing_rate)
		put_defect(
			x, name, "missing_rate", missing, cmp->ref_missing_rate + MISSING_DEFECT);
	if (fresh > FRESH_DEFECT)
		put_defect(x, name, "new_category_rate", fresh, FRESH_DEFECT);
}

static void take_feature(struct comparison *x, size_t i)
{
	const struct feature *f = &x->c->ref->features[i];
	const struct tests_spec *tests = &x->args->spec->tests;
	bool numeric = f->type == FEATURE_NUMERIC;
	enum stats_metric_kind judged = kind_of(numeric ? tests->numeric : tests->categorical);
	static const enum stats_metric_kind of_numbers[] = { STATS_METRIC_PSI, STATS_METRIC_KS,
		STATS_METRIC_WASSERSTEIN, STATS_METRIC_JS, STATS_METRIC_MISSING_RATE,
		STATS_METRIC_OUT_OF_RANGE_RATE };
	static const enum stats_metric_kind of_categories[] = { STATS_METRIC_PSI, STATS_METRIC_JS,
		STATS_METRIC_MISSING_RATE, STATS_METRIC_NEW_CATEGORY_RATE };
	const enum stats_metric_kind *kinds = numeric ? of_numbers : of_categories;
	size_t n =
		numeric ? sizeof of_numbers / sizeof *kinds : sizeof of_categories / sizeof *kinds;
	struct stats_compare cmp;
	struct str why;

	compare_feature(x, i, &cmp);
	for (size_t k = 0; k < n; k++)
		put_metric(x, i, &cmp, kinds[k], kinds[k] == judged ? tests->alert : (double)NAN);
	if (monitor_muted(x->args->mutes, f->name, x->args->start, &why, x->arena))
		return;
	find_defects(x, i, &cmp);
	x->features[x->n_features++] = (struct policy_feature){ .name = f->name,
		.tested = (cmp.status == STATS_OK || cmp.status == STATS_CONSTANT) &&
			  !isnan(cmp.metric[judged].value),
		.value = cmp.metric[judged].value,
		.threshold = tests->alert,
		.critical = cmp.metric[judged].critical,
		.seasonal = (double)NAN,
		.seasonal_critical = (double)NAN,
		.weight = monitor_weight(x->args->spec, f->name) };
}

/* ---- the window as a whole ---- */

static double score_of(const struct judge_counts *c, enum stats_score s)
{
	return stats_score_of_regression(s) ? stats_regression_score(&c->regression, s)
					    : stats_classes_score(&c->classes, s);
}

static uint64_t left_out_of(const struct judge_counts *c, enum stats_score s)
{
	return stats_score_of_regression(s) ? c->regression.skipped : c->classes.skipped;
}

static void put_whole(struct comparison *x, const char *metric, double value, double threshold)
{
	x->metrics[x->n_metrics++] = (struct judge_metric){ .feature = STR(""),
		.metric = str_c(metric),
		.status = STR("ok"),
		.value = value,
		.critical = (double)NAN,
		.p = (double)NAN,
		.threshold = threshold };
}

static void take_whole(struct comparison *x, struct judgement *ret)
{
	const struct monitor_spec *spec = x->args->spec;
	enum stats_score score = monitor_score(spec);
	double limit = (double)NAN;

	put_whole(x, "row_count", (double)x->c->rows, (double)NAN);
	put_whole(x, "label_count", (double)x->c->labelled, (double)NAN);
	if (!spec->has_performance || x->c->labelled == 0)
		return;
	ret->left_out = left_out_of(x->c, score);
	if (ret->left_out > 0)
		put_whole(x, "left_out_count", (double)ret->left_out, (double)NAN);
	ret->performance = score_of(x->c, score);
	if (x->args->has_level && spec->policy.has_performance)
		limit = stats_score_lower(score)
				? x->args->level * spec->policy.performance.max_ratio
				: x->args->level / spec->policy.performance.max_ratio;
	put_whole(x, stats_score_name(score), ret->performance, limit);
	if (ret->left_out > 0)
		x->metrics[x->n_metrics - 1].status =
			str_c(ret->left_out < x->c->labelled ? "partial" : "no_data");
	ret->window.has_performance = x->args->has_level && isfinite(ret->performance);
	ret->window.performance = ret->performance;
	ret->window.champion = x->args->level;
}

static const char *severity_of(const struct policy_rules *r, const struct policy_decision *d)
{
	bool hot = false, alert = false, tested = false, thin = false;

	for (int i = 0; i < POLICY_CAUSES; i++) {
		const struct policy_outcome *o = &d->cause[i];
		if (!r->cause[i].used)
			continue;
		hot |= o->verdict == POLICY_HOT;
		alert |= o->verdict == POLICY_HOT && (o->after == POLICY_ALERTED || o->fired);
		tested |= i != POLICY_DATA_QUALITY && o->verdict >= POLICY_CALM;
		thin |= o->verdict == POLICY_INSUFFICIENT;
	}
	if (alert)
		return d->action == POLICY_WARN ? "warn" : "alert";
	if (hot)
		return "warn";
	return thin && !tested ? "insufficient" : "ok";
}

static double share_of(const struct policy_decision *d)
{
	const struct policy_outcome *o = &d->cause[POLICY_DRIFT];

	return o->verdict >= POLICY_CALM ? o->score : (double)NAN;
}

void judge_window(const struct judge_counts *c, const struct judge_args *args,
	const struct policy_state *state, struct arena *a, struct judgement *ret)
{
	size_t n = c->ref->n;
	struct comparison x = {
		.c = c, .args = args, .arena = a, .options = STATS_OPTIONS_DEFAULT
	};
	struct policy_rules rules = monitor_rules(args->spec);

	x.options.min_cur = (uint64_t)args->spec->min_samples;
	x.options.alpha = args->spec->tests.alpha;
	x.options.tests = (uint32_t)n;
	x.metrics =
		arena_array_of(a, struct judge_metric, METRICS_PER_FEATURE * n + METRICS_OF_WINDOW);
	x.features = arena_array_of(a, struct policy_feature, n + 1);
	x.defects = arena_array_of(a, struct policy_defect, 2 * n + 1);
	*ret = (struct judgement){ .performance = (double)NAN, .before = *state, .after = *state };
	for (size_t i = 0; i < n; i++)
		take_feature(&x, i);
	take_whole(&x, ret);
	ret->metrics = x.metrics;
	ret->n_metrics = x.n_metrics;
	ret->window.start = args->start;
	ret->window.end = args->end;
	ret->window.rows = c->rows;
	ret->window.labelled = c->labelled - ret->left_out;
	ret->window.features = x.features;
	ret->window.n_features = x.n_features;
	ret->window.defects = x.defects;
	ret->window.n_defects = x.n_defects;
	policy_apply(&rules, &ret->after, &ret->window, &ret->decision);
	ret->severity = severity_of(&rules, &ret->decision);
	ret->drift_share = share_of(&ret->decision);
}
