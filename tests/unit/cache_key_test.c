/* server/sched/cache_key.h: what makes two steps the same. */
#include "server/sched/cache_key.h"
#include "tests/unit/unit.h"

struct keyed {
	struct arena *a;
	struct step_spec spec;
	struct field_pair env[2];
	struct output_spec outputs[2];
	struct secret_use secrets[2];
	int runtimes[2], by[CACHE_PART_COUNT];
	struct cache_facts facts;
	struct str name;
};

static void begin(struct keyed *k)
{
	*k = (struct keyed){ .a = arena_new(1 << 20),
		.env = { { STR("A"), STR("1") }, { STR("B"), STR("2") } },
		.outputs = { { .name = STR("m"), .path = STR("m"), .kind = OUTPUT_MODEL },
			{ .name = STR("v"), .path = STR("v.txt"), .kind = OUTPUT_VALUE } },
		.secrets = { { STR("key"), SECRET_FILE }, { STR("word"), SECRET_ENV } },
		.runtimes = { RUNTIME_DOCKER, RUNTIME_PROCESS },
		.facts = { STR("{\"k\": \"1\"}"), STR("https://git/x"), STR("c0ffee"), STR("d 01"),
			STR("m mv_1"), STR("prep 02") },
		.name = STR("train") };
	k->spec = (struct step_spec){ .run = STR("[\"train\", \"--fast\"]"),
		.image = STR("repo/x:1"),
		.env = { k->env, 2 },
		.outputs = { k->outputs, 2 },
		.secrets = { k->secrets, 2 },
		.runtimes = { k->runtimes, 2 },
		.placement = { .nodes = 1 },
		.cache = { .by = { k->by, 0 } },
		.has_cache = true };
}

static void key_of(const struct keyed *k, unsigned char ret[HASH_SIZE])
{
	cache_key(&k->spec, k->name, &k->facts, k->a, ret);
}

static bool same(const struct keyed *a, const struct keyed *b)
{
	unsigned char x[HASH_SIZE], y[HASH_SIZE];

	key_of(a, x);
	key_of(b, y);
	return memcmp(x, y, HASH_SIZE) == 0;
}

/* a and b are alike but for one thing. */
#define DIFFERS(change)                                                                            \
	do {                                                                                       \
		begin(&a);                                                                         \
		begin(&b);                                                                         \
		assert_true(same(&a, &b));                                                         \
		change;                                                                            \
		assert_false(same(&a, &b));                                                        \
		arena_drop(a.a);                                                                   \
		arena_drop(b.a);                                                                   \
	} while (0)

void test_cache_key__all_that_decides_counts(void **state)
{
	struct keyed a, b;

	(void)state;
	DIFFERS(b.name = STR("train2"));
	DIFFERS(b.spec.run = STR("[\"train\", \"--slow\"]"));
	DIFFERS(b.spec.run = STR("[\"train--\", \"fast\"]"));
	DIFFERS(b.spec.run = STR("\"train --fast\""));
	DIFFERS(b.spec.image = STR("repo/x:2"));
	DIFFERS(b.env[1].value = STR("3"));
	DIFFERS(b.env[1].key = STR("C"));
	DIFFERS(b.spec.env.n = 1);
	DIFFERS(b.outputs[0].path = STR("n"));
	DIFFERS(b.outputs[0].kind = OUTPUT_FILES);
	DIFFERS(b.spec.outputs.n = 1);
	DIFFERS(b.secrets[0].name = STR("other"));
	DIFFERS(b.secrets[0].as = SECRET_ENV);
	DIFFERS(b.spec.runtimes.n = 1);
	DIFFERS(b.spec.resources.gpus = STR("\"H100:2\""));
	DIFFERS(b.spec.placement.nodes = 2);
	DIFFERS(b.spec.placement.has_launcher = true);
	DIFFERS(b.facts.matrix = STR("{\"k\": \"2\"}"));
	DIFFERS(b.facts.repository = STR("https://git/y"));
	DIFFERS(b.facts.commit = STR("c0ffef"));
	DIFFERS(b.facts.datasets = STR("d 02"));
	DIFFERS(b.facts.models = STR("m mv_2"));
	DIFFERS(b.facts.inputs = STR("prep 03"));
	DIFFERS((b.spec.cache.by.n = 1, b.by[0] = CACHE_CODE));
}

void test_cache_key__a_border_between_words_counts(void **state)
{
	struct keyed a, b;

	(void)state;
	DIFFERS((b.env[0].value = STR("1B"), b.env[1].key = STR("")));
	DIFFERS((b.facts.repository = STR("https://git/xc0"), b.facts.commit = STR("ffee")));
}

void test_cache_key__orders_and_limits_do_not_count(void **state)
{
	struct keyed a, b;

	(void)state;
	begin(&a);
	begin(&b);
	b.env[0] = a.env[1];
	b.env[1] = a.env[0];
	b.outputs[0] = a.outputs[1];
	b.outputs[1] = a.outputs[0];
	b.secrets[0] = a.secrets[1];
	b.secrets[1] = a.secrets[0];
	b.spec.run = STR("[ \"train\",\"--fast\" ]");
	b.spec.resources.cpus = 8;
	b.spec.resources.memory = 1 << 30;
	b.spec.placement.priority = 7;
	b.spec.placement.pool = STR("big");
	b.spec.retries.user = 3;
	b.spec.cache.max_age.text = STR("1d");
	assert_true(same(&a, &b));
	arena_drop(a.a);
	arena_drop(b.a);
}

void test_cache_key__what_is_left_out_of_by_does_not_count(void **state)
{
	struct keyed a, b;

	(void)state;
	begin(&a);
	begin(&b);
	for (int i = 0; i < 2; i++) {
		struct keyed *k = i == 0 ? &a : &b;
		k->by[0] = CACHE_DATASETS;
		k->spec.cache.by.n = 1;
	}
	b.facts.commit = STR("other");
	b.facts.inputs = STR("other");
	b.facts.models = STR("other");
	assert_true(same(&a, &b));
	b.facts.datasets = STR("other");
	assert_false(same(&a, &b));
	arena_drop(a.a);
	arena_drop(b.a);
}

static void check_image(const struct keyed *k, const char *resolved, bool known, const char *image)
{
	struct str got;

	assert_int_equal(cache_image(&k->spec, str_c(resolved), &got), known);
	if (known)
		assert_true(str_is(got, image));
}

void test_cache_key__an_image_counts_by_its_digest(void **state)
{
	struct keyed k;

	(void)state;
	begin(&k);
	check_image(&k, "", false, "");
	check_image(&k, "repo/x@sha256:01", true, "sha256:01");
	check_image(&k, "sha256:02", true, "sha256:02");
	k.spec.image = STR("repo/x@sha256:03");
	check_image(&k, "", true, "sha256:03");
	k.by[0] = CACHE_CODE;
	k.spec.cache.by.n = 1;
	check_image(&k, "repo/x@sha256:01", true, "");
	k.spec.cache.by.n = 0;
	k.runtimes[0] = RUNTIME_PROCESS;
	check_image(&k, "repo/x@sha256:01", true, "");
	arena_drop(k.a);
}
