/* Takes lib/db through its paces against a real database. usage: db_exercise URL SCENARIO. */
#include "tests/db_exercise/exercise.h"

#include <string.h>

static const char schema_1[] =
	"CREATE TYPE item_kind AS ENUM ('plain', 'fancy');"
	"CREATE TABLE item (id bigint PRIMARY KEY, name text UNIQUE, n int NOT NULL DEFAULT 0 "
	"CONSTRAINT item_n_positive CHECK (n >= 0), data jsonb, at timestamptz, day date, ok bool, "
	"f float8, b bytea, tags text[], nums bigint[], kind item_kind NOT NULL DEFAULT 'fancy');";
static const char schema_2[] =
	"CREATE TABLE kid (id bigint PRIMARY KEY, parent bigint NOT NULL REFERENCES item);"
	"CREATE TABLE late_kid (id bigint PRIMARY KEY, parent bigint NOT NULL REFERENCES item "
	"DEFERRABLE INITIALLY DEFERRED);";
static const struct db_migration migrations[] = {
	{ "some/where/0001_item.sql", { schema_1, sizeof schema_1 - 1 } },
	{ "some/where/0002_kid.sql", { schema_2, sizeof schema_2 - 1 } },
};

struct wake {
	struct loop_timer timer;
	bool fired;
};

static void on_wake(void *arg)
{
	((struct wake *)arg)->fired = true;
}

void await(struct test *t, const int *n, int want)
{
	struct wake w = { .fired = false };

	loop_timer_init(&w.timer, t->loop, on_wake, &w);
	loop_timer_set(&w.timer, 30000);
	while (*n < want && !w.fired)
		loop_step(t->loop, true);
	loop_timer_cancel(&w.timer);
	CHECK(*n >= want);
}

void pause_ms(struct test *t, int64_t ms)
{
	struct wake w = { .fired = false };

	loop_timer_init(&w.timer, t->loop, on_wake, &w);
	loop_timer_set(&w.timer, ms);
	while (!w.fired)
		loop_step(t->loop, true);
}

void on_call(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;

	CHECK(rows != NULL);
	CHECK((e->code == ERR_OK) == (rows->fault == NULL));
	c->code = e->code;
	if (rows->fault != NULL) {
		c->fault = *rows->fault;
	} else if (rows->res != NULL) {
		c->rows = rows->n;
		c->affected = rows->affected;
		if (rows->n > 0 && db_col_type(rows, 0) == SQL_TYPE_INT8)
			c->value = db_int(rows, 0, 0);
		if (rows->n > 0 && db_col_type(rows, 0) == SQL_TYPE_INT4)
			c->value = db_int(rows, 0, 0);
	}
	c->calls++;
}

struct call run_unit(struct test *t, struct db_unit *u, enum db_lane lane)
{
	struct call c = { .calls = 0 };

	db_send(u, lane, on_call, &c);
	CHECK(c.calls == 0); /* never inside */
	await(t, &c.calls, 1);
	return c;
}

struct call call_args(
	struct test *t, enum db_lane lane, unsigned id, const struct db_arg *args, size_t n)
{
	struct db_unit *u = db_unit(t->db, t->arena);

	db_add(u, id, args, n);
	return run_unit(t, u, lane);
}

int64_t count_items(struct test *t, int64_t from, int64_t to)
{
	struct call c = call_of(t, DB_READ, X_ITEM_COUNT, DB_INT(from), DB_INT(to));

	CHECK(c.code == ERR_OK);
	return c.value;
}

struct db *open_db(struct test *t, const struct db_conf *conf)
{
	struct db_conf c = *conf;
	struct err e;

	c.conninfo = c.conninfo != NULL ? c.conninfo : t->url;
	c.table = x_table;
	c.count = X_COUNT;
	CHECK(db_conf_check(&c, &e) == 0);
	return db_new(t->loop, &c);
}

static int migrate(const char *url)
{
	struct db_migrated done;
	struct err e;

	if (db_migrate(url, migrations, 2, 0, &done, &e) < 0) {
		(void)printf("%s: %s\n", err_name(e.code), e.msg);
		return 1;
	}
	(void)printf("version %d, applied %zu\n", (int)done.version, done.applied);
	return 0;
}

static void refused(const char *url, const struct db_migration *m, size_t n, enum err_code code,
	const char *says)
{
	struct db_migrated done;
	struct err e = { .code = ERR_OK };

	CHECK(db_migrate(url, m, n, CLOCK_SECOND, &done, &e) < 0);
	if (e.code != code || strstr(e.msg, says) == NULL)
		(void)fprintf(stderr, "got %s: %s\n", err_name(e.code), e.msg);
	CHECK(e.code == code && strstr(e.msg, says) != NULL);
}

/* After migrate(): everything that must be refused. */
static int migrate_refusals(const char *url)
{
	struct db_migration m[4] = { migrations[0], migrations[1],
		{ "0003_bad.sql",
			STR("CREATE TABLE half (id int); SELECT * FROM no_such_table") } };
	struct db_migrated done;
	struct err e;

	refused(url, m, 1, ERR_CONFLICT, "use a newer one");
	m[0].text = STR("SELECT 1");
	refused(url, m, 2, ERR_CONFLICT, "0001_item.sql was changed");
	m[0] = migrations[0];
	refused(url, m, 3, ERR_INTERNAL, "0003_bad.sql");
	m[2].text =
		STR("CREATE TABLE half (id int)"); /* works: nothing was left of the first try */
	CHECK(db_migrate(url, m, 3, 0, &done, &e) == 0 && done.applied == 1);
	/* What a transaction does not allow; cut short, it begins anew. */
	m[3] = (struct db_migration){ "0004_apart.sql",
		STR("-- outside a transaction\nDROP INDEX CONCURRENTLY IF EXISTS half_id;\n"
		    "CREATE INDEX CONCURRENTLY half_id ON half (id);\nSELECT no_such;\n") };
	refused(url, m, 4, ERR_INTERNAL, "0004_apart.sql");
	m[3].text = STR("-- outside a transaction\n-- Twice; it may.\n"
			"DROP INDEX CONCURRENTLY IF EXISTS half_id;\n"
			"CREATE INDEX CONCURRENTLY half_id ON half (id);\n");
	CHECK(db_migrate(url, m, 4, 0, &done, &e) == 0 && done.applied == 1);
	CHECK(db_migrate(url, m, 4, 0, &done, &e) == 0 && done.applied == 0 && done.version == 4);
	m[2].name = "0004_gap.sql";
	refused(url, m, 3, ERR_CONFLICT, "should have the number 3");
	refused("host=/nowhere port=1", m, 2, ERR_DATABASE, "cannot be reached");
	return 0;
}

static const struct {
	const char *name;
	void (*fn)(struct test *t);
} scenarios[] = {
	{ "values", test_values },
	{ "arrays", test_arrays },
	{ "units", test_units },
	{ "errors", test_errors },
	{ "prepare", test_prepare },
	{ "ddl", test_ddl },
	{ "many", test_many },
	{ "deadline", test_deadline },
	{ "loss", test_loss },
	{ "stall", test_stall },
	{ "deadlock", test_deadlock },
	{ "held_up", test_held_up },
	{ "cancel", test_cancel },
	{ "dynamic", test_dynamic },
	{ "memory", test_memory },
	{ "group", test_group },
	{ "listen", test_listen },
	{ "load", test_load },
	{ "group_load", test_group_load },
	{ "rate", test_rate },
};

int main(int argc, char **argv)
{
	struct test t = { .url = argc > 1 ? argv[1] : "" };
	const char *name = argc > 2 ? argv[2] : "";

	if (strcmp(name, "migrate") == 0)
		return migrate(t.url);
	if (strcmp(name, "migrate_refusals") == 0)
		return migrate_refusals(t.url);
	for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
		if (strcmp(name, scenarios[i].name) != 0)
			continue;
		t.loop = loop_new();
		t.arena = arena_new(1 << 26);
		t.db = open_db(&t, &(struct db_conf){ .statement_timeout = CLOCK_SECOND });
		scenarios[i].fn(&t);
		db_free(t.db);
		arena_drop(t.arena);
		loop_free(t.loop);
		return 0;
	}
	(void)fprintf(stderr, "usage: db_exercise URL SCENARIO\n");
	return 2;
}
