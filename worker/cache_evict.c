#include "worker/cache_evict.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	char name[72]; /* "ab/DIGEST" */
	int64_t size, used;
};

struct scan {
	struct cache_evict *v;
	struct entry *all;
	size_t n, cap;
};

static int on_file(void *arg, const char *path, int64_t size, struct err *e)
{
	struct scan *s = arg;
	char full[PATH_MAX];
	struct stat st;

	(void)e;
	s->v->bytes += size;
	if (!str_print(full, sizeof full, "%s/sha256/%s", s->v->dir, path) ||
		lstat(full, &st) < 0 || st.st_nlink != 1) /* linked: an attempt uses it */
		return 0;
	if (s->n == s->cap) {
		s->cap = s->cap != 0 ? 2 * s->cap : 256;
		s->all = mem_resize(s->all, s->cap, sizeof *s->all);
	}
	struct entry *entry = &s->all[s->n];
	if (str_print(entry->name, sizeof entry->name, "%s", path)) {
		entry->size = size;
		entry->used = st.st_atim.tv_sec;
		s->n++;
	}
	return 0;
}

static int oldest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

static int64_t excess(const struct cache_evict *v, bool begun)
{
	return v->excess != NULL ? v->excess(v->arg, begun) : 0;
}

/* Others make room on the disk, too, so it is measured again each time. What is removed may show
 * late there: not more goes than was too much at first. */
static bool too_much(const struct cache_evict *v, int64_t low)
{
	return v->bytes > v->max || (v->bytes > low && excess(v, true) > 0);
}

void cache_evict_run(struct cache_evict *v)
{
	struct scan s = { .v = v };
	int64_t low;
	char root[PATH_MAX], full[PATH_MAX];
	struct err e;

	if (!str_print(root, sizeof root, "%s/sha256", v->dir) || access(root, F_OK) < 0 ||
		fs_walk(root, on_file, NULL, &s, &e) < 0) {
		mem_free(s.all);
		return;
	}
	if (s.n > 1)
		qsort(s.all, s.n, sizeof *s.all, oldest_first);
	low = v->bytes - excess(v, false);
	for (size_t i = 0; i < s.n && too_much(v, low); i++)
		if (str_print(full, sizeof full, "%s/%s", root, s.all[i].name) &&
			unlink(full) == 0) {
			v->bytes -= s.all[i].size;
			v->removed++;
		}
	mem_free(s.all);
}
