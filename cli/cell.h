/*
 * One value of an object as text. On a terminal sizes, times and lengths of time are made for
 * people; elsewhere they are exact, as the API gives them. Control characters never come through,
 * and nothing is JSON.
 */
#ifndef CLI_CELL_H
#define CLI_CELL_H
#include "cli/cli.h"
#include "lib/json/json_read.h"

enum column_kind {
	COLUMN_TEXT, /* any scalar; lists separated by commas; parts of objects in parentheses */
	COLUMN_TIME,
	COLUMN_DATE,
	COLUMN_SIZE, /* bytes */
	COLUMN_REAL, /* four digits on a terminal */
	COLUMN_SHARE, /* of 1; in percent on a terminal */
	COLUMN_STATE, /* coloured */
	COLUMN_COMMIT, /* shortened in tables on a terminal */
	COLUMN_PAIRS, /* an object as k=v,k=v */
	COLUMN_BLOCKED, /* an object with message and unsatisfiable */
	COLUMN_LENGTH, /* from this time until the column's `until`, or until now */
	COLUMN_COUNT, /* of a list: how many items it has; none: nothing */
	COLUMN_RANK, /* an attempt: its rank, where it has others beside it */
	COLUMN_SHAPE, /* lines, by the column's `shape` */
};

enum cell_place {
	CELL_EXACT, /* not on a terminal */
	CELL_TABLE, /* one of many, with little room */
	CELL_FIELD, /* one of a single object */
	CELL_LINE, /* in a line of events */
};

void cell_add(enum cell_place place, enum column_kind kind, const struct jsn *v, struct buf *out);
/* From one RFC 3339 time to another; without the second until now, in microseconds. */
void cell_add_length(enum cell_place place, const struct jsn *from, const struct jsn *until,
	int64_t now, struct buf *out);
/* "43m ago", "in 5h"; a date when that is far away. */
void cell_add_age(int64_t us, int64_t now, struct buf *out);
/* Text without control characters. */
void cell_add_text(struct str s, struct buf *out);

#endif
