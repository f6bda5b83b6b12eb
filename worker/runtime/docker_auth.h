/*
 * Inside worker/runtime: the credentials of registries, from a file in the form of Docker's
 * config.json ("auths"). The file is read anew for each pull, so that its contents may rotate.
 */
#ifndef WORKER_RUNTIME_DOCKER_AUTH_H
#define WORKER_RUNTIME_DOCKER_AUTH_H
#include "lib/base/err.h"

enum { DOCKER_AUTH_MAX = 8192 };

/* The header line "X-Registry-Auth: …" for the image's registry, "" when the file has nothing for
 * it. The caller wipes it. ERR_INVALID, never with what is in the file, when the file cannot be
 * used: readable by others, not JSON, an entry without a password. */
int docker_auth_header(
	const char *file, const char *image, char out[DOCKER_AUTH_MAX], struct err *e) MUST_CHECK;
/* The file can be used at all. */
int docker_auth_check(const char *file, struct err *e) MUST_CHECK;

#endif
