/*
 * Asynchronous PostgreSQL: a pool of pipelined connections, and units.
 *
 * A unit is one or more named statements and one sync: one implicit transaction, all or nothing.
 *
 *     struct db_unit *u = db_unit(db, q->arena);
 *     db_stmt(u, SQL_RUN_INSERT, DB_TEXT(id), DB_INT(n));
 *     db_stmt(u, SQL_EVENT_INSERT, DB_TEXT(id));
 *     db_send(u, DB_WRITE, run_create_on_inserted, q);
 *
 * Thread: the loop's. Completion: the callback runs exactly once, from the loop, never inside
 * db_send; db_free runs those that are left with ERR_CANCELLED. Order: units are independent of
 * each other; who needs an order starts the second unit in the callback of the first. Ownership: a
 * unit holds its arena until the callback has returned; rows and error live that long.
 *
 * Failure: a unit that has not been sent waits for a connection up to its deadline (then
 * ERR_DATABASE when there is no connection, ERR_UNAVAILABLE when all are busy: nothing was done).
 * Sent units whose connection breaks fail with ERR_DATABASE and db_outcome_unknown(rows); those of
 * DB_READ are sent again. Serialization failures and deadlocks are sent again up to 3 times with a
 * random delay. Statements and server messages never reach the error's text; they are logged at
 * debug.
 */
#ifndef LIB_DB_DB_H
#define LIB_DB_DB_H
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/db/arg.h"
#include "lib/db/sql.h"

struct db;
struct db_unit;
struct loop;
struct pg_result;

enum db_lane {
	DB_READ, /* read-only, one snapshot per unit; sent again after a connection loss */
	DB_WRITE, /* durable: completes after the commit is flushed */
	DB_RELAXED, /* synchronous_commit=off: heartbeats, samples, log chunks */
	DB_BULK, /* maintenance and reports: long statement_timeout */
	DB_LANE_COUNT
};

struct db_conf {
	const char *conninfo; /* URI or key=value; no `options` of its own needed */
	const char *name; /* application_name; NULL: "tidemill" */
	const struct sql *table; /* e.g. sql_table, SQL_COUNT */
	size_t count;
	unsigned conns[DB_LANE_COUNT]; /* all 0: 3, 2, 1, 1. A lane with 0 uses DB_WRITE's */
	unsigned depth; /* units in flight on one connection; 0: 32, 8 for DB_READ */
	size_t queue_max; /* units waiting in one lane before ERR_UNAVAILABLE; 0: 20000 */
	int64_t deadline; /* µs that a unit may wait to be sent; 0: 5 s */
	int64_t statement_timeout; /* µs, enforced by the server; 0: 5 s */
	int64_t bulk_timeout; /* the same for DB_BULK; 0: 5 min */
};

/* Whether conf->conninfo can be parsed: to be checked once before db_new, where it is a bug. */
int db_conf_check(const struct db_conf *conf, struct err *e) MUST_CHECK;
/* Starts to connect and returns at once; copies what it needs of conf except the table. */
struct db *db_new(struct loop *loop, const struct db_conf *conf);
void db_free(struct db *db); /* NULL is fine */
/* True when every lane has a connection. */
bool db_is_up(const struct db *db);
/* True when nothing is waiting or in flight: what a shutdown may wait for before db_free. */
bool db_is_idle(const struct db *db);
/* The reason of the last failed connection attempt, or "" while all is well; without secrets. */
const char *db_last_error(const struct db *db);

struct db_rows {
	size_t n, cols; /* rows and columns; none for a statement that returns none */
	int64_t affected; /* rows that the statement selected, inserted, updated or deleted */
	const struct db_fault *fault; /* of a failed unit, else NULL */
	struct pg_result *res; /* for row.h */
	struct db_plan **plans; /* for row.h */
};

/* What stands behind the error of a unit. */
struct db_fault {
	size_t statement; /* index in the unit */
	char sqlstate[6]; /* "" when the server said nothing */
	char constraint[64]; /* violated, or "" */
	bool outcome_unknown; /* sent, but no answer: it may have been committed or not */
};

/* e is never NULL; e->code is ERR_OK on success, and then rows has one entry per statement. On
 * failure rows has one entry, which is empty and holds the fault. */
typedef void db_cb(void *arg, const struct db_rows *rows, const struct err *e);

/* True: it may have been done. Send it again, as a compare-and-set or under its key; that nothing
 * was changed then says that the first one was stored. To look instead is not enough, since the
 * lost session may still be at work. */
bool db_outcome_unknown(const struct db_rows *rows);
/* True when the unit failed on the constraint (or unique index) of this name. */
bool db_violated(const struct db_rows *rows, const char *constraint);

/* An empty unit; arena may be NULL. It must be sent or freed. */
struct db_unit *db_unit(struct db *db, struct arena *arena);
void db_unit_free(struct db_unit *u); /* one that was not sent */
size_t db_unit_count(const struct db_unit *u); /* statements so far */
void db_unit_set_deadline(struct db_unit *u, int64_t us); /* from db_send on, instead of conf's */

/* Adds a statement of the table. A value that cannot be sent fails the whole unit in db_send. */
void db_add(struct db_unit *u, unsigned id, const struct db_arg *args, size_t n);
#define db_stmt(u, id, ...)                                                                        \
	db_add((u), (id), (const struct db_arg[]){ __VA_ARGS__ },                                  \
		sizeof((const struct db_arg[]){ __VA_ARGS__ }) / sizeof(struct db_arg))
#define db_stmt0(u, id) db_add((u), (id), NULL, 0) /* one without parameters */
/* For the filter languages only: a statement joined from named fragments, values always as
 * parameters ($1 …), whose types follow from their kinds (bigint, float8, text, jsonb, …). Not
 * prepared. `name` is for the log. */
void db_add_text(
	struct db_unit *u, const char *name, struct str text, const struct db_arg *args, size_t n);

/* Sends the unit; a unit without statements succeeds, one whose arena is past its limit fails with
 * ERR_TOO_LARGE and is not sent. After this call it belongs to the pool. cb may be NULL, for writes
 * that nobody waits for; their failure is logged at debug. */
void db_send(struct db_unit *u, enum db_lane lane, db_cb *cb, void *arg);
/* Before the callback has run: fails a unit that has not been sent with ERR_CANCELLED; one that has
 * been sent completes as it would have. */
void db_cancel(struct db_unit *u);

/* Counters since db_new and gauges, for /metrics. */
enum { DB_BUCKETS = 12 };
extern const double db_bucket_s[DB_BUCKETS]; /* upper bounds in seconds; the last is infinite */
struct db_stats {
	unsigned conns, up; /* connections wanted and usable */
	size_t queued, in_flight;
	uint64_t done, failed, resent, timed_out, connects, losses;
	uint64_t wait_us, run_us; /* sums over done and failed: in the queue, on the wire */
	uint64_t run_buckets[DB_BUCKETS]; /* by time on the wire, not cumulative */
};
struct db_stats db_stats(const struct db *db, enum db_lane lane);

#endif
