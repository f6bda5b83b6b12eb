/* Scenarios about many units: group commit, notifications, load while the server dies. */
#include "tests/db_exercise/exercise.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

struct entry {
	struct grouping *g;
	int64_t id;
	const char *name;
	int calls;
	enum err_code code;
	bool unknown, has_row;
};

struct grouping {
	int batches, done;
	size_t largest;
	struct db_group *group;
};

static void build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct grouping *g = arg;
	int64_t *ids = mem_new(n, sizeof *ids);
	struct str *names = mem_new(n, sizeof *names);
	bool *none = mem_new(n, sizeof *none);

	for (size_t i = 0; i < n; i++) {
		const struct entry *x = items[i];

		ids[i] = x->id;
		names[i] = str_c(x->name);
		none[i] = x->name == NULL;
	}
	db_stmt(u, X_ITEMS_INSERT, DB_INTS(ids, n), db_with_nulls(DB_TEXTS(names, n), none));
	g->batches++;
	g->largest = n > g->largest ? n : g->largest;
	mem_free(ids);
	mem_free(names);
	mem_free(none);
}

static void done(void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct grouping *g = arg;
	struct entry *x = item;

	x->calls++;
	x->code = e->code;
	x->unknown = db_outcome_unknown(rows);
	x->has_row = row != DB_NO_ROW;
	if (x->has_row)
		CHECK(db_int(rows, row, db_col(rows, "id")) == x->id);
	g->done++;
}

static struct db_group *open_group(struct test *t, struct grouping *g)
{
	struct db_group_conf conf = { .lane = DB_WRITE,
		.build = build,
		.done = done,
		.arg = g,
		.result = 0,
		.batch_max = 500,
		.queue_max = 6000 };

	return db_group_new(t->loop, t->db, &conf);
}

static void add(struct grouping *g, struct entry *x, int64_t id, const char *name)
{
	struct err e;

	*x = (struct entry){ .g = g, .id = id, .name = name };
	CHECK(db_group_add(g->group, x, 50, &e) == 0);
}

void test_group(struct test *t)
{
	enum { MANY = 5000 };
	struct grouping g = { .done = 0 };
	struct entry *x = mem_new(MANY + 20, sizeof *x), over;
	struct err e;

	g.group = open_group(t, &g);
	for (int i = 0; i < MANY; i++)
		add(&g, &x[i], 1000 + i, NULL);
	await(t, &g.done, MANY);
	CHECK(g.batches == 10 && g.largest == 500 && count_items(t, 1000, 1000 + MANY - 1) == MANY);
	for (int i = 0; i < MANY; i++)
		CHECK(x[i].calls == 1 && x[i].code == ERR_OK && x[i].has_row);
	/* One of these raises, one is there already. */
	g = (struct grouping){ .group = g.group };
	for (int i = 0; i < 10; i++)
		add(&g, &x[i], i == 3 ? 1000 : 10000 + i, i == 5 || i == 7 ? "same" : NULL);
	await(t, &g.done, 10);
	for (int i = 0; i < 10; i++) {
		CHECK(x[i].calls == 1 && x[i].code == (i == 7 ? ERR_CONFLICT : ERR_OK));
		CHECK(x[i].has_row == (i != 3 && i != 7));
	}
	CHECK(g.batches == 11 && count_items(t, 10000, 10009) == 8);
	/* Full; then gone. */
	g = (struct grouping){ .group = g.group };
	for (int i = 0; i < MANY; i++)
		add(&g, &x[i], 20000 + i, NULL);
	over = (struct entry){ .id = 1 };
	CHECK(db_group_add(g.group, &over, 65 << 20, &e) < 0 && e.code == ERR_UNAVAILABLE);
	while (g.batches == 0)
		loop_step(t->loop, true);
	db_group_free(g.group);
	CHECK(g.done == MANY - 500); /* those that had not been sent */
	await(t, &g.done, MANY);
	CHECK(x[0].code == ERR_OK && x[499].code == ERR_OK && x[500].code == ERR_CANCELLED);
	CHECK(count_items(t, 20000, 29999) == 500);
	mem_free(x);
}

struct ears {
	int resyncs, heard, empty;
	char last[64];
};

static void on_notify(void *arg, const char *channel, struct str payload)
{
	struct ears *e = arg;

	CHECK(strcmp(channel, "news") == 0 || strcmp(channel, "other_1") == 0);
	(void)str_print(e->last, sizeof e->last, "%.*s", STR_ARG(payload));
	e->empty += payload.n == 0;
	e->heard++;
}

static void on_resync(void *arg)
{
	((struct ears *)arg)->resyncs++;
}

void test_listen(struct test *t)
{
	static const char *const channels[] = { "news", "other_1", NULL };
	struct ears ears = { .resyncs = 0 };
	struct db_listen_conf conf = { .conninfo = t->url,
		.name = "ears",
		.channels = channels,
		.on_notify = on_notify,
		.on_resync = on_resync,
		.arg = &ears,
		.ping = CLOCK_SECOND / 10 };
	struct db_listen *l = db_listen_new(t->loop, &conf);
	struct db_notify *n = db_notify_new(t->loop, t->url, 0);
	char text[16];

	await(t, &ears.resyncs, 1);
	CHECK(db_listen_is_up(l));
	for (int i = 0; i < 1000; i++)
		db_notify_send(n, "news", STR("same"));
	db_notify_send(n, "other_1", STR("one"));
	await(t, &ears.heard, 2);
	pause_ms(t, 300); /* and several signs of life */
	CHECK(ears.heard == 2 && ears.resyncs == 1);
	for (int i = 0; i < 200; i++) { /* more than a channel keeps: anything may have changed */
		(void)str_print(text, sizeof text, "%d", i);
		db_notify_send(n, "news", str_c(text));
	}
	await(t, &ears.empty, 1);
	pause_ms(t, 50);
	CHECK(ears.heard == 3);
	db_notify_send(n, "news", STR("\xff")); /* refused by the server; the next one passes */
	pause_ms(t, 50);
	db_notify_send(n, "news", STR("after"));
	await(t, &ears.heard, 4);
	CHECK(strcmp(ears.last, "after") == 0);
	CHECK(call_of(t, DB_BULK, X_KILL_OTHERS, DB_TEXT(STR("ears"))).rows == 1);
	CHECK(call_of(t, DB_BULK, X_KILL_OTHERS, DB_TEXT(STR("tidemill-notify"))).rows == 1);
	await(t, &ears.resyncs, 2);
	db_notify_send(n, "other_1", STR("back"));
	await(t, &ears.heard, 5);
	CHECK(strcmp(ears.last, "back") == 0);
	db_listen_free(l);
	db_notify_free(n);
}

/* ---- writes while the server is being killed
 * ----------------------------------------------------- */

struct load {
	struct test *t;
	int64_t id, n; /* the row; the value that we know */
	int64_t acked, unknown;
	bool in_doubt, stop;
	int ended;
};

static void load_next(struct load *l);

/* Compare-and-set makes a write repeatable: after an unknown outcome it is sent again, and no row
 * says that it had been stored the first time. Looking would not do: the lost session may still be
 * at work on it, behind the reader's snapshot. */
static void load_on_set(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct load *l = arg;

	if (e->code == ERR_OK) {
		CHECK(rows->n == 1 || l->in_doubt);
		CHECK(rows->n == 0 || db_int(rows, 0, 0) == l->n + 1);
		l->n++;
		l->acked++;
		l->in_doubt = false;
	} else {
		CHECK(e->code == ERR_DATABASE || e->code == ERR_UNAVAILABLE);
		l->in_doubt = l->in_doubt || db_outcome_unknown(rows);
		l->unknown += db_outcome_unknown(rows);
	}
	load_next(l);
}

static void load_next(struct load *l)
{
	struct db_unit *u;

	if (l->stop) {
		l->ended++;
		return;
	}
	u = db_unit(l->t->db, NULL);
	db_unit_set_deadline(u, CLOCK_SECOND);
	db_stmt(u, X_ITEM_CAS, DB_INT(l->id), DB_INT(l->n));
	db_send(u, DB_WRITE, load_on_set, l);
}

static bool stdin_closed(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Says "up" each time that all connections are there (again). */
static void report_up(struct test *t, bool *was_up)
{
	bool up = db_is_up(t->db);

	if (up && !*was_up) {
		(void)printf("up\n");
		(void)fflush(stdout);
	}
	*was_up = up;
}

/* Runs until standard input ends; then what was acknowledged must be there. */
void test_load(struct test *t)
{
	enum { FLOWS = 8 };
	struct load l[FLOWS];
	int64_t acked = 0, unknown = 0;
	bool up = false;

	for (int i = 0; i < FLOWS; i++) {
		l[i] = (struct load){ .t = t, .id = 600 + i };
		CHECK(call_of(t, DB_WRITE, X_ITEM_INSERT, DB_INT(l[i].id), DB_NULL).code == ERR_OK);
	}
	for (int i = 0; i < FLOWS; i++)
		load_next(&l[i]);
	while (!stdin_closed()) {
		pause_ms(t, 20);
		report_up(t, &up);
	}
	for (int i = 0; i < FLOWS; i++)
		l[i].stop = true;
	for (int i = 0; i < FLOWS; i++) {
		await(t, &l[i].ended, 1);
		struct db_unit *u = db_unit(t->db, NULL);
		db_stmt(u, X_ITEM_LOCK, DB_INT(l[i].id));
		struct call c = run_unit(t, u, DB_WRITE);
		CHECK(c.code == ERR_OK);
		CHECK(c.value == l[i].n || (l[i].in_doubt && c.value == l[i].n + 1));
		acked += l[i].acked;
		unknown += l[i].unknown;
	}
	(void)printf("acked %d unknown %d losses %d\n", (int)acked, (int)unknown,
		(int)db_stats(t->db, DB_WRITE).losses);
}

/* Items in turn through a group until standard input ends; prints which were acknowledged. */
void test_group_load(struct test *t)
{
	enum { MANY = 200000, AHEAD = 64 };
	struct grouping g = { .done = 0 };
	struct entry *x = mem_new(MANY, sizeof *x);
	int64_t n = 0, acked = 0;
	bool up = false;

	g.group = open_group(t, &g);
	while (!stdin_closed() && n < MANY - AHEAD) {
		for (; n < g.done + AHEAD; n++)
			add(&g, &x[n], 100000 + n, NULL);
		loop_step(t->loop, true);
		report_up(t, &up);
	}
	await(t, &g.done, (int)n);
	for (int64_t i = 0, from = 0; i <= n; i++) { /* runs of acknowledged items are whole */
		CHECK(i == n || x[i].calls == 1);
		if (i < n && x[i].code == ERR_OK) {
			acked++;
			continue;
		}
		CHECK(i == n || x[i].code == ERR_DATABASE || x[i].code == ERR_UNAVAILABLE);
		if (i > from)
			CHECK(count_items(t, x[from].id, x[i - 1].id) == i - from);
		from = i + 1;
	}
	(void)printf("acked %d of %d in %d batches\n", (int)acked, (int)n, g.batches);
	db_group_free(g.group);
	mem_free(x);
}

/* How fast: items through the group with so many outstanding at all times, for two seconds. */
static void rate_with(struct test *t, int outstanding, int64_t first_id)
{
	enum { MANY = 400000 };
	struct grouping g = { .done = 0 };
	struct entry *x = mem_new(MANY, sizeof *x);
	int64_t start = clock_elapsed(&clock_real), now = start;
	int n = 0;

	g.group = open_group(t, &g);
	while (now - start < 2 * CLOCK_SECOND && n < MANY - outstanding) {
		for (; n < g.done + outstanding; n++)
			add(&g, &x[n], first_id + n, NULL);
		loop_step(t->loop, true);
		now = clock_elapsed(&clock_real);
	}
	(void)printf("outstanding %d: %.0f items/s, %.2f ms each, %.1f items per commit\n",
		outstanding, g.done * 1e6 / (double)(now - start),
		(double)(now - start) / 1000 * outstanding / g.done, (double)g.done / g.batches);
	await(t, &g.done, n);
	db_group_free(g.group);
	mem_free(x);
}

void test_rate(struct test *t)
{
	CHECK(call_of(t, DB_WRITE, X_ECHO, DB_INT(1)).code == ERR_OK);
	rate_with(t, 1, 1000000);
	rate_with(t, 16, 2000000);
	rate_with(t, 1000, 3000000);
}
