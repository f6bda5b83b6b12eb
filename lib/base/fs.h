/* Files. All descriptors are opened close-on-exec. Paths given as `beneath` are resolved by openat2
 * with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS, so that a hostile tree cannot
 * lead out of its root. Blocking: use from a work thread or a child when files may be large. */
#ifndef LIB_BASE_FS_H
#define LIB_BASE_FS_H
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <sys/types.h>

/* Reads the whole file into out; ERR_TOO_LARGE past out->max. Only regular files and /dev/null,
 * else ERR_INVALID: a pipe would be waited for and a device has no end. */
int fs_read(const char *path, struct buf *out, struct err *e) MUST_CHECK;
/* Writes a new file beside path, syncs it, and renames it over path; then syncs the directory. */
int fs_write_atomic(const char *path, struct str bytes, mode_t mode, struct err *e) MUST_CHECK;
/* The same, but a file that is there, or comes about meanwhile, stays as it is: then 0, too. */
int fs_write_first(const char *path, struct str bytes, mode_t mode, struct err *e) MUST_CHECK;
/* mkdir -p; existing folders are left as they are. */
int fs_mkdirs(const char *path, mode_t mode, struct err *e) MUST_CHECK;
/* rm -rf, never following symbolic links, not into other file systems, however deep the tree is and
 * whatever modes its folders have; a missing path is fine. */
int fs_remove_tree(const char *path, struct err *e) MUST_CHECK;
/* Opens a path below dirfd; flags as open(2). Returns the descriptor, or -1 with errno set. */
int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode) MUST_CHECK;
/* The same, and only a regular file with one link: what a job may hand us to read. */
int fs_open_file_beneath(int dirfd, const char *path, struct err *e) MUST_CHECK;
/* What is no regular file, in words: "a pipe". */
const char *fs_kind(mode_t mode);
int fs_sync_dir(const char *path, struct err *e) MUST_CHECK;
/* write(2) until all is written. */
int fs_write_all(int fd, struct str bytes, const char *what, struct err *e) MUST_CHECK;
/* Calls fn for each regular file below root, with its path relative to root, in byte order within a
 * folder. Symbolic links, devices and sockets are reported through on_other (may be NULL) and not
 * followed. A return of -1 from fn stops the walk with its error. */
typedef int fs_walk_cb(void *arg, const char *path, int64_t size, struct err *e);
int fs_walk(const char *root, fs_walk_cb *fn, fs_walk_cb *on_other, void *arg,
	struct err *e) MUST_CHECK;
/* The same for a folder of a hostile tree below dirfd, to which no link leads. */
int fs_walk_beneath(int dirfd, const char *path, fs_walk_cb *fn, fs_walk_cb *on_other, void *arg,
	struct err *e) MUST_CHECK;

#endif
