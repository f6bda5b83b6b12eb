#include "worker/cache.h"

#include "lib/base/fs.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "worker/cache_evict.h"
#include "worker/ship/ship.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REFUSALS_MAX = 3, READ_BYTES = 1 << 18 };
#define IDLE_TIMEOUT (120 * CLOCK_SECOND)

struct cache {
	struct loop *loop;
	struct fetch_client *http;
	char *dir;
	int64_t max;
	struct load *loads;
	int holders;
	cache_excess_fn *excess;
	void *arg;
	bool evicting, full; /* full: more may have come than may stay */
	struct cache_evict evict;
};

struct cache_wait {
	struct cache *c;
	struct load *load; /* NULL: there already, or cancelled */
	struct cache_wait *next;
	char attempt[64];
	int64_t epoch;
	struct err result;
	cache_cb *done;
	void *arg;
};

struct load {
	struct cache *c;
	struct load *next;
	struct cache_wait *waits;
	char digest[HASH_HEX + 1], path[CACHE_PATH_MAX], part[CACHE_PATH_MAX];
	char asker[64]; /* the attempt in whose name the request goes */
	int64_t size;
	int fd;
	struct fetch *request;
	bool checking;
	struct err err; /* of the check */
	struct loop_timer again;
	struct retry wait;
	int refusals;
};

/* Download into a file beside → check and publish on a work thread → tell all who wait. */
static void load_begin(void *arg);
static void load_on_reply(void *arg, const struct fetch_reply *reply, const struct err *e);
static void load_check(void *arg);
static void load_on_checked(void *arg);
static void load_end(struct load *d, const struct err *e);

/* Eviction: one run at a time, while nobody holds. */
static void evict_when_idle(struct cache *c);

struct cache *cache_new(const struct cache_args *a, struct err *e)
{
	char part[CACHE_PATH_MAX];
	struct cache *c;

	if (!str_print(part, sizeof part, "%s/part", a->dir) || strlen(a->dir) > 300) {
		(void)err_set(e, ERR_INVALID, "the path of the cache is too long");
		return NULL;
	}
	/* What was on its way when the worker ended is of no use. */
	if (fs_remove_tree(part, e) < 0 || fs_mkdirs(part, 0700, e) < 0)
		return NULL;
	c = mem_new_of(struct cache);
	c->loop = a->loop;
	c->http = a->http;
	c->dir = mem_dup(a->dir);
	c->max = a->max;
	c->excess = a->excess;
	c->arg = a->arg;
	c->full = true;
	evict_when_idle(c);
	return c;
}

bool cache_busy(const struct cache *c)
{
	return c->loads != NULL || c->evicting;
}

void cache_free(struct cache *c)
{
	if (c == NULL)
		return;
	BUG_ON(c->loads != NULL || c->evicting);
	mem_free(c->dir);
	mem_free(c);
}

const char *cache_path(const struct cache *c, struct str digest, char out[CACHE_PATH_MAX])
{
	(void)str_print(out, CACHE_PATH_MAX, "%s/sha256/%.2s/%.64s", c->dir, digest.p, digest.p);
	return out;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void wait_tell(void *arg)
{
	struct cache_wait *w = arg;
	const struct err e = w->result;
	cache_cb *done = w->done;
	void *done_arg = w->arg;

	mem_free(w);
	done(done_arg, &e);
}

static void wait_settle(struct cache_wait *w, const struct err *e)
{
	w->load = NULL;
	w->result = *e;
	loop_defer(w->c->loop, wait_tell, w);
}

static struct load *find_load(struct cache *c, struct str digest)
{
	struct load *d = c->loads;

	while (d != NULL && !str_is(digest, d->digest))
		d = d->next;
	return d;
}

static struct load *load_new(struct cache *c, const struct cache_want *want)
{
	struct load *d = mem_new_of(struct load);
	char unique[ID_HEX + 1];

	d->c = c;
	d->next = c->loads;
	c->loads = d;
	d->fd = -1;
	d->size = want->size;
	(void)str_print(d->digest, sizeof d->digest, "%.64s", want->digest.p);
	(void)cache_path(c, want->digest, d->path);
	(void)str_print(d->part, sizeof d->part, "%s/part/%s", c->dir, id_hex(unique));
	loop_timer_init(&d->again, c->loop, load_begin, d);
	loop_timer_set(&d->again, 0);
	return d;
}

struct cache_wait *cache_get(
	struct cache *c, const struct cache_want *want, cache_cb *done, void *arg)
{
	const struct err well = { .code = ERR_OK };
	struct cache_wait *w = mem_new_of(struct cache_wait);
	unsigned char digest[HASH_SIZE];
	char path[CACHE_PATH_MAX];
	struct err e;

	w->c = c;
	w->epoch = want->epoch;
	w->done = done;
	w->arg = arg;
	(void)str_print(w->attempt, sizeof w->attempt, "%s", want->attempt);
	if (!hash_parse_hex(want->digest, digest)) {
		(void)err_set(&e, ERR_INVALID, "a digest must be 64 hex digits");
		wait_settle(w, &e);
		return w;
	}
	if (access(cache_path(c, want->digest, path), F_OK) == 0) {
		wait_settle(w, &well);
		return w;
	}
	w->load = find_load(c, want->digest);
	if (w->load == NULL)
		w->load = load_new(c, want);
	w->next = w->load->waits;
	w->load->waits = w;
	return w;
}

static void take_out(struct cache_wait *w)
{
	struct cache_wait **at = &w->load->waits;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

void cache_cancel(struct cache_wait *w)
{
	struct load *d = w->load;
	struct err e;

	if (d == NULL)
		return;
	(void)err_set(&e, ERR_CANCELLED, "not needed any more");
	take_out(w);
	wait_settle(w, &e);
	if (d->waits != NULL)
		return;
	if (d->request != NULL)
		fetch_cancel(d->request);
	else if (!d->checking)
		loop_timer_set(&d->again, 0);
}

/* ---- loading -------------------------------------------------------------------------------- */

static void load_end(struct load *d, const struct err *e)
{
	struct cache *c = d->c;
	struct load **at = &c->loads;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	if (d->fd >= 0)
		(void)close(d->fd);
	loop_timer_cancel(&d->again);
	(void)unlink(d->part);
	while (d->waits != NULL) {
		struct cache_wait *w = d->waits;
		take_out(w);
		wait_settle(w, e);
	}
	mem_free(d);
	evict_when_idle(c);
}

static void load_begin(void *arg)
{
	struct load *d = arg;
	char path[SHIP_PATH_MAX];
	struct err e;

	if (d->waits == NULL) {
		(void)err_set(&e, ERR_CANCELLED, "nobody waits for it");
		load_end(d, &e);
		return;
	}
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = open(d->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (d->fd < 0) {
		(void)err_errno(&e, "create", d->part);
		load_end(d, &e);
		return;
	}
	(void)str_print(d->asker, sizeof d->asker, "%s", d->waits->attempt);
	(void)str_print(path, sizeof path, "/api/v1/workers/self/attempts/%s/blobs/%s?epoch=%lld",
		d->asker, d->digest, (long long)d->waits->epoch);
	const struct fetch_request q = { .path = path,
		.to_fd = true,
		.out_fd = d->fd,
		.max_bytes = (uint64_t)d->size + 1,
		.timeout = -1,
		.idle_timeout = IDLE_TIMEOUT };
	d->request = fetch_start(d->c->http, &q, load_on_reply, d);
}

/* The attempt that asked is not wanted any more; others that wait ask for themselves. */
static void drop_asker(struct load *d, const struct err *e)
{
	for (struct cache_wait *w = d->waits, *next; w != NULL; w = next) {
		next = w->next;
		if (strcmp(w->attempt, d->asker) == 0) {
			take_out(w);
			wait_settle(w, e);
		}
	}
	loop_timer_set(&d->again, 0);
}

static void load_refused(struct load *d, const struct fetch_reply *reply, const struct err *e)
{
	if (++d->refusals >= REFUSALS_MAX)
		load_end(d, e);
	else
		loop_timer_set(&d->again, ship_wait(&d->wait, reply));
}

static void load_on_reply(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct load *d = arg;
	struct err e = { .code = ERR_OK };

	d->request = NULL;
	if (d->waits == NULL || failed->code == ERR_NO_SPACE) {
		load_end(d, failed);
		return;
	}
	enum ship_outcome o =
		failed->code == ERR_TOO_LARGE ? SHIP_REFUSED : ship_outcome(reply, failed, &e);
	if (failed->code == ERR_TOO_LARGE)
		e = *failed;
	switch (o) {
	case SHIP_OK: break;
	case SHIP_SUPERSEDED: drop_asker(d, &e); return;
	case SHIP_REFUSED: load_refused(d, reply, &e); return;
	case SHIP_AGAIN:
		if (d->wait.tries == 0)
			log_warn("data not received yet", LOG_S("digest", d->digest), LOG_E(&e));
		loop_timer_set(&d->again, ship_wait(&d->wait, reply));
		return;
	}
	d->checking = true;
	if (work_submit(d->c->loop, load_check, load_on_checked, d, &e) < 0) {
		d->checking = false;
		loop_timer_set(&d->again, ship_wait(&d->wait, NULL));
	}
}

static int digest_fd(int fd, char hex[HASH_HEX + 1], struct err *e)
{
	struct hash *hash = hash_new();
	char *bytes = mem_new(1, READ_BYTES);
	unsigned char digest[HASH_SIZE];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, READ_BYTES, at)) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		hash_add(hash, (struct str){ bytes, (size_t)n });
		at += n;
	}
	int rc = n < 0 ? err_errno(e, "read", "what was received") : 0;
	hash_end(hash, digest);
	(void)hash_hex(hex, digest);
	mem_free(bytes);
	hash_free(hash);
	return rc;
}

static int publish(struct load *d, struct err *e)
{
	char hex[HASH_HEX + 1], folder[CACHE_PATH_MAX];

	if (digest_fd(d->fd, hex, e) < 0)
		return -1;
	if (strcmp(hex, d->digest) != 0)
		return err_set(
			e, ERR_CORRUPT, "the bytes received for %s have digest %s", d->digest, hex);
	(void)str_print(folder, sizeof folder, "%s/sha256/%.2s", d->c->dir, d->digest);
	if (fs_mkdirs(folder, 0700, e) < 0)
		return -1;
	if (fchmod(d->fd, 0444) < 0 || fsync(d->fd) < 0 || rename(d->part, d->path) < 0)
		return err_errno(e, "store", d->path);
	return 0;
}

static void load_check(void *arg)
{
	struct load *d = arg;

	d->err.code = ERR_OK;
	(void)!publish(d, &d->err);
}

static void load_on_checked(void *arg)
{
	struct load *d = arg;

	d->checking = false;
	if (d->err.code == ERR_CORRUPT && d->waits != NULL) {
		log_warn("data damaged on the way", LOG_S("digest", d->digest), LOG_E(&d->err));
		load_refused(d, NULL, &d->err);
		return;
	}
	d->c->full = true;
	load_end(d, &d->err);
}

/* ---- placing -------------------------------------------------------------------------------- */

static int copy_bytes(int from, int to, const char *path, struct err *e)
{
	char *bytes = NULL;
	ssize_t n;
	int rc = 0;

	/* By reference where the file system can. */
	while ((n = copy_file_range(from, NULL, to, NULL, INT32_MAX, 0)) > 0)
		continue;
	if (n == 0)
		return 0;
	if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return err_errno(e, "copy", path);
	bytes = mem_new(1, READ_BYTES);
	while (rc == 0 && (n = read(from, bytes, READ_BYTES)) > 0)
		rc = fs_write_all(to, (struct str){ bytes, (size_t)n }, path, e);
	if (rc == 0 && n < 0)
		rc = err_errno(e, "copy", path);
	mem_free(bytes);
	return rc;
}

static int copy_file(const char *source, const char *path, struct err *e)
{
	int from = open(source, O_RDONLY | O_CLOEXEC), to = -1, rc = 0;

	if (from < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "not in the cache")
				       : err_errno(e, "open", source);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	rc = to < 0 ? err_errno(e, "create", path) : copy_bytes(from, to, path, e);
	if (to >= 0)
		(void)close(to);
	(void)close(from);
	return rc;
}

int cache_place(
	const struct cache *c, struct str digest, const char *path, bool link_it, struct err *e)
{
	char source[CACHE_PATH_MAX];
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };

	(void)cache_path(c, digest, source);
	(void)utimensat(AT_FDCWD, source, now, 0);
	if (link_it && link(source, path) == 0)
		return 0;
	if (link_it && errno == ENOENT && access(source, F_OK) < 0)
		return err_set(e, ERR_NOT_FOUND, "not in the cache");
	if (link_it && errno != EXDEV && errno != EMLINK && errno != EPERM && errno != EOPNOTSUPP)
		return err_errno(e, "link", path);
	return copy_file(source, path, e);
}

/* ---- eviction ------------------------------------------------------------------------------- */

static void run_evict(void *arg)
{
	struct cache *c = arg;

	cache_evict_run(&c->evict);
}

static void on_evicted(void *arg)
{
	struct cache *c = arg;

	c->evicting = false;
	if (c->evict.removed != 0)
		log_info("cache emptied", LOG_I("files", c->evict.removed),
			LOG_I("bytes_left", c->evict.bytes));
	evict_when_idle(c);
}

static void evict_when_idle(struct cache *c)
{
	struct err e;

	if (!c->full || c->evicting || c->holders != 0)
		return;
	c->full = false;
	c->evict = (struct cache_evict){
		.dir = c->dir, .max = c->max, .excess = c->excess, .arg = c->arg
	};
	c->evicting = work_submit(c->loop, run_evict, on_evicted, c, &e) == 0;
}

void cache_relieve(struct cache *c)
{
	c->full = true;
	evict_when_idle(c);
}

void cache_hold(struct cache *c)
{
	c->holders++;
}

void cache_release(struct cache *c)
{
	BUG_ON(c->holders == 0);
	c->holders--;
	evict_when_idle(c);
}
