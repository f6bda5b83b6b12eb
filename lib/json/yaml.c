#include "lib/json/yaml.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/node.h"
#include "lib/json/yaml_scalar.h"

#include <yaml.h>

/*
 * libyaml's events are built into the value tree of node.h. Kids wait on one stack until their
 * parent ends, then move into the document's arena. A failure notes its line and column and gets
 * its pointer from the inside out; place() puts the three together at the very end.
 */

enum { ARENA_MAX = 16 << 20, FEW = 16 };

struct builder {
	yaml_parser_t parser;
	struct str text;
	struct jsn_doc *doc;
	struct jsn *stack;
	size_t n, cap, nodes;
	unsigned depth;
	size_t line, col; /* of the failure, from 1 */
	struct err *e;
};

static void place(struct err *e, size_t line, size_t col)
{
	char msg[sizeof e->msg];

	(void)str_print(msg, sizeof msg, "line %zu, column %zu: %s%s%s", line, col, e->field,
		e->field[0] != '\0' ? ": " : "", e->msg);
	memcpy(e->msg, msg, sizeof msg);
}

static int fail_at(struct builder *b, yaml_mark_t mark, enum err_code code, const char *what)
{
	b->line = mark.line + 1;
	b->col = mark.column + 1;
	return err_set(b->e, code, "%s", what);
}

/* The reader tells its failures by the byte. */
static yaml_mark_t mark_of(struct str text, size_t offset)
{
	yaml_mark_t mark = { 0 };

	for (size_t i = 0; i < offset && i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		if (c == '\n') {
			mark.line++;
			mark.column = 0;
		} else if ((c & 0xc0) != 0x80) {
			mark.column++;
		}
	}
	return mark;
}

static int next_event(struct builder *b, yaml_event_t *ev)
{
	const yaml_parser_t *p = &b->parser;

	if (yaml_parser_parse(&b->parser, ev))
		return 0;
	BUG_ON(p->error == YAML_MEMORY_ERROR);
	if (p->error == YAML_READER_ERROR)
		return fail_at(b, mark_of(b->text, p->problem_offset), ERR_MALFORMED,
			"must be UTF-8 text without control characters");
	if (strstr(p->problem, "cannot start any token") != NULL)
		return fail_at(b, p->problem_mark, ERR_MALFORMED,
			"found a character that cannot start a value (a tab? '%', '@' and '`' need "
			"quotes)");
	return fail_at(b, p->problem_mark, ERR_MALFORMED, p->problem);
}

/* What the subset leaves out. */
static int check_event(struct builder *b, const yaml_event_t *ev)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (ev->type == YAML_ALIAS_EVENT)
		return fail_at(b, ev->start_mark, ERR_MALFORMED, "aliases (*) are not supported");
	if (ev->type == YAML_SCALAR_EVENT) {
		anchor = ev->data.scalar.anchor;
		tag = ev->data.scalar.tag;
	} else if (ev->type == YAML_SEQUENCE_START_EVENT) {
		anchor = ev->data.sequence_start.anchor;
		tag = ev->data.sequence_start.tag;
	} else if (ev->type == YAML_MAPPING_START_EVENT) {
		anchor = ev->data.mapping_start.anchor;
		tag = ev->data.mapping_start.tag;
	}
	if (anchor != NULL)
		return fail_at(b, ev->start_mark, ERR_MALFORMED, "anchors (&) are not supported");
	if (tag != NULL)
		return fail_at(b, ev->start_mark, ERR_MALFORMED, "tags (!) are not supported");
	return 0;
}

/* Copied into the document, NUL-terminated; a NUL within is refused. */
static int copy_text(struct builder *b, const yaml_event_t *ev, struct str *ret)
{
	const char *p = (const char *)ev->data.scalar.value;
	struct str s = { p, ev->data.scalar.length };

	if (memchr(p, '\0', s.n) != NULL)
		return fail_at(
			b, ev->start_mark, ERR_INVALID, "must not contain the character U+0000");
	*ret = arena_str(b->doc->a, s);
	return 0;
}

static int build_scalar(struct builder *b, const yaml_event_t *ev, struct jsn *v)
{
	const char *why;
	struct str text;

	if (copy_text(b, ev, &text) < 0)
		return -1;
	if (ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
		v->type = JSN_STR;
		v->s = text;
	} else if (!yaml_scalar(text, v, &why)) {
		return fail_at(b, ev->start_mark, ERR_INVALID, why);
	}
	return 0;
}

static void push(struct builder *b, struct jsn v)
{
	if (b->n == b->cap) {
		b->cap = b->cap != 0 ? 2 * b->cap : 64;
		b->stack = mem_resize(b->stack, b->cap, sizeof *b->stack);
	}
	b->stack[b->n++] = v;
}

static void pop_kids(struct builder *b, size_t from, struct jsn *v)
{
	v->kids.n = b->n - from;
	v->kids.at = arena_array_of(b->doc->a, struct jsn, v->kids.n);
	if (v->kids.n != 0)
		memcpy(v->kids.at, b->stack + from, v->kids.n * sizeof *b->stack);
	b->n = from;
}

static int build_value(struct builder *b, const yaml_event_t *ev, struct jsn *v);

static int build_list(struct builder *b, struct jsn *v)
{
	size_t from = b->n;
	yaml_event_t ev;

	v->type = JSN_LIST;
	for (;;) {
		struct jsn kid = { 0 };

		if (next_event(b, &ev) < 0)
			return -1;
		if (ev.type == YAML_SEQUENCE_END_EVENT)
			break;
		int rc = build_value(b, &ev, &kid);
		yaml_event_delete(&ev);
		if (rc < 0) {
			err_field_index(b->e, b->n - from);
			return -1;
		}
		push(b, kid);
	}
	yaml_event_delete(&ev);
	pop_kids(b, from, v);
	return 0;
}

static int build_key(struct builder *b, const yaml_event_t *ev, struct jsn *kid)
{
	if (check_event(b, ev) < 0)
		return -1;
	if (ev->type != YAML_SCALAR_EVENT)
		return fail_at(b, ev->start_mark, ERR_MALFORMED, "a key must be a string");
	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && ev->data.scalar.length == 2 &&
		memcmp(ev->data.scalar.value, "<<", 2) == 0)
		return fail_at(
			b, ev->start_mark, ERR_MALFORMED, "merge keys (<<) are not supported");
	kid->line = (unsigned)ev->start_mark.line + 1;
	kid->col = (unsigned)ev->start_mark.column + 1;
	return copy_text(b, ev, &kid->key);
}

static int duplicate(struct builder *b, const struct jsn *kid)
{
	yaml_mark_t mark = { .line = kid->line - 1, .column = kid->col - 1 };

	(void)fail_at(b, mark, ERR_MALFORMED, "is given twice");
	err_field_prefix(b->e, kid->key.p);
	return -1;
}

static int check_keys(struct builder *b, const struct jsn *v)
{
	int rc = 0;

	if (v->kids.n <= FEW) {
		for (size_t i = 1; i < v->kids.n; i++)
			for (size_t j = 0; j < i; j++)
				if (str_eq(v->kids.at[i].key, v->kids.at[j].key))
					return duplicate(b, &v->kids.at[i]);
		return 0;
	}
	struct map *seen = map_new();
	for (size_t i = 0; i < v->kids.n && rc == 0; i++)
		if (map_put(seen, v->kids.at[i].key, b) != NULL)
			rc = duplicate(b, &v->kids.at[i]);
	map_free(seen);
	return rc;
}

/* A member's place is that of its key: the value may start lines below. */
static int build_member(struct builder *b, struct jsn *kid)
{
	unsigned line = kid->line, col = kid->col;
	yaml_event_t ev;

	if (next_event(b, &ev) < 0) {
		err_field_prefix(b->e, kid->key.p);
		return -1;
	}
	int rc = build_value(b, &ev, kid);
	yaml_event_delete(&ev);
	kid->line = line;
	kid->col = col;
	if (rc < 0)
		err_field_prefix(b->e, kid->key.p);
	return rc;
}

static int build_object(struct builder *b, struct jsn *v)
{
	size_t from = b->n;
	yaml_event_t ev;

	v->type = JSN_OBJ;
	for (;;) {
		struct jsn kid = { 0 };

		if (next_event(b, &ev) < 0)
			return -1;
		if (ev.type == YAML_MAPPING_END_EVENT)
			break;
		int rc = build_key(b, &ev, &kid);
		yaml_event_delete(&ev);
		if (rc < 0 || build_member(b, &kid) < 0)
			return -1;
		push(b, kid);
	}
	yaml_event_delete(&ev);
	pop_kids(b, from, v);
	return check_keys(b, v);
}

static int build_value(struct builder *b, const yaml_event_t *ev, struct jsn *v)
{
	int rc;

	if (check_event(b, ev) < 0)
		return -1;
	if (++b->nodes > FIELD_NODES_MAX)
		return fail_at(
			b, ev->start_mark, ERR_INVALID, "the text must hold at most 50000 values");
	v->line = (unsigned)ev->start_mark.line + 1;
	v->col = (unsigned)ev->start_mark.column + 1;
	if (ev->type == YAML_SCALAR_EVENT)
		return build_scalar(b, ev, v);
	if (b->depth == FIELD_DEPTH_MAX)
		return fail_at(
			b, ev->start_mark, ERR_INVALID, "must be nested at most 32 levels deep");
	b->depth++;
	rc = ev->type == YAML_SEQUENCE_START_EVENT ? build_list(b, v) : build_object(b, v);
	b->depth--;
	return rc;
}

/* Skips to the first event that belongs to the document's content. */
static int build_document(struct builder *b)
{
	yaml_event_t ev;
	int rc = 0;

	for (bool done = false; !done && rc == 0;) {
		if (next_event(b, &ev) < 0)
			return -1;
		if (ev.type == YAML_STREAM_END_EVENT) {
			rc = fail_at(b, ev.start_mark, ERR_MALFORMED, "the YAML text is empty");
		} else if (ev.type != YAML_STREAM_START_EVENT &&
			   ev.type != YAML_DOCUMENT_START_EVENT) {
			rc = build_value(b, &ev, &b->doc->root);
			done = true;
		}
		yaml_event_delete(&ev);
	}
	for (bool done = false; !done && rc == 0;) {
		if (next_event(b, &ev) < 0)
			return -1;
		if (ev.type == YAML_DOCUMENT_START_EVENT)
			rc = fail_at(b, ev.start_mark, ERR_MALFORMED,
				"the text must hold one document only");
		done = ev.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&ev);
	}
	return rc;
}

int yaml_parse(struct str text, struct jsn_doc **ret_doc, struct err *e)
{
	struct builder b = { .e = e, .text = text };

	if (text.n > YAML_TEXT_MAX)
		return err_set(e, ERR_TOO_LARGE, "the YAML text must have at most 1 MiB");
	BUG_ON(yaml_parser_initialize(&b.parser) == 0);
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
		&b.parser, (const unsigned char *)(text.p != NULL ? text.p : ""), text.n);
	b.doc = jsn_doc_new(ARENA_MAX);
	int rc = build_document(&b);
	yaml_parser_delete(&b.parser);
	mem_free(b.stack);
	if (rc < 0) {
		jsn_doc_free(b.doc);
		place(e, b.line, b.col);
		return -1;
	}
	*ret_doc = b.doc;
	return 0;
}

static void locate(const struct jsn_doc *d, struct err *e)
{
	const struct jsn *v = jsn_nearest(&d->root, e->field);

	place(e, v->line, v->col);
}

int yaml_decode(const struct field *t, struct str text, struct arena *a, void *out, struct err *e)
{
	struct jsn_doc *d;

	if (yaml_parse(text, &d, e) < 0)
		return -1;
	int rc = jsn_decode(&d->root, t, FIELD_STRICT, a, out, e);
	if (rc < 0)
		locate(d, e);
	jsn_doc_free(d);
	return rc;
}

int yaml_to_json(struct str text, struct buf *out, struct err *e)
{
	struct jsn_doc *d;

	if (yaml_parse(text, &d, e) < 0)
		return -1;
	jsn_write(&d->root, out);
	jsn_doc_free(d);
	return buf_failed(out) ? err_set(e, ERR_TOO_LARGE, "the document is too large") : 0;
}

void yaml_locate(struct str text, struct err *e)
{
	struct jsn_doc *d;
	struct err ignored;

	if (yaml_parse(text, &d, &ignored) < 0)
		return;
	locate(d, e);
	jsn_doc_free(d);
}
