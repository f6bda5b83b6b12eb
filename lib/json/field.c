#include "lib/json/field.h"

#include "lib/base/mem.h"
#include "lib/json/node.h"

/*
 * Decoding walks the value tree by the table. Errors get their JSON pointer from the inside out:
 * the rule that breaks sets an empty pointer and each level that is left puts its name before it.
 */

enum { WORD_MAX = 64, KNOWN_MAX = 200 };

static void *at(const struct field *f, void *out)
{
	return (char *)out + f->off;
}

static void set_flag(size_t plus_one, void *out)
{
	if (plus_one != 0)
		*((bool *)out + (plus_one - 1)) = true;
}

const struct field *field_find(const struct field *t, struct str name)
{
	for (; t->name != NULL; t++)
		if (str_is(name, t->name))
			return t;
	return NULL;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned jsn_distance(struct str a, struct str b, unsigned max)
{
	unsigned rows[3][WORD_MAX + 1];
	size_t gap = a.n > b.n ? a.n - b.n : b.n - a.n;

	if (gap > max || a.n > WORD_MAX || b.n > WORD_MAX)
		return max + 1;
	for (unsigned j = 0; j <= b.n; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= a.n; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = i;
		for (unsigned j = 1; j <= b.n; j++) {
			unsigned same = a.p[i - 1] == b.p[j - 1] ? 0 : 1;
			row[j] = least(least(up[j], row[j - 1]) + 1, up[j - 1] + same);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				row[j] = least(row[j], up2[j - 2] + 1);
		}
	}
	return rows[a.n % 3][b.n];
}

const char *field_suggest(const struct field *t, struct str name)
{
	const char *near = NULL;
	unsigned best = 3;

	for (; t->name != NULL; t++) {
		unsigned d = jsn_distance(name, str_c(t->name), 2);
		if (d < best && d < strlen(t->name)) {
			best = d;
			near = t->name;
		}
	}
	return near;
}

/* The names that may be given, as many as there is room for. */
static void known(const struct field *t, char out[KNOWN_MAX])
{
	size_t n = 0;

	out[0] = '\0';
	for (; t->name != NULL; t++) {
		if ((t->flags & FIELD_READONLY) != 0)
			continue;
		size_t need = strlen(t->name) + (n == 0 ? 0 : 2);
		if (n + need + sizeof ", …" > KNOWN_MAX) {
			(void)str_print(out + n, KNOWN_MAX - n, ", …");
			return;
		}
		(void)str_print(out + n, KNOWN_MAX - n, "%s%s", n == 0 ? "" : ", ", t->name);
		n += need;
	}
}

static int unknown(struct field_reader *r, const struct field *t, struct str name)
{
	const char *near = field_suggest(t, name);
	const struct field *f = near != NULL ? field_find(t, str_c(near)) : NULL;

	if (f != NULL && (f->flags & FIELD_READONLY) == 0) {
		(void)err_field(r->e, "", "is not known here; did you mean '%s'?", near);
	} else {
		char list[KNOWN_MAX];
		known(t, list);
		(void)err_field(
			r->e, "", "is not known here%s%s", *list != '\0' ? "; known: " : "", list);
	}
	err_field_prefix(r->e, name.p);
	return -1;
}

static struct field item_row(const struct field *f)
{
	return (struct field){ .name = f->name,
		.type = f->item,
		.flags = f->flags & (FIELD_NAME | FIELD_TEXT | FIELD_NONFINITE),
		.min = f->item_min,
		.max = f->item_max,
		.rmin = f->rmin,
		.rmax = f->rmax,
		.names = f->names };
}

static int read_list(
	struct field_reader *r, const struct field *f, const struct jsn *v, struct list *out)
{
	struct field item = item_row(f);
	size_t size = f->sub != NULL ? f->size : field_scalar_size(f->item);

	if (v->type != JSN_LIST)
		return field_wrong_type(r, "a list", v);
	if (field_check_count(r, f, v->kids.n, "items") < 0)
		return -1;
	char *items = field_take(r, v->kids.n, size);
	if (items == NULL)
		return -1;
	for (size_t i = 0; i < v->kids.n; i++) {
		const struct jsn *kid = &v->kids.at[i];
		int rc;

		if (f->sub == NULL)
			rc = field_read_scalar(r, &item, kid, items + i * size);
		else if (kid->type != JSN_OBJ)
			rc = field_wrong_type(r, "an object", kid);
		else
			rc = field_read_object(r, f->sub, kid, items + i * size);
		if (rc < 0) {
			err_field_index(r->e, i);
			return -1;
		}
	}
	*out = (struct list){ items, v->kids.n };
	return 0;
}

static int read_key(struct field_reader *r, const struct field *f, struct str key, struct str *out)
{
	struct field row = { .type = FIELD_STR, .flags = f->flags & FIELD_NAME };
	struct jsn v = { .type = JSN_STR, .s = key };
	size_t max = f->key_max != 0 ? (size_t)f->key_max : FIELD_KEY_MAX;

	if (key.n == 0)
		return err_field(r->e, "", "must not have an empty name");
	if (key.n > max)
		return err_field(r->e, "", "must have a name of at most %zu bytes", max);
	row.max = (int64_t)max;
	return field_read_scalar(r, &row, &v, out);
}

static int read_map(
	struct field_reader *r, const struct field *f, const struct jsn *v, struct list *out)
{
	struct field value = { .type = FIELD_STR,
		.flags = f->flags & FIELD_TEXT,
		.min = f->item_min,
		.max = f->item_max };

	if (v->type != JSN_OBJ)
		return field_wrong_type(r, "an object", v);
	if (field_check_count(r, f, v->kids.n, "members") < 0)
		return -1;
	struct field_pair *pairs = field_take(r, v->kids.n, sizeof *pairs);
	if (pairs == NULL)
		return -1;
	for (size_t i = 0; i < v->kids.n; i++) {
		const struct jsn *kid = &v->kids.at[i];

		if (read_key(r, f, kid->key, &pairs[i].key) < 0 ||
			field_read_scalar(r, &value, kid, &pairs[i].value) < 0) {
			err_field_prefix(r->e, kid->key.p);
			return -1;
		}
	}
	*out = (struct list){ pairs, v->kids.n };
	return 0;
}

static int read_dict(
	struct field_reader *r, const struct field *f, const struct jsn *v, struct list *out)
{
	if (v->type != JSN_OBJ)
		return field_wrong_type(r, "an object", v);
	if (field_check_count(r, f, v->kids.n, "members") < 0)
		return -1;
	char *items = field_take(r, v->kids.n, f->size);
	if (items == NULL)
		return -1;
	for (size_t i = 0; i < v->kids.n; i++) {
		const struct jsn *kid = &v->kids.at[i];
		void *item = items + i * f->size;
		int rc = kid->type == JSN_OBJ ? field_read_object(r, f->sub, kid, item)
					      : field_wrong_type(r, "an object", kid);

		if (rc < 0 || read_key(r, f, kid->key, item) < 0) {
			err_field_prefix(r->e, kid->key.p);
			return -1;
		}
	}
	*out = (struct list){ items, v->kids.n };
	return 0;
}

static int read_value(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	switch (f->type) {
	case FIELD_OBJ:
		if (v->type != JSN_OBJ)
			return field_wrong_type(r, "an object", v);
		return field_read_object(r, f->sub, v, out);
	case FIELD_LIST: return read_list(r, f, v, out);
	case FIELD_MAP: return read_map(r, f, v, out);
	case FIELD_DICT: return read_dict(r, f, v, out);
	default: return field_read_scalar(r, f, v, out);
	}
}

/* Fallbacks are part of the program: one that breaks its own rule is a bug. */
static int read_fallback(struct field_reader *r, const struct field *f, void *out)
{
	if (f->type == FIELD_OBJ) {
		for (const struct field *sub = f->sub; sub->name != NULL; sub++)
			if (read_fallback(r, sub, at(f, out)) < 0)
				return -1;
		return 0;
	}
	if (f->fallback == NULL)
		return 0;
	if (f->type == FIELD_RAW)
		return field_copy(r, str_c(f->fallback), at(f, out));
	struct jsn v = field_text_value(f->type, str_c(f->fallback));
	int rc = field_read_scalar(r, f, &v, at(f, out));
	BUG_ON(rc < 0 && r->e->code != ERR_TOO_LARGE);
	return rc;
}

static int read_member(
	struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	if (r->mode == FIELD_STRICT && (f->flags & FIELD_READONLY) != 0)
		return err_field(r->e, "", "is set by the server and cannot be given");
	if (v->type == JSN_NULL && (f->flags & FIELD_NULLABLE) != 0) {
		set_flag(f->null, out);
		return 0;
	}
	if (v->type == JSN_NULL && f->type != FIELD_RAW)
		return err_field(r->e, "", "must not be null");
	if (read_value(r, f, v, at(f, out)) < 0)
		return -1;
	set_flag(f->has, out);
	return 0;
}

static int read_missing(struct field_reader *r, const struct field *f, void *out)
{
	bool refused = r->mode == FIELD_STRICT && (f->flags & FIELD_READONLY) != 0;

	if ((f->flags & FIELD_REQUIRED) == 0 || refused)
		return read_fallback(r, f, out);
	(void)err_field(r->e, "", "is required");
	err_field_prefix(r->e, f->name);
	return -1;
}

int field_read_object(struct field_reader *r, const struct field *t, const struct jsn *v, void *out)
{
	uint64_t seen[FIELD_ROWS_MAX / 64] = { 0 };

	for (size_t i = 0; i < v->kids.n; i++) {
		const struct jsn *kid = &v->kids.at[i];
		const struct field *f = field_find(t, kid->key);

		if (f == NULL && r->mode == FIELD_STRICT)
			return unknown(r, t, kid->key);
		if (f == NULL || (r->mode == FIELD_LAX && kid->type == JSN_NULL))
			continue;
		size_t row = (size_t)(f - t);
		BUG_ON(row >= FIELD_ROWS_MAX);
		seen[row / 64] |= UINT64_C(1) << row % 64;
		if (read_member(r, f, kid, out) < 0) {
			err_field_prefix(r->e, f->name);
			return -1;
		}
	}
	for (size_t row = 0; t[row].name != NULL; row++)
		if ((seen[row / 64] >> row % 64 & 1) == 0 && read_missing(r, &t[row], out) < 0)
			return -1;
	return 0;
}

size_t field_extent(const struct field *t)
{
	size_t end = 0;

	for (; t->name != NULL; t++) {
		size_t size;

		if (t->type == FIELD_OBJ)
			size = field_extent(t->sub);
		else if (t->type == FIELD_LIST || t->type == FIELD_MAP || t->type == FIELD_DICT)
			size = sizeof(struct list);
		else
			size = field_scalar_size(t->type);
		if (t->off + size > end)
			end = t->off + size;
		if (t->has > end)
			end = t->has;
		if (t->null > end)
			end = t->null;
	}
	return end;
}

static int decode(const struct field *t, struct str text, enum field_mode mode, struct arena *a,
	void *out, struct err *e)
{
	struct jsn_doc *d;

	if (jsn_parse(text, &d, e) < 0)
		return -1;
	int rc = jsn_decode(jsn_root(d), t, mode, a, out, e);
	jsn_doc_free(d);
	return rc;
}

int jsn_decode(const struct jsn *v, const struct field *t, enum field_mode mode, struct arena *a,
	void *out, struct err *e)
{
	struct field_reader r = { .a = a, .mode = mode, .e = e };

	memset(out, 0, field_extent(t));
	if (jsn_type(v) != JSN_OBJ)
		return err_field(e, "", "must be an object, not %s", jsn_type_name(jsn_type(v)));
	return field_read_object(&r, t, v, out);
}

int field_decode(
	const struct field *t, struct str json_text, struct arena *a, void *out, struct err *e)
{
	return decode(t, json_text, FIELD_STRICT, a, out, e);
}

int field_decode_reply(
	const struct field *t, struct str json_text, struct arena *a, void *out, struct err *e)
{
	return decode(t, json_text, FIELD_REPLY, a, out, e);
}

int field_decode_loose(
	const struct field *t, struct str json_text, struct arena *a, void *out, struct err *e)
{
	return decode(t, json_text, FIELD_LAX, a, out, e);
}

static int read_commas(struct field_reader *r, const struct field *f, struct str text, void *out)
{
	struct str piece;
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == ',';
	struct jsn list = { .type = JSN_LIST, .kids = { mem_new(n + 1, sizeof(struct jsn)), 0 } };
	bool any = text.n != 0; /* "" is the empty list, "a," has an empty second item */
	while (any && str_next(&text, ',', &piece))
		list.kids.at[list.kids.n++] = field_text_value(f->item, piece);
	int rc = read_member(r, f, &list, out);
	mem_free(list.kids.at);
	return rc;
}

static int read_pair(struct field_reader *r, const struct field *f, struct str text, void *out)
{
	BUG_ON(f->type == FIELD_OBJ || f->type == FIELD_MAP || f->type == FIELD_DICT ||
		f->type == FIELD_RAW || (f->type == FIELD_LIST && f->sub != NULL));
	if (f->type == FIELD_LIST)
		return read_commas(r, f, text, out);
	struct jsn v = field_text_value(f->type, text);
	return read_member(r, f, &v, out);
}

int field_decode_pairs(const struct field *t, const struct field_pair *pairs, size_t n,
	struct arena *a, void *out, struct err *e)
{
	struct field_reader r = { .a = a, .mode = FIELD_STRICT, .text = true, .e = e };
	bool seen[FIELD_ROWS_MAX] = { false };
	char key[sizeof e->field];

	memset(out, 0, field_extent(t));
	for (size_t i = 0; i < n; i++) {
		const struct field *f = field_find(t, pairs[i].key);
		int rc;

		(void)str_print(key, sizeof key, "%.*s", STR_ARG(pairs[i].key));
		if (f == NULL)
			return unknown(&r, t, str_c(key));
		BUG_ON(f - t >= FIELD_ROWS_MAX);
		if (seen[f - t])
			rc = err_field(e, "", "must be given once");
		else
			rc = read_pair(&r, f, pairs[i].value, out);
		if (rc < 0) {
			err_field_prefix(e, f->name);
			return -1;
		}
		seen[f - t] = true;
	}
	for (size_t row = 0; t[row].name != NULL; row++)
		if (!seen[row] && read_missing(&r, &t[row], out) < 0)
			return -1;
	return 0;
}
