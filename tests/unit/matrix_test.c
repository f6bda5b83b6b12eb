#include "server/core/matrix.h"
#include "tests/unit/unit.h"

static const struct str alphas[] = { { "0.1", sizeof("0.1") - 1 }, { "1", sizeof("1") - 1 },
	{ "10", sizeof("10") - 1 } };
static const struct str kinds[] = { { "Big Tree", sizeof("Big Tree") - 1 },
	{ "ridge", sizeof("ridge") - 1 } };

static void fails(const struct matrix_key *keys, size_t n, const char *field, const char *msg)
{
	struct err e = { 0 };
	size_t count;

	assert_int_equal(matrix_check(keys, n, &count, &e), -1);
	assert_string_equal(e.field, field);
	assert_string_equal(e.msg, msg);
}

void test_matrix__makes_every_combination_once(void **state)
{
	const struct matrix_key keys[] = { { STR("alpha"), alphas, 3 }, { STR("kind"), kinds, 2 } };
	struct str values[2], seen[6];
	struct arena *a = arena_new(100000);
	struct err e;
	size_t count;

	(void)state;
	assert_int_equal(matrix_check(keys, 2, &count, &e), 0);
	assert_int_equal(count, 6);
	for (size_t i = 0; i < count; i++) {
		matrix_pick(keys, 2, i, values);
		assert_true(str_eq(values[0], alphas[i / 2]) && str_eq(values[1], kinds[i % 2]));
		seen[i] = arena_printf(a, "%.*s %.*s", STR_ARG(values[0]), STR_ARG(values[1]));
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(seen[i], seen[k]));
	}
	arena_drop(a);
}

void test_matrix__names_are_safe_and_differ(void **state)
{
	const struct str alike[] = { STR("a b"), STR("A-b") };
	struct matrix_key keys[] = { { STR("alpha"), alphas, 3 }, { STR("kind"), kinds, 2 } };
	struct arena *a = arena_new(100000);
	struct str names[6];
	struct err e;

	(void)state;
	assert_int_equal(matrix_names(STR("train"), keys, 2, 6, a, names, &e), 0);
	assert_string_equal(names[0].p, "train.alpha-0.1.kind-big-tree");
	assert_string_equal(names[5].p, "train.alpha-10.kind-ridge");
	/* Two that would be alike are counted, and so are all others. */
	keys[1].values = alike;
	assert_int_equal(matrix_names(STR("train"), keys, 2, 6, a, names, &e), 0);
	assert_string_equal(names[0].p, "train.1");
	assert_string_equal(names[5].p, "train.6");
	/* So are those that would be too long. */
	struct str step = STR("sixty-one-bytes-sixty-one-bytes-sixty-one-bytes-sixty-one-byt");
	assert_int_equal(step.n, 61);
	assert_int_equal(matrix_names(step, keys, 1, 3, a, names, &e), 0);
	assert_true(str_ends(names[2], STR("byt.3")) && names[2].n == 63);
	step = STR("sixty-two-bytes-sixty-two-bytes-sixty-two-bytes-sixty-two-byte");
	assert_int_equal(matrix_names(step, keys, 1, 3, a, names, &e), -1);
	arena_drop(a);
}

void test_matrix__names_the_fault(void **state)
{
	struct str many[257], twice[] = { STR("1"), STR("2"), STR("1") };
	struct matrix_key keys[] = { { STR("alpha"), alphas, 3 }, { STR("beta"), many, 86 } };
	char text[257][8];
	struct err e;
	size_t count;

	(void)state;
	for (size_t i = 0; i < 257; i++) {
		(void)str_print(text[i], sizeof text[i], "%zu", i);
		many[i] = str_c(text[i]);
	}
	fails(keys, 0, "", "must have 1 to 16 keys");
	fails(keys, 2, "", "makes more than 256 combinations");
	keys[1].n = 85;
	assert_int_equal(matrix_check(keys, 2, &count, &e), 0);
	assert_int_equal(count, 255);
	keys[1].n = 257;
	fails(keys, 2, "/beta", "must have 1 to 256 values");
	keys[1].n = 0;
	fails(keys, 2, "/beta", "must have 1 to 256 values");
	keys[1] = (struct matrix_key){ STR("beta"), twice, 3 };
	fails(keys, 2, "/beta/2", "is there twice");
	keys[1].name = STR("1st");
	fails(keys, 2, "/1st",
		"is no key of a matrix: 1 to 63 letters, digits, '_' and '-', a letter first");
}
