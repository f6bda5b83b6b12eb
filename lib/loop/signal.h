/* Signals as callbacks of the loop, for SIGTERM, SIGINT, SIGHUP and the like. One loop per process
 * may watch signals. */
#ifndef LIB_LOOP_SIGNAL_H
#define LIB_LOOP_SIGNAL_H
#include "lib/loop/loop.h"

struct loop_signal;
typedef void loop_signal_cb(void *arg, int signo);
struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_signal_cb *fn, void *arg)
	__attribute__((returns_nonnull));
void loop_signal_free(struct loop_signal *s); /* NULL is fine */

#endif
