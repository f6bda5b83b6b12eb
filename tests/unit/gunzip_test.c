#include "lib/base/buf.h"
#include "lib/zip/gunzip.h"
#include "tests/unit/unit.h"

/* "hello, hello, hello\n" by gzip -9n */
static const unsigned char packed[] = { 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff,
	0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xd7, 0x51, 0xc8, 0x40, 0xa2, 0xb8, 0x00, 0xe7, 0x42, 0x6e,
	0x52, 0x14, 0x00, 0x00, 0x00 };
#define PACKED ((struct str){ (const char *)packed, sizeof packed })

static int on_piece(void *arg, struct str piece, struct err *e)
{
	(void)e;
	buf_add(arg, piece);
	return 0;
}

static int read_cut(struct str text, size_t cut, uint64_t limit, struct buf *out, struct err *e)
{
	struct gunzip *g = gunzip_new(limit);
	int rc = gunzip_add(g, str_slice(text, 0, cut), on_piece, out, e);

	if (rc == 0)
		rc = gunzip_add(g, str_slice(text, cut, text.n), on_piece, out, e);
	if (rc == 0)
		rc = gunzip_end(g, e);
	gunzip_free(g);
	return rc;
}

void test_gunzip__members_however_they_are_cut(void **state)
{
	struct buf two, out;
	struct err e;

	(void)state;
	buf_init(&two, 1024);
	buf_init(&out, 1024);
	buf_add(&two, PACKED);
	buf_add(&two, PACKED);
	for (size_t cut = 0; cut <= two.n; cut++) {
		buf_clear(&out);
		assert_int_equal(read_cut(buf_str(&two), cut, 1024, &out, &e), 0);
		assert_string_equal(out.p, "hello, hello, hello\nhello, hello, hello\n");
	}
	buf_done(&two);
	buf_done(&out);
}

void test_gunzip__faults(void **state)
{
	struct buf out;
	struct err e;

	(void)state;
	buf_init(&out, 1024);
	for (size_t n = 0; n < PACKED.n; n++) {
		assert_int_equal(read_cut(str_slice(PACKED, 0, n), 0, 1024, &out, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
	assert_int_equal(read_cut(STR("no gzip at all"), 3, 1024, &out, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(read_cut(PACKED, 5, 19, &out, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	buf_done(&out);
}
