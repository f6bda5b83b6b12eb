#include "server/sched/gate_read.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json_write.h"
#include "server/sched/table_scan.h"

#include <math.h>

enum { COLUMN_ROW, COLUMN_MODEL, COLUMN_TRUE, COLUMN_PRED, COLUMN_SCORE, COLUMNS };
enum { SIDE_CHALLENGER, SIDE_CHAMPION, SIDES };
enum { JSON_MAX = 1 << 20, ROW_ID_MAX = 255, SLICE_VALUE_MAX = 128 };

struct pair {
	double truth, predicted[SIDES], score[SIDES]; /* NaN: not there */
	bool has[SIDES];
};

struct slice {
	struct str values[GATE_SLICES_MAX];
	size_t n;
	uint32_t *code;
};

struct reading {
	const struct gate_source *s;
	struct arena *arena;
	struct records_column columns[COLUMNS + GATE_COLUMNS_MAX];
	size_t n_slices;
	struct slice *slices;
	struct map *places; /* row id -> index + 1 as a pointer */
	struct pair *pairs;
	size_t n, room;
	bool any[SIDES];
};

/* ---- rows ---- */

static int side_of(struct str cell)
{
	if (str_is(cell, "challenger"))
		return SIDE_CHALLENGER;
	return str_is(cell, "champion") ? SIDE_CHAMPION : -1;
}

static void grow(struct reading *r)
{
	r->room = r->room == 0 ? 1024 : 2 * r->room;
	r->pairs = mem_resize(r->pairs, r->room, sizeof *r->pairs);
	for (size_t k = 0; k < r->n_slices; k++)
		r->slices[k].code = mem_resize(r->slices[k].code, r->room, sizeof(uint32_t));
}

static int find_pair(struct reading *r, struct str id, uint64_t line, size_t *ret, struct err *e)
{
	uintptr_t place = (uintptr_t)map_get(r->places, id);

	if (place == 0) {
		if (r->n == GATE_ROWS_MAX)
			return err_set(e, ERR_INVALID, "line %llu: more than %d rows to compare",
				(unsigned long long)line, GATE_ROWS_MAX);
		if (r->n == r->room)
			grow(r);
		r->pairs[r->n] = (struct pair){ .truth = (double)NAN };
		place = ++r->n;
		(void)map_put(r->places, id, (void *)place);
	}
	*ret = place - 1;
	return 0;
}

static int slice_code(
	struct reading *r, size_t k, struct str cell, uint64_t line, uint32_t *ret, struct err *e)
{
	struct slice *s = &r->slices[k];
	struct str value = cell.p != NULL ? cell : STR("");

	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->values[i], value)) {
			*ret = (uint32_t)i;
			return 0;
		}
	if (s->n == GATE_SLICES_MAX || value.n > SLICE_VALUE_MAX)
		return records_bad(e, line, r->columns[COLUMNS + k].name,
			"one of at most 64 different values of at most 128 bytes", value);
	s->values[s->n] = arena_str(r->arena, value);
	*ret = (uint32_t)s->n++;
	return 0;
}

static int take_numbers(
	const struct str *cells, uint64_t line, struct pair *ret, int side, struct err *e)
{
	double truth;

	if (!records_number(cells[COLUMN_TRUE], &truth) || !isfinite(truth))
		return records_bad(e, line, STR("y_true"), "a finite number", cells[COLUMN_TRUE]);
	if (!records_number(cells[COLUMN_PRED], &ret->predicted[side]) ||
		!isfinite(ret->predicted[side]))
		return records_bad(e, line, STR("y_pred"), "a finite number", cells[COLUMN_PRED]);
	if (!records_number(cells[COLUMN_SCORE], &ret->score[side]) || ret->score[side] < 0 ||
		ret->score[side] > 1)
		return records_bad(
			e, line, STR("y_score"), "a chance from 0 to 1", cells[COLUMN_SCORE]);
	if (!isnan(ret->truth) && (ret->truth < truth || ret->truth > truth))
		return err_set(e, ERR_INVALID,
			"line %llu: the row %.*s has another y_true here than before",
			(unsigned long long)line, STR_ARG(cells[COLUMN_ROW]));
	ret->truth = truth;
	return 0;
}

static int on_row(void *arg, const struct str *cells, uint64_t line, struct err *e)
{
	struct reading *r = arg;
	int side = side_of(cells[COLUMN_MODEL]);
	size_t at;

	if (side < 0)
		return records_bad(
			e, line, STR("model"), "challenger or champion", cells[COLUMN_MODEL]);
	if (cells[COLUMN_ROW].n == 0 || cells[COLUMN_ROW].n > ROW_ID_MAX)
		return records_bad(e, line, STR("row_id"), "1 to 255 bytes", cells[COLUMN_ROW]);
	if (find_pair(r, cells[COLUMN_ROW], line, &at, e) < 0)
		return -1;
	if (r->pairs[at].has[side])
		return err_set(e, ERR_INVALID, "line %llu: the %.*s has scored the row %.*s twice",
			(unsigned long long)line, STR_ARG(cells[COLUMN_MODEL]),
			STR_ARG(cells[COLUMN_ROW]));
	if (take_numbers(cells, line, &r->pairs[at], side, e) < 0)
		return -1;
	r->pairs[at].has[side] = true;
	r->any[side] = true;
	for (size_t k = 0; k < r->n_slices; k++)
		if (slice_code(r, k, cells[COLUMNS + k], line, &r->slices[k].code[at], e) < 0)
			return -1;
	return 0;
}

static int read_rows(struct reading *r, struct err *e)
{
	const struct list *by = &r->s->spec->slices.by;

	r->n_slices = r->s->spec->has_slices ? by->n : 0;
	if (r->n_slices > GATE_COLUMNS_MAX)
		return err_set(
			e, ERR_INVALID, "a gate has at most %d slice columns", GATE_COLUMNS_MAX);
	r->columns[COLUMN_ROW] = (struct records_column){ STR("row_id"), true };
	r->columns[COLUMN_MODEL] = (struct records_column){ STR("model"), true };
	r->columns[COLUMN_TRUE] = (struct records_column){ STR("y_true"), true };
	r->columns[COLUMN_PRED] = (struct records_column){ STR("y_pred"), true };
	r->columns[COLUMN_SCORE] = (struct records_column){ STR("y_score"), false };
	r->slices = arena_array_of(r->arena, struct slice, r->n_slices + 1);
	for (size_t k = 0; k < r->n_slices; k++)
		r->columns[COLUMNS + k] =
			(struct records_column){ *list_at(by, struct str, k), true };
	r->places = map_new();
	struct records *records =
		records_new(table_format(r->s->path), r->columns, COLUMNS + r->n_slices, on_row, r);
	int rc = table_scan(r->s->blobs, &r->s->blob, r->s->path, records, e);
	records_free(records);
	map_free(r->places);
	if (rc == 0 && !r->any[SIDE_CHALLENGER])
		rc = err_set(e, ERR_INVALID, "there are no rows of the challenger");
	return rc;
}

/* ---- rules ---- */

static int read_amount(struct str json, struct gate_amount *ret, const char *pointer, struct err *e)
{
	struct str text = json;

	if (text.n >= 2 && *text.p == '"')
		text = str_slice(text, 1, text.n - 2);
	if (gate_amount_parse(text, ret))
		return 0;
	return err_field(e, pointer, "must be a number or a share like 2%%");
}

static int read_rules(const struct gate_source *s, struct gate_rules *ret, struct err *e)
{
	const struct gate_spec *g = s->spec;

	*ret = (struct gate_rules){ .compare = g->against.n != 0,
		.test = g->test.draws > 0,
		.draws = (uint32_t)g->test.draws,
		.seed = s->seed,
		.alpha = g->test.alpha,
		.min_rows = (uint64_t)g->test.min_rows,
		.slice_min_rows = (uint64_t)g->slices.min_rows,
		.approvals = (uint32_t)g->approve.people,
		.n_require = g->require.n };
	BUG_ON(!stats_score_parse(str_c(gate_metric_names[g->metric]), &ret->metric));
	if (g->require.n > GATE_REQUIREMENTS_MAX)
		return err_field(e, "/require", "more than %d", GATE_REQUIREMENTS_MAX);
	for (size_t i = 0; i < g->require.n; i++) {
		const struct requirement *q = list_at(&g->require, struct requirement, i);
		if (!stats_score_parse(q->metric, &ret->require[i].metric))
			return err_field(
				e, "/require", "there is no metric %.*s", STR_ARG(q->metric));
		ret->require[i].min = q->has_min ? q->min : (double)NAN;
		ret->require[i].max = q->has_max ? q->max : (double)NAN;
	}
	if (read_amount(g->test.margin, &ret->margin, "/test/margin", e) < 0)
		return -1;
	return g->has_slices ? read_amount(g->slices.max_regression, &ret->slice_regression,
				       "/slices/max_regression", e)
			     : 0;
}

/* ---- the verdict ---- */

struct arrays {
	double *truth, *predicted[SIDES], *score[SIDES];
	uint32_t *code[GATE_COLUMNS_MAX];
	size_t n;
	uint64_t unpaired;
	bool scored[SIDES];
};

static void arrays_done(struct arrays *x)
{
	mem_free(x->truth);
	for (int side = 0; side < SIDES; side++) {
		mem_free(x->predicted[side]);
		mem_free(x->score[side]);
	}
	for (size_t k = 0; k < GATE_COLUMNS_MAX; k++)
		mem_free(x->code[k]);
}

/* The rows that both have scored, or, without a champion, those of the challenger. */
static void fill_arrays(const struct reading *r, bool champion, struct arrays *x)
{
	x->truth = mem_new(r->n + 1, sizeof(double));
	for (int side = 0; side < SIDES; side++) {
		x->predicted[side] = mem_new(r->n + 1, sizeof(double));
		x->score[side] = mem_new(r->n + 1, sizeof(double));
		x->scored[side] = true;
	}
	for (size_t k = 0; k < r->n_slices; k++)
		x->code[k] = mem_new(r->n + 1, sizeof(uint32_t));
	for (size_t i = 0; i < r->n; i++) {
		const struct pair *p = &r->pairs[i];
		bool paired = p->has[SIDE_CHALLENGER] && (!champion || p->has[SIDE_CHAMPION]);
		x->unpaired += !paired && (champion || p->has[SIDE_CHALLENGER]);
		if (!paired)
			continue;
		x->truth[x->n] = p->truth;
		for (int side = 0; side < SIDES; side++) {
			x->predicted[side][x->n] = p->predicted[side];
			x->score[side][x->n] = p->score[side];
			x->scored[side] &= !isnan(p->score[side]);
		}
		for (size_t k = 0; k < r->n_slices; k++)
			x->code[k][x->n] = r->slices[k].code[i];
		x->n++;
	}
}

static void measure_levels(
	const struct gate_spec *spec, const struct arrays *x, struct gate_verdict_made *ret)
{
	struct stats_regression regression = { 0 };
	struct stats_classes *classes = mem_new_of(struct stats_classes);

	for (size_t i = 0; i < x->n; i++) {
		stats_regression_add(&regression, x->truth[i], x->predicted[SIDE_CHALLENGER][i]);
		stats_classes_add(
			classes, x->truth[i], x->predicted[SIDE_CHALLENGER][i], (double)NAN);
	}
	ret->levels[GATE_MAE] = stats_regression_score(&regression, STATS_MAE);
	ret->levels[GATE_RMSE] = stats_regression_score(&regression, STATS_RMSE);
	ret->levels[GATE_ACCURACY] = spec->metric == GATE_ACCURACY
					     ? stats_classes_score(classes, STATS_ACCURACY)
					     : (double)NAN;
	mem_free(classes);
}

static int apply(const struct reading *r, struct gate_verdict_made *ret, struct err *e)
{
	struct gate_column columns[GATE_COLUMNS_MAX];
	struct gate_rules rules;
	struct arrays x = { 0 };
	bool champion = r->s->has_champion && r->any[SIDE_CHAMPION];

	if (read_rules(r->s, &rules, e) < 0)
		return -1;
	fill_arrays(r, champion, &x);
	for (size_t k = 0; k < r->n_slices; k++)
		columns[k] = (struct gate_column){ r->columns[COLUMNS + k].name,
			r->slices[k].values, r->slices[k].n, x.code[k] };
	const struct gate_rows rows = { .n = x.n,
		.truth = x.truth,
		.challenger = x.predicted[SIDE_CHALLENGER],
		.champion = champion ? x.predicted[SIDE_CHAMPION] : NULL,
		.challenger_score = x.scored[SIDE_CHALLENGER] ? x.score[SIDE_CHALLENGER] : NULL,
		.champion_score =
			champion && x.scored[SIDE_CHAMPION] ? x.score[SIDE_CHAMPION] : NULL,
		.unpaired = x.unpaired,
		.columns = columns,
		.n_columns = r->n_slices };
	void *work = mem_new(1, gate_work_size(x.n, rules.draws));
	int rc = gate_apply(&rules, &rows, work, &ret->result, e);
	mem_free(work);
	measure_levels(r->s->spec, &x, ret);
	arrays_done(&x);
	return rc;
}

int gate_read(
	const struct gate_source *s, struct arena *a, struct gate_verdict_made *ret, struct err *e)
{
	struct reading *r = mem_new_of(struct reading);
	int rc;

	r->s = s;
	r->arena = a;
	rc = read_rows(r, e);
	if (rc == 0)
		rc = apply(r, ret, e);
	ret->champion_rows = r->any[SIDE_CHAMPION];
	mem_free(r->pairs);
	for (size_t k = 0; k < r->n_slices && r->slices != NULL; k++)
		mem_free(r->slices[k].code);
	mem_free(r);
	return rc;
}

/* ---- for the model version ---- */

static void real_or_null(struct jsn_out *w, const char *key, double v)
{
	jsn_key(w, key);
	if (isfinite(v))
		jsn_real(w, v);
	else
		jsn_null(w);
}

static void put_item(struct jsn_out *w, const struct gate_item *i)
{
	jsn_obj_begin(w);
	jsn_key(w, "kind");
	jsn_text(w, gate_kind_name(i->kind));
	jsn_key(w, "name");
	jsn_text(w, i->name);
	jsn_key(w, "verdict");
	jsn_text(w, gate_verdict_name(i->verdict));
	real_or_null(w, "value", i->value);
	real_or_null(w, "limit", i->limit);
	if (i->kind == GATE_TESTED) {
		real_or_null(w, "low", i->low);
		real_or_null(w, "high", i->high);
	}
	jsn_key(w, "rows");
	jsn_int(w, (int64_t)i->rows);
	jsn_key(w, "sentence");
	jsn_text(w, i->sentence);
	jsn_obj_end(w);
}

struct str gate_json(const struct gate_spec *spec, const struct gate_verdict_made *g,
	struct str against, struct arena *a)
{
	struct buf b;

	buf_init(&b, JSON_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "metric");
	jsn_text(&w, gate_metric_names[spec->metric]);
	jsn_key(&w, "rows");
	jsn_int(&w, (int64_t)g->result.rows);
	jsn_key(&w, "against");
	jsn_str(&w, against);
	jsn_key(&w, "promote");
	jsn_str(&w, spec->promote);
	real_or_null(&w, "champion", g->result.champion);
	real_or_null(&w, "challenger", g->result.challenger);
	jsn_key(&w, "levels");
	jsn_obj_begin(&w);
	for (int m = 0; m < GATE_METRIC_COUNT; m++)
		if (isfinite(g->levels[m])) {
			jsn_key(&w, gate_metric_names[m]);
			jsn_real(&w, g->levels[m]);
		}
	jsn_obj_end(&w);
	jsn_key(&w, "items");
	jsn_list_begin(&w);
	for (size_t i = 0; i < g->result.n_items; i++)
		put_item(&w, &g->result.item[i]);
	jsn_list_end(&w);
	jsn_obj_end(&w);
	return buf_keep(&b, a);
}
