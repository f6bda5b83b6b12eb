#include "lib/base/log.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"

#include <inttypes.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8192, VALUE_MAX_BYTES = 1024 };

static enum log_level threshold = LOG_INFO;
static const char *const level_names[] = { "debug", "info", "warn", "error" };

void log_set_level(enum log_level level)
{
	threshold = level;
}

bool log_level_parse(struct str s, enum log_level *ret)
{
	for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
		if (str_is(s, level_names[i])) {
			*ret = (enum log_level)i;
			return true;
		}
	return false;
}

static bool is_bare(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
			return false;
	}
	return s.n != 0;
}

static void add_value(struct buf *b, struct str s)
{
	bool utf8 = str_utf8_valid(s);

	if (s.n > VALUE_MAX_BYTES)
		s.n = VALUE_MAX_BYTES;
	if (is_bare(s)) {
		buf_add(b, s);
		return;
	}
	buf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			buf_addf(b, "\\x%02x", c);
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '"');
}

void log_write(enum log_level level, const char *msg, const struct log_pair *pairs, size_t n)
{
	char when[CLOCK_TEXT_MAX];
	struct buf b;

	if (level < threshold)
		return;
	buf_init(&b, LINE_MAX_BYTES);
	buf_addf(&b, "ts=%s level=%s msg=", clock_format(when, clock_now(&clock_real)),
		level_names[level]);
	add_value(&b, str_c(msg));
	for (size_t i = 0; i < n; i++) {
		buf_addf(&b, " %s=", pairs[i].key);
		switch (pairs[i].kind) {
		case LOG_PAIR_STR: add_value(&b, pairs[i].s); break;
		case LOG_PAIR_INT: buf_addf(&b, "%" PRId64, pairs[i].i); break;
		case LOG_PAIR_REAL: buf_addf(&b, "%g", pairs[i].f); break;
		}
	}
	b.max += 1; /* room for the line end even when a value was cut */
	b.failed = false;
	buf_addc(&b, '\n');
	/* Nothing can be done when stderr is gone. */
	if (write(STDERR_FILENO, b.p, b.n) < 0)
		(void)0;
	buf_done(&b);
}
