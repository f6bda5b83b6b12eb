#include "worker/checkpoint.h"

#include "lib/base/fs.h"
#include "lib/base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int path_of(char out[PATH_MAX], const char *a, const char *b, struct err *e)
{
	return str_print(out, PATH_MAX, "%s/%s", a, b)
		       ? 0
		       : err_set(e, ERR_INVALID, "the path of a checkpoint is too long");
}

/* ---- looking -------------------------------------------------------------------------------- */

struct look {
	const char *dir;
	struct checkpoint_state s;
};

static int on_file(void *arg, const char *path, int64_t size, struct err *e)
{
	struct look *l = arg;
	char full[PATH_MAX];
	struct stat st;

	if (path_of(full, l->dir, path, e) < 0)
		return -1;
	if (lstat(full, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(e, "look at", full);
	int64_t at = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
	l->s.sum = str_hash(str_c(path),
			   l->s.sum ^ (uint64_t)size ^ (uint64_t)at ^ (uint64_t)st.st_ino << 32) |
		   1;
	l->s.files++;
	l->s.bytes += size;
	return 0;
}

int checkpoint_look(const char *dir, struct checkpoint_state *ret, struct err *e)
{
	struct look l = { .dir = dir };
	int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		return err_errno(e, "open", dir);
	int rc = fd >= 0 ? fs_walk_beneath(fd, ".", on_file, NULL, &l, e) : 0;
	if (fd >= 0)
		(void)close(fd);
	if (rc == 0)
		*ret = l.s;
	return rc;
}

/* Or no folder at all; what a step has put in its place is not followed. */
static bool is_empty(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bool empty = true;

	for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			empty = false;
	if (d != NULL)
		(void)closedir(d);
	return empty;
}

/* ---- between attempts ----------------------------------------------------------------------- */

/* The folder of the latest attempt; -1 when there is none. */
static int64_t newest(const char *dir)
{
	DIR *d = opendir(dir);
	int64_t most = -1, n;

	for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;)
		if (num_parse_i64(str_c(entry->d_name), 0, INT64_MAX, &n) && n > most)
			most = n;
	if (d != NULL)
		(void)closedir(d);
	return most;
}

/* Over an empty folder, or none. */
static int move(const char *from, const char *to, struct err *e)
{
	return rename(from, to) < 0 ? err_errno(e, "move", from) : 0;
}

int checkpoint_take(const char *kept, const char *step, int64_t least, const char *out,
	bool *ret_found, struct err *e)
{
	char dir[PATH_MAX], from[PATH_MAX], to[PATH_MAX], number[32];

	if (path_of(to, out, CHECKPOINT_DIR, e) < 0 || path_of(dir, kept, step, e) < 0)
		return -1;
	*ret_found = !is_empty(to); /* an earlier try has got as far as this */
	if (*ret_found)
		return 0;
	int64_t n = newest(dir);
	(void)str_print(number, sizeof number, "%lld", (long long)n);
	if (n >= 0 && n >= least) {
		if (path_of(from, dir, number, e) < 0 || move(from, to, e) < 0)
			return -1;
		*ret_found = true;
	}
	return fs_remove_tree(dir, e);
}

int checkpoint_settle(const char *out, struct err *e)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (path_of(from, out, CHECKPOINT_PART, e) < 0 || path_of(to, out, CHECKPOINT_DIR, e) < 0)
		return -1;
	return move(from, to, e);
}

int checkpoint_keep(const char *kept, const char *step, int64_t number, const char *out,
	bool *ret_kept, struct err *e)
{
	char dir[PATH_MAX], from[PATH_MAX], to[PATH_MAX], name[32];

	*ret_kept = false;
	(void)str_print(name, sizeof name, "%lld", (long long)number);
	if (path_of(from, out, CHECKPOINT_DIR, e) < 0 || path_of(dir, kept, step, e) < 0 ||
		path_of(to, dir, name, e) < 0)
		return -1;
	if (is_empty(from))
		return 0;
	if (fs_remove_tree(dir, e) < 0 || fs_mkdirs(dir, 0700, e) < 0 || move(from, to, e) < 0)
		return -1;
	*ret_kept = true;
	return 0;
}

int checkpoint_discard(const char *kept, const char *step, struct err *e)
{
	char dir[PATH_MAX];

	return path_of(dir, kept, step, e) < 0 ? -1 : fs_remove_tree(dir, e);
}
