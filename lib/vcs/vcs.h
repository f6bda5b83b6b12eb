/*
 * Reads from git repositories, asynchronously. Each operation is one run of the program
 * tidemill-git, which holds libgit2: a child with limits on memory, file size, CPU and time, that
 * is killed when its time is over or the operation is cancelled. So no repository can hang, crash
 * or read the memory of the process that asks. Results live in the caller's arena, which is held
 * until the callback. Callbacks come exactly once, from the loop. Loop thread only.
 *
 * Errors: ERR_INVALID (address, revision or content refused), ERR_NOT_FOUND (revision or commit),
 * ERR_FORBIDDEN (credentials or address refused), ERR_NETWORK, ERR_TIMEOUT, ERR_TOO_LARGE,
 * ERR_NO_SPACE, ERR_CANCELLED, ERR_INTERNAL.
 */
#ifndef LIB_VCS_VCS_H
#define LIB_VCS_VCS_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <sys/types.h>

struct loop;
struct vcs_op;

/* Where and how; strings are borrowed until the callback. */
struct vcs_source {
	const char *helper; /* tidemill-git; NULL: beside this program, else ../libexec/tidemill */
	const char *cache; /* folder of bare repositories, mode 0700; needed for remote ones */
	const char *url;
	unsigned allow; /* VCS_ALLOW_… of url.h */
	struct str credentials; /* JSON as README.md says; goes through a pipe, never argv */
	const char *ca_file; /* NULL: the system's */
	bool guard; /* connect to public addresses only … */
	const char *const
		*allow_nets; /* … and to these ("10.2.0.0/16"); NULL-terminated, or NULL */
	int64_t timeout; /* microseconds, default 10 minutes */
	uint64_t max_fetch; /* bytes received in one fetch, default 2 GiB */
	bool as_user; /* run the program as uid and gid, which then need the cache and the target */
	uid_t uid;
	gid_t gid;
};

struct vcs_file {
	struct str path;
	bool found; /* a regular file of that commit */
	struct str bytes;
};

struct vcs_tree {
	char commit[41];
	uint64_t files, bytes, links;
	uint64_t submodules; /* left empty */
	uint64_t lfs; /* files that are Git LFS pointers: their content is not in git */
	struct str first_lfs; /* path of the first, or "" */
};

typedef void vcs_resolve_cb(void *arg, const char *commit, const struct err *e);
typedef void vcs_show_cb(void *arg, const struct vcs_file *files, size_t n, const struct err *e);
typedef void vcs_checkout_cb(void *arg, const struct vcs_tree *tree, const struct err *e);
typedef void vcs_changed_cb(
	void *arg, const struct str *paths, size_t n, bool complete, const struct err *e);

/* Branch, tag, "HEAD" or commit id to the full commit id. */
struct vcs_op *vcs_resolve(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const char *ref, vcs_resolve_cb *cb, void *arg);
/* Bytes of up to 32 files; each at most max_bytes. A file that is missing, or is no regular file,
 * is not found, without an error. */
enum { VCS_MAX_SHOW = 32 };
struct vcs_show_args {
	const char *commit;
	const char *const *paths;
	size_t n;
	uint64_t max_bytes; /* default 1 MiB */
};
struct vcs_op *vcs_show(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const struct vcs_show_args *args, vcs_show_cb *cb, void *arg);
/* Exactly the tree of that commit into dir, which must not exist (its parent must); it appears
 * whole, by rename, or not at all. */
struct vcs_checkout_args {
	const char *commit, *dir;
	uint64_t max_files, max_bytes; /* default 200,000 and 4 GiB */
};
struct vcs_op *vcs_checkout(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const struct vcs_checkout_args *args, vcs_checkout_cb *cb, void *arg);
/* Paths that differ between two commits, in byte order; complete is false when there were more than
 * 10,000. */
struct vcs_op *vcs_changed(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const char *const commits[2], vcs_changed_cb *cb, void *arg);
/* Kills the child; the callback comes with ERR_CANCELLED. Not after the callback. */
void vcs_cancel(struct vcs_op *op);

#endif
