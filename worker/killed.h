/* Who ended a command that did not end by itself, as a reason and in words. Pure. */
#ifndef WORKER_KILLED_H
#define WORKER_KILLED_H
#include "api/run.h"
#include "worker/runtime/runtime.h"

enum { KILLED_TEXT_MAX = 320 };

/* Of an end that nobody here has asked for. False when the command ended by itself, as far as is
 * known; its signal or exit code is the reason then. */
bool killed_by(const struct runtime_status *s, enum reason *ret, char text[KILLED_TEXT_MAX]);
/* What to say of a signal or an exit code: "…, by itself or by …" where that is a question. */
void killed_words(const struct runtime_status *s, char text[KILLED_TEXT_MAX]);

#endif
