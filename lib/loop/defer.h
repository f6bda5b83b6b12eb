/*
 * Work for the end of the current turn: how an operation completes without calling back inside the
 * call that starts it, and how an object is freed that may still be in use further up the stack.
 * Runs in the order of the calls; what is deferred meanwhile runs at the end of the next turn,
 * which does not wait. From the loop's thread only.
 */
#ifndef LIB_LOOP_DEFER_H
#define LIB_LOOP_DEFER_H
#include "lib/loop/loop.h"

typedef void loop_defer_cb(void *arg);
void loop_defer(struct loop *l, loop_defer_cb *fn, void *arg);

#endif
