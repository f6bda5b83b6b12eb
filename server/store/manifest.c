#include "server/store/manifest.h"

#include "lib/base/buf.h"
#include "server/core/filepath.h"

#include <stdlib.h>

enum { POINTER_MAX = 48, LINE_MAX_BYTES = PATH_BYTES_MAX + 128 };

struct placed { /* a file and where the request has it */
	struct file file;
	size_t at;
};

static int by_path(const void *a, const void *b)
{
	return str_cmp(
		((const struct placed *)a)->file.path, ((const struct placed *)b)->file.path);
}

static const char *pointer(char out[POINTER_MAX], size_t at, const char *member)
{
	(void)str_print(out, POINTER_MAX, "/files/%zu/%s", at, member);
	return out;
}

static int check_file(const struct file *f, size_t at, struct err *e)
{
	char where[POINTER_MAX];
	unsigned char digest[HASH_SIZE];

	if (filepath_check(f->path, pointer(where, at, "path"), e) < 0)
		return -1;
	if (!hash_parse_hex(f->digest, digest))
		return err_field(e, pointer(where, at, "digest"),
			"a digest is a SHA-256 in 64 lower-case hex digits");
	if (str_has_control(f->media_type))
		return err_field(e, pointer(where, at, "media_type"), "has a control character");
	return 0;
}

int manifest_check(struct list *files, struct arena *a, struct err *e)
{
	struct placed *p = arena_array_of(a, struct placed, files->n + 1);
	char where[POINTER_MAX];

	for (size_t i = 0; i < files->n; i++) {
		p[i] = (struct placed){ *list_at(files, struct file, i), i };
		if (check_file(&p[i].file, i, e) < 0)
			return -1;
	}
	if (files->n != 0)
		qsort(p, files->n, sizeof *p, by_path);
	for (size_t i = 0; i < files->n; i++) {
		if (i > 0 && str_eq(p[i - 1].file.path, p[i].file.path))
			return err_field(e,
				pointer(where, p[i - 1].at > p[i].at ? p[i - 1].at : p[i].at,
					"path"),
				"the path is there twice");
		*list_at(files, struct file, i) = p[i].file;
	}
	return 0;
}

static void add_line(struct hash *h, const struct file *f)
{
	struct buf b;

	buf_init(&b, LINE_MAX_BYTES);
	buf_add(&b, f->path);
	buf_addc(&b, '\0');
	buf_addf(&b, "%lld", (long long)f->size);
	buf_addc(&b, '\0');
	buf_add(&b, f->digest);
	buf_addc(&b, '\n');
	BUG_ON(buf_failed(&b));
	hash_add(h, buf_str(&b));
	buf_done(&b);
}

static int merge(const struct list *x, const struct list *y, struct hash *h,
	struct manifest_sum *ret, struct err *e)
{
	size_t i = 0, j = 0;

	while (i < x->n || j < y->n) {
		const struct file *a = i < x->n ? list_at(x, struct file, i) : NULL;
		const struct file *b = j < y->n ? list_at(y, struct file, j) : NULL;
		int order = a == NULL ? 1 : b == NULL ? -1 : str_cmp(a->path, b->path);

		if (order == 0)
			return err_field(e, "/files",
				"the version that is appended to has a file %.200s already",
				b->path.p);
		const struct file *f = order < 0 ? a : b;
		if (order < 0)
			i++;
		else
			j++;
		add_line(h, f);
		ret->files++;
		if (__builtin_add_overflow(ret->bytes, f->size, &ret->bytes))
			return err_field(e, "/files", "the sum of the sizes is too large");
	}
	return 0;
}

int manifest_sum(const struct list *before, const struct list *files, struct manifest_sum *ret,
	struct err *e)
{
	struct manifest_sum sum = { .files = 0 };

	if (before->n + files->n > MANIFEST_FILES_MAX)
		return err_field(e, "/files",
			"a version has at most %d files, this one would have %zu",
			MANIFEST_FILES_MAX, before->n + files->n);
	struct hash *h = hash_new();
	int rc = merge(before, files, h, &sum, e);
	hash_end(h, sum.digest);
	hash_free(h);
	if (rc == 0)
		*ret = sum;
	return rc;
}
