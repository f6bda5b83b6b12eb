#include "server/sched/records.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/json/json_read.h"

#include <math.h>

struct records {
	enum records_format format;
	const struct records_column *columns;
	size_t n;
	records_cb *fn;
	void *arg;
	struct str *cells;
	struct map *wanted; /* name -> index + 1 */
	struct csv csv;
	size_t *place; /* CSV: wanted index + 1 of each cell, 0: none */
	size_t header_n;
	bool has_header;
	struct buf line; /* NDJSON: the line so far */
	struct buf text; /* NDJSON: numbers as text */
	uint64_t lines;
};

bool records_format_of(struct str media_type, enum records_format *ret)
{
	static const struct {
		const char *type;
		enum records_format format;
	} types[] = { { "text/csv", RECORDS_CSV }, { "application/csv", RECORDS_CSV },
		{ "application/x-ndjson", RECORDS_NDJSON },
		{ "application/ndjson", RECORDS_NDJSON }, { "application/jsonl", RECORDS_NDJSON } };

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (str_eq_nocase(media_type, str_c(types[i].type))) {
			*ret = types[i].format;
			return true;
		}
	return false;
}

struct records *records_new(enum records_format format, const struct records_column *columns,
	size_t n, records_cb *fn, void *arg)
{
	struct records *r = mem_new_of(struct records);

	*r = (struct records){ .format = format, .columns = columns, .n = n, .fn = fn, .arg = arg };
	r->cells = mem_new(n + 1, sizeof *r->cells);
	r->wanted = map_new();
	for (size_t i = 0; i < n; i++)
		if (columns[i].name.n != 0)
			(void)map_put(r->wanted, columns[i].name, &r->cells[i]);
	csv_init(&r->csv);
	buf_init(&r->line, CSV_ROW_MAX);
	buf_init(&r->text, CSV_ROW_MAX);
	return r;
}

void records_free(struct records *r)
{
	if (r == NULL)
		return;
	csv_done(&r->csv);
	buf_done(&r->line);
	buf_done(&r->text);
	map_free(r->wanted);
	mem_free(r->cells);
	mem_free(r->place);
	mem_free(r);
}

static int shown(struct str s)
{
	return s.n < 64 ? (int)s.n : 64;
}

int records_bad(struct err *e, uint64_t line, struct str column, const char *must, struct str cell)
{
	return csv_fault_in(e, line, column, "line %llu, column %.*s: must be %s, not \"%.*s\"",
		(unsigned long long)line, shown(column), column.p, must, shown(cell),
		cell.p != NULL ? cell.p : "");
}

static bool names_nan(struct str s)
{
	return str_eq_nocase(s, STR("nan"));
}

bool records_number(struct str cell, double *ret)
{
	bool negative = cell.n > 1 && *cell.p == '-';
	struct str digits =
		negative || (cell.n > 1 && *cell.p == '+') ? str_slice(cell, 1, cell.n) : cell;
	double v;

	if (cell.n == 0 || names_nan(cell)) {
		*ret = (double)NAN;
		return true;
	}
	if (str_eq_nocase(digits, STR("inf")) || str_eq_nocase(digits, STR("infinity"))) {
		*ret = negative ? -HUGE_VAL : HUGE_VAL;
		return true;
	}
	while (digits.n > 1 && *digits.p == '0' && digits.p[1] >= '0' && digits.p[1] <= '9')
		digits = str_slice(digits, 1, digits.n);
	if (digits.n == 0 || *digits.p == '-' || !num_parse_double(digits, &v))
		return false;
	*ret = negative ? -v : v;
	return true;
}

/* ---- CSV ---- */

static int take_header(struct records *r, const struct csv_row *row, struct err *e)
{
	r->place = mem_new(row->n, sizeof *r->place);
	r->header_n = row->n;
	r->has_header = true;
	for (size_t i = 0; i < row->n; i++) {
		const struct str *cell = map_get(r->wanted, row->cells[i]);
		if (cell == NULL)
			continue;
		r->place[i] = (size_t)(cell - r->cells) + 1;
		for (size_t k = 0; k < i; k++)
			if (r->place[k] == r->place[i])
				return csv_fault_in(e, row->line, row->cells[i],
					"line %llu: the header has the column %.*s twice",
					(unsigned long long)row->line, shown(row->cells[i]),
					row->cells[i].p);
	}
	for (size_t i = 0; i < r->n; i++) {
		bool found = !r->columns[i].required;
		for (size_t k = 0; k < row->n; k++)
			found |= r->place[k] == i + 1;
		if (!found)
			return csv_fault_in(e, row->line, r->columns[i].name,
				"line %llu: the header lacks the column %.*s",
				(unsigned long long)row->line, shown(r->columns[i].name),
				r->columns[i].name.p);
	}
	return 0;
}

static int on_csv_row(void *arg, const struct csv_row *row, struct err *e)
{
	struct records *r = arg;

	if (!r->has_header)
		return take_header(r, row, e);
	if (row->n != r->header_n)
		return csv_fault(e, row->line, "line %llu has %zu cell%s, the header has %zu",
			(unsigned long long)row->line, row->n, num_plural(row->n), r->header_n);
	for (size_t i = 0; i < r->n; i++)
		r->cells[i] = STR_NONE;
	for (size_t i = 0; i < row->n; i++)
		if (r->place[i] != 0 && row->cells[i].n != 0)
			r->cells[r->place[i] - 1] = row->cells[i];
	return r->fn(r->arg, r->cells, row->line, e);
}

/* ---- NDJSON ---- */

static int cell_of(struct records *r, const struct jsn *v, size_t i, struct err *e)
{
	char number[NUM_DOUBLE_MAX];
	size_t from = r->text.n;

	switch (jsn_type(v)) {
	case JSN_NULL: r->cells[i] = STR_NONE; return 0;
	case JSN_STR: r->cells[i] = jsn_get_str(v).n != 0 ? jsn_get_str(v) : STR_NONE; return 0;
	case JSN_BOOL: r->cells[i] = jsn_get_bool(v, false) ? STR("true") : STR("false"); return 0;
	case JSN_INT: buf_addf(&r->text, "%lld", (long long)jsn_get_int(v, 0)); break;
	case JSN_REAL:
		buf_adds(&r->text, num_format_double(number, jsn_get_real(v, (double)NAN)));
		break;
	case JSN_LIST:
	case JSN_OBJ:
		return csv_fault_in(e, r->lines, r->columns[i].name,
			"line %llu, column %.*s: must be a number, a string, a boolean or null",
			(unsigned long long)r->lines, shown(r->columns[i].name),
			r->columns[i].name.p);
	}
	r->cells[i] = (struct str){ r->text.p + from, r->text.n - from };
	return 0;
}

/* All numbers of a line lie in r->text, which must not move: NUM_DOUBLE_MAX bytes for each. */
static int take_object(struct records *r, const struct jsn *root, struct err *e)
{
	buf_clear(&r->text);
	if (buf_room(&r->text, (r->n + 1) * NUM_DOUBLE_MAX) == NULL)
		return csv_fault(e, r->lines, "too many columns");
	for (size_t i = 0; i < r->n; i++)
		r->cells[i] = STR_NONE;
	for (size_t k = 0; k < jsn_count(root); k++) {
		const struct jsn *v = jsn_at(root, k);
		const struct str *cell = map_get(r->wanted, jsn_name(v));
		if (cell != NULL && cell_of(r, v, (size_t)(cell - r->cells), e) < 0)
			return -1;
	}
	for (size_t i = 0; i < r->n; i++)
		if (r->columns[i].required && r->cells[i].p == NULL)
			return csv_fault_in(e, r->lines, r->columns[i].name,
				"line %llu: the column %.*s is missing",
				(unsigned long long)r->lines, shown(r->columns[i].name),
				r->columns[i].name.p);
	return r->fn(r->arg, r->cells, r->lines, e);
}

static int take_line(struct records *r, struct str line, struct err *e)
{
	struct jsn_doc *doc;
	struct err bad;

	r->lines++;
	while (line.n > 0 && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
		line.n--;
	if (line.n == 0)
		return 0;
	if (jsn_parse(line, &doc, &bad) < 0)
		return csv_fault(
			e, r->lines, "line %llu: %.200s", (unsigned long long)r->lines, bad.msg);
	int rc = jsn_type(jsn_root(doc)) != JSN_OBJ
			 ? csv_fault(e, r->lines, "line %llu: must be a JSON object",
				   (unsigned long long)r->lines)
			 : take_object(r, jsn_root(doc), e);
	jsn_doc_free(doc);
	return rc;
}

static int add_lines(struct records *r, struct str bytes, struct err *e)
{
	while (bytes.n > 0) {
		ptrdiff_t at = str_find_char(bytes, '\n');
		size_t n = at < 0 ? bytes.n : (size_t)at;
		buf_add(&r->line, str_slice(bytes, 0, n));
		if (buf_failed(&r->line))
			return csv_fault(e, r->lines + 1, "line %llu is longer than %d bytes",
				(unsigned long long)r->lines + 1, CSV_ROW_MAX);
		if (at < 0)
			return 0;
		if (take_line(r, buf_str(&r->line), e) < 0)
			return -1;
		buf_clear(&r->line);
		bytes = str_slice(bytes, n + 1, bytes.n);
	}
	return 0;
}

int records_add(struct records *r, struct str bytes, struct err *e)
{
	return r->format == RECORDS_CSV ? csv_add(&r->csv, bytes, on_csv_row, r, e)
					: add_lines(r, bytes, e);
}

int records_end(struct records *r, struct err *e)
{
	if (r->format == RECORDS_NDJSON)
		return r->line.n == 0 ? 0 : take_line(r, buf_str(&r->line), e);
	if (csv_end(&r->csv, on_csv_row, r, e) < 0)
		return -1;
	return r->has_header ? 0 : csv_fault(e, 1, "line 1: there is no header row");
}
