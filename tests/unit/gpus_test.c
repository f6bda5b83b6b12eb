#include "server/core/gpus.h"
#include "tests/unit/unit.h"

#define GB  UINT64_C(1000000000)
#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static void parses(const char *text, uint32_t count, const char *model, uint64_t min, uint64_t max)
{
	struct arena *a = arena_new(10000);
	struct gpus_want w;
	struct err e = { 0 };

	if (gpus_parse(str_c(text), a, &w, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_int_equal(w.count, count);
	assert_int_equal(w.models_n, model != NULL);
	if (model != NULL)
		assert_true(str_is(w.models[0], model));
	assert_int_equal(w.memory_min, min);
	assert_int_equal(w.memory_max, max);
	arena_drop(a);
}

void test_gpus__short_forms(void **state)
{
	(void)state;
	parses("", 0, NULL, 0, 0);
	parses("0", 0, NULL, 0, 0);
	parses("2", 2, NULL, 0, 0);
	parses("64", 64, NULL, 0, 0);
	parses("H100:4", 4, "H100", 0, 0);
	parses("H100", 1, "H100", 0, 0);
	parses("RTX 4090:2", 2, "RTX 4090", 0, 0);
	parses("A100-SXM4-80GB:8", 8, "A100-SXM4-80GB", 0, 0);
	parses("24GB..80GB:2", 2, NULL, 24 * GB, 80 * GB);
	parses("40GiB..", 1, NULL, 40 * GIB, 0);
	parses("..80GB:1", 1, NULL, 0, 80 * GB);
}

void test_gpus__faults(void **state)
{
	static const char *const bad[] = { "65", "-1", "H100:0", "H100:65", "H100:", ":2", "H100:x",
		"H100:2:3", "..", "..:2", "80GB..24GB", "24GB:2", "24XB..:2", "0..:2", "H\n100:1",
		"-H100:1", "1.5", "H100*:1", "18446744073709551616", "99999999999TiB..",
		"0123456789012345678901234567890123456789012345678901234567890123:1" };
	struct arena *a = arena_new(10000);
	struct gpus_want w = { .count = 7 };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		e = (struct err){ 0 };
		if (gpus_parse(str_c(bad[i]), a, &w, &e) == 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.code, ERR_INVALID);
		assert_int_equal(w.count, 7);
	}
	assert_int_equal(gpus_parse(STR("24GB:2"), a, &w, &e), -1);
	assert_string_equal(e.msg, "is one amount of memory; write a range, as \"24GB..\"");
	arena_drop(a);
}

static bool matches_slice(const char *text, const char *model, uint64_t memory, const char *mig)
{
	struct arena *a = arena_new(10000);
	struct gpus_want w;
	struct err e;

	assert_int_equal(gpus_parse(str_c(text), a, &w, &e), 0);
	bool match = gpus_match(&w, str_c(model), memory, str_c(mig));
	arena_drop(a);
	return match;
}

static bool matches(const char *text, const char *model, uint64_t memory)
{
	return matches_slice(text, model, memory, "");
}

/* Nobody gets a slice who has not asked for one, nor a whole GPU instead. */
void test_gpus__slices_are_asked_for(void **state)
{
	static const char *const profiles[] = { "1g.18gb", "1g.18gb:3", "1g.10gb+me",
		"1c.3g.40gb:1", "7g.141gb" };
	struct arena *a = arena_new(10000);
	struct gpus_want w;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
		assert_int_equal(gpus_parse(str_c(profiles[i]), a, &w, &e), 0);
		assert_int_equal(w.count, i == 1 ? 3 : 1);
		assert_int_equal(w.models_n, 0);
		assert_true(str_starts(str_c(profiles[i]), w.mig));
	}
	arena_drop(a);
	assert_true(matches_slice("1g.18gb", "NVIDIA H200", 18 * GB, "1g.18gb"));
	assert_true(matches_slice("1G.18GB:2", "NVIDIA H200", 18 * GB, "1g.18gb"));
	assert_false(matches_slice("1g.18gb", "NVIDIA H200", 18 * GB, "1g.18gb+me"));
	assert_false(matches_slice("1g.18gb", "NVIDIA H200", 141 * GB, ""));
	assert_false(matches_slice("1", "NVIDIA H200", 18 * GB, "1g.18gb"));
	assert_false(matches_slice("H200:1", "NVIDIA H200", 18 * GB, "1g.18gb"));
	w = (struct gpus_want){ .count = 1, .mig = STR("any") };
	assert_true(gpus_match(&w, STR("NVIDIA H200"), 18 * GB, STR("2g.35gb")));
	assert_false(gpus_match(&w, STR("NVIDIA H200"), 141 * GB, STR("")));
	assert_int_equal(gpus_check_mig(STR("any"), &e), 0);
	assert_int_equal(gpus_check_mig(STR("1g.5gb"), &e), 0);
	assert_int_equal(gpus_check_mig(STR("g.5gb"), &e), -1);
	assert_int_equal(gpus_check_mig(STR("all"), &e), -1);
	assert_int_equal(gpus_check_model(STR("H100"), &e), 0);
	assert_int_equal(gpus_check_model(STR("100"), &e), -1);
}

void test_gpus__models_match_as_words(void **state)
{
	(void)state;
	assert_true(matches("H100:1", "NVIDIA H100 80GB HBM3", 1));
	assert_true(matches("h100:1", "NVIDIA H100 80GB HBM3", 1));
	assert_true(matches("A100:1", "NVIDIA A100-SXM4-80GB", 1));
	assert_true(matches("RTX 4090:1", "NVIDIA GeForce RTX 4090", 1));
	assert_true(matches("NVIDIA L4:1", "NVIDIA L4", 1));
	assert_false(matches("L4:1", "NVIDIA L40S", 1));
	assert_false(matches("H10:1", "NVIDIA H100", 1));
	assert_false(matches("H100:1", "", 1));
	assert_true(matches("2", "anything", 0));
}

void test_gpus__memory_is_what_the_box_says(void **state)
{
	(void)state;
	/* As NVML reports them: H100 80GB, RTX 4090 24GB, T4 16GB, A100 40GB, L40S 48GB. */
	assert_true(matches("80GB..80GB:1", "NVIDIA H100", 81559 * MIB));
	assert_true(matches("80GiB..:1", "NVIDIA H100", 81559 * MIB));
	assert_true(matches("24GiB..25GiB:1", "RTX 4090", 24564 * MIB));
	assert_true(matches("16GiB..:1", "T4", 15360 * MIB));
	assert_false(matches("80GB..:1", "A100", 40536 * MIB));
	assert_false(matches("..40GB:1", "L40S", 46068 * MIB));
	assert_false(matches("24GB..:1", "T4", 15360 * MIB));
	assert_true(matches("40GB..:1", "huge", UINT64_MAX));
	assert_false(matches("..80GB:1", "huge", UINT64_MAX));
}
