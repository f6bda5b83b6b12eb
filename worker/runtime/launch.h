/* Inside worker/runtime: the command line of tidemill-init and the environment of a step, made
 * from the spec. Everything lies in the arena or in what was given. */
#ifndef WORKER_RUNTIME_LAUNCH_H
#define WORKER_RUNTIME_LAUNCH_H
#include "lib/base/arena.h"
#include "worker/runtime/runtime.h"

struct launch {
	const char *init; /* its path, as the one who executes it sees it; as are the next three */
	const char *ctl, *secrets, *workdir;
	const struct runtime_spec *spec;
	bool as_user; /* the init drops to uid and gid */
	uid_t uid;
	gid_t gid;
};

/* Ends with NULL. */
const char *const *launch_argv(struct arena *a, const struct launch *l);
/* The spec's environment, and what every command may rely on where the spec does not say it:
 * HOME, USER, LOGNAME, LANG. Which GPUs are visible is always ours to say, and none unless given.
 * With `bare` there is no image that brings a PATH, and no container that hides the GPUs. */
const char *const *launch_env(struct arena *a, const struct runtime_spec *s, const char *user,
	const char *home, bool bare);

/* Who runs plain processes. */
struct launch_user {
	uid_t uid;
	gid_t gid;
	char name[64];
};

/* The named user, or one of our choice for NULL; never root. Ourselves when we are not root. Looks
 * names up, which may block: once, at the start. */
int launch_user(struct launch_user *ret, const char *name, struct err *e) MUST_CHECK;

#endif
