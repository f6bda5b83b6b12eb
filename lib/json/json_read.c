#include "lib/json/json_read.h"

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "lib/json/node.h"

#include <jansson.h>
#include <math.h>

/*
 * Text is scanned once before jansson sees it: jansson spends up to 80 bytes of memory per byte of
 * text and recurses, so levels and values are counted first. The same scan, run up to the place
 * where the parser stopped, tells the JSON pointer of a syntax error. The jansson tree is then
 * mirrored by plain nodes, which YAML shares, and kept for its strings.
 */

struct level {
	bool object, want_key;
	size_t index;
	struct str key; /* raw, between the quotes */
};

struct scan {
	struct level at[FIELD_DEPTH_MAX];
	unsigned depth;
	size_t nodes;
};

/* The index after the closing quote, or end when there is none. */
static size_t skip_string(struct str text, size_t at, size_t end, bool *ret_closed)
{
	*ret_closed = false;
	for (; at < end; at++) {
		if (text.p[at] == '\\') {
			at++;
		} else if (text.p[at] == '"') {
			*ret_closed = true;
			return at + 1;
		}
	}
	return end;
}

static void scan_comma(struct scan *s)
{
	struct level *l = &s->at[s->depth - 1];

	l->index++;
	l->want_key = l->object;
	l->key = STR_NONE;
}

static void set_pointer(const struct scan *s, struct err *e)
{
	for (unsigned i = s->depth; i-- > 0;) {
		const struct level *l = &s->at[i];
		char text[sizeof e->field];

		if (!l->object) {
			err_field_index(e, l->index);
		} else if (l->key.p != NULL) {
			(void)str_print(text, sizeof text, "%.*s", STR_ARG(l->key));
			err_field_prefix(e, text);
		}
	}
}

static int scan_open(struct scan *s, bool object, struct err *e)
{
	if (s->depth == FIELD_DEPTH_MAX) {
		(void)err_set(
			e, ERR_INVALID, "must be nested at most %d levels deep", FIELD_DEPTH_MAX);
		set_pointer(s, e);
		return -1;
	}
	s->at[s->depth++] = (struct level){ .object = object, .want_key = object };
	return 0;
}

/* Brackets that do not match end the scan: the parser says it better. */
static int scan_to(struct str text, size_t end, struct scan *s, struct err *e)
{
	for (size_t i = 0; i < end;) {
		char c = text.p[i++];

		if (c == '"') {
			bool closed;
			size_t from = i;
			struct level *l = s->depth != 0 ? &s->at[s->depth - 1] : NULL;
			i = skip_string(text, i, end, &closed);
			if (closed && l != NULL && l->want_key) {
				l->key = str_slice(text, from, i - 1 - from);
				l->want_key = false;
			}
		} else if (c == '{' || c == '[') {
			s->nodes++;
			if (scan_open(s, c == '{', e) < 0)
				return -1;
		} else if (c == '}' || c == ']') {
			if (s->depth == 0)
				return 0;
			s->depth--;
		} else if (c == ',' && s->depth != 0) {
			s->nodes++;
			scan_comma(s);
		}
		if (s->nodes > FIELD_NODES_MAX)
			return err_set(
				e, ERR_INVALID, "must hold at most %d values", FIELD_NODES_MAX);
	}
	return 0;
}

static int parse_failed(struct str text, const json_error_t *je, struct err *e)
{
	struct scan s = { 0 };
	struct err ignored;
	enum json_error_code code = json_error_code(je);
	size_t at = je->position > 0 ? (size_t)je->position : 0;

	if (str_trim(text).n == 0)
		return err_set(e, ERR_MALFORMED, "the JSON text is empty");
	(void)err_set(e, code == json_error_numeric_overflow ? ERR_INVALID : ERR_MALFORMED,
		"line %d, column %d: %s", je->line, je->column,
		code == json_error_invalid_utf8 ? "not valid UTF-8" : je->text);
	if (scan_to(text, at < text.n ? at : text.n, &s, &ignored) == 0)
		set_pointer(&s, e);
	return -1;
}

static int mirror(struct jsn_doc *d, json_t *j, struct jsn *v, struct err *e);

static int mirror_list(struct jsn_doc *d, json_t *j, struct jsn *v, struct err *e)
{
	v->type = JSN_LIST;
	v->kids.n = json_array_size(j);
	v->kids.at = arena_array_of(d->a, struct jsn, v->kids.n);
	for (size_t i = 0; i < v->kids.n; i++) {
		if (mirror(d, json_array_get(j, i), &v->kids.at[i], e) == 0)
			continue;
		err_field_index(e, i);
		return -1;
	}
	return 0;
}

static int mirror_object(struct jsn_doc *d, json_t *j, struct jsn *v, struct err *e)
{
	const char *key;
	json_t *value;
	size_t i = 0;

	v->type = JSN_OBJ;
	v->kids.n = json_object_size(j);
	v->kids.at = arena_array_of(d->a, struct jsn, v->kids.n);
	json_object_foreach (j, key, value) {
		v->kids.at[i].key = str_c(key);
		if (mirror(d, value, &v->kids.at[i++], e) < 0) {
			err_field_prefix(e, key);
			return -1;
		}
	}
	return 0;
}

static void mirror_real(const struct jsn_doc *d, double r, struct jsn *v)
{
	const double exact = 9007199254740992.0; /* 2^53 */

	if (d->wide && r >= -exact && r <= exact && r == floor(r)) {
		v->type = JSN_INT;
		v->i = (int64_t)r;
	} else {
		v->type = JSN_REAL;
		v->r = r;
	}
}

static int mirror(struct jsn_doc *d, json_t *j, struct jsn *v, struct err *e)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT: return mirror_object(d, j, v, e);
	case JSON_ARRAY: return mirror_list(d, j, v, e);
	case JSON_STRING:
		v->type = JSN_STR;
		v->s = (struct str){ json_string_value(j), json_string_length(j) };
		if (!d->any_text && memchr(v->s.p, '\0', v->s.n) != NULL)
			return err_set(e, ERR_INVALID, "must not contain the character U+0000");
		return 0;
	case JSON_INTEGER:
		v->type = JSN_INT;
		v->i = json_integer_value(j);
		return 0;
	case JSON_REAL: mirror_real(d, json_real_value(j), v); return 0;
	case JSON_TRUE:
	case JSON_FALSE:
		v->type = JSN_BOOL;
		v->b = json_is_true(j);
		return 0;
	case JSON_NULL: v->type = JSN_NULL; return 0;
	}
	BUG_ON(true);
}

struct jsn_doc *jsn_doc_new(size_t limit)
{
	struct jsn_doc *d = mem_new_of(struct jsn_doc);

	d->a = arena_new(limit);
	return d;
}

void jsn_doc_free(struct jsn_doc *d)
{
	if (d == NULL)
		return;
	if (d->tree != NULL)
		json_decref((json_t *)d->tree);
	arena_drop(d->a);
	mem_free(d);
}

static int parse(struct str text, bool answer, struct jsn_doc **ret_doc, struct err *e)
{
	size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
	struct scan s = { 0 };
	json_error_t je;

	if (text.n == 0)
		return err_set(e, ERR_MALFORMED, "the JSON text is empty");
	if (scan_to(text, text.n, &s, e) < 0)
		return -1;
	json_t *tree = json_loadb(text.p, text.n, flags, &je);
	bool wide = answer && tree == NULL && json_error_code(&je) == json_error_numeric_overflow;
	if (wide)
		tree = json_loadb(text.p, text.n, flags | JSON_DECODE_INT_AS_REAL, &je);
	if (tree == NULL)
		return parse_failed(text, &je, e);
	/* A list of n values takes a node each and an arena piece for itself. */
	struct jsn_doc *d = jsn_doc_new((s.nodes + 2) * (sizeof(struct jsn) + 64));
	d->tree = tree;
	d->any_text = answer;
	d->wide = wide;
	if (mirror(d, tree, &d->root, e) < 0) {
		jsn_doc_free(d);
		return -1;
	}
	*ret_doc = d;
	return 0;
}

int jsn_parse(struct str text, struct jsn_doc **ret_doc, struct err *e)
{
	return parse(text, false, ret_doc, e);
}

int jsn_parse_answer(struct str text, struct jsn_doc **ret_doc, struct err *e)
{
	return parse(text, true, ret_doc, e);
}

const struct jsn *jsn_root(const struct jsn_doc *d)
{
	return &d->root;
}

enum jsn_type jsn_type(const struct jsn *v)
{
	return v != NULL ? v->type : JSN_NULL;
}

const char *jsn_type_name(enum jsn_type t)
{
	static const char *const names[] = {
		[JSN_NULL] = "null",
		[JSN_BOOL] = "true or false",
		[JSN_INT] = "a whole number",
		[JSN_REAL] = "a number",
		[JSN_STR] = "a string",
		[JSN_LIST] = "a list",
		[JSN_OBJ] = "an object",
	};
	return names[t];
}

static const struct jsn *get(const struct jsn *v, struct str name)
{
	if (jsn_type(v) != JSN_OBJ)
		return NULL;
	for (size_t i = 0; i < v->kids.n; i++)
		if (str_eq(v->kids.at[i].key, name))
			return &v->kids.at[i];
	return NULL;
}

const struct jsn *jsn_get(const struct jsn *v, const char *name)
{
	return get(v, str_c(name));
}

size_t jsn_count(const struct jsn *v)
{
	return jsn_type(v) == JSN_OBJ || jsn_type(v) == JSN_LIST ? v->kids.n : 0;
}

const struct jsn *jsn_at(const struct jsn *v, size_t i)
{
	return i < jsn_count(v) ? &v->kids.at[i] : NULL;
}

struct str jsn_name(const struct jsn *v)
{
	return v != NULL ? v->key : STR_NONE;
}

/* RFC 6901: ~1 is '/', ~0 is '~'. */
static bool same_token(struct str token, struct str key)
{
	size_t k = 0;

	for (size_t i = 0; i < token.n; i++, k++) {
		char c = token.p[i];

		if (c == '~' && i + 1 < token.n)
			c = token.p[++i] == '1' ? '/' : '~';
		if (k >= key.n || key.p[k] != c)
			return false;
	}
	return k == key.n;
}

static const struct jsn *step(const struct jsn *v, struct str token)
{
	if (jsn_type(v) == JSN_LIST) {
		uint64_t i;
		return num_parse_u64(token, 0, SIZE_MAX, &i) ? jsn_at(v, i) : NULL;
	}
	for (size_t i = 0; i < jsn_count(v); i++)
		if (same_token(token, v->kids.at[i].key))
			return &v->kids.at[i];
	return NULL;
}

const struct jsn *jsn_find(const struct jsn *v, const char *pointer)
{
	struct str rest = str_c(pointer), token;

	if (rest.n == 0)
		return v;
	if (rest.p[0] != '/')
		return NULL;
	rest = str_slice(rest, 1, rest.n);
	while (v != NULL && str_next(&rest, '/', &token))
		v = step(v, token);
	return v;
}

const struct jsn *jsn_nearest(const struct jsn *v, const char *pointer)
{
	struct str rest = str_c(pointer), token;

	if (rest.n == 0 || rest.p[0] != '/')
		return v;
	rest = str_slice(rest, 1, rest.n);
	while (str_next(&rest, '/', &token)) {
		const struct jsn *next = step(v, token);
		if (next == NULL)
			break;
		v = next;
	}
	return v;
}

struct str jsn_get_str(const struct jsn *v)
{
	return jsn_type(v) == JSN_STR ? v->s : STR_NONE;
}

int64_t jsn_get_int(const struct jsn *v, int64_t otherwise)
{
	return jsn_type(v) == JSN_INT ? v->i : otherwise;
}

double jsn_get_real(const struct jsn *v, double otherwise)
{
	if (jsn_type(v) == JSN_INT)
		return (double)v->i;
	return jsn_type(v) == JSN_REAL ? v->r : otherwise;
}

bool jsn_get_bool(const struct jsn *v, bool otherwise)
{
	return jsn_type(v) == JSN_BOOL ? v->b : otherwise;
}

static void write_value(struct jsn_out *w, const struct jsn *v)
{
	switch (v->type) {
	case JSN_NULL: jsn_null(w); break;
	case JSN_BOOL: jsn_bool(w, v->b); break;
	case JSN_INT: jsn_int(w, v->i); break;
	case JSN_REAL: jsn_real(w, v->r); break;
	case JSN_STR: jsn_str(w, v->s); break;
	case JSN_LIST:
		jsn_list_begin(w);
		for (size_t i = 0; i < v->kids.n; i++)
			write_value(w, &v->kids.at[i]);
		jsn_list_end(w);
		break;
	case JSN_OBJ:
		jsn_obj_begin(w);
		for (size_t i = 0; i < v->kids.n; i++) {
			jsn_key_str(w, v->kids.at[i].key);
			write_value(w, &v->kids.at[i]);
		}
		jsn_obj_end(w);
		break;
	}
}

void jsn_write(const struct jsn *v, struct buf *out)
{
	struct jsn_out w = jsn_out(out);

	if (v != NULL)
		write_value(&w, v);
	else
		jsn_null(&w);
}
