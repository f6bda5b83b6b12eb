#include "cli/view.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { CELL_MAX = 1 << 20, GAP = 2, ROWS_PER_FLUSH = 200, COLUMNS_MAX = 24 };

int view_print(struct str bytes, struct err *e)
{
	if (bytes.n != 0 && fwrite(bytes.p, 1, bytes.n, stdout) != bytes.n)
		return err_errno(e, "write", "stdout");
	return 0;
}

int view_flush(struct err *e)
{
	return fflush(stdout) == 0 ? 0 : err_errno(e, "write", "stdout");
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* Control characters would break the table, or do worse on a terminal. */
static void add_plain(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char ch = (unsigned char)s.p[i];
		bool c1 = ch == 0xc2 && i + 1 < s.n && ((unsigned char)s.p[i + 1] & 0xe0) == 0x80;
		if (c1)
			i++;
		buf_addc(out, c1 || ch < ' ' || ch == 0x7f ? ' ' : s.p[i]);
	}
}

static void add_json(struct buf *out, const struct jsn *v)
{
	struct buf text;

	buf_init(&text, CELL_MAX);
	jsn_write(v, &text);
	add_plain(out, buf_str(&text));
	buf_done(&text);
}

static void add_real(const struct cli *c, struct buf *out, const struct jsn *v)
{
	char text[NUM_DOUBLE_MAX];
	double r = jsn_get_real(v, 0);

	if (!c->tty || !isfinite(r))
		buf_adds(out, num_format_double(text, r));
	else
		buf_addf(out, "%.4g", r);
}

static void add_scalar(const struct cli *c, struct buf *out, const struct jsn *v)
{
	switch (jsn_type(v)) {
	case JSN_NULL: break;
	case JSN_BOOL: buf_adds(out, jsn_get_bool(v, false) ? "yes" : "no"); break;
	case JSN_INT: buf_addf(out, "%lld", (long long)jsn_get_int(v, 0)); break;
	case JSN_REAL: add_real(c, out, v); break;
	case JSN_STR: add_plain(out, jsn_get_str(v)); break;
	case JSN_LIST:
		for (size_t i = 0; i < jsn_count(v); i++) {
			if (i > 0)
				buf_addc(out, ',');
			enum jsn_type t = jsn_type(jsn_at(v, i));
			if (t == JSN_OBJ || t == JSN_LIST)
				add_json(out, jsn_at(v, i));
			else
				add_scalar(c, out, jsn_at(v, i));
		}
		break;
	case JSN_OBJ: add_json(out, v); break;
	}
}

static void add_pairs(const struct cli *c, struct buf *out, const struct jsn *v)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		if (i > 0)
			buf_addc(out, ',');
		add_plain(out, jsn_name(jsn_at(v, i)));
		buf_addc(out, '=');
		add_scalar(c, out, jsn_at(v, i));
	}
}

static void add_size(const struct cli *c, struct buf *out, const struct jsn *v)
{
	char text[NUM_SIZE_MAX];
	int64_t n = jsn_get_int(v, 0);

	if (c->tty && n >= 0)
		buf_adds(out, num_format_size(text, (uint64_t)n));
	else
		buf_addf(out, "%lld", (long long)n);
}

/* What stands before the time of day. */
static struct str date_of(struct str time)
{
	struct str date = STR_NONE;

	(void)str_next(&time, 'T', &date);
	return date;
}

void view_cell(const struct cli *c, enum column_kind kind, const struct jsn *v, struct buf *out)
{
	struct str s = jsn_get_str(v);

	if (jsn_type(v) == JSN_NULL)
		return;
	switch (kind) {
	case COLUMN_TIME: /* without the fraction */
		add_plain(out, s.n > 19 && c->tty ? str_slice(s, 0, 19) : s);
		break;
	case COLUMN_DATE: add_plain(out, date_of(s)); break;
	case COLUMN_SIZE: add_size(c, out, v); break;
	case COLUMN_PAIRS: add_pairs(c, out, v); break;
	case COLUMN_REAL:
		if (s.p == NULL)
			add_real(c, out, v);
		else
			add_plain(out, s);
		break;
	case COLUMN_TEXT:
	case COLUMN_STATE: add_scalar(c, out, v); break;
	}
}

static const char *state_color(struct str s)
{
	static const struct {
		const char *state, *color;
	} rows[] = { { "succeeded", "\033[32m" }, { "promoted", "\033[32m" }, { "ok", "\033[32m" },
		{ "active", "\033[32m" }, { "running", "\033[36m" }, { "failed", "\033[31m" },
		{ "lost", "\033[31m" }, { "alert", "\033[31m" }, { "refused", "\033[31m" },
		{ "warn", "\033[33m" }, { "cancelled", "\033[33m" }, { "draining", "\033[33m" },
		{ "queued", "\033[2m" }, { "waiting", "\033[2m" }, { "skipped", "\033[2m" } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (str_is(s, rows[i].state))
			return rows[i].color;
	}
	return NULL;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Cells of a table lie one after the other in `cells`; they are laid out a few hundred rows at a
 * time, so that a long list comes without waiting for its end. */
struct view_list {
	struct cli *c;
	const struct column *columns[COLUMNS_MAX];
	size_t n_columns, n_cells, n_items;
	struct buf text; /* of all cells */
	size_t ends[ROWS_PER_FLUSH * COLUMNS_MAX];
	const struct view *view;
	bool headed;
};

struct view_list *view_list_new(struct cli *c, const struct view *v)
{
	struct view_list *l = mem_new_of(struct view_list);

	l->c = c;
	l->view = v;
	buf_init(&l->text, 256 << 20);
	for (const struct column *k = v->columns; k->title != NULL; k++) {
		if (k->show_only)
			continue;
		BUG_ON(l->n_columns == COLUMNS_MAX);
		l->columns[l->n_columns++] = k;
	}
	return l;
}

static struct str cell_at(const struct view_list *l, size_t i)
{
	size_t from = i == 0 ? 0 : l->ends[i - 1];

	return str_slice(buf_str(&l->text), from, l->ends[i] - from);
}

static void put_cell(const struct view_list *l, size_t column, struct str cell, size_t width)
{
	const struct cli *c = l->c;
	bool last = column + 1 == l->n_columns;
	size_t have = str_utf8_count(cell);
	const char *color =
		c->color && l->columns[column]->kind == COLUMN_STATE ? state_color(cell) : NULL;

	(void)printf("%s%.*s%s", color != NULL ? color : "", STR_ARG(cell),
		color != NULL ? "\033[0m" : "");
	if (last)
		(void)putchar('\n');
	else if (!c->tty)
		(void)putchar('\t');
	else
		(void)printf("%*s", (int)(width - have) + GAP, "");
}

/* As many code points as fit; the last column alone is cut. */
static struct str cut(struct str s, size_t room)
{
	size_t n = 0, points = 0;

	while (n < s.n) {
		if (((unsigned char)s.p[n] & 0xc0) != 0x80 && points++ == room)
			break;
		n++;
	}
	return str_slice(s, 0, n);
}

static void put_head(const struct view_list *l, const size_t *widths)
{
	if (l->c->color)
		(void)fputs("\033[1m", stdout);
	for (size_t k = 0; k < l->n_columns; k++)
		put_cell(l, k, str_c(l->columns[k]->title), widths[k]);
	if (l->c->color)
		(void)fputs("\033[0m", stdout);
}

static void put_rows(struct view_list *l)
{
	size_t widths[COLUMNS_MAX], before = 0;

	for (size_t k = 0; k < l->n_columns; k++) {
		widths[k] = strlen(l->columns[k]->title);
		for (size_t i = k; i < l->n_cells; i += l->n_columns) {
			size_t n = str_utf8_count(cell_at(l, i));
			widths[k] = n > widths[k] ? n : widths[k];
		}
		before += k + 1 < l->n_columns ? widths[k] + GAP : 0;
	}
	if (!l->headed)
		put_head(l, widths);
	l->headed = true;
	size_t width = (size_t)l->c->width;
	size_t room = width > before + 20 ? width - before : 20;
	for (size_t i = 0; i < l->n_cells; i++) {
		size_t k = i % l->n_columns;
		struct str cell = cell_at(l, i);
		bool cuts = l->c->tty && k + 1 == l->n_columns;
		put_cell(l, k, cuts ? cut(cell, room) : cell, widths[k]);
	}
	l->n_cells = 0;
	buf_clear(&l->text);
}

static void put_text(const struct view_list *l, const struct jsn *v, bool as_json)
{
	struct buf text;

	buf_init(&text, 256 << 20);
	if (as_json)
		jsn_write(v, &text);
	else
		view_cell(l->c, COLUMN_TEXT, v, &text);
	(void)fwrite(text.p, 1, text.n, stdout);
	buf_done(&text);
}

void view_list_add(struct view_list *l, const struct jsn *item)
{
	switch (l->c->output) {
	case OUTPUT_JSON:
	case OUTPUT_JSONL:
		if (l->c->output == OUTPUT_JSON)
			(void)fputs(l->n_items > 0 ? "," : "{\"items\":[", stdout);
		put_text(l, item, true);
		if (l->c->output == OUTPUT_JSONL)
			(void)putchar('\n');
		break;
	case OUTPUT_NAME:
		put_text(l, jsn_find(item, l->view->name), false);
		(void)putchar('\n');
		break;
	case OUTPUT_TABLE:
		for (size_t k = 0; k < l->n_columns; k++) {
			view_cell(l->c, l->columns[k]->kind, jsn_find(item, l->columns[k]->pointer),
				&l->text);
			l->ends[l->n_cells++] = l->text.n;
		}
		if (l->n_cells == ROWS_PER_FLUSH * l->n_columns)
			put_rows(l);
		break;
	}
	l->n_items++;
}

int view_list_end(struct view_list *l, struct str more, struct err *e)
{
	struct cli *c = l->c;

	if (c->output == OUTPUT_JSON) {
		struct buf tail;
		buf_init(&tail, 4096);
		buf_adds(&tail, l->n_items > 0 ? "]" : "{\"items\":[]");
		if (more.n != 0) {
			buf_adds(&tail, ",\"next_cursor\":");
			jsn_put_str(&tail, more);
		}
		buf_adds(&tail, "}\n");
		(void)fwrite(tail.p, 1, tail.n, stdout);
		buf_done(&tail);
	}
	if (c->output == OUTPUT_TABLE && (l->n_cells > 0 || !l->headed))
		put_rows(l);
	if (more.n != 0 && c->output == OUTPUT_TABLE)
		cli_say(c, "There are more; --limit 0 shows all.");
	view_list_free(l);
	return view_flush(e);
}

void view_list_free(struct view_list *l)
{
	buf_done(&l->text);
	mem_free(l);
}

/* ---- one object ------------------------------------------------------------------------------ */

static void put_fields(const struct cli *c, const struct view *v, const struct jsn *object)
{
	size_t width = 0;
	struct buf text;

	for (const struct column *k = v->columns; k->title != NULL; k++)
		width = strlen(k->title) > width ? strlen(k->title) : width;
	buf_init(&text, 16 << 20);
	for (const struct column *k = v->columns; k->title != NULL; k++) {
		buf_clear(&text);
		view_cell(c, k->kind, jsn_find(object, k->pointer), &text);
		if (text.n == 0)
			continue;
		const char *color =
			c->color && k->kind == COLUMN_STATE ? state_color(buf_str(&text)) : NULL;
		if (c->tty)
			(void)printf("%-*s", (int)width + GAP, k->title);
		else
			(void)printf("%s\t", k->title);
		(void)printf("%s%.*s%s\n", color != NULL ? color : "", STR_ARG(buf_str(&text)),
			color != NULL ? "\033[0m" : "");
	}
	buf_done(&text);
}

int view_object(struct cli *c, const struct view *v, struct str text, const struct jsn *object,
	struct err *e)
{
	struct buf name;

	switch (c->output) {
	case OUTPUT_JSON:
	case OUTPUT_JSONL:
		if (view_print(text, e) < 0 || view_print(STR("\n"), e) < 0)
			return -1;
		break;
	case OUTPUT_NAME:
		buf_init(&name, CELL_MAX);
		view_cell(c, COLUMN_TEXT, jsn_find(object, v->name), &name);
		(void)printf("%.*s\n", STR_ARG(buf_str(&name)));
		buf_done(&name);
		break;
	case OUTPUT_TABLE: put_fields(c, v, object); break;
	}
	return view_flush(e);
}

/* ---- lines of a log -------------------------------------------------------------------------- */

/* The length of a colour sequence at the start of s (ESC [ digits ; m), or 0. */
static size_t color_length(struct str s)
{
	size_t i = 2;

	if (s.n < 3 || s.p[0] != '\033' || s.p[1] != '[')
		return 0;
	while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == ';' || s.p[i] == ':'))
		i++;
	return i < s.n && s.p[i] == 'm' ? i + 1 : 0;
}

void view_clean(struct str line, struct buf *out)
{
	bool colored = false;

	for (size_t i = 0; i < line.n;) {
		size_t n = color_length(str_slice(line, i, line.n));
		unsigned char ch = (unsigned char)line.p[i];
		bool c1 = ch == 0xc2 && i + 1 < line.n &&
			  ((unsigned char)line.p[i + 1] & 0xe0) == 0x80;
		if (n != 0) {
			buf_add(out, str_slice(line, i, n));
			colored = true;
		} else if (c1) {
			n = 2;
		} else {
			n = 1;
			if ((ch >= ' ' && ch != 0x7f) || ch == '\t')
				buf_addc(out, (char)ch);
		}
		i += n;
	}
	if (colored)
		buf_adds(out, "\033[0m");
}
