#include "server/sched/cache_key.h"

#include "server/sched/spec.h"

#include <stdlib.h>

bool cache_counts(const struct step_spec *s, enum cache_part part)
{
	for (size_t i = 0; i < s->cache.by.n; i++)
		if (*list_at(&s->cache.by, int, i) == (int)part)
			return true;
	return s->cache.by.n == 0;
}

/* Each piece with its length before it, so that none can be taken for the end of another. */
static void add(struct hash *h, struct str piece)
{
	char head[32];

	(void)str_print(head, sizeof head, "%zu:", piece.n);
	hash_add(h, str_c(head));
	hash_add(h, piece);
}

static void add_number(struct hash *h, int64_t n)
{
	char text[32];

	(void)str_print(text, sizeof text, "%lld", (long long)n);
	add(h, str_c(text));
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(((const struct field_pair *)a)->key, ((const struct field_pair *)b)->key);
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(
		((const struct output_spec *)a)->name, ((const struct output_spec *)b)->name);
}

static int by_secret(const void *a, const void *b)
{
	return str_cmp(((const struct secret_use *)a)->name, ((const struct secret_use *)b)->name);
}

/* The items in an order of their own. */
static const void *sorted(const struct list *l, size_t size,
	int (*order)(const void *, const void *), struct arena *a)
{
	void *items = arena_alloc(a, (l->n + 1) * size);

	if (l->n != 0)
		memcpy(items, l->items, l->n * size);
	qsort(items, l->n, size, order);
	return items;
}

static void add_command(struct hash *h, const struct step_spec *s, struct arena *a)
{
	struct list argv = { NULL, 0 };
	struct err e;

	if (spec_argv(s->run, a, &argv, &e) < 0) /* it was checked before; its text says as much */
		add(h, s->run);
	add_number(h, (int64_t)argv.n);
	for (size_t i = 0; i < argv.n; i++)
		add(h, *list_at(&argv, struct str, i));
}

static void add_lists(struct hash *h, const struct step_spec *s, struct arena *a)
{
	const struct field_pair *env = sorted(&s->env, sizeof *env, by_key, a);
	const struct output_spec *outputs = sorted(&s->outputs, sizeof *outputs, by_name, a);
	const struct secret_use *secrets = sorted(&s->secrets, sizeof *secrets, by_secret, a);

	add_number(h, (int64_t)s->env.n);
	for (size_t i = 0; i < s->env.n; i++) {
		add(h, env[i].key);
		add(h, env[i].value);
	}
	add_number(h, (int64_t)s->outputs.n);
	for (size_t i = 0; i < s->outputs.n; i++) {
		add(h, outputs[i].name);
		add(h, outputs[i].path);
		add_number(h, outputs[i].kind);
	}
	add_number(h, (int64_t)s->secrets.n);
	for (size_t i = 0; i < s->secrets.n; i++) {
		add(h, secrets[i].name);
		add_number(h, secrets[i].as);
	}
	add_number(h, (int64_t)s->runtimes.n);
	for (size_t i = 0; i < s->runtimes.n; i++)
		add_number(h, *list_at(&s->runtimes, int, i));
}

void cache_key(const struct step_spec *s, struct str name, const struct cache_facts *f,
	struct arena *a, unsigned char ret[HASH_SIZE])
{
	struct hash *h = hash_new();
	const struct {
		enum cache_part part;
		struct str texts[2];
	} parts[] = { { CACHE_CODE, { f->repository, f->commit } },
		{ CACHE_IMAGE, { STR(""), STR("") } }, { CACHE_DATASETS, { f->datasets, STR("") } },
		{ CACHE_INPUTS, { f->inputs, f->models } } };

	add(h, STR("tidemill step 2"));
	add(h, name);
	add(h, f->matrix);
	add_command(h, s, a);
	add(h, s->image);
	add_lists(h, s, a);
	add(h, s->resources.gpus);
	add_number(h, s->placement.nodes);
	add_number(h, s->placement.has_launcher ? s->placement.launcher : -1);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		bool counts = cache_counts(s, parts[i].part);
		add_number(h, counts);
		for (size_t k = 0; k < 2 && counts; k++)
			add(h, parts[i].texts[k]);
	}
	hash_end(h, ret);
	hash_free(h);
}

bool cache_image(const struct step_spec *s, struct str resolved, struct str *ret)
{
	struct str image = resolved.n != 0 ? resolved : s->image;
	ptrdiff_t at = str_find(image, STR("sha256:"));
	bool runs_in_one = false;

	for (size_t i = 0; i < s->runtimes.n; i++)
		runs_in_one |= *list_at(&s->runtimes, int, i) != RUNTIME_PROCESS;
	*ret = STR("");
	if (!runs_in_one || !cache_counts(s, CACHE_IMAGE))
		return true;
	if (at < 0)
		return false;
	*ret = str_slice(image, (size_t)at, image.n);
	return true;
}
