/*
 * Items wait in a ring; one batch is in flight. When it is back, the next one takes what has come
 * meanwhile. A batch that failed by what it carried beside its items goes out once more, whole. A
 * batch that failed by the fault of an item goes out again as single units, all at once, and counts
 * as in flight until the last of them is back.
 */
#include "lib/db/group.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "lib/loop/defer.h"
#include "lib/loop/loop.h"

enum { BATCH = 1000, BYTES = 8 << 20, QUEUE = 50000, QUEUE_BYTES = 64 << 20 };

struct item {
	void *item;
	size_t bytes;
	int64_t added;
};

struct single {
	struct db_group *g;
	void *item;
};

struct db_group {
	struct loop *loop;
	struct db *db;
	struct db_group_conf conf;
	struct item *ring;
	size_t head, n, cap, bytes;
	void **batch; /* in flight */
	size_t batch_n, left; /* left: singles that are not back */
	struct single *singles;
	bool in_flight, posted, closed;
};

static void group_go(void *arg);
static void group_send(struct db_group *g);
static void group_on_batch(void *arg, const struct db_rows *rows, const struct err *e);
static void group_split(struct db_group *g);
static void group_on_single(void *arg, const struct db_rows *rows, const struct err *e);
static void group_next(struct db_group *g);

static size_t or_else(size_t n, size_t usual)
{
	return n > 0 ? n : usual;
}

struct db_group *db_group_new(struct loop *loop, struct db *db, const struct db_group_conf *conf)
{
	struct db_group *g = mem_new_of(struct db_group);

	g->loop = loop;
	g->db = db;
	g->conf = *conf;
	g->conf.batch_max = or_else(conf->batch_max, BATCH);
	g->conf.bytes_max = or_else(conf->bytes_max, BYTES);
	g->conf.queue_max = or_else(conf->queue_max, QUEUE);
	g->conf.queue_bytes_max = or_else(conf->queue_bytes_max, QUEUE_BYTES);
	if (conf->deadline <= 0)
		g->conf.deadline = 5 * CLOCK_SECOND;
	g->batch = mem_new(g->conf.batch_max, sizeof *g->batch);
	return g;
}

static void group_destroy(void *arg)
{
	struct db_group *g = arg;

	mem_free(g->ring);
	mem_free(g->batch);
	mem_free(g->singles);
	mem_free(g);
}

static struct item pop(struct db_group *g)
{
	struct item it = g->ring[g->head];

	g->head = (g->head + 1) % g->cap;
	g->n--;
	g->bytes -= it.bytes;
	return it;
}

/* For an item that was never sent. */
static void refuse(struct db_group *g, void *item, enum err_code code, const char *text)
{
	struct db_fault fault = { .statement = 0 };
	struct db_rows none = { .fault = &fault };
	struct err e;

	(void)err_set(&e, code, "%s", text);
	g->conf.done(g->conf.arg, item, &none, DB_NO_ROW, &e);
}

void db_group_free(struct db_group *g)
{
	if (g == NULL)
		return;
	g->closed = true;
	while (g->n > 0)
		refuse(g, pop(g).item, ERR_CANCELLED, "The program is ending");
	if (!g->in_flight)
		loop_defer(g->loop, group_destroy, g);
}

static void grow(struct db_group *g)
{
	size_t cap = g->cap > 0 ? g->cap * 2 : 64;
	struct item *ring = mem_new(cap, sizeof *ring);

	for (size_t i = 0; i < g->n; i++)
		ring[i] = g->ring[(g->head + i) % g->cap];
	mem_free(g->ring);
	g->ring = ring;
	g->cap = cap;
	g->head = 0;
}

int db_group_add(struct db_group *g, void *item, size_t bytes, struct err *e)
{
	if (g->closed)
		return err_set(e, ERR_CANCELLED, "The program is ending");
	if (g->n >= g->conf.queue_max || bytes > g->conf.queue_bytes_max - g->bytes)
		return err_set(e, ERR_UNAVAILABLE, "Too much is waiting for the database");
	if (g->n == g->cap)
		grow(g);
	g->ring[(g->head + g->n++) % g->cap] = (struct item){ item, bytes, loop_now(g->loop) };
	g->bytes += bytes;
	if (!g->in_flight && !g->posted) {
		g->posted = true; /* at the end of the turn, with all that is added in it */
		loop_defer(g->loop, group_go, g);
	}
	return 0;
}

/* Fills the batch; what has waited too long is refused on the way. */
static void take_batch(struct db_group *g)
{
	int64_t oldest = loop_now(g->loop) - g->conf.deadline;
	size_t bytes = 0;

	g->batch_n = 0;
	while (g->n > 0 && g->batch_n < g->conf.batch_max) {
		struct item *it = &g->ring[g->head];

		if (g->batch_n > 0 && bytes + it->bytes > g->conf.bytes_max)
			break;
		if (it->added < oldest) {
			refuse(g, pop(g).item, ERR_DATABASE, "The database cannot be reached");
			continue;
		}
		bytes += it->bytes;
		g->batch[g->batch_n++] = pop(g).item;
	}
}

static void group_go(void *arg)
{
	struct db_group *g = arg;

	g->posted = false;
	if (g->in_flight || g->closed)
		return;
	g->in_flight = true; /* also while items are refused, whose owners may call */
	take_batch(g);
	if (g->batch_n == 0) {
		g->in_flight = false;
		if (g->closed)
			loop_defer(g->loop, group_destroy, g);
		return;
	}
	group_send(g);
}

static void group_send(struct db_group *g)
{
	struct db_unit *u = db_unit(g->db, NULL);

	g->conf.build(g->conf.arg, u, g->batch, g->batch_n);
	db_send(u, g->conf.lane, group_on_batch, g);
}

static const struct db_rows *answer(const struct db_group *g, const struct db_rows *rows)
{
	return g->conf.result >= 0 && rows->fault == NULL ? &rows[g->conf.result] : rows;
}

/* row_of[i]: the first row whose `ord` is i + 1. */
static void match(const struct db_rows *r, size_t *row_of, size_t n)
{
	size_t col = r->n > 0 ? db_col(r, "ord") : 0;

	for (size_t i = 0; i < n; i++)
		row_of[i] = DB_NO_ROW;
	for (size_t row = 0; row < r->n; row++) {
		int64_t ord = db_int(r, row, col);

		BUG_ON(ord < 1 || (uint64_t)ord > n);
		if (row_of[ord - 1] == DB_NO_ROW)
			row_of[ord - 1] = row;
	}
}

static bool is_fault_of_an_item(enum err_code c)
{
	return c == ERR_INVALID || c == ERR_CONFLICT || c == ERR_NOT_FOUND || c == ERR_INTERNAL ||
	       c == ERR_TOO_LARGE;
}

static void tell_over(
	struct db_group *g, const struct db_rows *rows, size_t alone, const struct err *e)
{
	if (g->conf.over != NULL)
		g->conf.over(g->conf.arg, rows, alone, e);
}

static void group_on_batch(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct db_group *g = arg;
	const struct db_rows *r = answer(g, rows);
	size_t n = g->batch_n, *row_of = mem_new(n, sizeof *row_of);

	if (e->code != ERR_OK && rows->fault->sqlstate[0] != '\0' && g->conf.beside != NULL &&
		g->conf.beside(g->conf.arg, rows) && !g->closed) {
		mem_free(row_of);
		tell_over(g, rows, 1, e);
		group_send(g);
		return;
	}
	if (g->batch_n > 1 && is_fault_of_an_item(e->code) && !g->closed) {
		mem_free(row_of);
		tell_over(g, rows, n, e);
		group_split(g);
		return;
	}
	if (e->code == ERR_OK && g->conf.result >= 0)
		match(r, row_of, n);
	else
		memset(row_of, 0xff, n * sizeof *row_of); /* DB_NO_ROW */
	for (size_t i = 0; i < n; i++)
		g->conf.done(g->conf.arg, g->batch[i], r, row_of[i], e);
	mem_free(row_of);
	tell_over(g, rows, 0, e);
	group_next(g);
}

static void group_split(struct db_group *g)
{
	g->left = g->batch_n;
	g->singles = mem_resize(g->singles, g->batch_n, sizeof *g->singles);
	for (size_t i = 0; i < g->batch_n; i++) {
		struct db_unit *u = db_unit(g->db, NULL);

		g->singles[i] = (struct single){ g, g->batch[i] };
		g->conf.build(g->conf.arg, u, &g->batch[i], 1);
		db_send(u, g->conf.lane, group_on_single, &g->singles[i]);
	}
}

static void group_on_single(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct single *s = arg;
	struct db_group *g = s->g;
	const struct db_rows *r = answer(g, rows);
	size_t row = DB_NO_ROW;

	if (e->code == ERR_OK && g->conf.result >= 0)
		match(r, &row, 1);
	g->conf.done(g->conf.arg, s->item, r, row, e);
	if (--g->left == 0)
		group_next(g);
}

static void group_next(struct db_group *g)
{
	g->in_flight = false;
	if (g->closed)
		loop_defer(g->loop, group_destroy, g);
	else if (g->n > 0)
		group_go(g);
}
