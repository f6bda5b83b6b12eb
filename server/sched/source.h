/* The text of a pipeline file out of a git repository, at an exact commit. */
#ifndef SERVER_SCHED_SOURCE_H
#define SERVER_SCHED_SOURCE_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct app;

/* commit and text live in the arena. Once, from the loop. What is wrong with the request names
 * /repository, /ref or /path. */
typedef void source_cb(void *arg, struct str commit, struct str text, const struct err *e);
/* ref: branch, tag or commit. The strings are NUL-terminated and live until the callback. */
void source_read(struct app *app, struct arena *a, struct str repository, struct str ref,
	struct str path, source_cb *cb, void *arg);

#endif
