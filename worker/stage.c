#include "worker/stage.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_folder(const char *dir, const char *name, struct err *e)
{
	char path[PATH_MAX];

	if (!str_print(path, sizeof path, "%s/%s", dir, name))
		return err_set(e, ERR_INVALID, "the path of the attempt is too long");
	if (fs_remove_tree(path, e) < 0)
		return -1;
	return fs_mkdirs(path, 0755, e) < 0 || chmod(path, 0755) < 0
		       ? err_errno(e, "make folder", path)
		       : 0;
}

void stage_prepare(struct stage *s)
{
	char code[PATH_MAX];

	s->err.code = ERR_OK;
	if (make_folder(s->dir, "in", &s->err) < 0 || make_folder(s->dir, "out", &s->err) < 0 ||
		make_folder(s->dir, "out/.checkpoint", &s->err) < 0)
		return;
	if (s->task->repository.n == 0)
		(void)!make_folder(s->dir, "code", &s->err);
	else if (!str_print(code, sizeof code, "%s/code", s->dir) ||
		 fs_remove_tree(code, &s->err) < 0)
		return; /* made by the checkout */
}

/* Relative, plain, and made of what a file name may hold. */
static bool path_is_plain(struct str path)
{
	struct str piece;

	if (path.n == 0 || path.n > PATH_BYTES_MAX || str_has_control(path))
		return false;
	while (str_next(&path, '/', &piece))
		if (piece.n == 0 || piece.n > NAME_MAX || str_is(piece, ".") || str_is(piece, ".."))
			return false;
	return true;
}

static int make_parents(char *path, size_t base, struct err *e)
{
	for (char *at = path + base; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		int rc = mkdir(path, 0755);
		if (rc < 0 && access(path, F_OK) < 0)
			rc = err_errno(e, "make folder", path);
		else
			rc = chmod(path, 0755) < 0 ? err_errno(e, "open folder", path) : 0;
		*at = '/';
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int place(
	struct stage *s, const char *kind, struct str name, const struct file *f, struct err *e)
{
	unsigned char digest[HASH_SIZE];
	char path[PATH_MAX];
	struct stat st;

	if (!path_is_plain(f->path) || !path_is_plain(name) ||
		memchr(name.p, '/', name.n) != NULL || !hash_parse_hex(f->digest, digest))
		return err_set(e, ERR_INVALID,
			"%s %.63s has a file whose path or digest cannot be used", kind, name.p);
	if (!str_print(path, sizeof path, "%s/in/%s/%s/%s", s->dir, kind, name.p, f->path.p))
		return err_set(
			e, ERR_INVALID, "the path of a file of %s %.63s is too long", kind, name.p);
	if (lstat(path, &st) == 0)
		return 0; /* in an earlier round */
	if (make_parents(path, strlen(s->dir) + 1, e) < 0)
		return -1;
	if (cache_place(s->cache, f->digest, path, s->link, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND)
		return -1;
	s->missing = mem_resize(s->missing, s->n_missing + 1, sizeof *s->missing);
	s->missing[s->n_missing++] = f;
	return 0;
}

static int place_all(struct stage *s, const char *kind, const struct list *all, struct err *e)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct staged *item = list_at(all, struct staged, i);
		for (size_t k = 0; k < item->files.n && !atomic_load(&s->stop); k++)
			if (place(s, kind, item->name, list_at(&item->files, struct file, k), e) <
				0)
				return -1;
	}
	return 0;
}

void stage_run(struct stage *s)
{
	s->n_missing = 0;
	s->err.code = ERR_OK;
	if (place_all(s, "datasets", &s->task->datasets, &s->err) == 0 &&
		place_all(s, "models", &s->task->models, &s->err) == 0 &&
		place_all(s, "inputs", &s->task->inputs, &s->err) == 0)
		s->err.code = ERR_OK;
}
