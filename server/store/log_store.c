#include "server/store/log_store.h"

#include "gen/sql.h"
#include "lib/base/mem.h"
#include "lib/zip/zip.h"

void log_store_open(struct db_unit *u, const struct str *attempt_ids, size_t n)
{
	db_stmt(u, SQL_LOG_ENSURE, DB_TEXTS(attempt_ids, n));
	db_stmt(u, SQL_LOG_GET_MANY, DB_TEXTS(attempt_ids, n));
}

void log_store_get(struct db_unit *u, struct str attempt_id)
{
	db_stmt(u, SQL_LOG_GET, DB_TEXT(attempt_id));
}

static int64_t int_of(const struct db_rows *r, size_t row, const char *column)
{
	return db_int(r, row, db_col(r, column));
}

bool log_store_state(const struct db_rows *r, size_t row, struct arena *a, struct log_state *ret)
{
	if (row >= r->n)
		return false;
	struct list open = db_list(r, row, db_col(r, "open"), a);
	*ret = (struct log_state){
		.attempt_id = db_str(r, row, db_col(r, "attempt_id")),
		.project_id = db_str(r, row, db_col(r, "project_id")),
		.run_id = db_str(r, row, db_col(r, "run_id")),
		.step_id = db_str(r, row, db_col(r, "step_id")),
		.worker_id = db_str(r, row, db_col(r, "worker_id")),
		.epoch = int_of(r, row, "epoch"),
		.lost = db_bool(r, row, db_col(r, "lost")),
		.ended = db_bool(r, row, db_col(r, "ended")),
		.has_row = !db_is_null(r, row, db_col(r, "made")),
		.place = { .offset = int_of(r, row, "length"), .lines = int_of(r, row, "lines") },
		.final = db_bool(r, row, db_col(r, "final")),
		.removed = db_bool(r, row, db_col(r, "removed")),
		.digest = db_str(r, row, db_col(r, "digest")),
		.dropped = int_of(r, row, "dropped"),
	};
	if (ret->has_row)
		ret->made = db_date(r, row, db_col(r, "made"));
	for (size_t i = 0; i < open.n && i < LOG_STREAMS; i++)
		ret->place.open[i] = *list_at(&open, int64_t, i);
	return true;
}

void log_store_of_step(struct db_unit *u, struct str step_id, int64_t rank)
{
	db_stmt(u, SQL_LOG_OF_STEP, DB_TEXT(step_id), DB_INT(rank));
}

void log_store_lengths(struct db_unit *u, const struct str *attempt_ids, size_t n)
{
	db_stmt(u, SQL_LOG_LENGTHS, DB_TEXTS(attempt_ids, n));
}

/* The columns of a batch: one block of memory for all arrays. */
enum { ITEM_INTS = 7, CHUNK_INTS = 7 };
struct columns {
	struct str *attempts, *workers, *datas;
	int64_t *item[ITEM_INTS], *chunk[CHUNK_INTS], *times;
	size_t n, chunks;
};

static struct columns columns_new(const struct log_append *const *items, size_t n)
{
	struct columns c = { .n = n };

	for (size_t i = 0; i < n; i++)
		c.chunks += items[i]->n;
	c.attempts = mem_new(2 * n + c.chunks, sizeof *c.attempts);
	c.workers = c.attempts + n;
	c.datas = c.workers + n;
	c.times = mem_new(c.chunks * (CHUNK_INTS + 1) + n * ITEM_INTS, sizeof *c.times);
	for (size_t k = 0; k < CHUNK_INTS; k++)
		c.chunk[k] = c.times + c.chunks * (k + 1);
	for (size_t k = 0; k < ITEM_INTS; k++)
		c.item[k] = c.times + c.chunks * (CHUNK_INTS + 1) + n * k;
	return c;
}

static void columns_fill(struct columns *c, const struct log_append *const *items)
{
	size_t at = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct log_append *a = items[i];
		const int64_t ints[ITEM_INTS] = { a->epoch, a->before.offset, a->after.offset,
			a->after.lines, a->after.open[0], a->after.open[1], a->after.open[2] };
		c->attempts[i] = a->attempt_id;
		c->workers[i] = a->worker_id;
		for (size_t k = 0; k < ITEM_INTS; k++)
			c->item[k][i] = ints[k];
		for (size_t j = 0; j < a->n; j++, at++) {
			const struct log_chunk_row *r = &a->chunks[j];
			const int64_t row[CHUNK_INTS] = { (int64_t)i + 1, r->at.offset, r->size,
				r->at.lines + 1, r->at.open[0], r->at.open[1], r->at.open[2] };
			for (size_t k = 0; k < CHUNK_INTS; k++)
				c->chunk[k][at] = row[k];
			c->times[at] = r->time;
			c->datas[at] = r->data;
		}
	}
}

void log_store_append(struct db_unit *u, const struct log_append *const *items, size_t n)
{
	struct columns c = columns_new(items, n);
	size_t m = c.chunks;

	columns_fill(&c, items);
	db_stmt(u, SQL_LOG_APPEND, DB_TEXTS(c.attempts, n), DB_TEXTS(c.workers, n),
		DB_INTS(c.item[0], n), DB_INTS(c.item[1], n), DB_INTS(c.item[2], n),
		DB_INTS(c.item[3], n), DB_INTS(c.item[4], n), DB_INTS(c.item[5], n),
		DB_INTS(c.item[6], n), DB_INTS(c.chunk[0], m), DB_INTS(c.chunk[1], m),
		DB_INTS(c.chunk[2], m), DB_INTS(c.chunk[3], m), DB_INTS(c.chunk[4], m),
		DB_INTS(c.chunk[5], m), DB_INTS(c.chunk[6], m), DB_TIMES(c.times, m),
		DB_BLOBS(c.datas, m));
	mem_free(c.attempts);
	mem_free(c.times);
}

void log_store_finish(struct db_unit *u, const struct log_ends *e)
{
	db_stmt(u, SQL_LOG_FINISH, DB_TEXTS(e->attempt_ids, e->n), DB_TEXTS(e->worker_ids, e->n),
		DB_INTS(e->epochs, e->n), DB_INTS(e->lengths, e->n), DB_BLOBS(e->digests, e->n),
		DB_INTS(e->dropped, e->n));
}

void log_store_restart(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, int64_t length)
{
	db_stmt(u, SQL_LOG_RESTART, DB_TEXT(attempt_id), DB_TEXT(worker_id), DB_INT(epoch),
		DB_INT(length));
}

void log_store_merge(
	struct db_unit *u, int64_t made, struct str attempt_id, const struct log_chunk_row *c)
{
	db_stmt(u, SQL_LOG_MERGE_REMOVE, DB_DATE(made), DB_TEXT(attempt_id), DB_INT(c->at.offset),
		DB_INT(c->at.offset + c->size));
	db_stmt(u, SQL_LOG_MERGE_ADD, DB_DATE(made), DB_TEXT(attempt_id), DB_INT(c->at.offset),
		DB_INT(c->size), DB_INT(c->at.lines + 1), DB_INT(c->at.open[0]),
		DB_INT(c->at.open[1]), DB_INT(c->at.open[2]), DB_TIME(c->time), DB_BYTES(c->data));
}

void log_store_chunks(
	struct db_unit *u, int64_t made, struct str attempt_id, int64_t offset, int64_t count)
{
	db_stmt(u, SQL_LOG_CHUNKS, DB_DATE(made), DB_TEXT(attempt_id), DB_INT(offset),
		DB_INT(count));
}

void log_store_of_line(struct db_unit *u, int64_t made, struct str attempt_id, int64_t line)
{
	db_stmt(u, SQL_LOG_CHUNK_OF_LINE, DB_DATE(made), DB_TEXT(attempt_id), DB_INT(line));
}

void log_store_of_time(struct db_unit *u, int64_t made, struct str attempt_id, int64_t time)
{
	db_stmt(u, SQL_LOG_CHUNK_OF_TIME, DB_DATE(made), DB_TEXT(attempt_id), DB_TIME(time));
}

void log_store_chunk_packed(const struct db_rows *r, size_t i, struct log_chunk_row *ret)
{
	*ret = (struct log_chunk_row){
		.at = { .offset = int_of(r, i, "start"),
			.lines = int_of(r, i, "line") - 1,
			.open = { int_of(r, i, "open_stdout"), int_of(r, i, "open_stderr"),
				int_of(r, i, "open_system") } },
		.size = int_of(r, i, "length"),
		.data = db_str(r, i, db_col(r, "data")),
	};
}

int log_store_chunk(const struct db_rows *r, size_t i, struct zip *z, struct buf *raw,
	struct log_chunk_row *ret, struct err *e)
{
	log_store_chunk_packed(r, i, ret);
	return log_store_unpack(ret, z, raw, e);
}

int log_store_unpack(const struct log_chunk_row *row, struct zip *z, struct buf *raw, struct err *e)
{
	size_t before = raw->n;
	bool ok;

	if (zip_decompress(z, row->data, raw, e) < 0)
		return -1;
	size_t n = raw->n - before;
	if ((int64_t)n != row->size ||
		frame_whole((const unsigned char *)raw->p + before, n, &ok) != n || !ok)
		return err_set(e, ERR_CORRUPT, "a stored piece of the log is not what it was");
	return 0;
}
