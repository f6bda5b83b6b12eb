#include "lib/json/json_write.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/num.h"

#include <math.h>

struct jsn_out jsn_out(struct buf *b)
{
	return (struct jsn_out){ .buf = b };
}

static uint64_t top(const struct jsn_out *w)
{
	return UINT64_C(1) << (w->depth - 1);
}

/* Before each value: the comma of a list, and the rule that members have keys. */
static void before(struct jsn_out *w)
{
	if (w->depth == 0)
		return;
	BUG_ON(((w->object & top(w)) != 0) != w->keyed);
	if (!w->keyed && (w->more & top(w)) != 0)
		buf_addc(w->buf, ',');
	w->more |= top(w);
	w->keyed = false;
}

static void begin(struct jsn_out *w, char c)
{
	before(w);
	BUG_ON(w->depth == 63);
	w->depth++;
	w->more &= ~top(w);
	w->object = c == '{' ? w->object | top(w) : w->object & ~top(w);
	buf_addc(w->buf, c);
}

static void end(struct jsn_out *w, char c)
{
	BUG_ON(w->depth == 0 || w->keyed || ((w->object & top(w)) != 0) != (c == '}'));
	w->depth--;
	buf_addc(w->buf, c);
}

void jsn_obj_begin(struct jsn_out *w)
{
	begin(w, '{');
}

void jsn_obj_end(struct jsn_out *w)
{
	end(w, '}');
}

void jsn_list_begin(struct jsn_out *w)
{
	begin(w, '[');
}

void jsn_list_end(struct jsn_out *w)
{
	end(w, ']');
}

void jsn_key_str(struct jsn_out *w, struct str name)
{
	BUG_ON(w->depth == 0 || w->keyed || (w->object & top(w)) == 0);
	if ((w->more & top(w)) != 0)
		buf_addc(w->buf, ',');
	w->more |= top(w);
	w->keyed = true;
	jsn_put_str(w->buf, name);
	buf_addc(w->buf, ':');
}

void jsn_key(struct jsn_out *w, const char *name)
{
	jsn_key_str(w, str_c(name));
}

void jsn_str(struct jsn_out *w, struct str s)
{
	before(w);
	jsn_put_str(w->buf, s);
}

void jsn_text(struct jsn_out *w, const char *z)
{
	if (z != NULL)
		jsn_str(w, str_c(z));
	else
		jsn_null(w);
}

void jsn_int(struct jsn_out *w, int64_t v)
{
	char text[24];

	before(w);
	(void)str_print(text, sizeof text, "%lld", (long long)v);
	buf_adds(w->buf, text);
}

void jsn_real(struct jsn_out *w, double v)
{
	before(w);
	jsn_put_real(w->buf, v);
}

void jsn_bool(struct jsn_out *w, bool v)
{
	before(w);
	buf_adds(w->buf, v ? "true" : "false");
}

void jsn_null(struct jsn_out *w)
{
	before(w);
	buf_adds(w->buf, "null");
}

void jsn_time(struct jsn_out *w, int64_t us)
{
	char text[CLOCK_TEXT_MAX];

	jsn_str(w, str_c(clock_format(text, us)));
}

void jsn_raw(struct jsn_out *w, struct str json_text)
{
	before(w);
	buf_add(w->buf, json_text);
}

void jsn_put_real(struct buf *b, double v)
{
	char text[NUM_DOUBLE_MAX];
	bool quoted = !isfinite(v);

	if (quoted)
		buf_addc(b, '"');
	buf_adds(b, num_format_double(text, v));
	if (quoted)
		buf_addc(b, '"');
}

/* Bytes of the UTF-8 sequence at the start of s, or 0 when it is not one. */
static size_t utf8_length(struct str s)
{
	for (size_t n = 1; n <= 4 && n <= s.n; n++)
		if (str_utf8_valid(str_slice(s, 0, n)))
			return n;
	return 0;
}

static void put_escaped(struct buf *b, unsigned char c)
{
	static const char *const names[] = {
		['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"
	};

	if (c == '"' || c == '\\') {
		buf_addc(b, '\\');
		buf_addc(b, (char)c);
	} else if (c < sizeof names / sizeof names[0] && names[c] != NULL) {
		buf_adds(b, names[c]);
	} else {
		buf_addf(b, "\\u%04x", c);
	}
}

/* RFC 8259, section 7. DEL, and U+2028 and U+2029 in UTF-8, are legal and stay. */
void jsn_put_str(struct buf *b, struct str s)
{
	size_t from = 0, i = 0;
	bool valid = str_utf8_valid(s);

	buf_addc(b, '"');
	while (i < s.n) {
		unsigned char c = (unsigned char)s.p[i];
		size_t n = valid || c < 0x80 ? 1 : utf8_length(str_slice(s, i, s.n));

		if (n != 0 && c >= 0x20 && c != '"' && c != '\\') {
			i += n;
			continue;
		}
		buf_add(b, str_slice(s, from, i - from));
		if (n == 0)
			buf_adds(b, "\xef\xbf\xbd");
		else
			put_escaped(b, c);
		from = ++i;
	}
	buf_add(b, str_slice(s, from, s.n));
	buf_addc(b, '"');
}
