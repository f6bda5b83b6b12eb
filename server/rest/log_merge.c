/*
 * A log that came in small pieces is stored in many small chunks. Once it is final they are put
 * together up to LOG_CHUNK_RAW, batch by batch, each in one transaction; whoever reads meanwhile
 * finds the same bytes at the same offsets.
 */
#include "lib/base/mem.h"
#include "server/rest/log_inside.h"

enum { BATCH = 64, LEVEL = 1 };

struct merge {
	struct logs *logs;
	char id[ID_MAX];
	int64_t made, at, length;
	struct buf raw; /* frames gathered so far, of */
	size_t count; /* so many chunks, of which this is the */
	struct log_chunk_row first;
};

static void merge_step(struct merge *m);
static void merge_on_chunks(void *arg, const struct db_rows *rows, const struct err *e);
static void merge_on_done(void *arg, const struct db_rows *rows, const struct err *e);

static void merge_free(struct merge *m)
{
	buf_done(&m->raw);
	mem_free(m);
}

void log_merge_start(struct logs *l, struct str attempt_id, int64_t made, int64_t length)
{
	struct merge *m = mem_new_of(struct merge);

	*m = (struct merge){ .logs = l, .made = made, .length = length };
	(void)str_print(m->id, sizeof m->id, "%.*s", STR_ARG(attempt_id));
	buf_init(&m->raw, 2 * LOG_CHUNK_RAW);
	merge_step(m);
}

static void merge_step(struct merge *m)
{
	if (m->at >= m->length || m->logs->stopping) {
		merge_free(m);
		return;
	}
	struct db_unit *u = db_unit(m->logs->app->db, NULL);
	log_store_chunks(u, m->made, str_c(m->id), m->at, BATCH);
	db_send(u, DB_BULK, merge_on_chunks, m);
}

/* Replaces what has been gathered by one chunk. */
static int merge_flush(struct merge *m, struct db_unit *u, struct err *e)
{
	struct log_chunk_row *c = &m->first;
	struct buf packed;
	int rc = 0;

	buf_init(&packed, 2 * LOG_CHUNK_RAW);
	if (m->count > 1) {
		c->size = (int64_t)m->raw.n;
		c->time = log_frames_time(buf_str(&m->raw));
		rc = zip_compress(m->logs->zip, buf_str(&m->raw), LEVEL, &packed, e);
		c->data = buf_str(&packed);
	}
	if (m->count > 1 && rc == 0)
		log_store_merge(u, m->made, str_c(m->id), c);
	buf_done(&packed);
	buf_clear(&m->raw);
	m->count = 0;
	return rc;
}

static int merge_rows(struct merge *m, struct db_unit *u, const struct db_rows *r, struct err *e)
{
	struct log_chunk_row row;

	for (size_t i = 0; i < r->n; i++) {
		int64_t size = db_int(r, i, db_col(r, "length"));
		if (m->count != 0 && (int64_t)m->raw.n + size > LOG_CHUNK_RAW &&
			merge_flush(m, u, e) < 0)
			return -1;
		if (log_store_chunk(r, i, m->logs->zip, &m->raw, &row, e) < 0)
			return -1;
		if (m->count++ == 0)
			m->first = row;
		m->at = row.at.offset + row.size;
	}
	return m->at >= m->length ? merge_flush(m, u, e) : 0;
}

static void merge_on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct merge *m = arg;
	struct err why;

	if (e->code != ERR_OK || rows[0].n == 0 || m->logs->stopping) {
		merge_free(m);
		return;
	}
	struct db_unit *u = db_unit(m->logs->app->db, NULL);
	if (merge_rows(m, u, &rows[0], &why) < 0) {
		db_unit_free(u);
		merge_free(m);
		return;
	}
	db_send(u, DB_BULK, merge_on_done, m);
}

static void merge_on_done(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct merge *m = arg;

	(void)rows;
	if (e->code != ERR_OK)
		merge_free(m);
	else
		merge_step(m);
}
