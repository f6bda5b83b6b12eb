/*
 * Trees of a repository: written to a folder, read file by file, compared. Used by tidemill-git
 * only. What is read is hostile: names and links are checked, everything is counted against caps
 * before it is read, and nothing in the tree is interpreted.
 */
#ifndef LIB_VCS_TREE_H
#define LIB_VCS_TREE_H
#include "lib/vcs/repo.h"

struct tree_caps {
	uint64_t max_files; /* entries of any kind */
	uint64_t max_bytes; /* of all files together */
	uint64_t max_file; /* of one file */
};

struct tree_stats {
	uint64_t files, bytes, links, submodules, lfs;
	char first_lfs[VCS_PATH_MAX + 1];
};

/* Writes the tree into the open, empty folder dirfd. */
int tree_write(struct repo *r, git_tree *tree, int dirfd, const struct tree_caps *caps,
	struct tree_stats *ret, struct err *e) MUST_CHECK;
/* A regular file's bytes; *ret is NULL when there is none at that path. */
int tree_read(struct repo *r, git_tree *tree, const char *path, uint64_t max, git_odb_object **ret,
	struct err *e) MUST_CHECK;
/* Calls fn for each path that differs, in order, at most max; *ret_complete says whether that was
 * all. from may be NULL: everything is new. */
typedef void tree_path_fn(void *arg, struct str path);
struct tree_diff {
	git_tree *from, *to;
	size_t max;
	tree_path_fn *fn;
	void *arg;
};
int tree_changed(
	struct repo *r, const struct tree_diff *d, bool *ret_complete, struct err *e) MUST_CHECK;
/* What the names and links of a tree must be like; depth counts the folders above the link. */
bool tree_name_ok(struct str name);
bool tree_link_ok(struct str target, unsigned depth);

#endif
