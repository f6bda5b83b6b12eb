#include "server/mlflow/pairs.h"

#include <stdlib.h>

const struct field flow_pair_fields[] = {
	MESSAGE_TEXT(struct flow_pair, key),
	MESSAGE_TEXT(struct flow_pair, value),
	{ 0 },
};

struct placed {
	struct str key, value;
	size_t at;
};

static int by_key(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int order = str_cmp(x->key, y->key);

	return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static struct placed *sorted(struct call *c, const struct list *pairs)
{
	struct placed *p = arena_array_of(c->arena, struct placed, pairs->n + 1);

	for (size_t i = 0; i < pairs->n; i++) {
		const struct flow_pair *f = list_at(pairs, struct flow_pair, i);
		p[i] = (struct placed){ f->key, f->value.p != NULL ? f->value : STR(""), i };
	}
	if (pairs->n != 0)
		qsort(p, pairs->n, sizeof *p, by_key);
	return p;
}

bool pairs_take(struct call *c, const struct list *pairs, struct pair_rules rules, size_t room,
	struct pair_columns *ret)
{
	struct str *keys = arena_array_of(c->arena, struct str, pairs->n + room + 1);
	struct str *values = arena_array_of(c->arena, struct str, pairs->n + room + 1);
	char name[LIMIT_NAME_TEXT];
	size_t n = 0;

	for (size_t i = 0; i < pairs->n; i++) {
		const struct flow_pair *f = list_at(pairs, struct flow_pair, i);
		struct limit_name value = { rules.list, i, "value" };

		if (!limit_key(c, f->key, (struct limit_name){ rules.list, i, "key" }))
			return false;
		if (rules.refuse_long &&
			!limit_length(c, f->value, rules.value_max, limit_name_text(name, value)))
			return false;
	}
	const struct placed *p = sorted(c, pairs);
	for (size_t i = 0; i < pairs->n; i++) {
		if (i + 1 < pairs->n && str_eq(p[i].key, p[i + 1].key))
			continue;
		keys[n] = p[i].key;
		values[n++] = limit_cut(p[i].value, rules.value_max);
	}
	*ret = (struct pair_columns){ keys, values, n };
	return true;
}

struct str pairs_find(const struct pair_columns *p, const char *key)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_is(p->keys[i], key))
			return p->values[i];
	return STR_NONE;
}

void pairs_add(struct pair_columns *p, struct str key, struct str value)
{
	/* The arrays are ours, made by pairs_take. */
	union {
		const struct str *in;
		struct str *out;
	} k = { .in = p->keys }, v = { .in = p->values };

	k.out[p->n] = key;
	v.out[p->n++] = value;
}

struct str pairs_duplicates(struct call *c, const struct list *pairs)
{
	const struct placed *p = sorted(c, pairs);
	struct str text = STR("");

	for (size_t i = 1; i < pairs->n; i++)
		if (str_eq(p[i].key, p[i - 1].key) && (i < 2 || !str_eq(p[i].key, p[i - 2].key)))
			text = arena_printf(c->arena, "%.*s%s'%.*s'", STR_ARG(text),
				text.n != 0 ? ", " : "", STR_ARG(p[i].key));
	return text;
}
