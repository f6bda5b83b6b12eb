#include "lib/base/err.h"

#include "lib/base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *title;
	int http, retry;
} table[ERR_COUNT] = {
#define X(id, code, status, again, text) [ERR_##id] = { code, text, status, again },
	ERR_TABLE(X)
#undef X
};

const char *err_name(enum err_code c)
{
	return table[c].name;
}

int err_http(enum err_code c)
{
	return table[c].http;
}

const char *err_title(enum err_code c)
{
	return table[c].title;
}

int err_retryable(enum err_code c)
{
	return table[c].retry;
}

/* A text that was cut may end within a character: it loses what is there of it. */
static void drop_half_character(char *z)
{
	size_t n = strlen(z), lead = n;
	unsigned char c;

	while (lead > 0 && n - lead < 3 && ((unsigned char)z[lead - 1] & 0xC0) == 0x80)
		lead--;
	if (lead == 0)
		return;
	c = (unsigned char)z[lead - 1];
	if ((c >= 0xC0 && n - lead < 1) || (c >= 0xE0 && n - lead < 2) ||
		(c >= 0xF0 && n - lead < 3))
		z[lead - 1] = '\0';
}

static void PRINTF_LIKE(2, 0) set_message(struct err *e, const char *fmt, va_list ap)
{
	if (vsnprintf(e->msg, sizeof e->msg, fmt, ap) >= (int)sizeof e->msg)
		drop_half_character(e->msg);
}

int err_set_at(struct err *e, const char *file, int line, enum err_code c, const char *fmt, ...)
{
	va_list ap;

	*e = (struct err){ .code = c, .file = file, .line = line };
	va_start(ap, fmt);
	set_message(e, fmt, ap);
	va_end(ap);
	return -1;
}

int err_field_at(
	struct err *e, const char *file, int line, const char *pointer, const char *fmt, ...)
{
	va_list ap;

	*e = (struct err){ .code = ERR_INVALID, .file = file, .line = line };
	(void)str_print(e->field, sizeof e->field, "%s", pointer);
	va_start(ap, fmt);
	set_message(e, fmt, ap);
	va_end(ap);
	return -1;
}

void err_field_prefix(struct err *e, const char *segment)
{
	char out[sizeof e->field];
	size_t n = 0;

	out[n++] = '/';
	for (; *segment != '\0' && n + 3 < sizeof out; segment++) {
		if (*segment == '~' || *segment == '/') {
			out[n++] = '~';
			out[n++] = *segment == '~' ? '0' : '1';
		} else {
			out[n++] = *segment;
		}
	}
	if (*segment != '\0') {
		out[n] = '\0';
		drop_half_character(out);
		n = strlen(out);
	}
	if (!str_print(out + n, sizeof out - n, "%s", e->field))
		drop_half_character(out);
	memcpy(e->field, out, sizeof out);
}

void err_field_index(struct err *e, size_t i)
{
	char text[24];

	(void)str_print(text, sizeof text, "%zu", i);
	err_field_prefix(e, text);
}

int err_errno_at(struct err *e, const char *file, int line, const char *verb, const char *what)
{
	int saved = errno;
	enum err_code c = saved == ENOSPC || saved == EDQUOT ? ERR_NO_SPACE : ERR_IO;
	char text[96];

	return err_set_at(e, file, line, c, "cannot %s %.160s: %s", verb, what,
		strerror_r(saved, text, sizeof text));
}

void bug_at(const char *file, int line, const char *what)
{
	(void)fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, what);
	abort();
}
