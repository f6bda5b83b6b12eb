/*
 * A repository, opened for reading; used by tidemill-git only. A local one is opened in place, a
 * remote one by its bare cache, which is made and filled when something is asked that it lacks.
 * Blocking, without a time limit of its own: the process is killed from outside.
 */
#ifndef LIB_VCS_REPO_H
#define LIB_VCS_REPO_H
#include "lib/vcs/cred.h"
#include "lib/vcs/url.h"

#include <git2.h>

struct repo_limits {
	uint64_t max_fetch; /* bytes received in one fetch */
	uint64_t max_objects; /* in one fetch */
};

struct repo {
	struct vcs_url url;
	const char *cache; /* NULL: none; remote revisions can then be resolved by name only */
	struct repo_limits limits;
	struct cred cred;
	git_repository *git; /* NULL: remote and not cached yet */
	bool too_large;
	char path[1100], lock[1100], used[1100]; /* of the cache */
	int use; /* a shared lock on the cache while it is read; 0: none */
};

/* r->url, cache, limits and cred are set by the caller; *r stays where it is. */
int repo_open(struct repo *r, struct err *e) MUST_CHECK;
void repo_close(struct repo *r);
/* Order: a full commit id, refs/…, tag, branch, abbreviated commit id (7 digits or more). */
int repo_resolve(struct repo *r, const char *ref, git_oid *ret, struct err *e) MUST_CHECK;
/* The tree of a commit named by its full id; fetched first when the cache lacks it. */
int repo_tree(struct repo *r, const char *commit, git_tree **ret, struct err *e) MUST_CHECK;
/* Turns the outcome of a libgit2 call into an error; `doing` completes "cannot …". */
int repo_fail(struct repo *r, int rc, const char *doing, struct err *e);

#endif
