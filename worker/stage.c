#include "worker/stage.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"
#include "worker/checkpoint.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of assignments of the largest size, cut into files. */
enum { FILES_ARENA = 64 << 20 };

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

/* What an earlier try has found of a checkpoint is all that can be in there: no command has run. */
static int prepare_out(struct stage *s, struct err *e)
{
	struct checkpoint_state there;
	char out[PATH_MAX], dir[PATH_MAX];

	if (!str_print(out, sizeof out, "%s/out", s->dir) ||
		!str_print(dir, sizeof dir, "%s/" CHECKPOINT_DIR, out))
		return err_set(e, ERR_INVALID, "the path of the attempt is too long");
	if (checkpoint_look(dir, &there, e) < 0)
		return -1;
	if (there.files == 0 && (make_folder(s->dir, "out", e) < 0 ||
					make_folder(s->dir, "out/" CHECKPOINT_DIR, e) < 0))
		return -1;
	s->resumed = there.files != 0;
	/* All ranks of a gang go on from the same one: the server's. */
	if (s->task->ranks < 2 && checkpoint_take(s->kept, s->task->step.p,
					  s->task->checkpoint_attempt, out, &s->resumed, e) < 0)
		return -1;
	s->from_server = !s->resumed && s->task->checkpoint.n != 0;
	return s->from_server ? make_folder(s->dir, "out/" CHECKPOINT_PART, e) : 0;
}

void stage_prepare(struct stage *s)
{
	char code[PATH_MAX];

	s->err.code = ERR_OK;
	if (make_folder(s->dir, "in", &s->err) < 0 || prepare_out(s, &s->err) < 0)
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

/* To DIR/FOLDER/the file's path. `own`: the step may change it. */
static int place(struct stage *s, const char *folder, const struct file *f, bool own, struct err *e)
{
	unsigned char digest[HASH_SIZE];
	char path[PATH_MAX];
	struct stat st;

	if (!path_is_plain(f->path) || !hash_parse_hex(f->digest, digest))
		return err_set(e, ERR_INVALID,
			"%.100s has a file whose path or digest cannot be used", folder);
	if (!str_print(path, sizeof path, "%s/%s/%s", s->dir, folder, f->path.p))
		return err_set(e, ERR_INVALID, "the path of a file of %.100s is too long", folder);
	if (lstat(path, &st) == 0)
		return 0; /* in an earlier round */
	if (make_parents(path, strlen(s->dir) + 1, e) < 0)
		return -1;
	if (cache_place(s->cache, f->digest, path, s->link && !own, e) == 0)
		return own && chmod(path, 0644) < 0 ? err_errno(e, "open file", path) : 0;
	if (e->code != ERR_NOT_FOUND)
		return -1;
	if (s->n_missing == s->missing_room) {
		s->missing_room = 2 * s->missing_room + 64;
		s->missing = mem_resize(s->missing, s->missing_room, sizeof *s->missing);
	}
	s->missing[s->n_missing++] = f;
	return 0;
}

static void note_held(struct stage *s, const struct staged *item, const struct list *files)
{
	if (item->version.n == 0)
		return;
	s->held = mem_resize(s->held, s->n_held + 1, sizeof *s->held);
	struct hold_data *d = &s->held[s->n_held++];
	memset(d, 0, sizeof *d);
	(void)str_print(d->version, sizeof d->version, "%.*s", STR_ARG(item->version));
	for (size_t i = 0; i < files->n; i++)
		hold_data_add(d, list_at(files, struct file, i));
}

static int place_all(struct stage *s, const char *kind, const struct list *all, struct err *e)
{
	char folder[PATH_MAX];
	struct list files;

	for (size_t i = 0; i < all->n; i++) {
		const struct staged *item = list_at(all, struct staged, i);
		if (!path_is_plain(item->name) || memchr(item->name.p, '/', item->name.n) != NULL ||
			!str_print(folder, sizeof folder, "in/%s/%s", kind, item->name.p))
			return err_set(e, ERR_INVALID, "%s have a name that cannot be used", kind);
		if (staged_files(item, s->files, &files, e) < 0)
			return -1;
		note_held(s, item, &files);
		for (size_t k = 0; k < files.n && !atomic_load(&s->stop); k++)
			if (place(s, folder, list_at(&files, struct file, k), false, e) < 0)
				return -1;
	}
	return 0;
}

/* Copies, since the step will write to them. It is the checkpoint when all is there. */
static int place_checkpoint(struct stage *s, struct err *e)
{
	const struct list *all = &s->task->checkpoint;
	char out[PATH_MAX];
	size_t before = s->n_missing;

	for (size_t i = 0; s->from_server && i < all->n && !atomic_load(&s->stop); i++)
		if (place(s, "out/" CHECKPOINT_PART, list_at(all, struct file, i), true, e) < 0)
			return -1;
	if (!s->from_server || s->n_missing != before || atomic_load(&s->stop) ||
		!str_print(out, sizeof out, "%s/out", s->dir))
		return 0;
	if (checkpoint_settle(out, e) < 0)
		return -1;
	s->from_server = false;
	s->resumed = true;
	return 0;
}

void stage_run(struct stage *s)
{
	s->n_missing = 0;
	s->n_held = 0;
	s->err.code = ERR_OK;
	arena_drop(s->files); /* of the round before */
	s->files = arena_new(FILES_ARENA);
	if (place_all(s, "datasets", &s->task->datasets, &s->err) == 0 &&
		place_all(s, "models", &s->task->models, &s->err) == 0 &&
		place_all(s, "inputs", &s->task->inputs, &s->err) == 0 &&
		place_checkpoint(s, &s->err) == 0)
		s->err.code = ERR_OK;
}

void stage_done(struct stage *s)
{
	mem_free(s->missing);
	mem_free(s->held);
	arena_drop(s->files);
}
