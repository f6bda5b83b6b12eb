#include "server/core/gate.h"

#include "lib/base/num.h"
#include "lib/stats/bootstrap.h"

#include <math.h>

/*
 * Items in order: rows, requirements, comparison, slices, approval. When rows are missing or not
 * finite the rest is still computed where it can be, so that one look shows all.
 */
static const char *const kind_names[GATE_KINDS] = { "rows", "require", "better", "test", "slice",
	"approval" };
static const char *const verdict_names[GATE_VERDICTS] = { "pass", "fail", "skipped" };
static const char *const outcome_names[GATE_OUTCOMES] = { "promoted", "refused", "needs_approval" };

const char *gate_kind_name(enum gate_kind k)
{
	return k < GATE_KINDS ? kind_names[k] : "unknown";
}

const char *gate_verdict_name(enum gate_verdict v)
{
	return v < GATE_VERDICTS ? verdict_names[v] : "unknown";
}

const char *gate_outcome_name(enum gate_outcome o)
{
	return o < GATE_OUTCOMES ? outcome_names[o] : "unknown";
}

bool gate_amount_parse(struct str s, struct gate_amount *ret)
{
	bool relative = str_ends(s, STR("%"));
	double v;

	if (!num_parse_double(str_slice(s, 0, relative ? s.n - 1 : s.n), &v) || !(v >= 0))
		return false;
	*ret = (struct gate_amount){ relative ? v / 100 : v, relative };
	return true;
}

size_t gate_work_size(size_t rows, uint32_t draws)
{
	return sizeof(struct stats_classes) + (2 * rows + 2 * (size_t)draws) * sizeof(double);
}

struct gate {
	const struct gate_rules *g;
	const struct gate_rows *rows;
	struct gate_result *r;
	struct stats_classes *classes; /* scratch */
	double *loss[2], *draws;
	bool champion_fails; /* a requirement */
};

enum side { CHAMPION, CHALLENGER };

/* The rows of one slice, or all. */
struct slice {
	const struct gate_column *column;
	uint32_t code;
};
static const struct slice all_rows = { NULL, 0 };

static bool row_in(const struct slice *s, size_t i)
{
	return s->column == NULL || s->column->code[i] == s->code;
}

struct measured {
	double value;
	uint64_t n, skipped;
};

static struct measured measure(
	struct gate *t, enum side side, enum stats_score metric, const struct slice *s)
{
	const struct gate_rows *w = t->rows;
	const double *said = side == CHAMPION ? w->champion : w->challenger;
	const double *score = side == CHAMPION ? w->champion_score : w->challenger_score;
	struct stats_regression sums = { 0 };

	if (stats_score_of_regression(metric)) {
		for (size_t i = 0; i < w->n; i++)
			if (row_in(s, i))
				stats_regression_add(&sums, w->truth[i], said[i]);
		return (struct measured){ stats_regression_score(&sums, metric), sums.n,
			sums.skipped };
	}
	memset(t->classes, 0, sizeof(*t->classes));
	for (size_t i = 0; i < w->n; i++)
		if (row_in(s, i))
			stats_classes_add(t->classes, w->truth[i], said[i],
				score != NULL ? score[i] : (double)NAN);
	return (struct measured){ stats_classes_score(t->classes, metric), t->classes->n,
		t->classes->skipped };
}

/* How much better the challenger is, in the direction of the metric. */
static double improvement(enum stats_score metric, double champion, double challenger)
{
	return stats_score_lower(metric) ? champion - challenger : challenger - champion;
}

static double amount_of(struct gate_amount a, double champion)
{
	return a.relative ? a.value * fabs(champion) : a.value;
}

static struct gate_item *add_item(struct gate *t, enum gate_kind kind, enum gate_verdict verdict)
{
	struct gate_item *item = &t->r->item[t->r->n_items++];

	BUG_ON(t->r->n_items > GATE_ITEMS_MAX);
	*item = (struct gate_item){ .kind = kind,
		.verdict = verdict,
		.value = (double)NAN,
		.limit = (double)NAN,
		.low = (double)NAN,
		.high = (double)NAN };
	(void)str_print(item->name, sizeof(item->name), "%s", gate_kind_name(kind));
	return item;
}

#define SAY(item, ...) ((void)str_print((item)->sentence, sizeof((item)->sentence), __VA_ARGS__))

/* ---- items -------------------------------------------------------------------------------- */
static void item_rows(struct gate *t, uint64_t usable, uint64_t skipped)
{
	uint64_t need = t->g->min_rows > 0 ? t->g->min_rows : 1;
	bool pass = usable >= need && skipped == 0 && t->rows->unpaired == 0;
	struct gate_item *item = add_item(t, GATE_ROWS, pass ? GATE_PASS : GATE_FAIL);

	item->value = (double)usable;
	item->limit = (double)need;
	item->rows = usable;
	if (t->rows->unpaired > 0)
		SAY(item, "%llu %s scored by only one of the two models.",
			(unsigned long long)t->rows->unpaired,
			t->rows->unpaired == 1 ? "row was" : "rows were");
	else if (skipped > 0)
		SAY(item, "In %llu of %zu row%s the truth or a prediction is not a number.",
			(unsigned long long)skipped, t->rows->n, num_plural(t->rows->n));
	else
		SAY(item, "%llu held-out row%s; at least %llu %s needed.",
			(unsigned long long)usable, num_plural(usable), (unsigned long long)need,
			need == 1 ? "is" : "are");
}

static bool holds(const struct gate_requirement *q, double v)
{
	return !isnan(v) && !(v < q->min) && !(v > q->max);
}

static void item_require(struct gate *t, const struct gate_requirement *q)
{
	struct measured m = measure(t, CHALLENGER, q->metric, &all_rows);
	bool pass = holds(q, m.value), upper = isnan(q->min);
	struct gate_item *item = add_item(t, GATE_REQUIRE, pass ? GATE_PASS : GATE_FAIL);
	const char *name = stats_score_name(q->metric);

	if (t->rows->champion != NULL &&
		!holds(q, measure(t, CHAMPION, q->metric, &all_rows).value))
		t->champion_fails = true;
	item->value = m.value;
	item->rows = m.n;
	/* Of two bounds the one that is broken, or else the upper one. */
	upper = upper || (!isnan(q->max) && !(m.value < q->min));
	item->limit = upper ? q->max : q->min;
	(void)str_print(item->name, sizeof(item->name), "%s %s", name, upper ? "max" : "min");
	if (isnan(m.value))
		SAY(item, "The %s cannot be computed from these rows.", name);
	else
		SAY(item, "The %s is %.4g; at %s %.4g is required.", name, m.value,
			upper ? "most" : "least", item->limit);
}

static void item_better(struct gate *t)
{
	double champion = t->r->champion, challenger = t->r->challenger;
	double gain = improvement(t->g->metric, champion, challenger);
	bool better = gain > 0;
	struct gate_item *item =
		add_item(t, GATE_BETTER, better || t->champion_fails ? GATE_PASS : GATE_FAIL);
	const char *name = stats_score_name(t->g->metric);

	item->value = challenger;
	item->limit = champion;
	item->rows = t->r->rows;
	if (isnan(gain)) {
		item->verdict = GATE_FAIL;
		SAY(item, "The %s cannot be computed from these rows.", name);
	} else if (better || !t->champion_fails) {
		SAY(item, "The challenger's %s is %.4g, the champion's %.4g on the same rows%s.",
			name, challenger, champion,
			better ? "" : ": not better, so the champion stays");
	} else {
		SAY(item,
			"The challenger's %s is %.4g, the champion's %.4g, which itself breaks a "
			"requirement.",
			name, challenger, champion);
	}
}

/* Loss of one row whose mean, or its root, is the metric; accuracy as the rate of errors. */
static double loss_of(enum stats_score metric, double truth, double said, double score)
{
	double miss = said - truth, held = fmin(fmax(score, 1e-15), 1 - 1e-15);
	bool positive = fabs(truth - 1) < 0.5;

	switch (metric) {
	case STATS_MAE: return fabs(miss);
	case STATS_MSE:
	case STATS_RMSE: return miss * miss;
	case STATS_ACCURACY: return fabs(miss) > 0 ? 1 : 0;
	case STATS_BRIER: return (score - positive) * (score - positive);
	case STATS_LOG_LOSS: return isnan(score) ? score : -(positive ? log(held) : log1p(-held));
	case STATS_R2:
	case STATS_PRECISION:
	case STATS_RECALL:
	case STATS_F1:
	case STATS_AUC:
	case STATS_SCORE_COUNT: break;
	}
	return (double)NAN;
}

static bool can_test(enum stats_score metric)
{
	return metric == STATS_MAE || metric == STATS_MSE || metric == STATS_RMSE ||
	       metric == STATS_ACCURACY || metric == STATS_BRIER || metric == STATS_LOG_LOSS;
}

static size_t fill_losses(struct gate *t)
{
	const struct gate_rows *w = t->rows;
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		double a = loss_of(t->g->metric, w->truth[i], w->champion[i],
			w->champion_score != NULL ? w->champion_score[i] : (double)NAN);
		double b = loss_of(t->g->metric, w->truth[i], w->challenger[i],
			w->challenger_score != NULL ? w->challenger_score[i] : (double)NAN);

		if (!isfinite(a) || !isfinite(b))
			continue;
		t->loss[0][n] = a;
		t->loss[1][n++] = b;
	}
	return n;
}

static int item_test(struct gate *t, struct err *e)
{
	struct stats_bootstrap_args a = { t->loss[0], t->loss[1], fill_losses(t),
		t->g->metric == STATS_RMSE, t->g->draws, 1 - t->g->alpha, t->g->seed, t->draws };
	double margin = amount_of(t->g->margin, t->r->champion);
	struct stats_bootstrap b;
	struct gate_item *item;

	if (a.n == 0) {
		item = add_item(t, GATE_TESTED, GATE_FAIL);
		SAY(item, "There are no rows to compare the two models on.");
		return 0;
	}
	if (stats_bootstrap(&a, &b, e) != 0) {
		err_field_prefix(e, "test");
		return -1;
	}
	item = add_item(t, GATE_TESTED, b.low > -margin ? GATE_PASS : GATE_FAIL);
	item->value = b.improvement;
	item->limit = -margin;
	item->low = b.low;
	item->high = b.high;
	item->rows = a.n;
	SAY(item,
		"The improvement is %.4g, with %.4g %% confidence between %.4g and %.4g (%u paired "
		"draws "
		"of %zu row%s); its lower end must be above %.4g.",
		b.improvement, 100 * a.confidence, b.low, b.high, a.draws, a.n, num_plural(a.n),
		-margin);
	return 0;
}

struct slice_counts {
	size_t unlisted, failed; /* beyond the room for items; of those that fail */
};

static void item_slice(struct gate *t, const struct slice *s, struct slice_counts *count)
{
	struct measured a = measure(t, CHAMPION, t->g->metric, s);
	struct measured b = measure(t, CHALLENGER, t->g->metric, s);
	double limit = amount_of(t->g->slice_regression, a.value);
	double worse = -improvement(t->g->metric, a.value, b.value);
	enum gate_verdict verdict = worse <= limit ? GATE_PASS : GATE_FAIL;
	struct str value = s->column->values[s->code];
	const char *metric = stats_score_name(t->g->metric);
	struct gate_item *item;

	if (b.n < t->g->slice_min_rows || b.n == 0 || isnan(worse))
		verdict = GATE_SKIPPED;
	/* One place is kept for the approval, one for what is not listed. */
	if (t->r->n_items >= GATE_ITEMS_MAX - 2) {
		count->unlisted++;
		count->failed += verdict == GATE_FAIL;
		return;
	}
	item = add_item(t, GATE_SLICE, verdict);
	item->value = worse;
	item->limit = limit;
	item->rows = b.n;
	(void)str_print(item->name, sizeof(item->name), "%.*s=%.*s",
		s->column->name.n < 40 ? (int)s->column->name.n : 40, s->column->name.p,
		value.n < 40 ? (int)value.n : 40, value.p);
	if (verdict == GATE_SKIPPED)
		SAY(item, "%s has %llu row%s, too few to judge.", item->name,
			(unsigned long long)b.n, num_plural(b.n));
	else if (worse > 0)
		SAY(item,
			"Where %s (%llu row%s), %s went from %.4g to %.4g: worse by %.4g, at most "
			"%.4g is "
			"allowed.",
			item->name, (unsigned long long)b.n, num_plural(b.n), metric, a.value,
			b.value, worse, limit);
	else
		SAY(item, "Where %s (%llu row%s), %s went from %.4g to %.4g: not worse.",
			item->name, (unsigned long long)b.n, num_plural(b.n), metric, a.value,
			b.value);
}

static void item_slices(struct gate *t)
{
	struct slice_counts count = { 0, 0 };

	for (size_t c = 0; c < t->rows->n_columns; c++)
		for (uint32_t v = 0; v < t->rows->columns[c].n_values; v++)
			item_slice(t, &(struct slice){ &t->rows->columns[c], v }, &count);
	if (count.unlisted > 0) {
		struct gate_item *item =
			add_item(t, GATE_SLICE, count.failed > 0 ? GATE_FAIL : GATE_PASS);

		item->value = (double)count.failed;
		item->limit = 0;
		SAY(item, "%zu more slice%s not listed; %zu of them too much worse.",
			count.unlisted, count.unlisted == 1 ? " is" : "s are", count.failed);
	}
}

static void item_approval(struct gate *t)
{
	struct gate_item *item = add_item(t, GATE_APPROVAL, GATE_SKIPPED);

	item->value = 0;
	item->limit = t->g->approvals;
	SAY(item, "%u %s must agree.", t->g->approvals, t->g->approvals == 1 ? "person" : "people");
}

static void item_without_champion(struct gate *t)
{
	struct gate_item *item = add_item(t, GATE_BETTER, GATE_SKIPPED);

	item->value = t->r->challenger;
	item->rows = t->r->rows;
	SAY(item, "There is no champion to compare with.");
}

/* ---- the verdict ---------------------------------------------------------------------------- */

/* The sentence of every check that failed, as far as there is room; how many more there are. */
static void refuse(struct gate_result *r, size_t failed, size_t all)
{
	enum { ROOM_FOR_MORE = 32 };
	size_t said = 0, n;

	(void)str_print(r->reason, sizeof(r->reason), "Refused by %zu of %zu check%s:", failed, all,
		num_plural(all));
	for (size_t i = 0; i < r->n_items; i++) {
		n = strlen(r->reason);
		if (r->item[i].verdict != GATE_FAIL)
			continue;
		if (n + strlen(r->item[i].sentence) + ROOM_FOR_MORE > sizeof(r->reason))
			break;
		(void)str_print(r->reason + n, sizeof(r->reason) - n, " %s", r->item[i].sentence);
		said++;
	}
	n = strlen(r->reason);
	if (said < failed)
		(void)str_print(
			r->reason + n, sizeof(r->reason) - n, " And %zu more.", failed - said);
}

/* "All 3 checks passed: mae 4.1 against the champion's 4.3 on 91 rows." */
static void accept(struct gate *t, size_t passed)
{
	struct gate_result *r = t->r;
	bool compared = r->has_champion && t->g->compare;
	char against[64];

	(void)str_print(against, sizeof(against), " against the champion's %.4g", r->champion);
	(void)str_print(r->reason, sizeof(r->reason),
		"%s%zu check%s passed: %s %.4g%s on %llu row%s%s%s.", passed == 1 ? "The " : "All ",
		passed, num_plural(passed), stats_score_name(t->g->metric), r->challenger,
		compared ? against : "", (unsigned long long)r->rows, num_plural(r->rows),
		compared          ? ""
		: r->has_champion ? ", without a comparison"
				  : ", and there is no champion yet",
		t->g->approvals > 0 ? "; it waits for approval" : "");
}

static void conclude(struct gate *t)
{
	struct gate_result *r = t->r;
	size_t failed = 0, passed = 0;

	for (size_t i = 0; i < r->n_items; i++) {
		failed += r->item[i].verdict == GATE_FAIL;
		passed += r->item[i].verdict == GATE_PASS;
	}
	r->outcome = failed > 0            ? GATE_REFUSED
		     : t->g->approvals > 0 ? GATE_NEEDS_APPROVAL
					   : GATE_PROMOTED;
	if (failed > 0)
		refuse(r, failed, failed + passed);
	else
		accept(t, passed);
}

static int check(const struct gate_rules *g, const struct gate_rows *rows, struct err *e)
{
	if (rows->champion != NULL && g->compare && g->test && !can_test(g->metric))
		return err_field(e, "/metric", "a paired bootstrap cannot test %s",
			stats_score_name(g->metric));
	if (g->n_require > GATE_REQUIREMENTS_MAX)
		return err_field(e, "/require", "at most %d requirements are allowed",
			GATE_REQUIREMENTS_MAX);
	if (rows->n_columns > GATE_COLUMNS_MAX)
		return err_field(
			e, "/slices/by", "at most %d slice columns are allowed", GATE_COLUMNS_MAX);
	for (size_t c = 0; c < rows->n_columns; c++)
		if (rows->columns[c].n_values > GATE_SLICES_MAX) {
			char pointer[32];

			(void)str_print(pointer, sizeof(pointer), "/slices/by/%zu", c);
			return err_field(e, pointer,
				"the column %.*s has %zu values; a slice column may have %d",
				STR_ARG(rows->columns[c].name), rows->columns[c].n_values,
				GATE_SLICES_MAX);
		}
	return 0;
}

int gate_apply(const struct gate_rules *g, const struct gate_rows *rows, void *work,
	struct gate_result *ret, struct err *e)
{
	struct gate t = { .g = g, .rows = rows, .r = ret, .classes = work };
	struct measured challenger, champion = { (double)NAN, 0, 0 };

	if (check(g, rows, e) != 0)
		return -1;
	t.loss[0] = (double *)(t.classes + 1);
	t.loss[1] = t.loss[0] + rows->n;
	t.draws = t.loss[1] + rows->n;
	memset(ret, 0, sizeof(*ret));
	ret->has_champion = rows->champion != NULL;
	challenger = measure(&t, CHALLENGER, g->metric, &all_rows);
	if (ret->has_champion)
		champion = measure(&t, CHAMPION, g->metric, &all_rows);
	ret->challenger = challenger.value;
	ret->champion = champion.value;
	ret->rows = challenger.n;
	item_rows(&t, challenger.n,
		challenger.skipped > champion.skipped ? challenger.skipped : champion.skipped);
	for (size_t i = 0; i < g->n_require; i++)
		item_require(&t, &g->require[i]);
	if (!ret->has_champion && g->compare)
		item_without_champion(&t);
	if (ret->has_champion && g->compare) {
		item_better(&t);
		if (g->test && item_test(&t, e) != 0)
			return -1;
		item_slices(&t);
	}
	if (g->approvals > 0)
		item_approval(&t);
	conclude(&t);
	return 0;
}
