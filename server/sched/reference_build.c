/*
 * One pass over the files: each wanted column keeps its numbers and counts its different texts
 * until there are too many for categories. At the end the facts decide its type, and numbers or
 * texts become its profile.
 */
#include "server/sched/reference_build.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/stats/type.h"
#include "lib/zip/gunzip.h"
#include "server/sched/records.h"

#include <math.h>

enum { CELLS_MAX = 1 << 27, UNPACKED_MAX_GB = 64 }; /* 1 GiB of numbers */

struct column {
	struct str name;
	double *numbers; /* of the cells that are there; NaN where a cell is no number */
	size_t n, room;
	uint64_t nulls, texts, fractions, booleans, times;
	double length; /* code points of all texts */
	struct map *distinct; /* text -> count as a pointer; NULL: too many */
};

struct build {
	const struct reference_source *s;
	struct arena *arena;
	struct column *columns; /* of the first file's header, wanted ones only */
	size_t n;
	size_t *place; /* column + 1 of each cell of the current file */
	size_t header_n, date_place; /* date_place: cell + 1 */
	bool has_header, has_columns;
	int64_t from, to; /* exclusive */
	uint64_t rows, cells;
	struct csv csv;
	struct str path;
	bool check; /* whatever its features are: only the rows are read */
	const char *blame; /* what of the training data's description is wrong */
};

/* ---- rows ---- */

static int in_file(const struct build *b, struct err *e)
{
	struct err inner = *e;

	(void)err_set(e, inner.code, "training data %.*s: %.200s",
		(int)(b->path.n < 80 ? b->path.n : 80), b->path.p, inner.msg);
	return -1;
}

static void note_text(struct column *c, struct str cell)
{
	char room[NUM_DOUBLE_MAX];
	struct str text = category_text(cell, room);

	if (c->distinct == NULL)
		return;
	uintptr_t count = (uintptr_t)map_get(c->distinct, text);
	if (count == 0 && map_count(c->distinct) == STATS_DISTINCT_MAX) {
		map_free(c->distinct);
		c->distinct = NULL;
		return;
	}
	(void)map_put(c->distinct, text, (void *)(count + 1));
}

static void note_cell(struct column *c, struct str cell)
{
	double v = (double)NAN;
	int64_t time;

	if (cell.n == 0) {
		c->nulls++;
		return;
	}
	if (c->n == c->room) {
		c->room = c->room == 0 ? 1024 : 2 * c->room;
		c->numbers = mem_resize(c->numbers, c->room, sizeof *c->numbers);
	}
	if (!records_number(cell, &v)) {
		c->texts++;
		c->booleans +=
			str_eq_nocase(cell, STR("true")) || str_eq_nocase(cell, STR("false"));
		c->times += clock_parse(cell, &time);
	} else {
		c->fractions += isnan(v) || v != floor(v);
	}
	c->length += (double)str_utf8_count(cell);
	c->numbers[c->n++] = v;
	note_text(c, cell);
}

static int keep_row(struct build *b, const struct csv_row *row, bool *ret_keep, struct err *e)
{
	int64_t at;

	*ret_keep = true;
	if (b->date_place == 0)
		return 0;
	struct str cell = row->cells[b->date_place - 1];
	if (!clock_parse(cell, &at)) {
		b->blame = "/column";
		return records_bad(e, row->line, b->s->column, "a date", cell);
	}
	*ret_keep = at >= b->from && at < b->to;
	return 0;
}

static int take_header(struct build *b, const struct csv_row *row, struct err *e);

static int on_row(void *arg, const struct csv_row *row, struct err *e)
{
	struct build *b = arg;
	bool keep;

	if (!b->has_header)
		return take_header(b, row, e);
	if (row->n != b->header_n)
		return err_set(e, ERR_INVALID, "line %llu has %zu cell%s, the header has %zu",
			(unsigned long long)row->line, row->n, num_plural(row->n), b->header_n);
	if (keep_row(b, row, &keep, e) < 0 || !keep)
		return keep ? -1 : 0;
	b->rows++;
	b->cells += b->n;
	if (b->cells > CELLS_MAX)
		return err_set(e, ERR_TOO_LARGE, "a reference holds %d cells at most", CELLS_MAX);
	for (size_t i = 0; i < row->n; i++)
		if (b->place[i] != 0)
			note_cell(&b->columns[b->place[i] - 1], row->cells[i]);
	return 0;
}

static int take_columns(struct build *b, const struct csv_row *row, struct err *e)
{
	b->columns = mem_new(row->n + 1, sizeof *b->columns);
	b->has_columns = true;
	for (size_t i = 0; i < row->n && !b->check; i++) {
		if (!feature_wanted(b->s->spec, row->cells[i]) ||
			str_eq(row->cells[i], b->s->column))
			continue;
		if (b->n == FEATURES_LIMIT)
			return err_set(e, ERR_INVALID, "more than %d columns are features",
				FEATURES_LIMIT);
		b->columns[b->n++] = (struct column){ .name = arena_str(b->arena, row->cells[i]),
			.distinct = map_new() };
	}
	return 0;
}

static int take_header(struct build *b, const struct csv_row *row, struct err *e)
{
	size_t found = 0;

	if (!b->has_columns && take_columns(b, row, e) < 0)
		return -1;
	mem_free(b->place);
	b->place = mem_new(row->n, sizeof *b->place);
	b->header_n = row->n;
	b->has_header = true;
	b->date_place = 0;
	for (size_t i = 0; i < row->n; i++) {
		if (b->s->column.n != 0 && str_eq(row->cells[i], b->s->column))
			b->date_place = i + 1;
		for (size_t k = 0; k < b->n; k++)
			if (str_eq(b->columns[k].name, row->cells[i])) {
				b->place[i] = k + 1;
				found++;
			}
	}
	if (b->s->column.n != 0 && b->date_place == 0) {
		b->blame = "/column";
		return err_set(e, ERR_INVALID, "there is no column %.*s",
			(int)(b->s->column.n < 64 ? b->s->column.n : 64), b->s->column.p);
	}
	return found == b->n
		       ? 0
		       : err_set(e, ERR_INVALID, "its columns are not those of the first file");
}

/* ---- files ---- */

static int on_piece(void *arg, struct str piece, struct err *e)
{
	struct build *b = arg;

	return csv_add(&b->csv, piece, on_row, b, e);
}

struct unpack {
	struct gunzip *zip;
	struct build *build;
};

static int on_packed(void *arg, struct str piece, struct err *e)
{
	struct unpack *u = arg;

	return gunzip_add(u->zip, piece, on_piece, u->build, e);
}

static int read_file(struct build *b, const struct training_file *f, struct err *e)
{
	struct unpack u = { .build = b };
	int rc;

	b->has_header = false;
	b->path = f->path;
	csv_init(&b->csv);
	if (str_ends(f->path, STR(".gz"))) {
		u.zip = gunzip_new((uint64_t)UNPACKED_MAX_GB << 30);
		rc = blob_scan(b->s->blobs, &f->blob, on_packed, &u, e);
		if (rc == 0)
			rc = gunzip_end(u.zip, e);
		gunzip_free(u.zip);
	} else {
		rc = blob_scan(b->s->blobs, &f->blob, on_piece, b, e);
	}
	if (rc == 0)
		rc = csv_end(&b->csv, on_row, b, e);
	csv_done(&b->csv);
	return rc < 0 ? in_file(b, e) : 0;
}

static bool is_table(struct str path)
{
	return str_ends(path, STR(".csv")) || str_ends(path, STR(".csv.gz"));
}

static int read_all(struct build *b, struct err *e)
{
	for (size_t i = 0; i < b->s->n_files; i++)
		if (is_table(b->s->files[i].path) && read_file(b, &b->s->files[i], e) < 0)
			return -1;
	if (!b->has_columns)
		return err_set(e, ERR_INVALID, "the training data has no .csv or .csv.gz file");
	if (b->rows == 0) {
		b->blame = "/from";
		return err_set(e, ERR_INVALID,
			"no row of the training data lies between %.*s and %.*s",
			STR_ARG(b->s->from), STR_ARG(b->s->to));
	}
	if (b->n == 0 && !b->check)
		return err_set(e, ERR_INVALID, "no column of the training data is a feature");
	return 0;
}

/* ---- profiles ---- */

static enum stats_physical physical_of(const struct column *c)
{
	if (c->texts == 0)
		return c->fractions == 0 ? STATS_IS_INTEGER : STATS_IS_REAL;
	if (c->booleans == c->n)
		return STATS_IS_BOOL;
	return c->times == c->n ? STATS_IS_TIME : STATS_IS_STRING;
}

/* The type of a column; STATS_TEXT and STATS_TIME are not watched. */
static int choose(
	const struct build *b, const struct column *c, enum stats_type *ret, struct err *e)
{
	struct stats_facts f = { .physical = physical_of(c),
		.rows = c->n,
		.distinct = c->distinct != NULL ? map_count(c->distinct) : STATS_DISTINCT_MAX + 1,
		.mean_length = c->n > 0 ? c->length / (double)c->n : 0 };
	int said = feature_type_said(b->s->spec, c->name);
	int name = (int)(c->name.n < 64 ? c->name.n : 64);

	*ret = c->n == 0 ? STATS_NUMERIC : stats_type_choose(&f, STATS_FEW_INTEGERS);
	if (said == FEATURE_NUMERIC && c->texts > 0)
		return err_field(e, "/spec/features/types",
			"the column %.*s has text in the training data: it cannot be numeric", name,
			c->name.p);
	if (said >= 0)
		*ret = said == FEATURE_NUMERIC ? STATS_NUMERIC : STATS_CATEGORY;
	if (*ret == STATS_CATEGORY && c->distinct == NULL) {
		if (said >= 0)
			return err_field(e, "/spec/features/types",
				"the column %.*s has more than %d different values: too many for "
				"categories",
				name, c->name.p, STATS_DISTINCT_MAX);
		*ret = STATS_TEXT;
	}
	return 0;
}

static int build_numeric(struct build *b, const struct column *c, struct feature *f, struct err *e)
{
	struct stats_profile *p = arena_new_of(b->arena, struct stats_profile);
	double none = 0;
	struct stats_profile_args args = { .values = c->n > 0 ? c->numbers : &none,
		.n = c->n,
		.nulls = c->nulls,
		.work = mem_new(2 * c->n + 2, sizeof(double)) };
	int rc = stats_profile_build(&args, p, e);

	mem_free(args.work);
	f->type = FEATURE_NUMERIC;
	f->profile = p;
	return rc;
}

static int build_category(struct build *b, const struct column *c, struct feature *f, struct err *e)
{
	struct stats_categories *ret = arena_new_of(b->arena, struct stats_categories);
	size_t n = map_count(c->distinct), at = 0, i = 0;
	struct stats_category_in *in = mem_new(n + 1, sizeof *in);
	struct stats_categories_args args = { .in = in, .n = n, .nulls = c->nulls };
	void *count;

	while (map_next(c->distinct, &at, &in[i].name, &count))
		in[i++].count = (uintptr_t)count;
	args.seen_room = n > STATS_TOP ? n - STATS_TOP : 0;
	args.seen = args.seen_room > 0 ? arena_array_of(b->arena, uint64_t, args.seen_room) : NULL;
	int rc = stats_categories_build(&args, ret, e);
	mem_free(in);
	f->type = FEATURE_CATEGORY;
	f->categories = ret;
	return rc;
}

static int build_features(struct build *b, struct reference *ret, struct err *e)
{
	struct feature *features = arena_array_of(b->arena, struct feature, b->n);
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct column *c = &b->columns[i];
		enum stats_type type;
		if (choose(b, c, &type, e) < 0)
			return -1;
		if (type != STATS_NUMERIC && type != STATS_CATEGORY)
			continue;
		features[n].name = c->name;
		if ((type == STATS_NUMERIC ? build_numeric(b, c, &features[n], e)
					   : build_category(b, c, &features[n], e)) < 0)
			return -1;
		n++;
	}
	*ret = (struct reference){ .features = features, .n = n, .rows = b->rows };
	return 0;
}

static int read_days(struct build *b, struct err *e)
{
	b->from = INT64_MIN;
	b->to = INT64_MAX;
	if (b->s->column.n == 0)
		return 0;
	if ((b->s->from.n != 0 && !clock_parse(b->s->from, &b->from)) ||
		(b->s->to.n != 0 && !clock_parse(b->s->to, &b->to)))
		return err_set(e, ERR_INVALID, "the training data's from or to is not a date");
	if (b->s->to.n != 0)
		b->to += CLOCK_DAY;
	return 0;
}

static void build_done(struct build *b)
{
	for (size_t i = 0; i < b->n; i++) {
		mem_free(b->columns[i].numbers);
		map_free(b->columns[i].distinct);
	}
	mem_free(b->columns);
	mem_free(b->place);
}

int reference_check(const struct reference_source *s, struct arena *a, struct err *e)
{
	struct build b = { .s = s, .arena = a, .check = true, .blame = "/dataset" };
	int rc = read_days(&b, e);

	if (rc < 0)
		b.blame = "/from";
	else
		rc = read_all(&b, e);
	build_done(&b);
	if (rc < 0 && e->code == ERR_INVALID)
		(void)str_print(e->field, sizeof e->field, "%s", b.blame);
	return rc;
}

int reference_build(
	const struct reference_source *s, struct arena *a, struct reference *ret, struct err *e)
{
	struct build b = { .s = s, .arena = a };
	int rc = read_days(&b, e);

	if (rc == 0)
		rc = read_all(&b, e);
	if (rc == 0)
		rc = build_features(&b, ret, e);
	build_done(&b);
	return rc;
}
