/* Stored forms: what is written reads back, what is damaged or forged is refused. */
#include "lib/stats/codec.h"
#include "tests/unit/stats_sample.h"

void test_stats__profile_and_counts_survive_their_stored_form(void **state)
{
	(void)state;
	for (int shape = 0; shape < 5; shape++) {
		double *v = sample(3001, shape, 2, 1, 8);
		static struct stats_profile back;
		struct stats_profile *p = build(v, 3001, 4, shape == 1 ? 60 : 0);
		static struct stats_counts counts;
		struct stats_counts *c = count(p, v, 1234);
		static uint8_t bytes[STATS_PROFILE_BYTES_MAX], again[STATS_PROFILE_BYTES_MAX];
		size_t n = stats_profile_encode(p, bytes);
		struct err e;

		assert_in_range(n, 1, STATS_PROFILE_BYTES_MAX);
		assert_int_equal(stats_profile_decode(bytes, n, &back, &e), 0);
		assert_int_equal(stats_profile_encode(&back, again), n);
		assert_memory_equal(bytes, again, n);
		assert_memory_equal(back.edge, p->edge, sizeof(p->edge));
		n = stats_counts_encode(c, bytes);
		assert_int_equal(stats_counts_decode(bytes, n, &counts, &e), 0);
		assert_memory_equal(&counts, c, sizeof(counts));
		assert_int_equal(stats_counts_merge(&counts, &back.ref, &e), 0);
		mem_free(p);
		mem_free(c);
		mem_free(v);
	}
}

typedef int decoder(const uint8_t *p, size_t n, struct err *e);

/* Every changed bit of every third byte, and every length but the right one. */
static void refuses_damage(uint8_t *bytes, size_t n, decoder *decode)
{
	struct err e;

	assert_int_equal(decode(bytes, n, &e), 0);
	for (size_t i = 0; i < n; i += 3)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1u << bit);
			assert_int_equal(decode(bytes, n, &e), -1);
			assert_int_equal(e.code, ERR_CORRUPT);
			bytes[i] ^= (uint8_t)(1u << bit);
		}
	for (size_t short_n = 0; short_n < n; short_n += 1 + n / 700)
		assert_int_equal(decode(bytes, short_n, &e), -1);
	assert_int_equal(decode(NULL, 0, &e), -1);
	assert_int_equal(decode(bytes, n, &e), 0);
}

static int decode_profile(const uint8_t *p, size_t n, struct err *e)
{
	struct stats_profile v;

	return stats_profile_decode(p, n, &v, e);
}

static int decode_counts(const uint8_t *p, size_t n, struct err *e)
{
	struct stats_counts v;

	return stats_counts_decode(p, n, &v, e);
}

void test_stats__damaged_bytes_are_refused(void **state)
{
	double *v = sample(500, 0, 1, 0, 8);
	struct stats_profile *p = build(v, 500, 0, 20);
	uint8_t bytes[STATS_PROFILE_BYTES_MAX];

	(void)state;
	refuses_damage(bytes, stats_profile_encode(p, bytes), decode_profile);
	refuses_damage(bytes, stats_counts_encode(&p->ref, bytes), decode_counts);
	/* One kind is not taken for the other. */
	assert_int_equal(
		decode_profile(bytes, stats_counts_encode(&p->ref, bytes), &(struct err){ 0 }), -1);
	mem_free(p);
	mem_free(v);
}

static void refuse_counts(const struct stats_counts *c)
{
	uint8_t bytes[STATS_COUNTS_BYTES_MAX];

	assert_int_equal(
		decode_counts(bytes, stats_counts_encode(c, bytes), &(struct err){ 0 }), -1);
}

static void refuse_profile(const struct stats_profile *p)
{
	uint8_t bytes[STATS_PROFILE_BYTES_MAX];

	assert_int_equal(
		decode_profile(bytes, stats_profile_encode(p, bytes), &(struct err){ 0 }), -1);
}

void test_stats__contradicting_contents_are_refused(void **state)
{
	double *v = sample(500, 0, 1, 0, 8);
	static struct stats_profile bad;
	struct stats_profile *p = build(v, 500, 0, 20);
	struct stats_counts c;

	(void)state;
	c = p->ref;
	c.finite++;
	refuse_counts(&c);
	c = p->ref;
	c.min = c.max + 1;
	refuse_counts(&c);
	c = p->ref;
	c.max = HUGE_VAL;
	refuse_counts(&c);
	c = p->ref;
	c.moment[1] = -1;
	refuse_counts(&c);
	c = p->ref;
	c.count[0] = UINT64_MAX;
	c.count[1] = 501 - c.finite;
	refuse_counts(&c);
	bad = *p;
	bad.edge[3] = bad.edge[4];
	refuse_profile(&bad);
	bad = *p;
	bad.group[5] = 9;
	refuse_profile(&bad);
	bad = *p;
	bad.shift += 1;
	refuse_profile(&bad);
	bad = *p;
	bad.ref.edges_id++;
	refuse_profile(&bad);
	mem_free(p);
	mem_free(v);
}

static uint64_t seen_room[200];

static int decode_categories(const uint8_t *p, size_t n, struct err *e)
{
	struct stats_categories *c = mem_new_of(struct stats_categories);
	int rc = stats_categories_decode(
		p, n, (struct stats_categories_room){ seen_room, 200 }, c, e);

	mem_free(c);
	return rc;
}

void test_stats__categories_survive_their_stored_form_and_damage_is_refused(void **state)
{
	struct stats_category_in in[400], few[] = { { STR("a"), 5 }, { STR(""), 5 } };
	uint64_t seen[200], back_seen[200];
	struct stats_categories *ref = categories(in, many(in), 9, seen, 200),
				*small = categories(few, 2, 1, NULL, 0),
				*back = mem_new_of(struct stats_categories);
	size_t n = stats_categories_bytes(ref);
	uint8_t *bytes = mem_new(n, 1), *again = mem_new(n, 1);
	struct err e;

	(void)state;
	assert_int_equal(stats_categories_encode(ref, bytes, n), n);
	assert_int_equal(stats_categories_encode(ref, again, n - 1), 0);
	assert_int_equal(stats_categories_decode(bytes, n,
				 (struct stats_categories_room){ back_seen, 200 }, back, &e),
		0);
	assert_int_equal(stats_categories_encode(back, again, n), n);
	assert_memory_equal(bytes, again, n);
	assert_int_equal(stats_categories_decode(bytes, n,
				 (struct stats_categories_room){ back_seen, 144 }, back, &e),
		-1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	n = stats_categories_encode(small, bytes, n);
	assert_int_equal(n, stats_categories_bytes(small));
	refuses_damage(bytes, n, decode_categories);
	small->rows++;
	n = stats_categories_encode(small, bytes, n);
	assert_int_equal(decode_categories(bytes, n, &e), -1);
	mem_free(ref);
	mem_free(small);
	mem_free(back);
	mem_free(bytes);
	mem_free(again);
}

/* Bytes that somebody has changed and signed again: refused, or read as a sound value, never more.
 */
static void survives_forgery(uint8_t *bytes, size_t n, decoder *decode, uint64_t seed)
{
	uint8_t *forged = mem_new(n, 1);
	struct stats_random r;

	stats_random_seed(&r, seed);
	for (int round = 0; round < 1500; round++) {
		size_t cut = round % 5 == 0 ? stats_random_row(&r, n - 4) + 4 : n;
		uint32_t crc;

		memcpy(forged, bytes, n);
		for (size_t k = stats_random_row(&r, 4) + 1; k > 0; k--)
			forged[8 + stats_random_row(&r, round % 2 == 0 ? 40 : n - 12)] =
				(uint8_t)stats_random_next(&r);
		crc = codec_crc(0, forged, cut - 4);
		for (unsigned b = 0; b < 4; b++)
			forged[cut - 4 + b] = (uint8_t)(crc >> (8 * b));
		(void)!decode(forged, cut, &(struct err){ 0 });
	}
	mem_free(forged);
}

void test_stats__forged_bytes_break_nothing(void **state)
{
	static struct stats_category_in in[400];
	uint64_t seen[200];
	double *v = sample(500, 0, 1, 0, 8);
	struct stats_profile *p = build(v, 500, 0, 240);
	struct stats_categories *c = categories(in, many(in), 9, seen, 200);
	size_t n = stats_categories_bytes(c);
	uint8_t *bytes = mem_new(n < STATS_PROFILE_BYTES_MAX ? STATS_PROFILE_BYTES_MAX : n, 1);

	(void)state;
	survives_forgery(bytes, stats_profile_encode(p, bytes), decode_profile, 1);
	survives_forgery(bytes, stats_counts_encode(&p->ref, bytes), decode_counts, 2);
	survives_forgery(bytes, stats_categories_encode(c, bytes, n), decode_categories, 3);
	mem_free(bytes);
	mem_free(c);
	mem_free(p);
	mem_free(v);
}
