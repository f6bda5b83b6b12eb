/* What the files of the scheduler share: sched.c keeps the memory, sched_pass.c hands steps out. */
#ifndef SERVER_SCHED_SCHED_INSIDE_H
#define SERVER_SCHED_SCHED_INSIDE_H
#include "lib/base/arena.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/lease.h"
#include "server/sched/pool.h"
#include "server/sched/sched.h"

struct sched_later;
struct sched_news;

enum { CLOSED_MAX = 32 };

/*
 * The memory is read as a whole while nothing else that would change it is under way, since what is
 * read is older than what comes meanwhile: `reload` asks for it, and holds back what would begin;
 * when nothing is busy any more it is `loading`; and what was heard in the meantime (`later`) is
 * looked at after it.
 */
struct sched {
	struct app *app;
	struct lease *lease;
	struct pool *pool; /* NULL while not leading, or not loaded yet */
	struct hub_listener *listener;
	struct loop_timer tick, pass;
	int64_t rest_until; /* clock_elapsed(): no pass before */
	struct sched_news *news, *asked; /* heard of lately; what is being read of it */
	char closed[CLOSED_MAX][ID_MAX]; /* workers, since that read or the load began */
	size_t closed_n;
	struct map *handed; /* ids of steps that we had before their event */
	struct arena *later_arena;
	struct sched_later *later, *last;
	struct note *note; /* why steps wait, written down */
	bool fetching, passing, dirty, loading, reload, closing;
	unsigned ticks;
	size_t on_the_way; /* units whose callbacks will come */
};

/* Something in memory has changed: a pass in a later turn. */
void sched_dirty(struct sched *s);
void sched_pass(void *arg); /* by the timer */
/* Whether the memory may be used and changed now. */
bool sched_is_steady(const struct sched *s);
/* Asks for the memory to be read anew. */
void sched_load(struct sched *s);
/* Tail of whatever was busy: goes on with what has waited for it. */
void sched_settle(struct sched *s);
/* Tail of a unit after sched_free. */
void sched_gone(struct sched *s);

#endif
