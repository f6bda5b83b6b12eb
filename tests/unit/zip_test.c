#include "lib/base/mem.h"
#include "lib/zip/zip.h"
#include "tests/unit/unit.h"

enum { SIZE = 300000 };

/* Text that compresses well, with a number in each line so that it is not one run. */
static void fill(struct buf *b)
{
	buf_init(b, SIZE + 100);
	for (int i = 0; b->n < SIZE; i++)
		buf_addf(b, "step %d loss 0.%05d\n", i, i * 7919 % 100000);
}

void test_zip__pieces_come_back(void **state)
{
	struct zip *z = zip_new();
	struct buf in, out, back;
	struct err e;

	(void)state;
	fill(&in);
	buf_init(&out, SIZE);
	buf_init(&back, in.n + 3);
	buf_adds(&back, "ab:");
	assert_int_equal(zip_compress(z, buf_str(&in), 1, &out, &e), 0);
	assert_true(out.n < in.n / 2);
	assert_int_equal(
		zip_decompress(z, buf_str(&out), &back, &e), 0); /* exactly at the ceiling */
	assert_memory_equal(back.p + 3, in.p, in.n);
	buf_clear(&out);
	buf_clear(&back);
	assert_int_equal(zip_compress(z, STR_NONE, 3, &out, &e), 0);
	assert_int_equal(zip_decompress(z, buf_str(&out), &back, &e), 0);
	assert_int_equal(back.n, 0);
	buf_done(&in);
	buf_done(&out);
	buf_done(&back);
	zip_free(z);
}

void test_zip__ceilings_hold_and_leave_the_output_as_it_was(void **state)
{
	struct zip *z = zip_new();
	struct buf in, out, small;
	struct err e;

	(void)state;
	fill(&in);
	buf_init(&out, SIZE);
	assert_int_equal(zip_compress(z, buf_str(&in), 1, &out, &e), 0);
	for (size_t max = 1; max < in.n; max = max * 7 + 1) {
		buf_init(&small, max);
		buf_addc(&small, 'x');
		assert_int_equal(zip_decompress(z, buf_str(&out), &small, &e), -1);
		assert_int_equal(e.code, ERR_TOO_LARGE);
		assert_string_equal(small.p, "x");
		buf_done(&small);
	}
	buf_init(&small, in.n - 1);
	assert_int_equal(zip_decompress(z, buf_str(&out), &small, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	buf_done(&small);
	buf_init(&small, out.n - 1);
	assert_int_equal(zip_compress(z, buf_str(&in), 1, &small, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(small.n, 0);
	assert_int_equal(zip_compress(z, STR("x"), 1, &small, &e), 0);
	buf_done(&small);
	buf_done(&in);
	buf_done(&out);
	zip_free(z);
}

void test_zip__damage_is_found(void **state)
{
	struct zip *z = zip_new();
	struct buf out, back;
	struct err e;

	(void)state;
	buf_init(&out, 1000);
	buf_init(&back, 1000);
	assert_int_equal(
		zip_compress(z, STR("the same words, the same words, again"), 1, &out, &e), 0);
	for (size_t i = 0; i < out.n; i++) {
		assert_int_equal(zip_decompress(z, str_slice(buf_str(&out), 0, i), &back, &e), -1);
		assert_int_equal(e.code, ERR_CORRUPT);
		out.p[i] = (char)(out.p[i] ^ 0x55);
		if (zip_decompress(z, buf_str(&out), &back, &e) == 0)
			assert_string_equal(back.p, "the same words, the same words, again");
		out.p[i] = (char)(out.p[i] ^ 0x55);
		buf_clear(&back);
	}
	buf_done(&out);
	buf_done(&back);
	zip_free(z);
}
