/* worker/ship/match.h: what is found depends on the bytes alone, not on how they are cut. */
#include "worker/ship/match.h"

#include "api/frame.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/regex/regex.h"
#include "server/sched/log_policy.h"
#include "tests/unit/unit.h"

#define LIT(text)                                                                                  \
	{                                                                                          \
		(text), sizeof(text) - 1                                                           \
	}

static const struct log_policy policies[] = {
	{ LIT("CUDA out of memory"), LOG_STOP_RETRYING, LIT("cuda-oom") },
	{ LIT("(?i)^warning: \\d+"), LOG_LABEL, LIT("warning") },
	{ LIT("never"), LOG_NOTIFY, { NULL, 0 } },
};
static const struct list all = { (void *)(uintptr_t)policies, 3 };

static void add(struct buf *b, uint8_t stream, struct str text)
{
	unsigned char head[FRAME_HEADER];

	frame_put(head,
		(struct frame){ .length = (uint32_t)text.n, .stream = stream, .time_us = b->n });
	buf_add(b, (struct str){ (const char *)head, sizeof head });
	buf_add(b, text);
}

static const struct log_match *found(struct match *m, struct arena *a, int policy)
{
	struct list l = match_list(m, a);

	for (size_t i = 0; i < l.n; i++)
		if (list_at(&l, struct log_match, i)->policy == policy)
			return list_at(&l, struct log_match, i);
	return NULL;
}

static void look(struct match *m, const struct buf *b)
{
	match_frames(m, (const unsigned char *)b->p, b->n);
}

void test_match__lines_are_found_by_the_servers_numbers(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct match *m = match_new(&all);
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	add(&b, FRAME_STDOUT, STR("one\nCUDA out "));
	add(&b, FRAME_STDERR, STR("warning: 12\nnot a warning: 3\n"));
	add(&b, FRAME_STDOUT, STR("of memory\nWARNING: 4"));
	look(m, &b);
	assert_int_equal(found(m, a, 0)->line, 2);
	assert_int_equal(found(m, a, 0)->count, 1);
	assert_string_equal(found(m, a, 0)->text.p, "CUDA out of memory");
	assert_int_equal(found(m, a, 1)->line, 3);
	assert_int_equal(found(m, a, 1)->count, 1); /* the last line has not ended */
	match_end(m);
	match_end(m);
	assert_int_equal(found(m, a, 1)->count, 2);
	assert_null(found(m, a, 2));
	assert_int_equal(match_near(m, "cuda-oom"), 0);
	assert_int_equal(match_near(m, "other"), -1);
	buf_done(&b);
	match_free(m);
	arena_drop(a);
}

void test_match__a_line_counts_once_and_is_seen_between_its_returns(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct match *m = match_new(&all);
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	add(&b, FRAME_STDOUT, STR("10%\rwarning: 1\rwarning: 2\r"));
	add(&b, FRAME_STDOUT, STR("warning: 3\nplain\nwarning: 4\n"));
	look(m, &b);
	assert_int_equal(found(m, a, 1)->count, 2);
	assert_int_equal(found(m, a, 1)->line, 1);
	assert_string_equal(found(m, a, 1)->text.p, "warning: 1");
	buf_done(&b);
	match_free(m);
	arena_drop(a);
}

/* However the bytes are cut into frames. */
void test_match__the_cut_changes_nothing(void **state)
{
	static const char text[] =
		"a\nwarning: 5 x\r\nCUDA out of memory \xff\0 CUDA out of memory\n"
		"warning: 6\nwarning:\n\n\r\rwarning: 7";
	struct arena *a = arena_new(8 << 20);

	(void)state;
	for (size_t cut = 1; cut < sizeof text; cut++) {
		struct match *m = match_new(&all);
		struct buf b;
		buf_init(&b, 1 << 20);
		for (size_t at = 0; at < sizeof text - 1; at += cut)
			add(&b, FRAME_STDOUT,
				str_slice((struct str){ text, sizeof text - 1 }, at, cut));
		look(m, &b);
		match_end(m);
		assert_int_equal(found(m, a, 0)->line, 3);
		assert_int_equal(found(m, a, 0)->count, 1);
		assert_string_equal(
			found(m, a, 0)->text.p, "CUDA out of memory    CUDA out of memory");
		assert_int_equal(found(m, a, 1)->line, 2);
		assert_int_equal(found(m, a, 1)->count, 3);
		match_reset(m);
		assert_int_equal(match_list(m, a).n, 0);
		look(m, &b);
		assert_int_equal(found(m, a, 1)->line, 2);
		buf_done(&b);
		match_free(m);
	}
	arena_drop(a);
}

/* The first MATCH_PIECE_MAX bytes of a line are looked at, and about the place is kept. */
void test_match__a_huge_line_is_looked_at_in_part(void **state)
{
	static char x[FRAME_PAYLOAD_MAX];
	struct arena *a = arena_new(1 << 20);
	struct match *m = match_new(&all);
	struct buf b;

	(void)state;
	memset(x, 'x', sizeof x);
	buf_init(&b, 1 << 20);
	memcpy(x + 8000, "CUDA out of memory", 18);
	add(&b, FRAME_STDOUT, (struct str){ x, 4000 });
	add(&b, FRAME_STDOUT, (struct str){ x + 4000, sizeof x - 4000 });
	look(m, &b);
	assert_null(found(m, a, 0));
	add(&b, FRAME_STDOUT, STR("CUDA out of memory\n"));
	match_reset(m);
	look(m, &b);
	assert_int_equal(found(m, a, 0)->line, 1);
	assert_int_equal(found(m, a, 0)->text.n, LOG_MATCH_TEXT);
	assert_int_equal(str_find(found(m, a, 0)->text, STR("CUDA out of memory")), 60);
	buf_clear(&b);
	memset(x, 'x', sizeof x);
	add(&b, FRAME_STDOUT, (struct str){ x, MATCH_PIECE_MAX });
	add(&b, FRAME_STDOUT, STR("CUDA out of memory\n"));
	match_reset(m);
	look(m, &b);
	assert_null(found(m, a, 0));
	buf_done(&b);
	match_free(m);
	arena_drop(a);
}

void test_match__news_is_what_was_not_told(void **state)
{
	struct match *m = match_new(&all);
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	add(&b, FRAME_STDOUT, STR("warning: 1\n"));
	assert_false(match_news(m, true));
	look(m, &b);
	assert_true(match_news(m, false));
	match_told(m);
	assert_false(match_news(m, true));
	look(m, &b);
	assert_false(match_news(m, false));
	assert_true(match_news(m, true));
	buf_done(&b);
	match_free(m);
	assert_null(match_new(&(struct list){ NULL, 0 }));
}

/* A step's own and Tidemill's, as large as they may be. */
void test_match__all_policies_fit_into_one_set(void **state)
{
	const struct log_spec logs = { .defaults = true };
	struct arena *a = arena_new(1 << 20);
	struct list own = log_policy_all(&logs, a);
	const char *patterns[REGEX_SET_MAX];
	char why[REGEX_WHY_MAX];
	size_t n = 0, bad;

	(void)state;
	for (; n < own.n; n++)
		patterns[n] = list_at(&own, struct log_policy, n)->match.p;
	for (; n < REGEX_SET_MAX; n++)
		patterns[n] = "[^a]{370}";
	struct regex *r = regex_new("[^a]{370}", 9, REGEX_SMALL, why);
	assert_non_null(r);
	regex_free(r);
	assert_null(regex_new("[^a]{380}", 9, REGEX_SMALL, why)); /* just below the limit, then */
	struct regex_set *s = regex_set_new(patterns, n, &bad, why);
	assert_non_null(s);
	regex_set_free(s);
	arena_drop(a);
}

/* What an older or newer server lets through must not cost the others. */
void test_match__a_pattern_that_cannot_be_read_is_left_out(void **state)
{
	static const struct log_policy some[] = {
		{ LIT("(open"), LOG_LABEL, LIT("bad") },
		{ LIT("good"), LOG_LABEL, LIT("good") },
		{ LIT("a{1001}"), LOG_LABEL, LIT("bad") },
	};
	const struct list list = { (void *)(uintptr_t)some, 3 };
	struct arena *a = arena_new(1 << 20);
	struct match *m = match_new(&list);
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	add(&b, FRAME_STDOUT, STR("good\n"));
	look(m, &b);
	assert_int_equal(match_list(m, a).n, 1);
	assert_int_equal(found(m, a, 1)->line, 1);
	buf_done(&b);
	match_free(m);
	arena_drop(a);
}

/* Of a gang it says whose log that was. */
void test_log_policy__verdict_names_the_rank(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct log_verdict v;

	(void)state;
	log_policy_judge(
		STR("[{\"action\": \"stop_retrying\", \"label\": \"nccl\", \"line\": 7}]"), a, &v);
	assert_true(str_is(v.stop, "line 7 of its log matches nccl"));
	log_policy_judge(STR("[{\"action\": \"stop_retrying\", \"label\": \"nccl\", \"line\": 7, "
			     "\"rank\": 3}]"),
		a, &v);
	assert_true(str_is(v.stop, "line 7 of the log of rank 3 matches nccl"));
	assert_false(v.avoid);
	arena_drop(a);
}
