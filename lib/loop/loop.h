/*
 * The event loop: one per process, on libevent, used from one thread. A turn waits for something to
 * happen, runs every callback that is due, and then what was deferred during the turn. Turns longer
 * than LOOP_SLOW_MS are logged and counted: nothing here may block (use work.h or child.h).
 *
 * Watchers do not own their descriptors: free the watcher first, then close. A watcher may be freed
 * anywhere, also inside its own callback. loop_new() ignores SIGPIPE for the process.
 */
#ifndef LIB_LOOP_LOOP_H
#define LIB_LOOP_LOOP_H
#include <stdbool.h>
#include <stdint.h>

enum { LOOP_SLOW_MS = 50 };

struct loop;

struct loop *loop_new(void) __attribute__((returns_nonnull));
/* Waits for the work pool, runs what is deferred, and frees the loop. Watchers, timers and children
 * must be gone before. NULL is fine. */
void loop_free(struct loop *l);
void loop_run(struct loop *l); /* until loop_stop() */
void loop_stop(struct loop *l); /* ends loop_run() after the current turn; from a callback */
/* One turn; waits for an event when `wait` and nothing is deferred. For tests and shutdown. */
void loop_step(struct loop *l, bool wait);
/* Microseconds on clock_elapsed()'s clock at the start of this turn: cheap, for deadlines. */
int64_t loop_now(const struct loop *l);
/* Of a program that serves nobody: long turns hold up none, and are not warned of. */
void loop_serves_nobody(struct loop *l);
uint64_t loop_slow_turns(const struct loop *l); /* how many turns took more than LOOP_SLOW_MS */

enum { LOOP_READ = 1, LOOP_WRITE = 2 };
struct loop_fd;
/* `what` says which of the above are so. Level-triggered: called again while it stays so. */
typedef void loop_fd_cb(void *arg, int what);
struct loop_fd *loop_fd_new(struct loop *l, int fd, int want, loop_fd_cb *fn, void *arg)
	__attribute__((returns_nonnull));
void loop_fd_want(struct loop_fd *w, int want); /* what to be called for from now on; 0: nothing */
void loop_fd_free(struct loop_fd *w); /* NULL is fine; never closes the descriptor */

#endif
