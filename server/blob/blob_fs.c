#include "server/blob/blob_fs.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * sha256/ab/cd/<hex> below the store's folder. The lock of a shelf is flock(2) on sha256/ab: it
 * works between threads and between servers on one folder, and a killed process lets go of it.
 */

void blob_fs_path(const struct blobs_fs *b, const unsigned char *digest, char out[PATH_MAX])
{
	char hex[HASH_HEX + 1];

	(void)hash_hex(hex, digest);
	BUG_ON(!str_print(out, PATH_MAX, "%s/sha256/%.2s/%.2s/%s", b->dir, hex, hex + 2, hex));
}

int blob_fs_lock(const struct blobs_fs *b, unsigned shelf, int how, struct err *e)
{
	char path[PATH_MAX];

	BUG_ON(!str_print(path, sizeof path, "%s/sha256/%02x", b->dir, shelf));
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "make folder", path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(e, "open", path);
	int rc;
	do
		rc = flock(fd, how);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		(void)err_set(e, ERR_IN_PROGRESS, "an upload is being finished there");
	else
		(void)err_errno(e, "lock", path);
	(void)close(fd);
	return -1;
}

struct blobs *blobs_open_fs(struct loop *l, const char *dir, struct err *e)
{
	struct blobs_fs *b = mem_new_of(struct blobs_fs);
	char path[PATH_MAX];

	b->head.ops = &blob_fs_ops;
	b->loop = l;
	if (!str_print(b->dir, sizeof b->dir, "%s", dir)) {
		(void)err_set(e, ERR_INVALID, "the path of the blob folder is too long");
		goto fail;
	}
	BUG_ON(!str_print(path, sizeof path, "%s/sha256", b->dir));
	if (fs_mkdirs(path, 0700, e) < 0)
		goto fail;
	BUG_ON(!str_print(path, sizeof path, "%s/tmp", b->dir));
	if (fs_mkdirs(path, 0700, e) < 0 || fs_sync_dir(b->dir, e) < 0)
		goto fail;
	return &b->head;
fail:
	mem_free(b);
	return NULL;
}

static void fs_close(struct blobs *b)
{
	mem_free(b);
}

static int fs_open(struct blobs *base, const struct blob_id *id, int *ret_fd, struct err *e)
{
	char path[PATH_MAX], hex[HASH_HEX + 1];
	struct stat st;

	blob_fs_path(blobs_fs_of(base), id->digest, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return err_set(
			e, ERR_CORRUPT, "the bytes of %s are missing", hash_hex(hex, id->digest));
	if (fd < 0)
		return err_errno(e, "open", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != id->size) {
		(void)close(fd);
		return err_set(e, ERR_CORRUPT, "the stored file of %s has another size",
			hash_hex(hex, id->digest));
	}
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret_fd = fd;
	return 0;
}

/* ---- the collector's side ---- */

struct shelf_fs {
	struct blob_shelf head;
	unsigned shelf;
	int lock_fd;
	struct blob_id *files;
	size_t n, cap;
};

static int by_digest(const void *a, const void *b)
{
	return memcmp(((const struct blob_id *)a)->digest, ((const struct blob_id *)b)->digest,
		HASH_SIZE);
}

static void shelf_note(struct shelf_fs *s, const unsigned char *digest, int64_t size)
{
	if (s->n == s->cap) {
		s->cap = s->cap != 0 ? s->cap * 2 : 64;
		s->files = mem_resize(s->files, s->cap, sizeof *s->files);
	}
	memcpy(s->files[s->n].digest, digest, HASH_SIZE);
	s->files[s->n++].size = size;
}

static int64_t mtime_us(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * CLOCK_SECOND + st->st_mtim.tv_nsec / 1000;
}

/* One folder sha256/ab/cd. */
static int shelf_list_folder(
	struct shelf_fs *s, const char *name, int64_t older_than, struct err *e)
{
	int fd = openat(s->lock_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	unsigned char digest[HASH_SIZE];
	struct stat st;

	if (d == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return errno == ENOTDIR || errno == ENOENT ? 0 : err_errno(e, "open", name);
	}
	while (s->n < BLOB_SHELF_MAX && (entry = readdir(d)) != NULL)
		if (hash_parse_hex(str_c(entry->d_name), digest) && digest[0] == s->shelf &&
			fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && mtime_us(&st) < older_than)
			shelf_note(s, digest, st.st_size);
	(void)closedir(d);
	return 0;
}

static int shelf_list(struct shelf_fs *s, int64_t older_than, struct err *e)
{
	int fd = fcntl(s->lock_fd, F_DUPFD_CLOEXEC, 0), rc = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (d == NULL) {
		rc = err_errno(e, "list", "a shelf");
		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while (rc == 0 && s->n < BLOB_SHELF_MAX && (entry = readdir(d)) != NULL)
		if (entry->d_name[0] != '.')
			rc = shelf_list_folder(s, entry->d_name, older_than, e);
	(void)closedir(d);
	if (s->n != 0)
		qsort(s->files, s->n, sizeof *s->files, by_digest);
	return rc;
}

static void fs_shelf_unlock(struct blob_shelf *head)
{
	struct shelf_fs *s = (struct shelf_fs *)head;

	(void)close(s->lock_fd);
	mem_free(s->files);
	mem_free(s);
}

static struct blob_shelf *fs_shelf_lock(
	struct blobs *base, unsigned shelf, int64_t older_than_us, struct err *e)
{
	int fd = blob_fs_lock(blobs_fs_of(base), shelf, LOCK_EX | LOCK_NB, e);

	if (fd < 0)
		return NULL;
	struct shelf_fs *s = mem_new_of(struct shelf_fs);
	s->head.blobs = base;
	s->shelf = shelf;
	s->lock_fd = fd;
	if (shelf_list(s, older_than_us, e) == 0)
		return &s->head;
	fs_shelf_unlock(&s->head);
	return NULL;
}

static const struct blob_id *fs_shelf_files(const struct blob_shelf *head, size_t *ret_n)
{
	const struct shelf_fs *s = (const struct shelf_fs *)head;

	*ret_n = s->n;
	return s->files;
}

static int fs_shelf_remove(struct blob_shelf *head, const unsigned char *digest, struct err *e)
{
	char path[PATH_MAX];

	BUG_ON(digest[0] != ((const struct shelf_fs *)head)->shelf);
	blob_fs_path(blobs_fs_of(head->blobs), digest, path);
	return unlink(path) < 0 && errno != ENOENT ? err_errno(e, "remove", path) : 0;
}

static int fs_sweep_tmp(struct blobs *base, int64_t older_than_us, struct err *e)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	struct stat st;

	BUG_ON(!str_print(path, sizeof path, "%s/tmp", blobs_fs_of(base)->dir));
	DIR *d = opendir(path);
	if (d == NULL)
		return err_errno(e, "open", path);
	while ((entry = readdir(d)) != NULL)
		if (entry->d_name[0] != '.' &&
			fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			mtime_us(&st) < older_than_us)
			(void)unlinkat(dirfd(d), entry->d_name, 0);
	(void)closedir(d);
	return 0;
}

const struct blob_ops blob_fs_ops = {
	.close = fs_close,
	.writer_new = blob_fs_writer_new,
	.writer_add = blob_fs_writer_add,
	.writer_end = blob_fs_writer_end,
	.writer_free = blob_fs_writer_free,
	.open = fs_open,
	.shelf_lock = fs_shelf_lock,
	.shelf_files = fs_shelf_files,
	.shelf_remove = fs_shelf_remove,
	.shelf_unlock = fs_shelf_unlock,
	.sweep_tmp = fs_sweep_tmp,
};
