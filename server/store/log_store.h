/*
 * Logs in the database. A row of `log` says how far the spool of an attempt is stored; rows of
 * `log_chunk` hold its frames, compressed, in pieces of up to LOG_CHUNK_RAW bytes, each with the
 * place (log_text.h) at which it starts.
 */
#ifndef SERVER_STORE_LOG_STORE_H
#define SERVER_STORE_LOG_STORE_H
#include "lib/db/row.h"
#include "server/store/log_text.h"

struct zip;

struct log_state {
	struct str attempt_id, project_id, run_id, step_id, worker_id; /* lent by the rows */
	int64_t epoch;
	bool lost, ended; /* the attempt */
	bool has_row;
	int64_t made; /* date of the partition */
	struct log_place place; /* the end of what is stored */
	bool final, removed;
	struct str digest;
	int64_t dropped;
};
void log_store_get(struct db_unit *u, struct str attempt_id);
/* Makes the rows that are missing first. Rows: ord (from 1) and the state; of the second statement.
 */
void log_store_open(struct db_unit *u, const struct str *attempt_ids, size_t n);
/* False: there is no such row, for there is no such attempt. */
bool log_store_state(const struct db_rows *r, size_t row, struct arena *a, struct log_state *ret);
/* One row: ended, attempt_id (null: none yet). */
void log_store_of_step(struct db_unit *u, struct str step_id, int64_t rank);
/* Rows: ord (from 1), length, complete, dropped, made. */
void log_store_lengths(struct db_unit *u, const struct str *attempt_ids, size_t n);

/* ---- writing ---- */
struct log_chunk_row {
	struct log_place at; /* its start */
	int64_t size, time; /* bytes of frames; of the first frame */
	struct str data; /* compressed */
};
struct log_append {
	struct str attempt_id, worker_id;
	int64_t epoch;
	struct log_place before, after;
	const struct log_chunk_row *chunks;
	size_t n;
};
/* Rows: ord (from 1) of the items that were stored. */
void log_store_append(struct db_unit *u, const struct log_append *const *items, size_t n);
struct log_ends {
	struct str *attempt_ids, *worker_ids, *digests;
	int64_t *epochs, *lengths, *dropped;
	size_t n;
};
/* Rows: ord (from 1) of the logs that are final now; adds their events. */
void log_store_finish(struct db_unit *u, const struct log_ends *ends);
/* One row when the bytes were dropped. */
void log_store_restart(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, int64_t length);
/* Replaces the chunks between the start and the end of this one. */
void log_store_merge(
	struct db_unit *u, int64_t made, struct str attempt_id, const struct log_chunk_row *c);

/* ---- reading ---- */
/* Up to `count` chunks from the one that holds the offset on. */
void log_store_chunks(
	struct db_unit *u, int64_t made, struct str attempt_id, int64_t offset, int64_t count);
/* One row with the start of the chunk in which a line starts, or none. */
void log_store_of_line(struct db_unit *u, int64_t made, struct str attempt_id, int64_t line);
/* One row with the start of the last chunk that begins before a time, or none. */
void log_store_of_time(struct db_unit *u, int64_t made, struct str attempt_id, int64_t time);
/* Row i of log_store_chunks(), lent and still packed; and unpacked (from any thread). */
void log_store_chunk_packed(const struct db_rows *r, size_t i, struct log_chunk_row *ret);
int log_store_unpack(
	const struct log_chunk_row *row, struct zip *z, struct buf *raw, struct err *e) MUST_CHECK;
/* Row i of log_store_chunks(); raw gets the frames, `data` of ret is as stored. ERR_CORRUPT. */
int log_store_chunk(const struct db_rows *r, size_t i, struct zip *z, struct buf *raw,
	struct log_chunk_row *ret, struct err *e) MUST_CHECK;

#endif
