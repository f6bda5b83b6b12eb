/*
 * One libpq connection that stays: connects without blocking, and again with a growing random delay
 * (50 ms … 1 s) whenever it breaks. What is said over it is its owner's business; the owner hears
 *
 *     on_up      connected and non-blocking
 *     on_input   input has been taken in (PQconsumeInput): look at it
 *     on_down    it was up and is no more; the PGconn is gone already
 *
 * All from the loop, except on_down, which also runs inside link_drop(). After link_drop() the
 * owner must not touch the PGconn that it had.
 */
#ifndef LIB_DB_LINK_H
#define LIB_DB_LINK_H
#include "lib/db/conninfo.h"
#include "lib/loop/timer.h"

struct pg_conn;
struct link_lookup;

struct link_ops {
	void (*on_up)(void *arg);
	void (*on_input)(void *arg);
	void (*on_down)(void *arg);
};

enum link_state { LINK_OFF, LINK_WAITING, LINK_LOOKUP, LINK_CONNECTING, LINK_UP };

struct link {
	struct loop *loop;
	const struct conninfo *info; /* the owner's, outlives the link */
	const struct link_ops *ops;
	void *arg;
	const char *label; /* for the log */
	enum link_state state;
	struct pg_conn *pg; /* while connecting and up */
	struct loop_fd *fd;
	struct loop_timer timer; /* the next attempt, or the end of this one */
	struct link_lookup *lookup;
	bool blocked; /* bytes wait for the socket */
	unsigned failures; /* attempts in a row */
	uint64_t connects, losses;
	char why[200]; /* of the last failed attempt or loss; "" when up */
};

void link_init(struct link *l, struct loop *loop, const struct conninfo *info,
	const struct link_ops *ops, void *arg);
void link_start(struct link *l);
void link_done(struct link *l); /* closes; on_down is not called */
/* Sends what is buffered; false when the link broke over it (on_down has run). */
bool link_flush(struct link *l) MUST_CHECK;
/* Closes and connects again. why: for the log. */
void link_drop(struct link *l, const char *why);

#endif
