/* One closing of one window; windows.h says what it means. */
#ifndef SERVER_SCHED_WINDOW_CLOSE_H
#define SERVER_SCHED_WINDOW_CLOSE_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct app;

enum { WINDOW_DECISIONS = 3 };
struct window_closed_now {
	bool closed; /* false: somebody else has closed it */
	struct str decisions[WINDOW_DECISIONS]; /* ids */
	size_t n;
};
/* Once, from the loop, never inside the call; lent for the call. */
typedef void window_close_cb(void *arg, const struct window_closed_now *done, const struct err *e);
void window_close(struct app *app, struct str monitor_id, struct str window_id, window_close_cb *cb,
	void *arg);

#endif
