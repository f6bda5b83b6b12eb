/* The worker's credential: got once with a join token, kept in work-dir/credential.json (0600). */
#ifndef WORKER_ENROL_H
#define WORKER_ENROL_H
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "worker/conf.h"

struct loop;

struct credential {
	struct str server, worker_id, token;
	int64_t expires_at; /* 0: never */
};

/* ERR_NOT_FOUND when there is none; ERR_INVALID when it is of another server. */
int credential_load(const struct worker_conf *c, struct arena *a, struct credential *ret,
	struct err *e) MUST_CHECK;
/* Does the server say that it does not take it? False, too, when the server cannot be asked. */
bool credential_refused(
	const struct worker_conf *c, struct loop *loop, const struct credential *have);
/* Asks the server, waiting for it up to ENROL_PATIENCE_S while it cannot be reached, and stores
 * what it gives. */
enum { ENROL_PATIENCE_S = 120 };
int credential_enrol(const struct worker_conf *c, struct loop *loop, struct arena *a,
	struct credential *ret, struct err *e) MUST_CHECK;

#endif
