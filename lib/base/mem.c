#include "lib/base/mem.h"

#include "lib/base/err.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
	if (p == NULL) {
		(void)fputs("out of memory\n", stderr);
		abort();
	}
	return p;
}

void *mem_new(size_t n, size_t size)
{
	return must(calloc(n != 0 ? n : 1, size != 0 ? size : 1));
}

void *mem_raw(size_t n)
{
	return must(malloc(n != 0 ? n : 1));
}

void *mem_resize(void *p, size_t n, size_t size)
{
	size_t total;

	BUG_ON(__builtin_mul_overflow(n, size, &total));
	return must(realloc(p, total != 0 ? total : 1));
}

char *mem_dupn(const char *s, size_t n)
{
	char *p = mem_new(n + 1, 1);

	if (n != 0)
		memcpy(p, s, n);
	return p;
}

char *mem_dup(const char *s)
{
	return mem_dupn(s, strlen(s));
}

void mem_free(void *p)
{
	free(p);
}

void mem_trim(void)
{
	(void)malloc_trim(0);
}

void mem_wipe(void *p, size_t n)
{
	explicit_bzero(p, n);
}
