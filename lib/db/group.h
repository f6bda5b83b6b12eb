/*
 * Group commit: whatever is added while a batch is in flight becomes the next set-based statement,
 * so that the price of a commit is shared without any added delay at low load.
 *
 * The caller's `build` adds the statements of a batch to a unit (typically one INSERT … SELECT FROM
 * unnest(…) whose arrays it fills from the items), and `done` completes each item exactly once,
 * from the loop, in the order of adding. Statements must be written so that one item cannot raise
 * (ON CONFLICT, compare-and-set); when one does all the same, the batch is split and each item is
 * sent as a unit of its own, so that the error hits its owner only.
 *
 * Rows find their items by the column `ord` (int or bigint, counting from 1 like WITH ORDINALITY)
 * of the statement conf.result. Items stay the caller's and must live until their completion.
 */
#ifndef LIB_DB_GROUP_H
#define LIB_DB_GROUP_H
#include "lib/db/db.h"

struct db_group;

/* The item has no row in the result. */
#define DB_NO_ROW SIZE_MAX

typedef void db_group_build(void *arg, struct db_unit *u, void *const *items, size_t n);
/* rows: of the statement conf.result (of a failed unit: with the fault); row: the first row whose
 * `ord` is the item's, or DB_NO_ROW. */
typedef void db_group_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);
/* A batch has failed: by what it carried beside its items? Then it is built and sent once more, as
 * it was. */
typedef bool db_group_beside(void *arg, const struct db_rows *rows);
/* A batch is back, for what it carried beside its items: they are completed, and alone is 0; or
 * that many units are built next, of which this is not told: its items one by one, or all of them
 * once more. rows: of all statements. */
typedef void db_group_over(
	void *arg, const struct db_rows *rows, size_t alone, const struct err *e);

struct db_group_conf {
	enum db_lane lane;
	db_group_build *build;
	db_group_done *done;
	db_group_beside *beside; /* may be NULL */
	db_group_over *over; /* may be NULL */
	void *arg;
	int result; /* the statement whose rows answer the items; -1: none has rows */
	size_t batch_max; /* items in a batch; 0: 1000 */
	size_t bytes_max; /* bytes in a batch, as declared by db_group_add; 0: 8 MiB */
	size_t queue_max; /* items waiting; 0: 50000 */
	size_t queue_bytes_max; /* their bytes; 0: 64 MiB */
	int64_t deadline; /* µs that an item may wait before it is sent; 0: 5 s */
};

struct db_group *db_group_new(struct loop *loop, struct db *db, const struct db_group_conf *conf);
/* Completes the waiting items with ERR_CANCELLED. Call it before db_free, which completes the items
 * in flight; the group's memory goes after that. NULL is fine. */
void db_group_free(struct db_group *g);
/* ERR_UNAVAILABLE when too much is waiting; then the item is not taken. `bytes` is about how much
 * the item adds to a statement. */
int db_group_add(struct db_group *g, void *item, size_t bytes, struct err *e) MUST_CHECK;

#endif
