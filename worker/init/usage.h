/*
 * What the command and all that it has started use, for the file `usage` (ctl.h): by the cgroup
 * when the init is PID 1 of a container that sees its own, else by its descendants in /proc, whose
 * memory is the sum of their resident sizes. Costs some reads of small files; never stops anything.
 */
#ifndef WORKER_INIT_USAGE_H
#define WORKER_INIT_USAGE_H
#include <stdbool.h>
#include <stdint.h>

/* `at_us`: now, on a clock that only elapses. `last`: the command and its descendants have ended,
 * so the memory of now says nothing. */
void usage_write(int dirfd, int64_t at_us, bool last);

#endif
