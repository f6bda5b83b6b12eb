/* What the parts of db_exercise share. */
#ifndef TESTS_DB_EXERCISE_EXERCISE_H
#define TESTS_DB_EXERCISE_EXERCISE_H
#include "gen/db_exercise_sql.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/db/db.h"
#include "lib/db/group.h"
#include "lib/db/listen.h"
#include "lib/db/migrate.h"
#include "lib/db/row.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct test {
	const char *url;
	struct loop *loop;
	struct db *db;
	struct arena *arena;
};

/* The outcome of a unit. */
struct call {
	int calls; /* must end as 1 */
	enum err_code code;
	struct db_fault fault;
	size_t rows; /* of the first statement */
	int64_t value, affected; /* its first column, when that is an integer */
};

/* Turns the loop until *n has reached `want`; fails after 30 s. */
void await(struct test *t, const int *n, int want);
void pause_ms(struct test *t, int64_t ms);
void on_call(void *arg, const struct db_rows *rows, const struct err *e);
/* Sends and waits. */
struct call run_unit(struct test *t, struct db_unit *u, enum db_lane lane);
int64_t count_items(struct test *t, int64_t from, int64_t to);
struct db *open_db(struct test *t, const struct db_conf *conf);
struct call call_args(
	struct test *t, enum db_lane lane, unsigned id, const struct db_arg *args, size_t n);
#define call_of(t, lane, id, ...)                                                                  \
	call_args((t), (lane), (id), (const struct db_arg[]){ __VA_ARGS__ },                       \
		sizeof((const struct db_arg[]){ __VA_ARGS__ }) / sizeof(struct db_arg))

/* Scenarios, by what they are about. */
void test_values(struct test *t);
void test_arrays(struct test *t);
void test_units(struct test *t);
void test_errors(struct test *t);
void test_prepare(struct test *t);
void test_ddl(struct test *t);
void test_many(struct test *t);
void test_deadline(struct test *t);
void test_loss(struct test *t);
void test_stall(struct test *t);
void test_deadlock(struct test *t);
void test_held_up(struct test *t);
void test_cancel(struct test *t);
void test_dynamic(struct test *t);
void test_memory(struct test *t);
void test_group(struct test *t);
void test_listen(struct test *t);
void test_load(struct test *t);
void test_group_load(struct test *t);
void test_rate(struct test *t);

#endif
