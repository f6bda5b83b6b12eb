#include "lib/http/h1.h"

#include "lib/base/num.h"

/*
 * The head is read line by line. Bytes are looked at once, as they come, for what may not stand in
 * a line; a complete line is taken apart at once. What needs several fields (framing, host) is
 * judged at the empty line. The body is a machine over single bytes, except that data is taken in
 * one piece.
 */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_token_char(char c)
{
	return is_digit(c) || is_alpha(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Printable, space, tab, or obs-text (RFC 9110, 5.5). */
static bool is_field_char(char c)
{
	unsigned char u = (unsigned char)c;

	return (u >= 0x20 && u != 0x7f) || u == '\t';
}

static enum h1_status bad(struct h1_head *h, enum err_code code, const char *why)
{
	h->code = code;
	h->why = why;
	return H1_BAD;
}

static enum h1_status malformed(struct h1_head *h, const char *why)
{
	return bad(h, ERR_MALFORMED, why);
}

static struct h1_span span(size_t at, size_t n)
{
	return (struct h1_span){ (uint32_t)at, (uint32_t)n };
}

void h1_head_init(struct h1_head *h, const struct h1_limits *limits)
{
	BUG_ON(limits->fields > H1_FIELDS_MAX);
	/* The fields are left as they are: n_fields says how many are true. */
	memset(h, 0, offsetof(struct h1_head, fields));
	memset((char *)h + offsetof(struct h1_head, n_fields), 0,
		sizeof *h - offsetof(struct h1_head, n_fields));
	h->limits = *limits;
}

static bool is_name_char(char c)
{
	return is_digit(c) || is_alpha(c) || c == '-' || c == '.' || c == '_';
}

/* Where a name, an IPv4 address, or an IPv6 address in brackets ends; 0: there is none. */
static size_t host_end(struct str s)
{
	size_t i = 0;

	if (s.n == 0 || s.p[0] != '[') {
		while (i < s.n && is_name_char(s.p[i]))
			i++;
		return i;
	}
	for (i = 1; i < s.n && s.p[i] != ']'; i++)
		if (!is_digit(s.p[i]) && !is_alpha(s.p[i]) && s.p[i] != ':' && s.p[i] != '.')
			return 0;
	return i < s.n && i > 1 ? i + 1 : 0;
}

/* RFC 3986 host with an optional port. */
static bool host_valid(struct str s)
{
	size_t i = host_end(s), digits = 0;

	if (i == 0 || i == s.n)
		return i != 0;
	if (s.p[i++] != ':')
		return false;
	for (; i < s.n && is_digit(s.p[i]); i++)
		digits++;
	return i == s.n && digits >= 1 && digits <= 5;
}

/* Origin form, absolute form with our two schemes, or '*' for OPTIONS. */
static enum h1_status target_split(struct h1_head *h, struct str p)
{
	struct str t = h1_span_str(p, h->target);
	size_t at = h->target.at, end = at + t.n;

	if (str_is(t, "*")) {
		if (!str_is(h1_span_str(p, h->method), "OPTIONS"))
			return malformed(h, "the target * is for OPTIONS only");
		h->path = h->target;
		return H1_MORE;
	}
	if (str_starts(t, STR("http://")) || str_starts(t, STR("https://"))) {
		size_t from = at + (size_t)str_find(t, STR("://")) + 3, to = from;

		while (to < end && p.p[to] != '/' && p.p[to] != '?')
			to++;
		h->host = span(from, to - from);
		if (!host_valid(h1_span_str(p, h->host)))
			return malformed(h, "the authority of the target is not valid");
		at = to;
	}
	if (at == end || p.p[at] != '/')
		return malformed(h, "the target is not a path");
	if (at + 1 < end && p.p[at + 1] == '/')
		return malformed(h, "the path begins with two slashes");
	h->path = span(at, end - at);
	for (size_t i = at; i < end; i++) {
		if (p.p[i] == '#')
			return malformed(h, "the target has a fragment");
		if (p.p[i] == '?' && h->query.at == 0) {
			h->path = span(at, i - at);
			h->query = span(i + 1, end - i - 1);
		}
	}
	return H1_MORE;
}

static enum h1_status request_line(struct h1_head *h, struct str p, size_t end)
{
	size_t i = h->line, start;
	struct str version;

	while (i < end && ((p.p[i] >= 'A' && p.p[i] <= 'Z') || p.p[i] == '-'))
		i++;
	h->method = span(h->line, i - h->line);
	if (h->method.n == 0 || h->method.n > 20 || i == end || p.p[i] != ' ')
		return malformed(h, "the method is not valid");
	start = ++i;
	while (i < end && p.p[i] > ' ' && p.p[i] < 0x7f)
		i++;
	h->target = span(start, i - start);
	if (h->target.n == 0 || i == end || p.p[i] != ' ')
		return malformed(h, "the request target is not valid");
	version = (struct str){ p.p + i + 1, end - i - 1 };
	if (str_is(version, "HTTP/1.1"))
		h->minor = 1;
	else if (!str_is(version, "HTTP/1.0"))
		return malformed(h, "the version is not HTTP/1.1 or HTTP/1.0");
	return target_split(h, p);
}

static enum h1_status field_line(struct h1_head *h, struct str p, size_t end)
{
	size_t i = h->line, from;

	if (h->n_fields == h->limits.fields)
		return bad(h, ERR_HEADERS_TOO_LARGE, "there are too many header fields");
	if (p.p[i] == ' ' || p.p[i] == '\t')
		return malformed(h, "a header field is folded");
	while (i < end && is_token_char(p.p[i]))
		i++;
	if (i == h->line || i == end || p.p[i] != ':')
		return malformed(h, "a header name is not valid");
	h->fields[h->n_fields].name = span(h->line, i - h->line);
	from = i + 1;
	while (from < end && (p.p[from] == ' ' || p.p[from] == '\t'))
		from++;
	while (end > from && (p.p[end - 1] == ' ' || p.p[end - 1] == '\t'))
		end--;
	h->fields[h->n_fields++].value = span(from, end - from);
	return H1_MORE;
}

/* Fields that must not come twice, since readers differ in which one they take. */
static const char *const single[] = { "host", "content-length", "transfer-encoding",
	"authorization", "content-type", "expect", "x-request-id" };

static enum h1_status set_length(struct h1_head *h, struct str v)
{
	if (!num_parse_u64(v, 0, H1_BODY_MAX, &h->length))
		return malformed(h, "Content-Length is not a number of bytes");
	if (h->framing == H1_BODY_CHUNKED)
		return malformed(h, "Content-Length and Transfer-Encoding together");
	h->framing = H1_BODY_LENGTH;
	return H1_MORE;
}

static enum h1_status set_chunked(struct h1_head *h, struct str v)
{
	if (h->framing == H1_BODY_LENGTH)
		return malformed(h, "Content-Length and Transfer-Encoding together");
	if (h->minor == 0)
		return malformed(h, "Transfer-Encoding in HTTP/1.0");
	h->framing = H1_BODY_CHUNKED;
	return str_eq_nocase(v, STR("chunked"))
		       ? H1_MORE
		       : bad(h, ERR_NOT_IMPLEMENTED, "the transfer coding is not chunked");
}

static enum h1_status set_host(struct h1_head *h, struct str p, struct h1_span at)
{
	struct str v = h1_span_str(p, at);

	if (!host_valid(v))
		return malformed(h, "Host is not valid");
	if (h->host.n != 0 && !str_eq_nocase(v, h1_span_str(p, h->host)))
		return malformed(h, "the target names another host than Host");
	h->host = at;
	return H1_MORE;
}

static void set_connection(struct h1_head *h, struct str v)
{
	struct str token;

	while (v.n != 0 && str_next(&v, ',', &token)) {
		token = str_trim(token);
		if (str_eq_nocase(token, STR("close")))
			h->keep_alive = false;
		else if (str_eq_nocase(token, STR("keep-alive")) && h->minor == 0)
			h->keep_alive = true;
	}
}

static enum h1_status set_expect(struct h1_head *h, struct str v)
{
	if (!str_eq_nocase(v, STR("100-continue")))
		return malformed(h, "Expect is not 100-continue");
	h->expect_continue = h->minor == 1;
	return H1_MORE;
}

static enum h1_status one_field(struct h1_head *h, struct str p, size_t i, unsigned *seen)
{
	struct str name = h1_span_str(p, h->fields[i].name);
	struct str value = h1_span_str(p, h->fields[i].value);
	size_t k;

	for (k = 0; k < sizeof single / sizeof single[0]; k++)
		if (str_eq_nocase(name, str_c(single[k])))
			break;
	if (k < sizeof single / sizeof single[0]) {
		if ((*seen & 1U << k) != 0)
			return malformed(h, "a header field that must be single comes twice");
		*seen |= 1U << k;
	}
	/* Some readers take space behind such a value for a part of it. */
	if ((k == 1 || k == 2) && p.p[h->fields[i].value.at + value.n] != '\r')
		return malformed(h, "a space behind Content-Length or Transfer-Encoding");
	switch (k) {
	case 0: return set_host(h, p, h->fields[i].value);
	case 1: return set_length(h, value);
	case 2: return set_chunked(h, value);
	case 5: return set_expect(h, value);
	default: break;
	}
	if (str_eq_nocase(name, STR("connection")))
		set_connection(h, value);
	return H1_MORE;
}

static enum h1_status head_end(struct h1_head *h, struct str p)
{
	enum h1_status unknown_coding = H1_MORE;
	unsigned seen = 0;

	h->keep_alive = h->minor == 1;
	for (size_t i = 0; i < h->n_fields; i++) {
		enum h1_status r = one_field(h, p, i, &seen);

		/* A second framing field is the worse fault: it is looked for first. */
		if (r == H1_BAD && h->code == ERR_NOT_IMPLEMENTED)
			unknown_coding = r;
		else if (r == H1_BAD)
			return r;
	}
	if (unknown_coding == H1_BAD)
		return bad(h, ERR_NOT_IMPLEMENTED, "the transfer coding is not chunked");
	if (h->minor == 1 && (seen & 1) == 0)
		return malformed(h, "Host is missing");
	if (h->framing == H1_BODY_LENGTH && h->length == 0)
		h->framing = H1_BODY_NONE;
	h->expect_continue = h->expect_continue && h->framing != H1_BODY_NONE;
	h->size = h->scan;
	return H1_DONE;
}

/* The line from h->line to end, without its CRLF; h->scan is behind it. */
static enum h1_status one_line(struct h1_head *h, struct str p, size_t end)
{
	enum h1_status r;

	if (h->in_fields) {
		if (end == h->line)
			return head_end(h, p);
		r = field_line(h, p, end);
	} else {
		if (end == h->line && h->line == 0) {
			h->line = h->scan;
			return H1_MORE;
		}
		r = request_line(h, p, end);
		h->in_fields = true;
		h->fields_at = h->scan;
	}
	h->line = h->scan;
	return r;
}

/* Whether the line may grow to n bytes (its CR does not count), and the fields together. */
static enum h1_status check_size(struct h1_head *h, size_t n)
{
	if (!h->in_fields)
		return n <= h->limits.line
			       ? H1_MORE
			       : bad(h, ERR_URI_TOO_LONG, "the request line is too long");
	if (n > h->limits.header)
		return bad(h, ERR_HEADERS_TOO_LARGE, "a header field is too long");
	if (h->scan + 1 - h->fields_at > h->limits.head)
		return bad(h, ERR_HEADERS_TOO_LARGE, "the header fields are too long together");
	return H1_MORE;
}

enum h1_status h1_head_feed(struct h1_head *h, struct str p)
{
	while (h->scan < p.n) {
		char c = p.p[h->scan];
		bool after_cr = h->scan > h->line && p.p[h->scan - 1] == '\r';
		enum h1_status r;

		if (after_cr != (c == '\n'))
			return malformed(h, after_cr ? "a CR without LF" : "a LF without CR");
		if (c != '\n' && c != '\r' && !is_field_char(c))
			return malformed(h, "a control character in the head");
		r = check_size(h, c == '\n' ? 0 : h->scan - h->line + (c == '\r' ? 0 : 1));
		h->scan++;
		if (r == H1_MORE && c == '\n')
			r = one_line(h, p, h->scan - 2);
		if (r != H1_MORE)
			return r;
	}
	return H1_MORE;
}

/* ---- bodies ---- */

enum { LIKE_NOT = 255 };

enum body_state {
	LENGTH,
	SIZE_FIRST,
	SIZE,
	EXT,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_START,
	TRAILER,
	TRAILER_LF,
	LAST_LF,
	OVER,
	BROKEN
};

void h1_body_init(struct h1_body *b, enum h1_framing framing, uint64_t length)
{
	*b = (struct h1_body){ .framing = framing };
	if (framing == H1_BODY_CHUNKED) {
		b->state = SIZE_FIRST;
	} else {
		b->left = framing == H1_BODY_LENGTH ? length : 0;
		b->state = b->left != 0 ? LENGTH : OVER;
	}
}

static int broken(struct h1_body *b, const char *why)
{
	b->why = why;
	return BROKEN;
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int size_step(struct h1_body *b, char c)
{
	int v = hex_value(c);

	if (v >= 0) {
		if (++b->count > 15)
			return broken(b, "a chunk size is too long");
		b->left = b->left << 4 | (uint64_t)v;
		return SIZE;
	}
	if (b->state == SIZE_FIRST)
		return broken(b, "a chunk size is not a hexadecimal number");
	b->count = 0;
	if (c == '\r')
		return SIZE_LF;
	return c == ';' ? EXT : broken(b, "a chunk size is not a hexadecimal number");
}

static int ext_step(struct h1_body *b, char c)
{
	if (c == '\r')
		return SIZE_LF;
	if (!is_field_char(c))
		return broken(b, "a control character in a chunk extension");
	return ++b->count <= H1_CHUNK_EXT_MAX ? EXT : broken(b, "a chunk extension is too long");
}

/* A trailer name so far begins with the name of a framing field: a reader that merges trailers into
 * the head would read another message. */
static bool names_framing(struct h1_body *b, char c)
{
	static const char length[] = "content-length", coding[] = "transfer-encoding";
	char low = c;

	if (c >= 'A' && c <= 'Z')
		low = (char)(c + 'a' - 'A');
	b->like_length = b->like_length < LIKE_NOT && low == length[b->like_length]
				 ? (uint8_t)(b->like_length + 1)
				 : LIKE_NOT;
	b->like_coding = b->like_coding < LIKE_NOT && low == coding[b->like_coding]
				 ? (uint8_t)(b->like_coding + 1)
				 : LIKE_NOT;
	return b->like_length == sizeof length - 1 || b->like_coding == sizeof coding - 1;
}

/* Trailer fields are checked and dropped: merging them into the head would be a hole. */
static int trailer_step(struct h1_body *b, char c)
{
	if (++b->count > H1_TRAILERS_MAX)
		return broken(b, "the trailer fields are too long");
	if (b->state == TRAILER_START) {
		if (c == '\r')
			return LAST_LF;
		b->token = b->colon = false;
		b->like_length = b->like_coding = 0;
	}
	if (c == '\r')
		return b->colon ? TRAILER_LF : broken(b, "a trailer field has no colon");
	if (b->colon)
		return is_field_char(c) ? TRAILER : broken(b, "a control character in a trailer");
	if (c == ':' && b->token)
		b->colon = true;
	else if (!is_token_char(c))
		return broken(b, "a trailer name is not valid");
	else if (names_framing(b, c))
		return broken(b, "a framing field in the trailers");
	b->token = true;
	return TRAILER;
}

static int after_size(struct h1_body *b)
{
	b->count = 0;
	return b->left != 0 ? DATA : TRAILER_START;
}

static int expect(struct h1_body *b, char c, char want, int next)
{
	return c == want ? next : broken(b, "a line of the chunked body does not end in CRLF");
}

static int step(struct h1_body *b, char c)
{
	switch ((enum body_state)b->state) {
	case SIZE_FIRST:
	case SIZE: return size_step(b, c);
	case EXT: return ext_step(b, c);
	case SIZE_LF: return c == '\n' ? after_size(b) : expect(b, c, '\n', 0);
	case DATA_CR: return expect(b, c, '\r', DATA_LF);
	case DATA_LF: b->count = 0; return expect(b, c, '\n', SIZE_FIRST);
	case TRAILER_START:
	case TRAILER: return trailer_step(b, c);
	case TRAILER_LF: return expect(b, c, '\n', TRAILER_START);
	case LAST_LF: return expect(b, c, '\n', OVER);
	case LENGTH:
	case DATA:
	case OVER:
	case BROKEN: break;
	}
	return b->state;
}

enum h1_status h1_body_feed(struct h1_body *b, struct str p, size_t *ret_used, struct str *ret_data)
{
	size_t i = 0;

	*ret_data = STR_NONE;
	while (i < p.n && b->state != OVER && b->state != BROKEN) {
		if (b->state == LENGTH || b->state == DATA) {
			size_t n = p.n - i < b->left ? p.n - i : (size_t)b->left;

			*ret_data = (struct str){ p.p + i, n };
			i += n;
			b->left -= n;
			if (b->left == 0)
				b->state = b->state == LENGTH ? OVER : DATA_CR;
			break;
		}
		b->state = step(b, p.p[i++]);
	}
	*ret_used = i;
	if (b->state == BROKEN)
		return H1_BAD;
	return b->state == OVER ? H1_DONE : H1_MORE;
}
