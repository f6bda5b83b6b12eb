/*
 * Our reader of HTTP against Debian's libhttp-parser: whatever we accept, it must accept too, with
 * the same method, target, body and end. It may accept more. Random changes of a small corpus.
 *
 *     h1_diff [ROUNDS [SEED]]     prints {"rounds":…,"accepted":…,"seed":…}; 1 on a difference
 */
#include "lib/base/buf.h"
#include "lib/base/id.h"
#include "lib/base/num.h"
#include "lib/http/h1.h"

#include <http_parser.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_MAX = 4096 };

static const char *const corpus[] = {
	"GET /a/b?c=d HTTP/1.1\r\nHost: example.com:80\r\nAccept: */*\r\n\r\n",
	"GET http://h/x HTTP/1.1\r\nHost: h\r\nConnection: close, x\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"\r\nDELETE /x HTTP/1.1\r\nhost:a\r\nX:\r\nY: \t a\tb \r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\nhello, world",
	"PUT /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
	"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	"5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
	"POST /x HTTP/1.1\r\nTransfer-Encoding:chunked\r\nHost: "
	"a\r\n\r\n0003\r\nabc\r\n000\r\n\r\n",
};

static const char *const pieces[] = { "\r\n", "\n", "\r", " ", "\t", ":", ",", ";", "0", "+", "0x",
	"\r\n ", "Content-Length: 3\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n",
	"Transfer-Encoding: gzip\r\n", "Host: a\r\n", "chunked", "HTTP/1.1", "\r\n\r\n", "%00",
	"//", "\x80", "\x7f", "0\r\n\r\n", "Connection: close\r\n", "identity" };

static uint64_t random_state;

static size_t below(size_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)(random_state >> 33) % n;
}

static void splice(struct buf *b, size_t at, size_t cut, struct str in)
{
	char rest[MESSAGE_MAX];
	size_t n = b->n - at - cut;

	if (b->n + in.n - cut > MESSAGE_MAX)
		return;
	memcpy(rest, b->p + at + cut, n);
	b->n = at;
	buf_add(b, in);
	buf_add(b, (struct str){ rest, n });
}

static void change(struct buf *b)
{
	size_t at = below(b->n), left = b->n - at;
	char c = (char)below(256);
	struct str other;

	switch (below(6)) {
	case 0: splice(b, at, 1, (struct str){ &c, 1 }); break;
	case 1: splice(b, at, 1 + below(left < 8 ? left : 8), STR("")); break;
	case 2: splice(b, at, 0, str_c(pieces[below(sizeof pieces / sizeof pieces[0])])); break;
	case 3:
		splice(b, at, below(2), str_c(pieces[below(sizeof pieces / sizeof pieces[0])]));
		break;
	case 4:
		other = str_c(corpus[below(sizeof corpus / sizeof corpus[0])]);
		splice(b, at, below(left), str_slice(other, below(other.n), below(40)));
		break;
	default: b->p[at] ^= (char)(1 << below(7)); break;
	}
}

struct theirs {
	struct buf body, url;
	bool complete;
};

static int on_body(http_parser *p, const char *at, size_t n)
{
	buf_add(&((struct theirs *)p->data)->body, (struct str){ at, n });
	return 0;
}

static int on_url(http_parser *p, const char *at, size_t n)
{
	buf_add(&((struct theirs *)p->data)->url, (struct str){ at, n });
	return 0;
}

static int on_complete(http_parser *p)
{
	((struct theirs *)p->data)->complete = true;
	return 0;
}

/* Whether we accept m: then its target and body, and how long it is. */
static bool ours(struct str m, struct h1_head *h, struct buf *body, size_t *ret_used)
{
	static const struct h1_limits limits = { 2000, 2000, 4000, 64 };
	enum h1_status st;
	struct h1_body b;
	size_t at;

	h1_head_init(h, &limits);
	if (h1_head_feed(h, m) != H1_DONE)
		return false;
	at = h->size;
	h1_body_init(&b, h->framing, h->length);
	do {
		struct str data;
		size_t used;

		st = h1_body_feed(&b, (struct str){ m.p + at, m.n - at }, &used, &data);
		buf_add(body, data);
		at += used;
		if (st == H1_MORE && used == 0)
			return false;
	} while (st == H1_MORE);
	*ret_used = at;
	return st == H1_DONE;
}

/* It takes "Transfer-Encoding+: x" for half a Transfer-Encoding, and then refuses its value. */
static bool confuses_it(struct str m, const struct h1_head *h)
{
	struct str te = STR("transfer-encoding");

	for (size_t i = 0; i < h->n_fields; i++) {
		struct str name = h1_span_str(m, h->fields[i].name);

		if (name.n > te.n && str_eq_nocase(str_slice(name, 0, te.n), te))
			return true;
	}
	return false;
}

/* NULL when the two agree about the message that we accepted. */
static const char *compare(struct str m, const struct h1_head *h, struct buf *body)
{
	static const http_parser_settings settings = {
		.on_body = on_body, .on_url = on_url, .on_message_complete = on_complete
	};
	struct theirs t = { .complete = false };
	struct str method = h1_span_str(m, h->method);
	const char *fault = NULL;
	http_parser p;

	buf_init(&t.body, MESSAGE_MAX);
	buf_init(&t.url, MESSAGE_MAX);
	http_parser_init(&p, HTTP_REQUEST);
	p.data = &t;
	size_t used = http_parser_execute(&p, &settings, m.p, m.n);
	enum http_errno no = HTTP_PARSER_ERRNO(&p);

	/* Methods that it does not know are our router's to refuse. */
	if (no == HPE_INVALID_METHOD)
		goto done;
	if (no != HPE_OK)
		fault = http_errno_description(no);
	else if (used != m.n || !t.complete)
		fault = "it sees another end";
	else if (!str_is(method, http_method_str((enum http_method)p.method)))
		fault = "it sees another method";
	else if (!str_eq(buf_str(&t.url), h1_span_str(m, h->target)))
		fault = "it sees another target";
	else if (!p.upgrade && !str_eq(buf_str(&t.body), buf_str(body)))
		fault = "it sees another body";
done:
	buf_done(&t.body);
	buf_done(&t.url);
	return fault;
}

static bool round_ok(uint64_t *accepted)
{
	struct buf b, body;
	struct h1_head h;
	size_t used = 0;
	bool ok = true;

	buf_init(&b, MESSAGE_MAX + 64);
	buf_init(&body, MESSAGE_MAX);
	buf_adds(&b, corpus[below(sizeof corpus / sizeof corpus[0])]);
	for (size_t n = below(4); n > 0 && b.n > 0; n--)
		change(&b);
	if (b.n != 0 && ours(buf_str(&b), &h, &body, &used) && !confuses_it(buf_str(&b), &h)) {
		const char *fault = compare((struct str){ b.p, used }, &h, &body);

		++*accepted;
		ok = fault == NULL;
		if (!ok)
			fprintf(stderr, "%s:\n%.*s\n", fault, (int)used, b.p);
	}
	buf_done(&b);
	buf_done(&body);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t rounds = 100000, seed, accepted = 0;

	id_random(&seed, sizeof seed);
	seed >>= 1;
	if ((argc > 1 && !num_parse_u64(str_c(argv[1]), 1, UINT64_MAX, &rounds)) ||
		(argc > 2 && !num_parse_u64(str_c(argv[2]), 0, UINT64_MAX, &seed)))
		return 2;
	random_state = seed;
	for (uint64_t i = 0; i < rounds; i++)
		if (!round_ok(&accepted)) {
			fprintf(stderr, "round %" PRIu64 " of seed %" PRIu64 "\n", i, seed);
			return 1;
		}
	printf("{\"rounds\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"seed\":%" PRIu64 "}\n", rounds,
		accepted, seed);
	return 0;
}
