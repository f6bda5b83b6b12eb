/* worker/ship/mask.h: the same bytes are hidden wherever a spool is cut. */
#include "api/frame.h"
#include "lib/base/mem.h"
#include "tests/unit/unit.h"
#include "worker/ship/mask.h"

#include <stdlib.h>

#define SECRET "tdm_job_01kb9zv1f0m3_aaaaab"

static unsigned seed;

static unsigned next(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

struct spool {
	unsigned char p[8192];
	size_t n;
	size_t edges[512]; /* where frames begin; the last is n */
	size_t frames;
};

static void add(struct spool *s, uint8_t stream, const char *text, size_t n)
{
	struct frame f = { .length = (uint32_t)n, .stream = stream, .time_us = 1 };

	if (n == 0)
		return;
	frame_put(s->p + s->n, f);
	memcpy(s->p + s->n + FRAME_HEADER, text, n);
	s->n += FRAME_HEADER + n;
	s->edges[++s->frames] = s->n;
}

static struct mask *token_mask(struct str token)
{
	struct mask *m = mask_new();

	assert_true(mask_add(m, token, MASK_KEEP));
	return m;
}

/* Masks by pieces that end at random edges, as a shipper does; the result in place. */
static void mask_in_pieces(struct spool *s, struct mask *m)
{
	size_t done = 0, edge = 0;

	while (done < s->n) {
		edge += 1 + next(3);
		if (edge > s->frames)
			edge = s->frames;
		bool last = edge == s->frames;
		size_t n = s->edges[edge] - done;
		size_t gone = mask_frames(m, s->p + done, n, done, last);
		assert_true(gone <= n && (gone == n || !last));
		done += gone;
	}
}

static size_t payload(const struct spool *s, uint8_t stream, char *out)
{
	struct frame f;
	size_t n = 0;

	for (size_t at = 0; at < s->n && frame_get(s->p + at, &f); at += FRAME_HEADER + f.length)
		if (f.stream == stream) {
			memcpy(out + n, s->p + at + FRAME_HEADER, f.length);
			n += f.length;
		}
	out[n] = '\0';
	return n;
}

static void fill(struct spool *s, const char *out, const char *err)
{
	size_t a = 0, b = 0, na = strlen(out), nb = strlen(err);

	*s = (struct spool){ .n = 0 };
	while (a < na || b < nb) {
		size_t n = 1 + next(9);
		if (a < na && (b >= nb || next(2) == 0)) {
			n = n < na - a ? n : na - a;
			add(s, FRAME_STDOUT, out + a, n);
			a += n;
		} else {
			n = n < nb - b ? n : nb - b;
			add(s, FRAME_STDERR, err + b, n);
			b += n;
		}
	}
}

void test_mask__same_wherever_it_is_cut(void **state)
{
	static struct spool s;
	struct mask *m;
	char text[4096];

	(void)state;
	for (seed = 1; seed < 400; seed += 7) {
		unsigned start = seed;
		fill(&s,
			"a" SECRET SECRET "b tdm_job_01kb9zv1f0m3_aaaaaab tdm_ " SECRET "\ntdm_job",
			"tdm_tdm_job_01kb9zv1f0m3_aaaaab tdm_job_01kb9zv1f0m3_aaaaa");
		m = token_mask(STR(SECRET));
		mask_in_pieces(&s, m);
		(void)payload(&s, FRAME_STDOUT, text);
		assert_string_equal(text,
			"atdm_***********************tdm_***********************b "
			"tdm_job_01kb9zv1f0m3_aaaaaab tdm_ tdm_***********************\ntdm_job");
		(void)payload(&s, FRAME_STDERR, text);
		assert_string_equal(
			text, "tdm_tdm_*********************** tdm_job_01kb9zv1f0m3_aaaaa");
		seed = start;
		mask_free(m);
	}
}

void test_mask__nothing_to_hide(void **state)
{
	static struct spool s, before;
	struct mask *m;

	(void)state;
	fill(&s, "short and " SECRET, "");
	before = s;
	m = token_mask(STR("short"));
	mask_in_pieces(&s, m);
	assert_memory_equal(s.p, before.p, s.n);
	mask_free(m);
	m = token_mask(STR_NONE);
	mask_in_pieces(&s, m);
	assert_memory_equal(s.p, before.p, s.n);
	mask_free(m);
}

void test_mask__holds_back_what_may_be_it(void **state)
{
	static struct spool s;
	struct mask *m;

	(void)state;
	s = (struct spool){ .n = 0 };
	add(&s, FRAME_STDOUT, "before\n", 7);
	add(&s, FRAME_STDOUT, "tdm_job_01", 10);
	add(&s, FRAME_STDERR, "other\n", 6);
	m = token_mask(STR(SECRET));
	/* Up to MASK_KEEP bytes of it tell nothing and may go. */
	assert_int_equal(mask_frames(m, s.p, s.n, 0, false), s.edges[1]);
	assert_int_equal(mask_frames(m, s.p + s.edges[1], s.n - s.edges[1], s.edges[1], true),
		s.n - s.edges[1]);
	mask_free(m);
	s = (struct spool){ .n = 0 };
	add(&s, FRAME_STDOUT, "tdm_", 4);
	m = token_mask(STR(SECRET));
	assert_int_equal(mask_frames(m, s.p, s.n, 0, false), s.n);
	mask_free(m);
}

/* Each on the bytes as they were written: what one hides does not keep another from being found. */
void test_mask__secrets_that_overlap_are_all_hidden(void **state)
{
	static struct spool s;
	char text[4096];

	(void)state;
	for (seed = 3; seed < 300; seed += 7) {
		unsigned start = seed;
		struct mask *m = token_mask(STR(SECRET));
		assert_true(mask_add(m, STR("hunter2-hunter"), 0));
		assert_true(mask_add(m, STR("hunter2-"), 0));
		assert_true(mask_add(m, STR("-hunter3"), 0));
		fill(&s, "a hunter2-hunter3 b hunter2-hunter2-hunter c hunter2 h",
			SECRET "hunter2-");
		mask_in_pieces(&s, m);
		(void)payload(&s, FRAME_STDOUT, text);
		assert_string_equal(text, "a *************** b ********************** c hunter2 h");
		(void)payload(&s, FRAME_STDERR, text);
		assert_int_equal(strlen(text), strlen(SECRET "hunter2-"));
		assert_int_equal(strspn(text, "tdm_"), 4);
		assert_int_equal(strspn(text + 4, "*"), strlen(text) - 4);
		mask_free(m);
		seed = start;
	}
}

void test_mask__a_long_secret_is_hidden_in_parts(void **state)
{
	static struct spool s;
	char secret[MASK_MAX + 5], text[4096], stars[MASK_MAX + 5];

	(void)state;
	for (size_t i = 0; i < sizeof secret; i++)
		secret[i] = (char)('a' + i % 26);
	memset(stars, '*', sizeof stars);
	s = (struct spool){ .n = 0 };
	add(&s, FRAME_STDOUT, "[", 1);
	add(&s, FRAME_STDOUT, secret, 100);
	add(&s, FRAME_STDOUT, secret + 100, sizeof secret - 100);
	add(&s, FRAME_STDOUT, "]", 1);
	struct mask *m = mask_new();
	assert_true(mask_add(m, (struct str){ secret, sizeof secret }, 0));
	mask_in_pieces(&s, m);
	size_t n = payload(&s, FRAME_STDOUT, text);
	assert_int_equal(n, sizeof secret + 2);
	assert_memory_equal(text + 1, stars, sizeof stars);
	mask_free(m);
	assert_int_equal(mask_parts((struct str){ secret, sizeof secret }), 2);
	assert_int_equal(mask_parts((struct str){ secret, MASK_MAX }), 1);
	assert_int_equal(mask_parts((struct str){ secret, MASK_MIN - 1 }), 0);
	m = mask_new();
	for (size_t i = 0; i < MASK_PARTS_MAX; i++)
		assert_true(mask_add(m, (struct str){ secret, 20 }, 0));
	assert_false(mask_add(m, (struct str){ secret, 20 }, 0));
	mask_free(m);
}

/* ---- a spool that is longer than a piece ---- */

enum { LONG_MAX = 4 << 20, PIECE = 1 << 20, BLOCK = 60000 };

static unsigned char long_spool[LONG_MAX], long_copy[LONG_MAX];

static size_t add_long(size_t n, uint8_t stream, const char *text, size_t length)
{
	frame_put(long_spool + n,
		(struct frame){ .length = (uint32_t)length, .stream = stream, .time_us = 1 });
	memcpy(long_spool + n + FRAME_HEADER, text, length);
	return n + FRAME_HEADER + length;
}

/* By pieces of at most `most` bytes, from where the last one ended; each goes on. */
static void mask_long(unsigned char *p, size_t n, size_t most, struct str secret)
{
	struct mask *m = mask_new();
	bool sound;

	assert_true(mask_add(m, secret, 0));
	for (size_t done = 0; done < n;) {
		size_t size = n - done < most ? n - done : most;
		bool last = size == n - done;
		size = frame_whole(p + done, size, &sound);
		size_t gone = mask_frames(m, p + done, size, done, last);
		assert_true(sound && gone > 0 && (gone == size || !last));
		done += gone;
	}
	mask_free(m);
}

/* A secret in two writes, with `between` bytes of the other stream in the middle. */
static size_t fill_long(size_t cut, size_t between, struct str secret)
{
	static char block[BLOCK];
	size_t n = add_long(0, FRAME_STDOUT, secret.p, cut);

	memset(block, '.', sizeof block);
	for (size_t i = 0; i < between; i += sizeof block)
		n = add_long(n, FRAME_STDERR, block, sizeof block);
	return add_long(n, FRAME_STDOUT, secret.p + cut, secret.n - cut);
}

/* No byte of a secret goes out, however far apart its parts are, and a second reading, in other
 * pieces, gives the same bytes. */
void test_mask__parts_that_are_far_apart(void **state)
{
	const struct str secret = STR("hunter2-0123");

	(void)state;
	for (size_t between = BLOCK; between < 3 << 20; between += 9 * BLOCK)
		for (size_t cut = 1; cut < secret.n; cut++) {
			size_t n = fill_long(cut, between, secret);
			memcpy(long_copy, long_spool, n);
			mask_long(long_spool, n, PIECE, secret);
			mask_long(long_copy, n, PIECE - 3 * BLOCK, secret);
			assert_memory_equal(long_copy, long_spool, n);
			assert_memory_equal(long_spool + FRAME_HEADER, "***********", cut);
			assert_memory_equal(
				long_spool + n - (secret.n - cut), "***********", secret.n - cut);
		}
}

/* What only looked like one is hidden when it would have to be held back for too long. */
void test_mask__a_head_that_is_never_completed(void **state)
{
	const struct str secret = STR("hunter2-0123");

	(void)state;
	size_t n = fill_long(7, 2 * BLOCK, secret);
	long_spool[n - 1] = 'x';
	mask_long(long_spool, n, PIECE, secret);
	assert_memory_equal(long_spool + FRAME_HEADER, "hunter2", 7);
	n = fill_long(7, 20 * BLOCK, secret);
	long_spool[n - 1] = 'x';
	mask_long(long_spool, n, PIECE, secret);
	assert_memory_equal(long_spool + FRAME_HEADER, "*******", 7);
	assert_memory_equal(long_spool + n - 5, "-012x", 5);
}
