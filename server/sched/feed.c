/*
 * feed_start → feed_on_ready (the monitor has been found) → feed_read: the work pool takes a piece
 * of the blob, unpacked if need be → feed_on_piece: into the ingest → … → its end → feed_on_done.
 */
#include "server/sched/feed.h"

#include "lib/base/mem.h"
#include "lib/loop/defer.h"
#include "lib/loop/work.h"
#include "lib/zip/gunzip.h"
#include "server/app.h"
#include "server/sched/ingest.h"
#include "server/sched/table_scan.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE = 256 << 10, PACKED_PIECE = 16 << 10, PIECE_MAX = 64 << 20 };

struct feeding {
	struct app *app;
	struct feed in;
	feed_cb *cb;
	void *arg;
	struct ingest *ingest;
	struct blob_check *check;
	struct gunzip *zip; /* NULL: plain */
	int fd; /* -1: not open yet */
	struct buf piece;
	bool at_end, broken, working; /* of the piece; broken: piece_err says why */
	bool ended, done; /* the ingest has ended with err; our own end is on its way */
	struct observation_result result;
	struct err piece_err, err;
};

static void feed_on_ready(void *arg);
static void feed_read(struct feeding *f);
static void feed_run(void *arg);
static void feed_on_piece(void *arg);
static void feed_on_room(void *arg);
static void feed_on_done(void *arg, const struct observation_result *result, const struct err *e);
static void feed_on_end(void *arg);

void feed_start(struct app *app, const struct feed *in, feed_cb *cb, void *arg)
{
	struct feeding *f = mem_new_of(struct feeding);

	*f = (struct feeding){ .app = app, .in = *in, .cb = cb, .arg = arg, .fd = -1 };
	buf_init(&f->piece, PIECE_MAX);
	f->check = blob_check_new(&in->blob);
	if (table_is_packed(in->path))
		f->zip = gunzip_new((uint64_t)TABLE_UNPACKED_GB << 30);
	f->ingest = ingest_new(app, &(struct ingest_spec){ .project_id = in->project_id,
					    .monitor = in->monitor,
					    .format = table_format(in->path),
					    .batch = in->batch,
					    .on_ready = feed_on_ready,
					    .on_room = feed_on_room,
					    .on_done = feed_on_done,
					    .arg = f });
}

static void feed_on_end(void *arg)
{
	struct feeding *f = arg;

	f->cb(f->arg, f->err.code != ERR_OK ? NULL : &f->result, &f->err);
	ingest_free(f->ingest);
	blob_check_free(f->check);
	gunzip_free(f->zip);
	buf_done(&f->piece);
	if (f->fd >= 0)
		(void)close(f->fd);
	mem_free(f);
}

/* The end comes once, and not while a piece is being read. */
static void feed_finish(struct feeding *f)
{
	if (f->done || f->working)
		return;
	f->done = true;
	loop_defer(f->app->loop, feed_on_end, f);
}

static void feed_on_ready(void *arg)
{
	feed_read(arg);
}

static void feed_on_room(void *arg)
{
	feed_read(arg);
}

static void feed_read(struct feeding *f)
{
	f->working = true;
	if (work_submit(f->app->loop, feed_run, feed_on_piece, f, &f->err) == 0)
		return;
	f->working = false;
	feed_finish(f);
}

static int on_unpacked(void *arg, struct str piece, struct err *e)
{
	struct feeding *f = arg;

	buf_add(&f->piece, piece);
	return buf_failed(&f->piece) ? err_set(e, ERR_TOO_LARGE, "too large when unpacked") : 0;
}

static int take_piece(struct feeding *f, struct str bytes, struct err *e)
{
	blob_check_add(f->check, bytes);
	if (f->zip != NULL)
		return gunzip_add(f->zip, bytes, on_unpacked, f, e);
	buf_add(&f->piece, bytes);
	return 0;
}

static int read_piece(struct feeding *f, struct err *e)
{
	size_t want = f->zip != NULL ? PACKED_PIECE : PIECE;
	char *room = mem_new(1, want);
	ssize_t n;
	int rc;

	do
		n = read(f->fd, room, want);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		rc = err_errno(e, "read", "an output");
	} else if (n > 0) {
		rc = take_piece(f, (struct str){ room, (size_t)n }, e);
	} else {
		f->at_end = true;
		rc = blob_check_end(f->check, e);
		if (rc == 0 && f->zip != NULL)
			rc = gunzip_end(f->zip, e);
	}
	mem_free(room);
	return rc;
}

static void feed_run(void *arg)
{
	struct feeding *f = arg;

	buf_clear(&f->piece);
	f->broken =
		(f->fd < 0 && blob_open(f->app->blobs, &f->in.blob, &f->fd, &f->piece_err) < 0) ||
		read_piece(f, &f->piece_err) < 0;
}

static void feed_on_piece(void *arg)
{
	struct feeding *f = arg;

	f->working = false;
	if (f->app->db == NULL && !f->broken)
		f->broken = err_set(&f->piece_err, ERR_CANCELLED, "the server is going down") < 0;
	if (!f->ended && f->broken)
		f->err = f->piece_err;
	if (f->ended || f->broken)
		feed_finish(f);
	else if (f->at_end)
		ingest_end(f->ingest);
	else if (ingest_add(f->ingest, buf_str(&f->piece)))
		feed_read(f);
}

static void feed_on_done(void *arg, const struct observation_result *result, const struct err *e)
{
	struct feeding *f = arg;

	if (e->code == ERR_OK)
		f->result = *result;
	f->ended = true;
	f->err = *e;
	feed_finish(f);
}
