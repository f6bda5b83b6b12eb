#include "lib/http/h1.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "tests/unit/unit.h"

#include <stdio.h>

/*
 * The framing corpus. Every message is read in one piece, byte by byte, and cut in two at every
 * place; all must give the same result.
 */

struct outcome {
	enum h1_status head, body;
	enum err_code code;
	size_t used; /* bytes of the whole message */
	struct buf data;
};

static const struct h1_limits usual = { 8192, 8192, 32768, 64 };

static void outcome_init(struct outcome *o)
{
	*o = (struct outcome){ .head = H1_MORE, .body = H1_MORE };
	buf_init(&o->data, 1 << 20);
}

struct reader {
	struct h1_head head;
	struct h1_body body;
	struct outcome *o;
};

/* Reads what the first `have` bytes of m allow. */
static void read_upto(struct reader *r, struct str m, size_t have)
{
	struct outcome *o = r->o;

	if (o->head == H1_MORE) {
		/* A fresh copy for each call: the reader may keep no pointers. */
		char *copy = mem_dupn(have != 0 ? m.p : "", have);

		o->head = h1_head_feed(&r->head, (struct str){ copy, have });
		mem_free(copy);
		if (o->head == H1_BAD)
			o->code = r->head.code;
		if (o->head != H1_DONE)
			return;
		o->used = r->head.size;
		h1_body_init(&r->body, r->head.framing, r->head.length);
	}
	while (o->head == H1_DONE && o->body == H1_MORE) {
		struct str data;
		size_t used;

		o->body = h1_body_feed(
			&r->body, (struct str){ m.p + o->used, have - o->used }, &used, &data);
		o->used += used;
		buf_add(&o->data, data);
		if (used == 0)
			break;
	}
}

static void read_cut(struct outcome *o, struct str m, size_t cut, size_t step)
{
	struct reader r = { .o = o };

	outcome_init(o);
	h1_head_init(&r.head, &usual);
	for (size_t have = cut; have < m.n; have += step)
		read_upto(&r, m, have);
	read_upto(&r, m, m.n);
}

static void assert_same(struct str m, const struct outcome *a, const struct outcome *b)
{
	if (a->head != b->head || a->body != b->body || a->code != b->code || a->used != b->used ||
		!str_eq(buf_str(&a->data), buf_str(&b->data)))
		fail_msg("pieces matter for: %.*s", STR_ARG(m));
}

/* Reads m in all ways; the outcome of the whole is returned. */
static struct outcome read_all_ways(struct str m)
{
	struct outcome whole, cut;

	read_cut(&whole, m, m.n, 1);
	for (size_t at = 0; at <= m.n; at++) {
		read_cut(&cut, m, at, m.n + 1);
		assert_same(m, &whole, &cut);
		buf_done(&cut.data);
	}
	read_cut(&cut, m, 0, 1);
	assert_same(m, &whole, &cut);
	buf_done(&cut.data);
	return whole;
}

static void refused(struct str m, enum err_code code)
{
	struct outcome o = read_all_ways(m);

	if (o.head == H1_BAD)
		assert_int_equal(o.code, code);
	else if (o.body != H1_BAD)
		fail_msg("accepted: %.*s", STR_ARG(m));
	buf_done(&o.data);
}

static void accepted(struct str m, const char *body, size_t rest)
{
	struct outcome o = read_all_ways(m);

	if (o.head != H1_DONE || o.body != H1_DONE)
		fail_msg("refused: %.*s", STR_ARG(m));
	assert_string_equal(o.data.p != NULL ? o.data.p : "", body);
	assert_int_equal(o.used, m.n - rest);
	buf_done(&o.data);
}

#define POST "POST /x HTTP/1.1\r\nHost: a\r\n"
#define GET  "GET /x HTTP/1.1\r\nHost: a\r\n"
#define TE   POST "Transfer-Encoding: chunked\r\n\r\n"

void test_h1__framing_that_two_parsers_could_read_differently_is_refused(void **state)
{
	(void)state;
	refused(STR(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"),
		ERR_MALFORMED);
	refused(STR(POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc"),
		ERR_MALFORMED);
	refused(STR(POST "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc"),
		ERR_MALFORMED);
	refused(STR(POST "Content-Length: 3\r\nTransfer-Encoding: xchunked\r\n\r\nabc"),
		ERR_MALFORMED);
	refused(STR(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), ERR_NOT_IMPLEMENTED);
	refused(STR(POST "Transfer-Encoding: identity\r\n\r\n"), ERR_NOT_IMPLEMENTED);
	refused(STR(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
		ERR_MALFORMED);
	refused(STR(POST "Transfer-Encoding:\x0b"
			 "chunked\r\n\r\n"),
		ERR_MALFORMED);
	refused(STR("POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
		ERR_MALFORMED);
	refused(STR(POST "Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: +3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: -3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 3,3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 3 3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 0x3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length:\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 3 \r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 9223372036854775808\r\n\r\n"), ERR_MALFORMED);
	refused(STR(POST "Content-Length: 18446744073709551621\r\n\r\n"), ERR_MALFORMED);
}

void test_h1__chunks_are_read_strictly(void **state)
{
	(void)state;
	accepted(STR(TE "3\r\nabc\r\n0\r\n\r\n"), "abc", 0);
	accepted(STR(TE "3\r\nabc\r\nA\r\n0123456789\r\n00\r\n\r\nGET"), "abc0123456789", 3);
	accepted(STR(TE "3;name=\"v a l\"\r\nabc\r\n0;x\r\n\r\n"), "abc", 0);
	accepted(STR(TE "0\r\nTrailer: x\r\nB:\r\n\r\n"), "", 0);
	refused(STR(TE "0x3\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "+3\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "-3\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE " 3\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "3 \r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "g\r\n"), ERR_MALFORMED);
	refused(STR(TE "3\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "3\r\nabcd\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "3\r\nabc0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "3\r\nabc\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "3;a\nb\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "3;a\rb\r\nabc\r\n0\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "FFFFFFFFFFFFFFFF\r\n"), ERR_MALFORMED);
	refused(STR(TE "1000000000000000000000000000003\r\n"), ERR_MALFORMED);
	refused(STR(TE "0\r\nbad trailer: x\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "0\r\nA: b\r\nContent-length: 3\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "0\r\nTRANSFER-ENCODING: x\r\n\r\n"), ERR_MALFORMED);
	accepted(STR(TE "0\r\nContent-Lengt: 3\r\nTransfer: x\r\n\r\n"), "", 0);
	refused(STR(TE "0\r\nno colon\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "0\r\n: empty\r\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "0\r\nA: x\n\r\n"), ERR_MALFORMED);
	refused(STR(TE "0\r\nA: \0x\r\n\r\n"), ERR_MALFORMED);
}

void test_h1__lines_and_characters(void **state)
{
	(void)state;
	accepted(STR(GET "\r\n"), "", 0);
	accepted(STR("\r\n" GET "\r\n"), "", 0);
	accepted(STR(GET "X: \t a b \t\r\nY:\r\nZ: \xc3\xa9\r\n\r\n"), "", 0);
	refused(STR("\r\n\r\n" GET "\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/1.1\nHost: a\n\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\rb\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\r\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\0b\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\x7f\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\r\n b\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X: a\r\n\tb\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/1.1\r\n Host: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X : a\r\n\r\n"), ERR_MALFORMED);
	refused(STR(POST "Content-Length : 3\r\n\r\nabc"), ERR_MALFORMED);
	refused(STR(GET ": a\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "X(y): a\r\n\r\n"), ERR_MALFORMED);
	refused(STR(GET "Authorization: a\r\nAuthorization: b\r\n\r\n"), ERR_MALFORMED);
}

void test_h1__request_line(void **state)
{
	(void)state;
	accepted(STR("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "", 0);
	accepted(STR("GET http://a/x?y HTTP/1.1\r\nHost: A\r\n\r\n"), "", 0);
	accepted(STR("GET / HTTP/1.0\r\n\r\n"), "", 0);
	refused(STR("get /x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET  /x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x  HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET\t/x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR(" GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/1.1 \r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/0.9\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/9.9\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/2.0\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x HTTP/1.11\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x http/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /a\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET //evil/x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET http://a//x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ERR_MALFORMED);
	refused(STR("\x16\x03\x01\x02"), ERR_MALFORMED);
}

void test_h1__host(void **state)
{
	(void)state;
	accepted(STR("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"), "", 0);
	accepted(STR("GET / HTTP/1.1\r\nhOsT: ex-am_ple.com:80\r\n\r\n"), "", 0);
	refused(STR("GET / HTTP/1.1\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost:\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: a:\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET / HTTP/1.1\r\nHost: a:x\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET http://a@b/x HTTP/1.1\r\nHost: b\r\n\r\n"), ERR_MALFORMED);
	refused(STR("GET http:///x HTTP/1.1\r\nHost: b\r\n\r\n"), ERR_MALFORMED);
}

static struct h1_head head_of(struct str m, const struct h1_limits *limits, enum h1_status want)
{
	struct h1_head h;

	h1_head_init(&h, limits);
	assert_int_equal(h1_head_feed(&h, m), want);
	return h;
}

void test_h1__connection_and_expectation(void **state)
{
	static const char close_mixed[] = GET "Connection: x, Close\r\n\r\n";
	static const char old_keep[] = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

	(void)state;
	assert_true(head_of(STR(GET "\r\n"), &usual, H1_DONE).keep_alive);
	assert_false(head_of(STR(close_mixed), &usual, H1_DONE).keep_alive);
	assert_false(head_of(STR("GET / HTTP/1.0\r\n\r\n"), &usual, H1_DONE).keep_alive);
	assert_true(head_of(STR(old_keep), &usual, H1_DONE).keep_alive);
	assert_true(head_of(
		STR(POST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n"), &usual, H1_DONE)
			    .expect_continue);
	assert_false(
		head_of(STR(GET "Expect: 100-continue\r\n\r\n"), &usual, H1_DONE).expect_continue);
	refused(STR(POST "Expect: 200-ok\r\nContent-Length: 1\r\n\r\na"), ERR_MALFORMED);
}

void test_h1__target_parts(void **state)
{
	struct str m = STR("GET http://h:1/a/b?c=d?e HTTP/1.1\r\nHost: h:1\r\n\r\n");
	struct h1_head h = head_of(m, &usual, H1_DONE);

	(void)state;
	assert_true(str_is(h1_span_str(m, h.path), "/a/b"));
	assert_true(str_is(h1_span_str(m, h.query), "c=d?e"));
	assert_true(str_is(h1_span_str(m, h.host), "h:1"));
	assert_int_equal(h.n_fields, 1);
}

static struct str repeat(struct buf *b, const char *before, char c, size_t n, const char *after)
{
	buf_clear(b);
	buf_adds(b, before);
	for (size_t i = 0; i < n; i++)
		buf_addc(b, c);
	buf_adds(b, after);
	return buf_str(b);
}

/* Each limit at N - 1, N and N + 1. */
void test_h1__limits_are_exact(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (size_t d = 0; d <= 2; d++) {
		bool ok = d < 2;
		enum h1_status want = ok ? H1_DONE : H1_BAD;
		/* "GET /" + n + " HTTP/1.1" */
		size_t line = 8192 - 14 - 1 + d, field = 8192 - 3 - 1 + d;
		struct h1_head h =
			head_of(repeat(&b, "GET /", 'a', line, " HTTP/1.1\r\nHost: a\r\n\r\n"),
				&usual, want);

		if (!ok)
			assert_int_equal(h.code, ERR_URI_TOO_LONG);
		h = head_of(repeat(&b, GET "X: ", 'a', field, "\r\n\r\n"), &usual, want);
		if (!ok)
			assert_int_equal(h.code, ERR_HEADERS_TOO_LARGE);
	}
	for (size_t n = 62; n <= 64; n++) { /* and Host */
		struct h1_head h;

		buf_clear(&b);
		buf_adds(&b, GET);
		for (size_t i = 0; i < n; i++)
			buf_adds(&b, "X: y\r\n");
		buf_adds(&b, "\r\n");
		h = head_of(buf_str(&b), &usual, n <= 63 ? H1_DONE : H1_BAD);
		if (n > 63)
			assert_int_equal(h.code, ERR_HEADERS_TOO_LARGE);
	}
	for (size_t d = 0; d <= 2; d++) {
		/* "Host: a\r\n" is 9 bytes, "X: …\r\n" is n + 5, and the empty line is 2. */
		const struct h1_limits small = { 100, 100, 60, 10 };
		size_t n = 60 - 9 - 5 - 2 - 1 + d;
		struct h1_head h = head_of(repeat(&b, GET "X: ", 'a', n, "\r\n\r\n"), &small,
			d < 2 ? H1_DONE : H1_BAD);

		if (d == 2)
			assert_int_equal(h.code, ERR_HEADERS_TOO_LARGE);
	}
	buf_done(&b);
}

void test_h1__chunk_limits_are_exact(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (size_t n = H1_CHUNK_EXT_MAX - 1; n <= H1_CHUNK_EXT_MAX + 1; n++) {
		struct outcome o;

		read_cut(&o, repeat(&b, TE "1;", 'e', n, "\r\nx\r\n0\r\n\r\n"), 0, 7);
		assert_int_equal(o.body, n <= H1_CHUNK_EXT_MAX ? H1_DONE : H1_BAD);
		buf_done(&o.data);
	}
	for (size_t n = H1_TRAILERS_MAX - 6; n <= H1_TRAILERS_MAX - 4; n++) {
		struct outcome o;

		/* "T:" + n + CR, and the CR of the last line, count. */
		read_cut(&o, repeat(&b, TE "0\r\nT:", 'e', n, "\r\n\r\n"), 0, 7);
		assert_int_equal(o.body, n + 4 <= H1_TRAILERS_MAX ? H1_DONE : H1_BAD);
		buf_done(&o.data);
	}
	buf_done(&b);
}

void test_h1__many_tiny_chunks(void **state)
{
	struct h1_body body;
	size_t total = 0;

	(void)state;
	h1_body_init(&body, H1_BODY_CHUNKED, 0);
	for (int i = 0; i < 100000; i++) {
		struct str p = STR("1\r\nx\r\n"), data;
		size_t used;

		while (p.n != 0) {
			assert_int_equal(h1_body_feed(&body, p, &used, &data), H1_MORE);
			p = str_slice(p, used, p.n - used);
			total += data.n;
		}
	}
	assert_int_equal(total, 100000);
}
