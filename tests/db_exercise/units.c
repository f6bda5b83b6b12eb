/* Scenarios about single units: values, atomicity, errors, connection loss. */
#include "lib/json/field.h"
#include "tests/db_exercise/exercise.h"

#include <math.h>
#include <signal.h>
#include <string.h>

struct item {
	int64_t id, n, at, day;
	struct str name, raw;
	struct list tags, nums, data;
	bool ok, has_ok, has_f;
	double f;
	int kind;
};
static const char *const kinds[] = { "plain", "fancy", NULL };
static const struct field item_fields[] = {
	{ "id", FIELD_INT, 0, offsetof(struct item, id) },
	{ "name", FIELD_STR, FIELD_REQUIRED, offsetof(struct item, name) },
	{ "n", FIELD_INT, 0, offsetof(struct item, n) },
	{ "data", FIELD_MAP, 0, offsetof(struct item, data) },
	{ "raw", FIELD_RAW, 0, offsetof(struct item, raw) },
	{ "at", FIELD_TIME, 0, offsetof(struct item, at) },
	{ "day", FIELD_DATE, 0, offsetof(struct item, day) },
	{ "ok", FIELD_BOOL, 0, offsetof(struct item, ok), FIELD_HAS(struct item, has_ok) },
	{ "f", FIELD_REAL, 0, offsetof(struct item, f), FIELD_HAS(struct item, has_f) },
	{ "tags", FIELD_LIST, 0, offsetof(struct item, tags), .item = FIELD_STR },
	{ "nums", FIELD_LIST, 0, offsetof(struct item, nums), .item = FIELD_INT },
	{ "kind", FIELD_ENUM, 0, offsetof(struct item, kind), .names = kinds },
	{ "elsewhere", FIELD_INT, 0, 0 },
	{ .name = NULL },
};

struct got {
	struct test *t;
	struct item item;
	struct str bytes;
	bool bad_map;
	int calls;
};

static void on_item(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct got *g = arg;
	struct err why = { .code = ERR_OK };

	CHECK(e->code == ERR_OK && rows[1].n == 1 && rows[0].affected == 1);
	if (db_row_decode(&rows[1], 0, item_fields, g->t->arena, &g->item, &why) < 0) {
		CHECK(why.code == ERR_CORRUPT && strncmp(why.field, "/data", 5) == 0);
		g->bad_map = true;
	}
	g->bytes = arena_str(g->t->arena, db_str(&rows[1], 0, db_col(&rows[1], "b")));
	CHECK(!db_has_col(&rows[1], "elsewhere"));
	g->calls++;
}

static struct got put_and_get(struct test *t, int64_t id, struct db_arg data, bool full)
{
	static const struct str tags[] = { { "a", 1 }, { "", 0 }, { "\xc3\xa9\"\\,{}", 7 } };
	static const int64_t nums[] = { 0, -1, INT64_MAX, INT64_MIN };
	struct db_unit *u = db_unit(t->db, t->arena);
	struct got g = { .t = t };

	db_stmt(u, X_ITEM_PUT, DB_INT(id), full ? DB_TEXT(STR("n\xc3\xa9")) : DB_NULL,
		DB_INT(id * 0 + 7), data, db_opt(full, DB_TIME(1234567890123456)),
		db_opt(full, DB_DATE(-1)), db_opt(full, DB_BOOL(true)), db_opt(full, DB_REAL(-0.1)),
		full ? DB_BYTES(((struct str){ "\0\xff\0", 3 })) : DB_NULL,
		full ? DB_TEXTS(tags, 3) : DB_TEXTS(NULL, 0), full ? DB_INTS(nums, 4) : DB_NULL);
	db_stmt(u, X_ITEM_GET, DB_INT(id));
	db_send(u, DB_WRITE, on_item, &g);
	await(t, &g.calls, 1);
	return g;
}

void test_values(struct test *t)
{
	struct got g = put_and_get(t, 1, DB_JSON(STR("{\"k\":\"v\",\"l\":\"w\"}")), true);
	const struct item *i = &g.item;

	CHECK(i->id == 1 && i->n == 7 && str_is(i->name, "n\xc3\xa9") && i->kind == 1);
	CHECK(i->at == 1234567890123456 && i->day == -CLOCK_DAY);
	CHECK(i->has_ok && i->ok && i->has_f && fabs(i->f + 0.1) < 1e-15);
	CHECK(i->tags.n == 3 && str_is(*list_at(&i->tags, struct str, 2), "\xc3\xa9\"\\,{}"));
	CHECK(list_at(&i->tags, struct str, 1)->n == 0);
	CHECK(i->nums.n == 4 && *list_at(&i->nums, int64_t, 3) == INT64_MIN);
	CHECK(i->data.n == 2 && str_is(list_at(&i->data, struct field_pair, 1)->value, "w"));
	CHECK(i->raw.p[0] == '{' && g.bytes.n == 3 && memcmp(g.bytes.p, "\0\xff\0", 3) == 0);
	g = put_and_get(t, 2, DB_NULL, false);
	CHECK(i->id == 2 && i->name.p == NULL && !i->has_ok && !i->has_f && i->at == 0);
	CHECK(i->tags.n == 0 && i->nums.n == 0 && i->data.n == 0 && i->raw.p == NULL);
	g = put_and_get(t, 3, DB_JSON(STR("{\"k\":{\"deep\":1}}")), false);
	CHECK(g.bad_map);
}

static void on_arrays(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct got *g = arg;
	struct arena *a = g->t->arena;
	struct list l[9];

	CHECK(e->code == ERR_OK && rows->n == 1 && rows->cols == 10);
	for (size_t c = 0; c < 9; c++)
		l[c] = db_list(rows, 0, c, a);
	CHECK(l[0].n == 2 && *list_at(&l[0], bool, 0) && !*list_at(&l[0], bool, 1));
	CHECK(l[1].n == 2 && *list_at(&l[1], int64_t, 0) == -5);
	CHECK(l[2].n == 3 && isnan(*list_at(&l[2], double, 1)) &&
		isinf(*list_at(&l[2], double, 2)));
	CHECK(l[3].n == 3 && list_at(&l[3], struct str, 1)->n == 0 && db_bool(rows, 0, 9));
	CHECK(l[4].n == 1 && list_at(&l[4], struct str, 0)->n == 2);
	CHECK(l[5].n == 3 && *list_at(&l[5], int64_t, 1) == INT64_MAX);
	CHECK(*list_at(&l[5], int64_t, 0) == -62135596800000000 &&
		*list_at(&l[5], int64_t, 2) == INT64_MIN);
	CHECK(l[6].n == 1 && str_is(*list_at(&l[6], struct str, 0), "{\"a\": [1, null]}"));
	CHECK(l[7].n == 1 && *list_at(&l[7], int64_t, 0) == 20000);
	CHECK(l[8].n == 2 && *list_at(&l[8], int64_t, 1) == INT32_MIN);
	g->calls++;
}

void test_arrays(struct test *t)
{
	static const bool b[] = { true, false }, hole[] = { false, true, false };
	static const int64_t i[] = { -5, 6 }, z[] = { -62135596800000000, INT64_MAX, INT64_MIN };
	static const int64_t d[] = { 20000 }, s[] = { 1, INT32_MIN };
	const double f[] = { 1.5, nan(""), -HUGE_VAL };
	static const struct str x[] = { { "one", 3 }, { NULL, 0 }, { "three", 5 } };
	static const struct str y[] = { { "\0\1", 2 } }, j[] = { { "{\"a\":[1,null]}", 14 } };
	struct db_unit *u = db_unit(t->db, NULL);
	struct got g = { .t = t };

	db_stmt(u, X_ARRAYS, DB_BOOLS(b, 2), DB_INTS(i, 2), DB_REALS(f, 3),
		db_with_nulls(DB_TEXTS(x, 3), hole), DB_BLOBS(y, 1), DB_TIMES(z, 3), DB_JSONS(j, 1),
		DB_DATES(d, 1), DB_INTS(s, 2));
	db_send(u, DB_READ, on_arrays, &g);
	await(t, &g.calls, 1);
}

void test_units(struct test *t)
{
	struct call c[4] = { { .calls = 0 } }, one;
	struct db_unit *u;

	one = run_unit(t, db_unit(t->db, NULL), DB_WRITE);
	CHECK(one.code == ERR_OK);
	for (int k = 0; k < 4;
		k++) { /* side by side in the pipeline; number 2 fails in its middle */
		u = db_unit(t->db, t->arena);
		for (int i = 0; i < 3; i++)
			db_stmt(u, X_ITEM_INSERT, DB_INT(100 + k * 10 + i),
				DB_TEXTZ(k == 2 && i == 1 ? "taken" : NULL));
		if (k == 0)
			db_stmt(u, X_ITEM_INSERT, DB_INT(99), DB_TEXT(STR("taken")));
		db_send(u, DB_WRITE, on_call, &c[k]);
	}
	for (int k = 0; k < 4; k++)
		await(t, &c[k].calls, 1);
	CHECK(c[0].code == ERR_OK && c[1].code == ERR_OK && c[3].code == ERR_OK);
	CHECK(c[2].code == ERR_CONFLICT && c[2].fault.statement == 1 &&
		!c[2].fault.outcome_unknown);
	CHECK(strcmp(c[2].fault.constraint, "item_name_key") == 0);
	CHECK(strcmp(c[2].fault.sqlstate, "23505") == 0);
	CHECK(count_items(t, 100, 109) == 3 && count_items(t, 110, 119) == 3);
	CHECK(count_items(t, 120, 129) == 0 && count_items(t, 130, 139) == 3);
	/* The commit itself fails. */
	u = db_unit(t->db, t->arena);
	db_stmt(u, X_ITEM_INSERT, DB_INT(150), DB_NULL);
	db_stmt(u, X_LATE_INSERT, DB_INT(1), DB_INT(404));
	one = run_unit(t, u, DB_WRITE);
	CHECK(one.code == ERR_NOT_FOUND && one.calls == 1);
	CHECK(count_items(t, 150, 150) == 0);
	one = call_args(t, DB_READ, X_ISOLATION, NULL, 0);
	CHECK(one.code == ERR_OK && one.value == 1);
	one = call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(150), DB_NULL);
	CHECK(one.code == ERR_OK && one.affected == 1);
	u = db_unit(t->db, t->arena);
	db_stmt(u, X_ITEM_INSERT, DB_INT(150), DB_NULL);
	db_unit_free(u);
}

void test_errors(struct test *t)
{
	struct call c;

	CHECK(call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(200), DB_NULL).code == ERR_OK);
	CHECK(call_of(t, DB_WRITE, X_KID_INSERT, DB_INT(1), DB_INT(200)).code == ERR_OK);
	c = call_of(t, DB_WRITE, X_KID_INSERT, DB_INT(2), DB_INT(404));
	CHECK(c.code == ERR_NOT_FOUND && strcmp(c.fault.constraint, "kid_parent_fkey") == 0);
	CHECK(call_of(t, DB_WRITE, X_ITEM_DELETE, DB_INT(200)).code == ERR_CONFLICT);
	c = call_of(t, DB_WRITE, X_ITEM_SET_N, DB_INT(200), DB_INT(-1));
	CHECK(c.code == ERR_INVALID && strcmp(c.fault.constraint, "item_n_positive") == 0);
	c = call_of(t, DB_WRITE, X_ITEM_SET_N, DB_INT(200), DB_INT(INT64_C(1) << 40));
	CHECK(c.code == ERR_INVALID);
	c = call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(201), DB_TEXT(((struct str){ "a\0b", 3 })));
	CHECK(c.code == ERR_INVALID && c.fault.sqlstate[0] == '\0');
	c = call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(201), DB_TEXT(STR("\xff")));
	CHECK(c.code == ERR_INVALID && strcmp(c.fault.sqlstate, "22021") == 0);
	CHECK(call_of(t, DB_READ, X_NAP, DB_REAL(5)).code == ERR_TIMEOUT);
	CHECK(call_of(t, DB_BULK, X_NAP, DB_REAL(1.2)).code == ERR_OK);
	CHECK(call_of(t, DB_READ, X_ITEM_INSERT, DB_INT(201), DB_NULL).code == ERR_INTERNAL);
	CHECK(count_items(t, 201, 201) == 0);
}

/* A prepare that fails must not leave later units of the pipeline without their statements. */
void test_prepare(struct test *t)
{
	struct db *one = open_db(t, &(struct db_conf){ .conns = { 0, 1, 0, 0 } });
	struct call c[6] = { { .calls = 0 } };

	for (int k = 0; k < 6; k++) {
		struct db_unit *u = db_unit(one, NULL);

		if (k % 2 == 0) {
			db_stmt0(u, X_BROKEN);
			db_stmt(u, X_ITEM_SET_N, DB_INT(1), DB_INT(0));
		}
		db_stmt(u, X_ECHO, DB_INT(k));
		db_stmt(u, X_ECHO, DB_INT(k));
		db_send(u, DB_WRITE, on_call, &c[k]);
	}
	for (int k = 0; k < 6; k++) {
		await(t, &c[k].calls, 1);
		CHECK(c[k].code == (k % 2 == 0 ? ERR_INTERNAL : ERR_OK));
		CHECK(k % 2 == 0 || c[k].value == k);
	}
	CHECK(db_stats(one, DB_WRITE).resent <= 4 && db_stats(one, DB_WRITE).losses == 0);
	db_free(one);
}

void test_ddl(struct test *t)
{
	CHECK(call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(300), DB_NULL).code == ERR_OK);
	for (int i = 0; i < 5; i++)
		CHECK(call_of(t, DB_READ, X_ITEM_STAR, DB_INT(300)).rows == 1);
	CHECK(call_args(t, DB_WRITE, X_ITEM_WIDEN, NULL, 0).code == ERR_OK);
	for (int i = 0; i < 5; i++)
		CHECK(call_of(t, DB_READ, X_ITEM_STAR, DB_INT(300)).rows == 1);
	CHECK(db_stats(t->db, DB_READ).resent >= 1);
}

void test_many(struct test *t)
{
	enum { MANY = 20000 };
	struct call *c = mem_new(MANY, sizeof *c);
	int64_t start = clock_elapsed(&clock_real);

	for (int k = 0; k < MANY; k++) {
		struct db_unit *u = db_unit(t->db, NULL);

		db_unit_set_deadline(u, CLOCK_MINUTE);
		db_stmt(u, X_ECHO, DB_INT(k));
		db_send(u, DB_READ, on_call, &c[k]);
	}
	for (int k = 0; k < MANY; k++)
		await(t, &c[k].calls, 1);
	(void)printf(
		"%d units in %d ms\n", MANY, (int)((clock_elapsed(&clock_real) - start) / 1000));
	CHECK(db_is_idle(t->db));
	pause_ms(t, 50);
	for (int k = 0; k < MANY; k++)
		CHECK(c[k].calls == 1 && c[k].code == ERR_OK && c[k].value == k);
	CHECK(db_stats(t->db, DB_READ).done == MANY && db_stats(t->db, DB_READ).queued == 0);
	mem_free(c);
	/* One more than the queue takes. */
	struct db *full = open_db(t, &(struct db_conf){ .queue_max = 10 });
	struct call over[11] = { { .calls = 0 } };
	for (int k = 0; k < 11; k++) {
		struct db_unit *u = db_unit(full, NULL);

		db_stmt(u, X_BIG, DB_INT(3000000));
		db_send(u, DB_READ, on_call, &over[k]);
		CHECK(!db_is_idle(full));
	}
	for (int k = 0; k < 11; k++)
		await(t, &over[k].calls, 1);
	CHECK(over[9].code == ERR_OK && over[9].rows == 1 && over[10].code == ERR_UNAVAILABLE);
	db_free(full);
}

void test_deadline(struct test *t)
{
	struct db *away = open_db(t, &(struct db_conf){ .conninfo = "host=127.0.0.1 port=1" });
	struct db *lone = open_db(t, &(struct db_conf){ .conns = { 1, 1, 0, 0 }, .depth = 1 });
	struct db_unit *u = db_unit(away, t->arena);
	int64_t start = clock_elapsed(&clock_real), took;
	struct call c = { .calls = 0 }, nap = c, late = c;

	db_unit_set_deadline(u, CLOCK_SECOND / 5);
	db_stmt(u, X_ECHO, DB_INT(1));
	c = run_unit(t, u, DB_WRITE);
	took = clock_elapsed(&clock_real) - start;
	CHECK(c.code == ERR_DATABASE && !c.fault.outcome_unknown);
	CHECK(took > CLOCK_SECOND / 6 && took < 3 * CLOCK_SECOND);
	CHECK(!db_is_up(away) && strstr(db_last_error(away), "refused") != NULL);
	db_free(away);
	u = db_unit(lone, t->arena);
	db_stmt(u, X_NAP, DB_REAL(0.8));
	db_send(u, DB_READ, on_call, &nap);
	while (!db_is_up(lone))
		loop_step(t->loop, true);
	pause_ms(t, 50);
	u = db_unit(lone, t->arena);
	db_unit_set_deadline(u, CLOCK_SECOND / 5);
	db_stmt(u, X_ECHO, DB_INT(1));
	db_send(u, DB_READ, on_call, &late);
	await(t, &late.calls, 1);
	CHECK(late.code == ERR_UNAVAILABLE && nap.calls == 0);
	await(t, &nap.calls, 1);
	CHECK(nap.code == ERR_OK && late.calls == 1);
	CHECK(db_stats(lone, DB_READ).timed_out == 1);
	db_free(lone);
}

void test_loss(struct test *t)
{
	struct db *other =
		open_db(t, &(struct db_conf){ .name = "victim", .conns = { 2, 1, 0, 0 } });
	struct db_unit *u = db_unit(other, NULL);
	struct call write = { .calls = 0 }, read = write, behind = write;

	while (!db_is_up(other))
		loop_step(t->loop, true);
	db_stmt(u, X_ITEM_INSERT, DB_INT(400), DB_NULL);
	db_stmt(u, X_NAP, DB_REAL(0.6));
	db_send(u, DB_WRITE, on_call, &write);
	u = db_unit(other, NULL);
	db_stmt(u, X_ITEM_INSERT, DB_INT(401), DB_NULL);
	db_send(u, DB_WRITE, on_call, &behind);
	u = db_unit(other, NULL);
	db_stmt(u, X_ECHO, DB_INT(42));
	db_stmt(u, X_NAP, DB_REAL(0.3));
	db_send(u, DB_READ, on_call, &read);
	pause_ms(t, 100);
	CHECK(call_of(t, DB_BULK, X_KILL_OTHERS, DB_TEXT(STR("victim"))).rows == 3);
	await(t, &write.calls, 1);
	await(t, &behind.calls, 1);
	await(t, &read.calls, 1);
	CHECK(write.code == ERR_DATABASE && write.fault.outcome_unknown);
	CHECK(behind.code == ERR_DATABASE && behind.fault.outcome_unknown);
	CHECK(read.code == ERR_OK && read.value == 42); /* sent again by itself */
	CHECK(db_stats(other, DB_READ).resent >= 1 && db_stats(other, DB_WRITE).resent == 0);
	CHECK(count_items(t, 400, 401) == 0);
	u = db_unit(other, NULL); /* a new session prepares anew */
	db_stmt(u, X_ITEM_INSERT, DB_INT(400), DB_NULL);
	CHECK(run_unit(t, u, DB_WRITE).code == ERR_OK);
	CHECK(db_stats(other, DB_WRITE).losses == 1 && db_stats(other, DB_WRITE).connects == 2);
	db_free(other);
}

/* A backend that has stopped is a connection that is dead, though the socket lives. */
void test_stall(struct test *t)
{
	struct db *other = open_db(t, &(struct db_conf){ .conns = { 0, 1, 0, 0 },
					      .statement_timeout = CLOCK_SECOND / 10 });
	struct db_unit *u = db_unit(other, NULL);
	struct call c;
	pid_t pid;

	db_stmt0(u, X_MY_PID);
	c = run_unit(t, u, DB_WRITE);
	CHECK(c.code == ERR_OK && c.value > 1);
	pid = (pid_t)c.value;
	CHECK(kill(pid, SIGSTOP) == 0);
	u = db_unit(other, NULL);
	db_stmt(u, X_ECHO, DB_INT(1));
	c = run_unit(t, u, DB_WRITE);
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(c.code == ERR_DATABASE && c.fault.outcome_unknown);
	u = db_unit(other, NULL);
	db_stmt(u, X_ECHO, DB_INT(2));
	c = run_unit(t, u, DB_READ); /* a lane without connections of its own */
	CHECK(c.code == ERR_OK && c.value == 2 && db_stats(other, DB_WRITE).losses == 1);
	db_free(other);
}

void test_deadlock(struct test *t)
{
	struct db *two = open_db(t, &(struct db_conf){ .conns = { 1, 2, 0, 0 } });
	struct call c[2] = { { .calls = 0 } };

	while (db_stats(two, DB_WRITE).up < 2)
		loop_step(t->loop, true);
	CHECK(call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(500), DB_NULL).code == ERR_OK);
	CHECK(call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(501), DB_NULL).code == ERR_OK);
	for (int k = 0; k < 2; k++) {
		struct db_unit *u = db_unit(two, NULL);

		db_stmt(u, X_ITEM_LOCK, DB_INT(500 + k));
		db_stmt(u, X_NAP, DB_REAL(0.2));
		db_stmt(u, X_ITEM_LOCK, DB_INT(501 - k));
		db_send(u, DB_WRITE, on_call, &c[k]);
	}
	await(t, &c[0].calls, 1);
	await(t, &c[1].calls, 1);
	CHECK(c[0].code == ERR_OK && c[1].code == ERR_OK);
	CHECK(db_stats(two, DB_WRITE).resent >= 1);
	db_free(two);
}

/* What one connection waits for holds up nothing that another could take. */
void test_held_up(struct test *t)
{
	struct db *two = open_db(t, &(struct db_conf){ .conns = { 1, 2, 0, 0 } });
	struct call nap = { .calls = 0 }, c[6] = { { .calls = 0 } };
	struct db_unit *u = db_unit(two, NULL);

	while (db_stats(two, DB_WRITE).up < 2)
		loop_step(t->loop, true);
	db_stmt(u, X_NAP, DB_REAL(0.8));
	db_send(u, DB_WRITE, on_call, &nap);
	pause_ms(t, 100);
	for (int k = 0; k < 6; k++) {
		u = db_unit(two, NULL);
		db_stmt(u, X_ECHO, DB_INT(k));
		db_send(u, DB_WRITE, on_call, &c[k]);
	}
	for (int k = 0; k < 6; k++)
		await(t, &c[k].calls, 1);
	CHECK(nap.calls == 0);
	await(t, &nap.calls, 1);
	db_free(two);
}

struct again {
	struct db *db;
	struct call first, second;
};

static void on_again(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct again *a = arg;
	struct db_unit *u = db_unit(a->db, NULL);

	on_call(&a->first, rows, e);
	db_stmt(u, X_ECHO, DB_INT(1));
	db_send(u, DB_READ, on_call, &a->second);
}

/* Who sends from a callback of a pool that is closing gets an answer too. */
static void send_while_closing(struct test *t)
{
	struct again a = { .db = open_db(t, &(struct db_conf){ .name = "closing" }) };
	struct db_unit *u = db_unit(a.db, NULL);

	db_stmt(u, X_ECHO, DB_INT(1));
	db_send(u, DB_READ, on_again, &a);
	db_free(a.db);
	await(t, &a.second.calls, 1);
	CHECK(a.first.code == ERR_CANCELLED && a.second.code == ERR_CANCELLED);
}

void test_cancel(struct test *t)
{
	struct db *away = open_db(t, &(struct db_conf){ .conninfo = "host=localhost port=1" });
	struct call c[3] = { { .calls = 0 } }, sent = { .calls = 0 };
	struct db_unit *u[3], *s;

	send_while_closing(t);
	for (int k = 0; k < 3; k++) {
		u[k] = db_unit(away, t->arena);
		db_stmt(u[k], X_ECHO, DB_INT(k));
		db_send(u[k], DB_RELAXED, on_call, &c[k]);
	}
	db_cancel(u[1]);
	CHECK(c[1].calls == 0);
	await(t, &c[1].calls, 1);
	CHECK(c[1].code == ERR_CANCELLED && c[0].calls == 0);
	db_free(away);
	CHECK(c[0].calls == 1 && c[2].calls == 1 && c[2].code == ERR_CANCELLED);
	CHECK(!c[0].fault.outcome_unknown);
	CHECK(call_of(t, DB_WRITE, X_ECHO, DB_INT(1)).code == ERR_OK);
	s = db_unit(t->db, NULL);
	db_stmt(s, X_NAP, DB_REAL(0.1));
	db_send(s, DB_WRITE, on_call, &sent);
	pause_ms(t, 30);
	db_cancel(s); /* too late: it completes as it would have */
	await(t, &sent.calls, 1);
	CHECK(sent.code == ERR_OK);
	sent.calls = 0;
	s = db_unit(t->db, NULL);
	db_stmt(s, X_NAP, DB_REAL(0.5));
	db_send(s, DB_WRITE, on_call, &sent);
	pause_ms(t, 30);
	db_free(t->db);
	t->db = NULL;
	CHECK(sent.calls == 1 && sent.code == ERR_CANCELLED && sent.fault.outcome_unknown);
}

void test_dynamic(struct test *t)
{
	struct db_unit *u = db_unit(t->db, t->arena);
	struct call c;

	db_add_text(u, "search", STR("SELECT $1 + cardinality($2) WHERE $3 = 'x'"),
		(const struct db_arg[]){ DB_INT(40), DB_TEXTS(NULL, 0), DB_TEXT(STR("x")) }, 3);
	c = run_unit(t, u, DB_READ);
	CHECK(c.code == ERR_OK && c.value == 40);
	u = db_unit(t->db, t->arena);
	db_add_text(u, "search", STR("SELECT nonsense"), NULL, 0);
	c = run_unit(t, u, DB_READ);
	CHECK(c.code == ERR_INTERNAL && strcmp(c.fault.sqlstate, "42703") == 0);
}

/* A unit whose arena is past its limit is not sent; one that has just reached it is. */
void test_memory(struct test *t)
{
	for (size_t beyond = 0; beyond < 2; beyond++) {
		struct arena *a = arena_new(4096);
		struct db_unit *u = db_unit(t->db, a);

		db_stmt(u, X_ITEM_INSERT, DB_INT(1), DB_NULL);
		(void)arena_alloc(a, 4096 - 32 + 64 * beyond);
		CHECK(run_unit(t, u, DB_WRITE).code == (beyond ? ERR_TOO_LARGE : ERR_OK));
		CHECK(count_items(t, 1, 1) == (beyond ? 0 : 1));
		arena_drop(a);
		struct call gone = call_of(t, DB_WRITE, X_ITEM_DELETE, DB_INT(1));
		CHECK(gone.code == ERR_OK);
	}
}
