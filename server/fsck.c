#include "server/fsck.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/loop/loop.h"
#include "lib/zip/zip.h"
#include "server/blob/blob.h"
#include "server/store/fsck_store.h"
#include "server/store/log_store.h"

#include "gen/sql.h"

#include <stdio.h>
#include <unistd.h>

enum { BLOBS_AT_ONCE = 1000, LOGS_AT_ONCE = 100, CHUNKS_AT_ONCE = 64, TIMEOUT_S = 3600 };

/* A final log. */
struct fsck_log {
	char attempt_id[ID_MAX];
	int64_t made, length;
	unsigned char digest[HASH_SIZE];
};

struct fsck {
	struct loop *loop;
	struct db *db;
	struct blobs *blobs;
	bool deep;
	const char *check; /* the name of the one that is asked about */
	int64_t faults, blobs_n;
	/* Of the page of blobs that is looked at. */
	struct blob_id page[BLOBS_AT_ONCE];
	size_t page_n;
	bool there;
	/* Of the logs: a page, and the one that is read. */
	struct fsck_log logs[LOGS_AT_ONCE];
	size_t logs_page;
	int64_t logs_n, at; /* offset up to which it was read */
	struct hash *hash;
	struct zip *zip;
	struct buf raw;
	struct err broken; /* why it cannot be read */
	struct err err;
};

static void tell(struct fsck *f, const char *subject, const char *wrong)
{
	f->faults++;
	(void)printf("%s: %s %s\n", f->check, subject, wrong);
}

/* Sends the unit and waits for it. */
static int ask(struct fsck *f, struct db_unit *u, db_cb *cb, struct err *e)
{
	db_send(u, DB_BULK, cb, f);
	loop_run(f->loop);
	if (f->err.code == ERR_OK)
		return 0;
	*e = f->err;
	return -1;
}

/* ---- the database ---- */

static void on_faults(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct fsck *f = arg;
	char subject[128], wrong[1024];

	f->err = *e;
	for (size_t i = 0; e->code == ERR_OK && i < rows[0].n; i++) {
		(void)str_print(subject, sizeof subject, "%.*s", STR_ARG(db_str(&rows[0], i, 0)));
		(void)str_print(wrong, sizeof wrong, "%.*s", STR_ARG(db_str(&rows[0], i, 1)));
		tell(f, subject, wrong);
	}
	loop_stop(f->loop);
}

static int check_database(struct fsck *f, struct err *e)
{
	for (const struct fsck_check *c = fsck_checks; c->name != NULL; c++) {
		struct db_unit *u = db_unit(f->db, NULL);
		f->check = c->name;
		fsck_store_check(u, c);
		if (ask(f, u, on_faults, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- what logs say ---- */

static void on_logs(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct fsck *f = arg;

	f->err = *e;
	f->logs_page = e->code == ERR_OK ? rows[0].n : 0;
	for (size_t i = 0; i < f->logs_page; i++) {
		struct fsck_log *l = &f->logs[i];
		struct str digest = db_str(&rows[0], i, 3);
		(void)str_print(l->attempt_id, sizeof l->attempt_id, "%.*s",
			STR_ARG(db_str(&rows[0], i, 0)));
		l->made = db_date(&rows[0], i, 1);
		l->length = db_int(&rows[0], i, 2);
		memset(l->digest, 0, sizeof l->digest);
		memcpy(l->digest, digest.p, digest.n < HASH_SIZE ? digest.n : HASH_SIZE);
	}
	loop_stop(f->loop);
}

static void on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct fsck *f = arg;

	f->err = *e;
	if (e->code == ERR_OK && rows[0].n == 0)
		(void)err_set(&f->broken, ERR_CORRUPT, "its chunks end before it does");
	for (size_t i = 0; e->code == ERR_OK && f->broken.code == ERR_OK && i < rows[0].n; i++) {
		struct log_chunk_row row;
		buf_clear(&f->raw);
		if (log_store_chunk(&rows[0], i, f->zip, &f->raw, &row, &f->broken) < 0)
			break;
		struct str frames = buf_str(&f->raw);
		int64_t at = row.at.offset;
		if (!log_frames_from(&frames, &at, f->at))
			(void)err_set(
				&f->broken, ERR_CORRUPT, "its chunks do not follow each other");
		hash_add(f->hash, frames);
		f->at = at + (int64_t)frames.n;
	}
	loop_stop(f->loop);
}

/* A log that has been put together anew meanwhile reads the same; one that has gone is no fault,
 * since the checks of the database say what is missing. */
static int check_log(struct fsck *f, const struct fsck_log *l, struct err *e)
{
	unsigned char digest[HASH_SIZE];

	f->logs_n++;
	f->at = 0;
	f->broken = (struct err){ .code = ERR_OK };
	while (f->at < l->length && f->broken.code == ERR_OK) {
		struct db_unit *u = db_unit(f->db, NULL);
		log_store_chunks(u, l->made, str_c(l->attempt_id), f->at, CHUNKS_AT_ONCE);
		if (ask(f, u, on_chunks, e) < 0)
			return -1;
	}
	hash_end(f->hash, digest);
	if (f->broken.code != ERR_OK)
		tell(f, l->attempt_id, f->broken.msg);
	else if (f->at != l->length || memcmp(digest, l->digest, sizeof digest) != 0)
		tell(f, l->attempt_id, "is not what its worker sent: the digests differ");
	return 0;
}

static int check_logs(struct fsck *f, struct err *e)
{
	char last[ID_MAX] = "";

	f->check = "digests";
	do {
		struct db_unit *u = db_unit(f->db, NULL);
		fsck_store_logs(u, str_c(last), LOGS_AT_ONCE);
		if (ask(f, u, on_logs, e) < 0)
			return -1;
		for (size_t i = 0; i < f->logs_page; i++)
			if (check_log(f, &f->logs[i], e) < 0)
				return -1;
		if (f->logs_page != 0)
			memcpy(last, f->logs[f->logs_page - 1].attempt_id, sizeof last);
	} while (f->logs_page == LOGS_AT_ONCE);
	return 0;
}

/* ---- the store of bytes ---- */

static void on_blobs(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct fsck *f = arg;

	f->err = *e;
	f->page_n = e->code == ERR_OK ? rows[0].n : 0;
	for (size_t i = 0; i < f->page_n; i++) {
		struct str digest = db_str(&rows[0], i, 0);
		memcpy(f->page[i].digest, digest.p, sizeof f->page[i].digest);
		f->page[i].size = db_int(&rows[0], i, 1);
	}
	loop_stop(f->loop);
}

static void on_blob(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct fsck *f = arg;

	f->err = *e;
	f->there = e->code == ERR_OK && rows[0].n != 0;
	loop_stop(f->loop);
}

static int pass_over(void *arg, struct str piece, struct err *e)
{
	(void)arg, (void)piece, (void)e;
	return 0;
}

static int look_at(struct fsck *f, const struct blob_id *id, struct err *e)
{
	int fd;

	if (f->deep)
		return blob_scan(f->blobs, id, pass_over, NULL, e);
	if (blob_open(f->blobs, id, &fd, e) < 0)
		return -1;
	(void)close(fd);
	return 0;
}

/* One that the collector has taken in between is not missing. */
static int check_blob(struct fsck *f, const struct blob_id *id, struct err *e)
{
	struct str digest = { (const char *)id->digest, HASH_SIZE };
	char hex[HASH_HEX + 1];
	struct err wrong;

	f->blobs_n++;
	if (look_at(f, id, &wrong) == 0)
		return 0;
	struct db_unit *u = db_unit(f->db, NULL);
	fsck_store_blob(u, digest);
	if (ask(f, u, on_blob, e) < 0)
		return -1;
	if (f->there)
		tell(f, hash_hex(hex, id->digest), wrong.msg);
	return 0;
}

static int check_blobs(struct fsck *f, struct err *e)
{
	unsigned char last[HASH_SIZE];
	struct str after = STR("");

	f->check = "blobs";
	do {
		struct db_unit *u = db_unit(f->db, NULL);
		fsck_store_blobs(u, after, BLOBS_AT_ONCE);
		if (ask(f, u, on_blobs, e) < 0)
			return -1;
		for (size_t i = 0; i < f->page_n; i++)
			if (check_blob(f, &f->page[i], e) < 0)
				return -1;
		if (f->page_n != 0)
			memcpy(last, f->page[f->page_n - 1].digest, sizeof last);
		after = (struct str){ (const char *)last, sizeof last };
	} while (f->page_n == BLOBS_AT_ONCE);
	return 0;
}

/* ---- all of it ---- */

static int open_store(struct fsck *f, const struct settings *conf, struct err *e)
{
	char folder[1024];

	if (!str_print(folder, sizeof folder, "%.*s/blobs", STR_ARG(conf->data_dir)))
		return err_set(e, ERR_INVALID, "data-dir is too long");
	if (access(folder, R_OK | X_OK) < 0)
		return err_errno(e, "open", folder);
	f->blobs = blobs_open_fs(f->loop, folder, e);
	return f->blobs != NULL ? 0 : -1;
}

static int check_all(struct fsck *f, const struct settings *conf, struct err *e)
{
	size_t n = 0;

	if (open_store(f, conf, e) < 0 || check_database(f, e) < 0 ||
		(f->deep && check_logs(f, e) < 0) || check_blobs(f, e) < 0)
		return -1;
	while (fsck_checks[n].name != NULL)
		n++;
	if (f->deep)
		(void)printf(
			"%zu checks of the database, %lld logs and %lld blobs read whole: %lld "
			"faults\n",
			n, (long long)f->logs_n, (long long)f->blobs_n, (long long)f->faults);
	else
		(void)printf("%zu checks of the database, %lld blobs: %lld faults\n", n,
			(long long)f->blobs_n, (long long)f->faults);
	if (fflush(stdout) != 0)
		return err_errno(e, "write", "what was found");
	return f->faults == 0 ? 0 : err_set(e, ERR_CORRUPT, "not all is as it must be");
}

int command_fsck(const struct settings *conf, bool deep, struct err *e)
{
	static struct fsck f;
	int rc;

	f = (struct fsck){ .loop = loop_new(), .deep = deep, .hash = hash_new(), .zip = zip_new() };
	loop_serves_nobody(f.loop);
	buf_init(&f.raw, LOG_CHUNK_RAW);
	f.db = db_new(f.loop, &(struct db_conf){ .conninfo = conf->database_url.p,
				      .name = "tidemill-fsck",
				      .table = sql_table,
				      .count = SQL_COUNT,
				      .conns = { [DB_BULK] = 1 },
				      .bulk_timeout = TIMEOUT_S * CLOCK_SECOND });
	rc = check_all(&f, conf, e);
	blobs_close(f.blobs);
	hash_free(f.hash);
	zip_free(f.zip);
	buf_done(&f.raw);
	db_free(f.db);
	loop_step(f.loop, false);
	loop_free(f.loop);
	return rc;
}
