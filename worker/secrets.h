/*
 * The secrets that a step names. Their values come from this worker's own folder
 * (step-secrets-dir/PROJECT/NAME, files that nobody but the worker's user may read), so that no
 * server holds them. They reach the command as files or variables of its own, and never argv, the
 * record of the attempt or what a daemon shows; all of them are hidden in its log.
 */
#ifndef WORKER_SECRETS_H
#define WORKER_SECRETS_H
#include "api/worker.h"
#include "worker/conf.h"
#include "worker/runtime/runtime.h"

enum { SECRET_BYTES_MAX = 65536 };

struct secrets;

/* (blocks a moment) Reads them all; NULL when the step has none, or with an error: ERR_NOT_FOUND
 * when one is not there, others when it cannot be used. */
int secrets_read(const struct worker_conf *conf, const struct assignment *task,
	struct secrets **ret, struct err *e) MUST_CHECK;
void secrets_free(struct secrets *s); /* wipes them; NULL is fine, also below */

/* Of all values, to know them again: the log of an attempt is masked with the same ones for ever.
 */
struct str secrets_digest(const struct secrets *s, struct arena *a);
/* struct str, in the arena: what is to be hidden in the log. */
struct list secrets_hidden(const struct secrets *s, struct arena *a);
/* The files and the variables that hold values, borrowed; appended to those that are there. */
void secrets_spec(const struct secrets *s, const struct assignment *task, struct arena *a,
	struct runtime_spec *spec);
/* "secret.warehouse-key": the file in RUNTIME_DIR_SECRETS. */
const char *secrets_file(struct arena *a, struct str name);

#endif
