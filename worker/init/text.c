#include "worker/init/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(t->p + t->n, sizeof t->p - t->n, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof t->p - t->n)
		t->n += (size_t)n;
}

void text_number(struct text *t, const char *key, int64_t value)
{
	if (value >= 0)
		text_add(t, "%s=%" PRId64 "\n", key, value);
}

int text_write(int fd, const char *p, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = pwrite(fd, p + done, n - done, (off_t)done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return -1;
		done += (size_t)put;
	}
	return 0;
}

int64_t text_digits(const char *p)
{
	int64_t v = 0;

	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (v > (INT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (*p - '0');
	}
	return v;
}
