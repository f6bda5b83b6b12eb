#include "lib/base/arena.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* Blocks grow, so that an arena of a few strings costs little. */
enum { ARENA_BLOCK_FIRST = 240, ARENA_BLOCK = 8000, ARENA_REDZONE = 16, ARENA_ALIGN = 16 };
/* A net under endless loops: no honest work comes near it. */
#define BEYOND_MAX ((size_t)1 << 30)

struct block {
	struct block *next;
	size_t cap, used;
	_Alignas(ARENA_ALIGN) char mem[];
};

struct cleanup {
	struct cleanup *next;
	void (*fn)(void *);
	void *arg;
};

struct arena {
	struct block *blocks;
	struct cleanup *cleanups;
	size_t total, limit, refused;
	unsigned refs;
};

struct arena *arena_new(size_t limit)
{
	struct arena *a = mem_new_of(struct arena);

	a->limit = limit;
	a->refs = 1;
	return a;
}

void arena_hold(struct arena *a)
{
	BUG_ON(a->refs == 0);
	a->refs++;
}

void arena_drop(struct arena *a)
{
	if (a == NULL || --a->refs > 0)
		return;
	while (a->cleanups != NULL) {
		struct cleanup *c = a->cleanups;
		a->cleanups = c->next;
		c->fn(c->arg);
	}
	for (struct block *b = a->blocks, *next; b != NULL; b = next) {
		next = b->next;
		ASAN_UNPOISON_MEMORY_REGION(b->mem, b->cap);
		mem_free(b);
	}
	mem_free(a);
}

static struct block *block_add(struct arena *a, size_t n)
{
	size_t cap = a->blocks == NULL ? ARENA_BLOCK_FIRST : 2 * a->blocks->cap;

	if (cap > ARENA_BLOCK)
		cap = ARENA_BLOCK;
	if (cap < n)
		cap = n;
	struct block *b = mem_raw(sizeof *b + cap); /* arena_alloc clears */

	*b = (struct block){ .next = a->blocks, .cap = cap };
	ASAN_POISON_MEMORY_REGION(b->mem, cap);
	a->blocks = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	BUG_ON(n > SIZE_MAX - ARENA_REDZONE - ARENA_ALIGN);
	size_t need = (n + ARENA_REDZONE + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	struct block *b = a->blocks;

	a->total += need;
	if (a->total > a->limit && a->total - a->limit > BEYOND_MAX)
		bug_at(__FILE__, __LINE__, "far beyond the limit of an arena");
	if (b == NULL || b->cap - b->used < need)
		b = block_add(a, need);
	char *p = b->mem + b->used;
	b->used += need;
	ASAN_UNPOISON_MEMORY_REGION(p, n);
	return memset(p, 0, n);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t total;

	BUG_ON(__builtin_mul_overflow(n, size, &total));
	return arena_alloc(a, total);
}

char *arena_dup(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.n + 1);

	if (s.n != 0)
		memcpy(p, s.p, s.n);
	return p;
}

struct str arena_str(struct arena *a, struct str s)
{
	return (struct str){ arena_dup(a, s), s.n };
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	BUG_ON(n < 0);
	char *p = arena_alloc(a, (size_t)n + 1);
	(void)vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return (struct str){ p, (size_t)n };
}

void arena_defer(struct arena *a, void (*fn)(void *), void *arg)
{
	struct cleanup *c = arena_new_of(a, struct cleanup);

	*c = (struct cleanup){ a->cleanups, fn, arg };
	a->cleanups = c;
}

size_t arena_used(const struct arena *a)
{
	return a->total;
}

size_t arena_room(const struct arena *a)
{
	return a->total < a->limit ? a->limit - a->total : 0;
}

void arena_refuse(struct arena *a, size_t max)
{
	a->refused = max;
}

int arena_check(const struct arena *a, struct err *e)
{
	if (a->refused != 0)
		return err_set(
			e, ERR_TOO_LARGE, "a part of this is larger than %zu bytes", a->refused);
	if (a->total <= a->limit)
		return 0;
	return err_set(e, ERR_TOO_LARGE,
		"this would take more than %zu bytes of memory at once; ask for less", a->limit);
}
