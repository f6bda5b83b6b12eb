#include "server/store/metric_group.h"

#include "lib/base/mem.h"
#include "lib/db/group.h"

#include "gen/sql.h"

/* Bytes of a batch: bounded so that filling its arrays does not hold the loop. */
enum { BATCH_BYTES = 512 << 10, POINT_BYTES = 48, RESULT = 2 };

struct metric_group {
	struct db_group *group;
};

/* Parallel arrays of one batch; those of points are one allocation each. */
struct columns {
	size_t items, points;
	int64_t *ords, *trackings, *mades, *epochs;
	struct str *attempts;
	bool *no_attempt;
	int64_t *of, *steps, *times;
	struct str *keys;
	double *values;
	bool *nans;
};

static void columns_init(struct columns *c, size_t items, size_t points)
{
	c->items = items;
	c->points = 0;
	c->ords = mem_new(items, sizeof *c->ords);
	c->trackings = mem_new(items, sizeof *c->trackings);
	c->mades = mem_new(items, sizeof *c->mades);
	c->epochs = mem_new(items, sizeof *c->epochs);
	c->attempts = mem_new(items, sizeof *c->attempts);
	c->no_attempt = mem_new(items, sizeof *c->no_attempt);
	c->of = mem_new(points, sizeof *c->of);
	c->steps = mem_new(points, sizeof *c->steps);
	c->times = mem_new(points, sizeof *c->times);
	c->keys = mem_new(points, sizeof *c->keys);
	c->values = mem_new(points, sizeof *c->values);
	c->nans = mem_new(points, sizeof *c->nans);
}

static void columns_done(struct columns *c)
{
	void *const all[] = { c->ords, c->trackings, c->mades, c->epochs, c->attempts,
		c->no_attempt, c->of, c->steps, c->times, c->keys, c->values, c->nans };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		mem_free(all[i]);
}

static void columns_add(struct columns *c, size_t at, const struct metric_item *item)
{
	const struct point_columns *p = &item->points;

	c->ords[at] = (int64_t)at + 1;
	c->trackings[at] = item->tracking_id;
	c->mades[at] = item->made_day;
	c->epochs[at] = item->epoch;
	c->attempts[at] = item->attempt_id;
	c->no_attempt[at] = item->attempt_id.n == 0;
	for (size_t i = 0; i < p->n; i++) {
		size_t to = c->points++;
		c->of[to] = c->ords[at];
		c->keys[to] = p->keys[i];
		c->steps[to] = p->steps[i];
		c->times[to] = p->times[i];
		c->values[to] = p->values[i];
		c->nans[to] = p->nans[i];
	}
}

static void group_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct columns c;
	size_t points = 0;

	(void)arg;
	for (size_t i = 0; i < n; i++)
		points += ((const struct metric_item *)items[i])->points.n;
	columns_init(&c, n, points);
	for (size_t i = 0; i < n; i++)
		columns_add(&c, i, items[i]);
	struct db_arg attempts = db_with_nulls(DB_TEXTS(c.attempts, n), c.no_attempt);
	db_stmt(u, SQL_METRIC_KEY_PUT, DB_TEXTS(c.keys, points));
	db_stmt(u, SQL_METRIC_GROUP_HOLD, attempts);
	db_stmt(u, SQL_METRIC_GROUP_PUT, DB_INTS(c.ords, n), DB_INTS(c.trackings, n),
		DB_DATES(c.mades, n), attempts, DB_INTS(c.epochs, n), DB_INTS(c.of, points),
		DB_TEXTS(c.keys, points), DB_INTS(c.steps, points), DB_INTS(c.times, points),
		DB_REALS(c.values, points), DB_BOOLS(c.nans, points));
	columns_done(&c);
}

static void group_done(
	void *arg, void *item_arg, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct metric_item *item = item_arg;
	struct err refused;

	(void)arg, (void)rows;
	if (e->code != ERR_OK || row != DB_NO_ROW) {
		item->done(item->arg, e);
		return;
	}
	(void)err_set(&refused, ERR_SUPERSEDED,
		"the attempt has ended or a newer one has taken over, or the run was deleted");
	item->done(item->arg, &refused);
}

struct metric_group *metric_group_new(struct loop *loop, struct db *db)
{
	struct metric_group *g = mem_new_of(struct metric_group);

	g->group = db_group_new(loop, db,
		&(struct db_group_conf){ .lane = DB_WRITE,
			.build = group_build,
			.done = group_done,
			.result = RESULT,
			.bytes_max = BATCH_BYTES });
	return g;
}

void metric_group_free(struct metric_group *g)
{
	if (g == NULL)
		return;
	db_group_free(g->group);
	mem_free(g);
}

int metric_group_add(struct metric_group *g, struct metric_item *item, struct err *e)
{
	size_t bytes = 64;

	for (size_t i = 0; i < item->points.n; i++)
		bytes += item->points.keys[i].n + POINT_BYTES;
	return db_group_add(g->group, item, bytes, e);
}
