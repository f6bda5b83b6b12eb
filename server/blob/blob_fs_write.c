/*
 * An upload on its way to the disk. The loop fills one buffer while a thread hashes and writes the
 * other; when both are full the sender is held back. Jobs of one writer run one after the other, so
 * the thread's fields need no lock: the loop looks at them only while no job is under way.
 *
 *     writer_add … → writer_run (thread) → writer_on_run → … → writer_on_run → on_done
 *
 * A thread never waits for the collector, which needs threads itself: a writer that finds its shelf
 * locked comes again a little later.
 */
#include "server/blob/blob_fs.h"

#include "lib/base/fs.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_MIN = 64 << 10, BUFFER_MAX = 1 << 20, FLUSH_EVERY = 8 << 20, LOCK_RETRY_MS = 20 };

struct piece {
	char *p;
	size_t n, cap;
};

struct writer_fs {
	struct blob_writer head;
	struct blob_write spec;
	/* the loop's */
	struct piece filling;
	int64_t taken; /* bytes that were added */
	bool busy, ended, held_back, finished, gone;
	struct err failed; /* found by the loop */
	struct loop_timer again; /* the shelf was locked */
	/* the thread's, while busy */
	struct piece flying;
	struct hash *hash;
	int fd, lock_fd;
	int64_t written, flushed;
	bool started, last, checked, locked_out;
	bool present; /* the store has such a file: nothing is written */
	char tmp[PATH_MAX];
	struct blob_id id;
	struct err err;
};

static void writer_run(void *arg);
static void writer_on_run(void *arg);
static void writer_step(struct writer_fs *w);
static void writer_submit(struct writer_fs *w);
static void writer_settle_again(void *arg);
static void writer_finish(void *arg);

static struct writer_fs *writer_of(struct blob_writer *w)
{
	return (struct writer_fs *)w;
}

struct blob_writer *blob_fs_writer_new(struct blobs *b, const struct blob_write *spec)
{
	struct writer_fs *w = mem_new_of(struct writer_fs);

	w->head.blobs = b;
	w->spec = *spec;
	w->hash = hash_new();
	w->fd = -1;
	w->lock_fd = -1;
	loop_timer_init(&w->again, blobs_fs_of(b)->loop, writer_settle_again, w);
	return &w->head;
}

static void writer_destroy(struct writer_fs *w)
{
	loop_timer_cancel(&w->again);
	if (w->fd >= 0)
		(void)close(w->fd);
	if (w->tmp[0] != '\0')
		(void)unlink(w->tmp);
	if (w->lock_fd >= 0)
		(void)close(w->lock_fd);
	hash_free(w->hash);
	mem_free(w->filling.p);
	mem_free(w->flying.p);
	mem_free(w);
}

void blob_fs_writer_free(struct blob_writer *head)
{
	struct writer_fs *w = writer_of(head);

	if (w->busy)
		w->gone = true;
	else
		writer_destroy(w);
}

/* The loop's end of the flow; in a later turn, since failures may be found inside a call. */
static void writer_fail(struct writer_fs *w)
{
	if (w->finished)
		return;
	w->finished = true;
	if (!w->busy) {
		w->busy = true; /* until writer_finish has run */
		loop_defer(blobs_fs_of(w->head.blobs)->loop, writer_finish, w);
	}
}

static void writer_finish(void *arg)
{
	struct writer_fs *w = arg;

	w->busy = false;
	if (w->gone)
		writer_destroy(w);
	else if (w->failed.code != ERR_OK)
		w->spec.on_done(w->spec.arg, NULL, &w->failed);
	else
		w->spec.on_done(w->spec.arg, &w->id, &w->failed);
}

static void piece_add(struct piece *b, struct str bytes)
{
	if (b->n + bytes.n > b->cap) {
		size_t cap = b->cap != 0 ? b->cap : BUFFER_MIN;
		while (cap < b->n + bytes.n)
			cap *= 2;
		b->p = mem_resize(b->p, cap, 1);
		b->cap = cap;
	}
	if (bytes.n != 0)
		memcpy(b->p + b->n, bytes.p, bytes.n);
	b->n += bytes.n;
}

bool blob_fs_writer_add(struct blob_writer *head, struct str bytes)
{
	struct writer_fs *w = writer_of(head);

	if (w->finished)
		return true;
	w->taken += (int64_t)bytes.n;
	if (w->taken > w->spec.max)
		(void)err_set(
			&w->failed, ERR_TOO_LARGE, "more than %lld bytes", (long long)w->spec.max);
	else if (w->spec.size >= 0 && w->taken > w->spec.size)
		(void)err_set(&w->failed, ERR_INVALID,
			"more than the %lld bytes that were promised", (long long)w->spec.size);
	if (w->failed.code != ERR_OK) {
		writer_fail(w);
		return true;
	}
	piece_add(&w->filling, bytes);
	if (w->filling.n < BUFFER_MAX)
		return true;
	writer_step(w);
	w->held_back = w->filling.n >= BUFFER_MAX;
	return !w->held_back;
}

void blob_fs_writer_end(struct blob_writer *head)
{
	struct writer_fs *w = writer_of(head);

	w->ended = true;
	writer_step(w);
}

/* Sends the next piece to a thread when none is there and there is one. */
static void writer_step(struct writer_fs *w)
{
	if (w->busy || w->finished || (w->filling.n < BUFFER_MAX && !w->ended))
		return;
	struct piece empty = w->flying;
	w->flying = w->filling;
	w->filling = empty;
	w->filling.n = 0;
	w->last = w->ended;
	writer_submit(w);
}

static void writer_settle_again(void *arg)
{
	writer_submit(arg);
}

static void writer_submit(struct writer_fs *w)
{
	w->busy = true;
	if (work_submit(blobs_fs_of(w->head.blobs)->loop, writer_run, writer_on_run, w,
		    &w->failed) < 0) {
		w->busy = false;
		writer_fail(w);
	}
}

static void writer_on_run(void *arg)
{
	struct writer_fs *w = arg;

	w->busy = false;
	if (w->gone) {
		writer_destroy(w);
		return;
	}
	if (w->failed.code == ERR_OK && w->err.code != ERR_OK)
		w->failed = w->err;
	if (w->failed.code == ERR_OK && w->locked_out) {
		loop_timer_set(&w->again, LOCK_RETRY_MS);
		return;
	}
	if (w->failed.code != ERR_OK || w->last) {
		w->finished = true;
		writer_finish(w);
		return;
	}
	writer_step(w);
	if (w->held_back && w->filling.n < BUFFER_MAX) {
		w->held_back = false;
		w->spec.on_room(w->spec.arg);
	}
}

/* ---- in the thread ---- */

static bool have(const struct blobs_fs *b, const unsigned char *digest, int64_t size)
{
	char path[PATH_MAX];
	struct stat st;

	blob_fs_path(b, digest, path);
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (size < 0 || st.st_size == size);
}

static int start(struct writer_fs *w, struct err *e)
{
	const struct blobs_fs *b = blobs_fs_of(w->head.blobs);
	char unique[ID_HEX + 1], path[PATH_MAX];

	w->started = true;
	w->present =
		w->spec.has_digest && w->spec.size >= 0 && have(b, w->spec.digest, w->spec.size);
	if (w->present)
		return 0;
	BUG_ON(!str_print(path, sizeof path, "%s/tmp/%s", b->dir, id_hex(unique)));
	w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->fd < 0)
		return err_errno(e, "create", path);
	memcpy(w->tmp, path, sizeof path);
	return 0;
}

/* Starts the disk early, so that the sync at the end has little left to do. */
static void flush_some(struct writer_fs *w)
{
	if (w->written - w->flushed < FLUSH_EVERY)
		return;
	(void)sync_file_range(w->fd, w->flushed, w->written - w->flushed, SYNC_FILE_RANGE_WRITE);
	w->flushed = w->written;
}

static int check(struct writer_fs *w, struct err *e)
{
	char want[HASH_HEX + 1], got[HASH_HEX + 1];

	if (w->checked)
		return 0;
	w->checked = true;
	hash_end(w->hash, w->id.digest);
	w->id.size = w->written;
	if (w->spec.size >= 0 && w->written != w->spec.size)
		return err_set(e, ERR_INVALID, "%lld bytes came, %lld were promised",
			(long long)w->written, (long long)w->spec.size);
	if (w->spec.has_digest && memcmp(w->id.digest, w->spec.digest, HASH_SIZE) != 0)
		return err_field(e, "/digest", "the bytes have the SHA-256 %s, not %s",
			hash_hex(got, w->id.digest), hash_hex(want, w->spec.digest));
	if (w->fd >= 0 && fsync(w->fd) < 0)
		return err_errno(e, "sync", w->tmp);
	return 0;
}

/* Moves the file to its name, durably. */
static int publish(struct writer_fs *w, struct err *e)
{
	char path[PATH_MAX], folder[PATH_MAX];
	bool made;

	blob_fs_path(blobs_fs_of(w->head.blobs), w->id.digest, path);
	memcpy(folder, path, sizeof folder);
	*strrchr(folder, '/') = '\0';
	made = mkdir(folder, 0700) == 0;
	if (!made && errno != EEXIST)
		return err_errno(e, "make folder", folder);
	if (rename(w->tmp, path) < 0)
		return err_errno(e, "rename to", path);
	w->tmp[0] = '\0';
	if (fs_sync_dir(folder, e) < 0)
		return -1;
	if (!made)
		return 0;
	if (fsync(w->lock_fd) < 0)
		return err_errno(e, "sync", "a blob folder");
	*strrchr(folder, '/') = '\0'; /* sha256/ab */
	*strrchr(folder, '/') = '\0'; /* sha256 */
	return fs_sync_dir(folder, e);
}

static int settle(struct writer_fs *w, struct err *e)
{
	const struct blobs_fs *b = blobs_fs_of(w->head.blobs);

	if (check(w, e) < 0)
		return -1;
	w->lock_fd = blob_fs_lock(b, w->id.digest[0], LOCK_SH | LOCK_NB, e);
	if (w->lock_fd < 0) {
		w->locked_out = e->code == ERR_IN_PROGRESS;
		return w->locked_out ? 0 : -1;
	}
	w->locked_out = false;
	if (have(b, w->id.digest, w->id.size)) {
		if (w->tmp[0] != '\0')
			(void)unlink(w->tmp);
		w->tmp[0] = '\0';
		return 0;
	}
	if (w->present) /* collected while the bytes came */
		return err_set(e, ERR_UNAVAILABLE, "the bytes have just been removed; send again");
	return publish(w, e);
}

static int run_piece(struct writer_fs *w)
{
	struct str bytes = { w->flying.p, w->flying.n };

	if (!w->started && start(w, &w->err) < 0)
		return -1;
	hash_add(w->hash, bytes);
	if (!w->present && fs_write_all(w->fd, bytes, w->tmp, &w->err) < 0)
		return -1;
	w->written += (int64_t)bytes.n;
	if (!w->present)
		flush_some(w);
	w->flying.n = 0;
	if (!w->last)
		return 0;
	if (settle(w, &w->err) < 0)
		return -1;
	w->err.code = ERR_OK; /* an attempt at the lock may have left its word there */
	return 0;
}

/* What has failed leaves nothing by the time it is told. */
static void writer_run(void *arg)
{
	struct writer_fs *w = arg;

	if (run_piece(w) == 0 || w->tmp[0] == '\0')
		return;
	(void)unlink(w->tmp);
	w->tmp[0] = '\0';
}
