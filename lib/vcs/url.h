/*
 * What may name a repository, a revision and a file in it. Pure; the server checks user input with
 * it, and the helper program checks again. Accepted: https://host[:port]/path, http:// when the
 * caller allows it, ssh://[user@]host[:port]/path, user@host:path, and, when the caller allows
 * them, file:///path and absolute paths. Never: user names or passwords in http(s) addresses,
 * control characters, spaces, backslashes, queries, fragments, "..", a leading '-'.
 */
#ifndef LIB_VCS_URL_H
#define LIB_VCS_URL_H
#include "lib/base/err.h"
#include "lib/base/str.h"

enum { VCS_URL_MAX = 2048, VCS_REF_MAX = 255, VCS_PATH_MAX = 4096, VCS_COMMIT_HEX = 40 };

enum vcs_scheme { VCS_HTTPS, VCS_HTTP, VCS_SSH, VCS_LOCAL };

struct vcs_url {
	enum vcs_scheme scheme;
	char text[VCS_URL_MAX + 1]; /* as given; for VCS_LOCAL the absolute path */
	char user[64], host[256]; /* "" when absent; a host in brackets loses them */
	unsigned port; /* 0: the scheme's own */
};

enum { VCS_ALLOW_HTTP = 1, VCS_ALLOW_LOCAL = 2 };
int vcs_url_parse(struct str url, unsigned allow, struct vcs_url *ret, struct err *e) MUST_CHECK;
/* A branch, a tag, "refs/heads/…", "refs/tags/…", "HEAD" or (part of) a commit id. */
int vcs_ref_check(struct str ref, struct err *e) MUST_CHECK;
bool vcs_is_commit(struct str s); /* 40 lower-case hex digits */
/* A file's path in a repository: relative, plain components, no control characters. */
int vcs_path_check(struct str path, struct err *e) MUST_CHECK;

#endif
