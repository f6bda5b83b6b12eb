/*
 * Inside worker/runtime: the images that this worker has pulled, by which names, when they were
 * used last and by which attempts: who may be removed, and in which order. Kept in a file, which is
 * replaced as a whole soon after each change; an image of which the file does not tell is never
 * removed, so losing the last moment keeps one too many. An attempt counts until its container is
 * removed; of an earlier process, as long as its folder is there. Loop thread only.
 */
#ifndef WORKER_RUNTIME_DOCKER_KEEP_H
#define WORKER_RUNTIME_DOCKER_KEEP_H
#include "worker/runtime/docker.h"

enum { DOCKER_KEEP_NAMES = 4, DOCKER_KEEP_MAX = 2048 };

struct docker_kept {
	char id[80]; /* "sha256:…" */
	char names[DOCKER_KEEP_NAMES][DOCKER_IMAGE_MAX]; /* as it was pulled */
	size_t n_names, n_attempts, cap;
	char (*attempts)[RUNTIME_ID_MAX]; /* that use it */
	int64_t size, used_at; /* bytes; microseconds since 1970, later with every use */
	bool passed; /* by the round that makes room: it cannot be removed now */
	int64_t failed_at; /* clock_elapsed when the daemon last failed to remove it; 0: never */
};

struct docker_keep {
	struct loop *loop;
	char *path; /* NULL: nothing is kept in mind */
	struct docker_kept *all;
	size_t n;
	struct keep_write *write; /* in flight */
	bool changed, full;
};

/* path NULL: every call does nothing. `attempts`: the folder of those that are here. (blocks) */
void docker_keep_open(
	struct docker_keep *k, struct loop *loop, const char *path, const char *attempts);
void docker_keep_close(struct docker_keep *k); /* (blocks) writes what is new */

/* The daemon did not have it, and has it now because we asked for it by this name. */
void docker_keep_pulled(struct docker_keep *k, const char *id, const char *name, int64_t size);
/* An attempt uses it from now on, until docker_keep_drop. */
void docker_keep_use(struct docker_keep *k, const char *id, const char *attempt);
void docker_keep_drop(struct docker_keep *k, const char *attempt);
/* The one that nobody uses, was used longest ago and has not been passed; NULL: none. */
struct docker_kept *docker_keep_oldest(struct docker_keep *k);
/* That name of it is not ours any more; without one it is forgotten, and so is `x`. */
void docker_keep_unname(struct docker_keep *k, struct docker_kept *x, const char *name);

#endif
