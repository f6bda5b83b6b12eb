#include "lib/base/buf.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void buf_done(struct buf *b)
{
	mem_free(b->p);
	*b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	b->failed = false;
	if (b->p != NULL)
		b->p[0] = '\0';
}

char *buf_room(struct buf *b, size_t n)
{
	if (b->failed || n > b->max || b->n > b->max - n) {
		b->failed = true;
		return NULL;
	}
	size_t need = b->n + n + 1;
	if (need > b->cap) {
		size_t cap = b->cap != 0 ? b->cap : 64;
		while (cap < need)
			cap *= 2;
		b->p = mem_resize(b->p, cap, 1);
		b->cap = cap;
	}
	return b->p + b->n;
}

void buf_grew(struct buf *b, size_t n)
{
	BUG_ON(b->n + n >= b->cap);
	b->n += n;
	b->p[b->n] = '\0';
}

void buf_add(struct buf *b, struct str s)
{
	char *p = buf_room(b, s.n);

	if (p == NULL)
		return;
	if (s.n != 0)
		memcpy(p, s.p, s.n);
	buf_grew(b, s.n);
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, (struct str){ &c, 1 });
}

void buf_adds(struct buf *b, const char *z)
{
	buf_add(b, str_c(z));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	BUG_ON(n < 0);
	char *p = buf_room(b, (size_t)n);
	if (p != NULL) {
		(void)vsnprintf(p, (size_t)n + 1, fmt, again);
		buf_grew(b, (size_t)n);
	}
	va_end(again);
}

void buf_drop_front(struct buf *b, size_t n)
{
	BUG_ON(n > b->n);
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
	b->p[b->n] = '\0';
}

bool buf_failed(const struct buf *b)
{
	return b->failed;
}

struct str buf_str(const struct buf *b)
{
	return (struct str){ b->p != NULL ? b->p : "", b->n };
}

struct str buf_keep(struct buf *b, struct arena *a)
{
	struct str s = arena_str(a, buf_str(b));

	if (b->failed)
		arena_refuse(a, b->max);
	buf_done(b);
	return s;
}

char *buf_take(struct buf *b)
{
	char *p = b->p != NULL ? b->p : mem_dup("");

	*b = (struct buf){ .max = b->max };
	return p;
}
