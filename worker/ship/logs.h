/*
 * Ships the log of one attempt: follows the spool, sends whole frames by offset, and agrees with
 * the server on the whole at the end. The server's length is the truth: what it has already is not
 * sent again, what it has lost is. Trouble with the server costs the command nothing: the spool
 * waits, for hours. Token and secrets are masked before anything leaves (mask.h), and what log
 * policies find in the lines (match.h) is told as soon as the server has them.
 *
 * A shipper that is made again (after a restart of the worker) reads the spool from its start, for
 * digest and mask, and sends from where the server is.
 */
#ifndef WORKER_SHIP_LOGS_H
#define WORKER_SHIP_LOGS_H
#include "lib/base/buf.h"
#include "worker/ship/ship.h"

enum { SHIP_PIECE_MAX = 1 << 20, SHIP_TAIL_MAX = 8192 };

struct ship_log;

/* ERR_OK: the server has all of it and agrees. ERR_SUPERSEDED: at any time. Others: the server
 * refuses it for good. Once; never inside a call. */
typedef void ship_log_cb(void *arg, const struct err *e);

struct ship_log_args {
	struct ship_target to;
	const char *spool; /* path; the file may not be there yet, or never */
	const char *prologue; /* what the spool will begin with; likewise; NULL: nothing */
	struct str token; /* hidden behind its kind; copied */
	const struct list *secrets; /* struct str: hidden whole; copied */
	const struct list *policies; /* struct log_policy, borrowed: what is looked for in it */
	bool fresh; /* nothing of it was sent before */
	ship_log_cb *done;
	void *arg;
};

struct ship_log *ship_log_new(const struct ship_log_args *a) __attribute__((returns_nonnull));
/* The spool may have grown. Cheap. */
void ship_log_wake(struct ship_log *l);
/* Nothing more will be written; `dropped` bytes of output never reached the spool. Where nobody has
 * counted those, `taken` is how many bytes the init had read of the command; else -1. */
void ship_log_end(struct ship_log *l, int64_t dropped, int64_t taken);
/* How many bytes of output the log lacks. After done. */
int64_t ship_log_dropped(const struct ship_log *l);
/* The last SHIP_TAIL_MAX bytes of output that were read, masked. */
struct str ship_log_tail(const struct ship_log *l);
/* The log policies that lines have matched: struct log_match, in the arena. After done. */
struct list ship_log_matches(const struct ship_log *l, struct arena *a);
/* The policy of that label, by number, when one of the log's last lines matched it; -1: none. */
int ship_log_near(const struct ship_log *l, const char *label);
/* Stops; done is not called any more. NULL is fine. */
void ship_log_free(struct ship_log *l);

#endif
