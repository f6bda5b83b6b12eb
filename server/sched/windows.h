/*
 * Closing windows: their metrics, the policy, the decisions, and what these start.
 *
 * A window by time is complete when the monitor's time has passed its end; one by rows when it is
 * full. Complete windows are closed by themselves, after each batch and, when a server goes away or
 * the clock reaches rows that lay ahead of it, by a sweep; POST …/windows/close closes them
 * earlier. Rows or labels that come later open a window again, as long as the monitor's time has
 * not passed its end by more than `late`; it is then closed anew, with a new revision, whose
 * decisions supersede the old ones. What the monitor's time is:
 * schema/migrations/0005_monitor_clock.sql.
 *
 * The windows of a monitor are closed one at a time, oldest first. The policy's state moves with
 * the newest window only; a window that is closed anew is judged from the state that was before it,
 * and moves the state unless it has started a retraining or the champion has changed since. What an
 * older window says is recorded and starts nothing.
 */
#ifndef SERVER_SCHED_WINDOWS_H
#define SERVER_SCHED_WINDOWS_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct app;
struct windows;

struct windows *windows_new(struct app *app);
void windows_free(struct windows *w); /* before the loop's work and the database go; NULL is fine */

/* Closes what is complete, in a while. */
void windows_look(struct app *app, struct str monitor_id);

struct windows_closed {
	int64_t closed;
	const struct str *decisions; /* ids */
	size_t n;
};
/* Once, from the loop, never inside the call; lent for the call. On failure *done says what had
 * been closed before. */
typedef void windows_cb(void *arg, const struct windows_closed *done, const struct err *e);
struct windows_which {
	bool has_start, has_before;
	int64_t start, before; /* the window that starts here; those that end at or before */
};
void windows_close(struct app *app, struct str monitor_id, const struct windows_which *which,
	windows_cb *cb, void *arg);

#endif
