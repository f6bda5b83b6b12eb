#include "lib/base/fs.h"

#include "lib/base/id.h"
#include "lib/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

const char *fs_kind(mode_t mode)
{
	return S_ISDIR(mode)    ? "a folder"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device";
}

/* Named where a file must be named and none is meant. */
static bool is_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static int open_regular(const char *path, struct err *e)
{
	/* Without O_NONBLOCK a pipe would be waited for until somebody writes. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "%.160s does not exist", path)
				       : err_errno(e, "open", path);
	if (fstat(fd, &st) < 0)
		rc = err_errno(e, "look at", path);
	else if (!S_ISREG(st.st_mode) && !is_null(&st))
		rc = err_set(e, ERR_INVALID, "%.160s is %s; it must be a regular file", path,
			fs_kind(st.st_mode));
	if (rc == 0)
		return fd;
	(void)close(fd);
	return -1;
}

enum { NAMES_MAX = 1 << 20, DEPTH_MAX = 64 };

int fs_read(const char *path, struct buf *out, struct err *e)
{
	int fd = open_regular(path, e);

	if (fd < 0)
		return -1;
	for (;;) {
		char *room = buf_room(out, 1);
		size_t spare = out->cap > out->n + 1 ? out->cap - out->n - 1 : 0;
		if (room != NULL && spare > out->max - out->n)
			spare = out->max - out->n;
		char probe;
		ssize_t got = room != NULL ? read(fd, room, spare) : read(fd, &probe, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || room == NULL) {
			int rc = 0;
			if (got < 0)
				rc = err_errno(e, "read", path);
			else if (got > 0)
				rc = err_set(e, ERR_TOO_LARGE, "%.160s is larger than %zu bytes",
					path, out->max);
			out->failed = rc < 0;
			(void)close(fd);
			return rc;
		}
		buf_grew(out, (size_t)got);
	}
}

int fs_write_all(int fd, struct str bytes, const char *what, struct err *e)
{
	while (bytes.n != 0) {
		ssize_t n = write(fd, bytes.p, bytes.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "write", what);
		bytes = str_slice(bytes, (size_t)n, bytes.n);
	}
	return 0;
}

int fs_sync_dir(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, "open", path);
	int rc = fsync(fd) < 0 ? err_errno(e, "sync", path) : 0;
	(void)close(fd);
	return rc;
}

static int write_new(const char *path, struct str bytes, mode_t mode, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return err_errno(e, "create", path);
	int rc = fs_write_all(fd, bytes, path, e);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_errno(e, "sync", path);
	if (close(fd) < 0 && rc == 0)
		rc = err_errno(e, "close", path);
	return rc;
}

static int write_beside(
	const char *path, struct str bytes, mode_t mode, bool replace, struct err *e)
{
	char temporary[PATH_MAX], dir[PATH_MAX], unique[ID_HEX + 1];
	const char *slash = strrchr(path, '/');

	if (!str_print(temporary, sizeof temporary, "%s.%s", path, id_hex(unique)))
		return err_set(e, ERR_INVALID, "the path is too long");
	(void)str_print(dir, sizeof dir, "%.*s", slash != NULL ? (int)(slash - path) : 1,
		slash != NULL ? path : ".");
	if (write_new(temporary, bytes, mode, e) < 0)
		goto fail;
	if (replace && rename(temporary, path) < 0) {
		(void)err_errno(e, "rename", path);
		goto fail;
	}
	if (!replace && link(temporary, path) < 0 && errno != EEXIST) {
		(void)err_errno(e, "make", path);
		goto fail;
	}
	if (!replace)
		(void)unlink(temporary);
	return fs_sync_dir(dir[0] != '\0' ? dir : "/", e);
fail:
	(void)unlink(temporary);
	return -1;
}

int fs_write_atomic(const char *path, struct str bytes, mode_t mode, struct err *e)
{
	return write_beside(path, bytes, mode, true, e);
}

int fs_write_first(const char *path, struct str bytes, mode_t mode, struct err *e)
{
	return write_beside(path, bytes, mode, false, e);
}

int fs_mkdirs(const char *path, mode_t mode, struct err *e)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n == 0 || n >= sizeof part)
		return err_set(e, ERR_INVALID, "the path is empty or too long");
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return err_errno(e, "make folder", part);
	}
	return 0;
}

/* ---- removing -------------------------------------------------------------------------------- */

struct removal {
	int top; /* the folder to which those that lie too deep are moved */
	dev_t device;
	unsigned moved;
	bool again; /* some were */
};

static int remove_at(struct removal *r, int dirfd, const char *name, unsigned depth);

/* Everything in the folder, which is taken over; -1 with errno set. */
static int remove_all(struct removal *r, int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	int rc = 0, saved;

	if (d == NULL) {
		(void)close(fd);
		return -1;
	}
	for (struct dirent *entry; rc == 0 && (entry = readdir(d)) != NULL;)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = remove_at(r, dirfd(d), entry->d_name, depth);
	saved = errno;
	(void)closedir(d);
	errno = saved;
	return rc;
}

/* A folder that lies deep goes up instead, so that neither descriptors nor the stack run out. */
static int move_up(struct removal *r, int dirfd, const char *name)
{
	char to[64], unique[ID_HEX + 1];

	(void)str_print(to, sizeof to, ".%u.%s", r->moved++, id_hex(unique));
	r->again = true;
	return renameat(dirfd, name, r->top, to);
}

static int remove_folder(struct removal *r, int dirfd, const char *name, unsigned depth)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	bool stays = fstat(fd, &st) < 0 || st.st_dev != r->device;
	/* Names can only be taken out of a folder that may be written. */
	if (!stays && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700);
	if (stays)
		(void)close(fd);
	else if (depth == DEPTH_MAX) {
		(void)close(fd);
		return move_up(r, dirfd, name);
	} else if (remove_all(r, fd, depth + 1) < 0)
		return -1;
	return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

static int remove_at(struct removal *r, int dirfd, const char *name, unsigned depth)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	return errno == EISDIR || errno == EPERM ? remove_folder(r, dirfd, name, depth) : -1;
}

int fs_remove_tree(const char *path, struct err *e)
{
	struct removal r = { .again = true };
	struct stat st;

	if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_errno(e, "remove", path);
	if ((st.st_mode & 0700) != 0700)
		(void)chmod(path, 0700);
	r.device = st.st_dev;
	while (r.again) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r.again = false;
		r.top = fd;
		if (fd < 0 || remove_all(&r, fd, 1) < 0)
			return err_errno(e, "remove", path);
	}
	return rmdir(path) < 0 && errno != ENOENT ? err_errno(e, "remove", path) : 0;
}

/* ---- walking --------------------------------------------------------------------------------- */

int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

int fs_open_file_beneath(int dirfd, const char *path, struct err *e)
{
	int fd = fs_open_beneath(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "%.160s does not exist", path)
				       : err_errno(e, "open", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		(void)close(fd);
		return err_set(e, ERR_INVALID, "%.160s is not a plain file with one link", path);
	}
	return fd;
}

struct walk {
	fs_walk_cb *fn, *on_other;
	void *arg;
};

static int walk_one(
	const struct walk *w, int dirfd, struct str prefix, const char *name, struct err *e);

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes dirfd over. */
static int walk_dir(const struct walk *w, int dirfd, struct str prefix, struct err *e)
{
	DIR *d = fdopendir(dirfd);
	char **names = NULL;
	size_t n = 0;
	int rc = 0;

	if (d == NULL) {
		(void)close(dirfd);
		return err_errno(e, "list", prefix.p);
	}
	for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (n == NAMES_MAX) {
			rc = err_set(
				e, ERR_TOO_LARGE, "a folder has more than %d entries", NAMES_MAX);
			break;
		}
		if ((n & (n - 1)) == 0)
			names = mem_resize(names, n != 0 ? 2 * n : 1, sizeof *names);
		names[n] = mem_dup(entry->d_name);
		n++;
	}
	if (n != 0)
		qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		if (rc == 0)
			rc = walk_one(w, dirfd, prefix, names[i], e);
		mem_free(names[i]);
	}
	mem_free(names);
	(void)closedir(d);
	return rc;
}

static int walk_one(
	const struct walk *w, int dirfd, struct str prefix, const char *name, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	bool fits = str_print(
		path, sizeof path, "%.*s%s%s", STR_ARG(prefix), prefix.n != 0 ? "/" : "", name);

	if (!fits)
		return err_set(e, ERR_INVALID, "a path is longer than %d bytes", PATH_MAX);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, "look at", path);
	if (S_ISREG(st.st_mode))
		return w->fn(w->arg, path, st.st_size, e);
	if (!S_ISDIR(st.st_mode))
		return w->on_other != NULL ? w->on_other(w->arg, path, st.st_size, e) : 0;
	int sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		return err_errno(e, "open", path);
	return walk_dir(w, sub, str_c(path), e);
}

int fs_walk(const char *root, fs_walk_cb *fn, fs_walk_cb *on_other, void *arg, struct err *e)
{
	const struct walk w = { fn, on_other, arg };
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, "open", root);
	return walk_dir(&w, fd, (struct str){ "", 0 }, e);
}

int fs_walk_beneath(
	int dirfd, const char *path, fs_walk_cb *fn, fs_walk_cb *on_other, void *arg, struct err *e)
{
	const struct walk w = { fn, on_other, arg };
	int fd = fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return err_errno(e, "open", path);
	return walk_dir(&w, fd, (struct str){ "", 0 }, e);
}
