#include "server/store/log_text.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "tests/unit/unit.h"

/* A spool in the making. */
static void put(struct buf *b, int stream, const char *text)
{
	unsigned char head[FRAME_HEADER];

	frame_put(
		head, (struct frame){ (uint32_t)strlen(text), (uint8_t)stream, 0, 1000000 + b->n });
	buf_add(b, (struct str){ (const char *)head, FRAME_HEADER });
	buf_adds(b, text);
}

static void make_spool(struct buf *b)
{
	buf_init(b, 1 << 20);
	put(b, FRAME_STDOUT, "one\ntw");
	put(b, FRAME_STDERR, "err\n");
	put(b, FRAME_STDOUT, "o\r");
	put(b, FRAME_STDOUT, "\n\n");
	put(b, FRAME_SYSTEM, "note");
	put(b, FRAME_STDOUT, "10%\r20%");
	put(b, FRAME_STDOUT, "\r30%");
	put(b, FRAME_STDERR, "open");
}

struct seen {
	struct buf text;
};

static void see(void *arg, const struct log_line *line)
{
	struct seen *s = arg;

	buf_addf(&s->text, "%lld/%d/%.*s\n", (long long)line->line, line->stream,
		STR_ARG(line->text));
}

static void scan_all(struct str spool, struct seen *s, struct log_scan *scan)
{
	buf_init(&s->text, 1 << 20);
	log_scan_init(scan, &(struct log_place){ 0 }, 1000);
	scan->on_line = see;
	scan->arg = s;
	log_scan_add(scan, spool);
}

void test_log_text__lines(void **state)
{
	(void)state;
	struct buf b;
	struct seen s;
	struct log_scan scan;
	struct log_line line;

	make_spool(&b);
	scan_all(buf_str(&b), &s, &scan);
	assert_string_equal(s.text.p, "1/1/one\n3/2/err\n2/1/two\n4/1/\n");
	assert_int_equal(scan.at.lines, 7);
	assert_int_equal(scan.at.offset, (int64_t)b.n);
	assert_true(log_scan_open(&scan, 0, &line));
	assert_int_equal(line.line, 6);
	assert_true(str_is(line.text, "30%"));
	assert_true(line.open);
	assert_true(log_scan_open(&scan, 2, &line));
	assert_true(line.line == 5 && str_is(line.text, "note"));
	log_scan_done(&scan);
	buf_done(&s.text);
	buf_done(&b);
}

/* From any edge of a frame the numbers are the same, and the places of passing and scanning agree.
 */
void test_log_text__place_at_every_split(void **state)
{
	(void)state;
	struct buf b;
	struct log_place whole = { 0 };
	size_t at = 0;

	make_spool(&b);
	log_place_pass(&whole, buf_str(&b));
	while (at < b.n) {
		struct log_place p = { 0 };
		struct log_scan scan;
		struct frame f;
		log_place_pass(&p, str_slice(buf_str(&b), 0, at));
		log_scan_init(&scan, &p, 1000);
		log_scan_add(&scan, str_slice(buf_str(&b), at, b.n));
		assert_memory_equal(&scan.at, &whole, sizeof whole);
		log_scan_done(&scan);
		log_place_pass(&p, str_slice(buf_str(&b), at, b.n));
		assert_memory_equal(&p, &whole, sizeof whole);
		assert_true(frame_get((const unsigned char *)b.p + at, &f));
		at += FRAME_HEADER + f.length;
	}
	buf_done(&b);
}

void test_log_text__headless(void **state)
{
	(void)state;
	struct buf b;
	struct log_place p = { .offset = 100, .lines = 9, .open = { 7, 0, 0 } };
	struct log_scan scan;
	struct seen s;

	buf_init(&b, 1000);
	buf_init(&s.text, 1000);
	put(&b, FRAME_STDOUT, "end of it\nnew\n");
	log_scan_init(&scan, &p, 1000);
	scan.on_line = see;
	scan.arg = &s;
	log_scan_add(&scan, buf_str(&b));
	assert_string_equal(s.text.p, "7/1/…end of it\n10/1/new\n");
	log_scan_done(&scan);
	buf_done(&s.text);
	buf_done(&b);
}

void test_log_text__long_lines_are_cut(void **state)
{
	(void)state;
	struct buf b;
	struct log_scan scan;
	struct seen s;

	buf_init(&b, 1000);
	buf_init(&s.text, 1000);
	put(&b, FRAME_STDOUT, "0123456789");
	put(&b, FRAME_STDOUT, "abc\n");
	put(&b, FRAME_STDOUT, "0123456789ab\rshort\n");
	log_scan_init(&scan, &(struct log_place){ 0 }, 8);
	scan.on_line = see;
	scan.arg = &s;
	log_scan_add(&scan, buf_str(&b));
	assert_string_equal(s.text.p, "1/1/01234567… and 5 bytes more\n2/1/short\n");
	log_scan_done(&scan);
	buf_done(&s.text);
	buf_done(&b);
}

void test_log_text__chunks_and_offsets(void **state)
{
	(void)state;
	struct buf b;
	char *text = mem_new(40001, 1);
	size_t one = FRAME_HEADER + 40000;

	memset(text, 'x', 40000);
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 3; i++)
		put(&b, FRAME_STDOUT, text);
	assert_int_equal(log_chunk_cut(buf_str(&b)), one);
	put(&b, FRAME_STDERR, "end\n");
	assert_int_equal(log_chunk_cut(str_slice(buf_str(&b), 2 * one, b.n)), b.n - 2 * one);
	for (int64_t offset = 90; offset < 110; offset++) {
		struct str rest = buf_str(&b);
		int64_t at = 100;
		bool edge = offset <= 100;
		assert_int_equal(log_frames_from(&rest, &at, offset), offset == 100);
		assert_int_equal(rest.n, edge ? b.n : b.n - one);
	}
	struct str rest = buf_str(&b);
	int64_t at = 100;
	assert_true(log_frames_from(&rest, &at, 100 + (int64_t)b.n));
	assert_int_equal(rest.n, 0);
	mem_free(text);
	buf_done(&b);
}
