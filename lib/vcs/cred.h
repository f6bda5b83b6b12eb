/*
 * Credentials and host keys for libgit2; used by tidemill-git only. They come as one JSON object
 * and are handed out once per connection, and only for the scheme, host and port that they are for.
 */
#ifndef LIB_VCS_CRED_H
#define LIB_VCS_CRED_H
#include "lib/base/arena.h"
#include "lib/vcs/url.h"

#include <git2.h>

struct cred {
	const struct vcs_url *url; /* what was asked for */
	struct str username, password; /* https */
	struct str ssh_key, ssh_passphrase, known_hosts; /* ssh */
	unsigned tries;
	bool refused; /* the peer was shown the credentials and asked again, or there were none */
	bool unknown_host; /* the ssh host key is not in known_hosts */
};

enum { CRED_MAX = 65536 };
/* The JSON text; strings are copied into a. */
int cred_parse(struct cred *c, struct str json, struct arena *a, struct err *e) MUST_CHECK;
/* Callbacks of libgit2; payload is the struct cred. */
int cred_acquire(
	git_credential **out, const char *url, const char *user, unsigned allowed, void *payload);
int cred_check_host(git_cert *cert, int valid, const char *host, void *payload);
/* True when a line of a known_hosts file names host (and port, unless 22 or 0) with this key. */
bool cred_known_host(struct str known_hosts, const struct vcs_url *url, struct str key);

#endif
