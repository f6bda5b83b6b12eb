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
	struct buf raw;
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

/* How many rows from i on fit into one chunk; at least one. */
static size_t fitting(const struct db_rows *r, size_t i)
{
	size_t col = db_col(r, "length"), n = 0;
	int64_t sum = 0;

	while (i + n < r->n && (n == 0 || sum + db_int(r, i + n, col) <= LOG_CHUNK_RAW))
		sum += db_int(r, i + n++, col);
	return n;
}

static int merge_rows(struct merge *m, struct db_unit *u, const struct db_rows *r, size_t i,
	size_t n, struct err *e)
{
	struct log_chunk_row first = { 0 }, next;
	struct buf packed;

	buf_clear(&m->raw);
	for (size_t k = 0; k < n; k++) {
		if (log_store_chunk(r, i + k, m->logs->zip, &m->raw, k == 0 ? &first : &next, e) <
			0)
			return -1;
	}
	buf_init(&packed, 2 * LOG_CHUNK_RAW);
	first.size = (int64_t)m->raw.n;
	first.time = log_frames_time(buf_str(&m->raw));
	int rc = zip_compress(m->logs->zip, buf_str(&m->raw), LEVEL, &packed, e);
	first.data = buf_str(&packed);
	if (rc == 0)
		log_store_merge(u, m->made, str_c(m->id), &first);
	buf_done(&packed);
	return rc;
}

static void merge_on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct merge *m = arg;
	const struct db_rows *r = &rows[0];
	size_t i = 0;
	struct err why;

	if (e->code != ERR_OK || r->n == 0 || m->logs->stopping) {
		merge_free(m);
		return;
	}
	struct db_unit *u = db_unit(m->logs->app->db, NULL);
	while (i < r->n) {
		size_t n = fitting(r, i);
		if (i != 0 && i + n == r->n && r->n == BATCH)
			break; /* it may go on in the next batch */
		if (n > 1 && merge_rows(m, u, r, i, n, &why) < 0) {
			db_unit_free(u);
			merge_free(m);
			return;
		}
		i += n;
	}
	size_t last = i - 1;
	m->at = db_int(r, last, db_col(r, "start")) + db_int(r, last, db_col(r, "length"));
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
