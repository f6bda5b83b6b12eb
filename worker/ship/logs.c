#include "worker/ship/logs.h"

#include "api/frame.h"
#include "api/worker.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "worker/ship/mask.h"
#include "worker/ship/match.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * One thing at a time: a read of the next piece (on a work thread, with mask and digest), or a
 * request. A piece stays in memory until the server has it. log_turn() looks at where things stand
 * and starts whatever is next; every completion ends there.
 */

enum {
	EVERY_MS = 50,
	LOOK_MS = 1000,
	BODY_MAX = 256 << 10,
	REFUSALS_MAX = 8,
	READ_FIRST = FRAME_HEADER + FRAME_PAYLOAD_MAX
};
#define LOG_TIMEOUT (60 * CLOCK_SECOND)

struct ship_log {
	struct ship_target to;
	char *spool, *prologue;
	ship_log_cb *done;
	void *arg;
	bool known; /* we have heard what the server holds */
	uint64_t stored; /* what it holds, when known */
	bool ended, told, dead;
	bool broken; /* no frame begins at pos, and none ever will */
	bool last; /* of a read: nothing was to be written any more when it began */
	int64_t dropped, taken;
	int64_t payload; /* bytes of the command's output in what is digested */

	int fd;
	bool at_spool; /* fd is the spool, not the prologue */
	uint64_t pos; /* all before is digested */
	struct hash *hash;
	struct mask *mask;
	unsigned char *piece; /* frames at piece_at that are digested, but not known to be stored */
	uint64_t piece_at;
	size_t piece_n, read_max;
	uint64_t left; /* bytes after the last whole frame, when the last read found no more frames
			*/
	struct err read_err;
	char tail[2 * SHIP_TAIL_MAX];
	size_t tail_n;
	struct match *match;
	bool match_refused; /* the server will not hear of matches */

	bool reading;
	struct fetch *request;
	struct buf body;
	struct retry wait;
	int refusals;
	struct loop_timer again, look;
	int64_t read_at;
	struct err result;
};

/* What is next? Read → (known to be stored: read on) → send → … → final. */
static void log_turn(struct ship_log *l);
static void log_read(struct ship_log *l);
static void log_on_read(void *arg);
static void log_send(struct ship_log *l);
static void log_on_sent(void *arg, const struct fetch_reply *reply, const struct err *e);
static void log_tell(struct ship_log *l); /* what lines have matched */
static void log_on_told(void *arg, const struct fetch_reply *reply, const struct err *e);
static void log_final(struct ship_log *l);
static void log_on_final(void *arg, const struct fetch_reply *reply, const struct err *e);

static void on_timer(void *arg)
{
	log_turn(arg);
}

static void on_look(void *arg)
{
	ship_log_wake(arg);
}

static void log_reset(struct ship_log *l)
{
	unsigned char none[HASH_SIZE];

	hash_end(l->hash, none);
	mask_reset(l->mask);
	l->pos = 0;
	l->piece_n = 0;
	l->tail_n = 0;
	l->payload = 0;
	l->broken = false;
	match_reset(l->match);
}

static struct mask *make_mask(const struct ship_log_args *a)
{
	struct mask *m = mask_new();
	bool all = mask_add(m, a->token, MASK_KEEP);

	for (size_t i = 0; a->secrets != NULL && i < a->secrets->n; i++)
		all = mask_add(m, *list_at(a->secrets, struct str, i), 0) && all;
	if (!all)
		log_warn("not all of the secrets are masked: they are too long",
			LOG_S("attempt", a->to.attempt));
	return m;
}

struct ship_log *ship_log_new(const struct ship_log_args *a)
{
	struct ship_log *l = mem_new_of(struct ship_log);

	l->to = a->to;
	l->spool = mem_dup(a->spool);
	l->prologue = a->prologue != NULL ? mem_dup(a->prologue) : NULL;
	l->mask = make_mask(a);
	l->done = a->done;
	l->arg = a->arg;
	l->known = a->fresh;
	l->fd = -1;
	l->hash = hash_new();
	l->match = match_new(a->policies);
	buf_init(&l->body, BODY_MAX);
	loop_timer_init(&l->again, l->to.loop, on_timer, l);
	loop_timer_init(&l->look, l->to.loop, on_look, l);
	log_reset(l);
	loop_timer_every(&l->look, LOOK_MS);
	ship_log_wake(l);
	return l;
}

static void log_destroy(void *arg)
{
	struct ship_log *l = arg;

	if (l->fd >= 0)
		(void)close(l->fd);
	hash_free(l->hash);
	buf_done(&l->body);
	match_free(l->match);
	mask_free(l->mask);
	mem_free(l->spool);
	mem_free(l->prologue);
	mem_free(l->piece);
	mem_free(l);
}

void ship_log_free(struct ship_log *l)
{
	if (l == NULL)
		return;
	l->dead = true;
	loop_timer_cancel(&l->again);
	loop_timer_cancel(&l->look);
	if (l->request != NULL)
		fetch_cancel(l->request);
	else if (!l->reading)
		loop_defer(l->to.loop, log_destroy, l);
}

/* At the head of every completion: true when nobody waits for us any more. */
static bool is_dead(struct ship_log *l)
{
	if (l->dead && !l->reading && l->request == NULL)
		loop_defer(l->to.loop, log_destroy, l);
	return l->dead;
}

void ship_log_wake(struct ship_log *l)
{
	int64_t since = (loop_now(l->to.loop) - l->read_at) / 1000;

	if (l->dead || l->told || l->reading || l->request != NULL || loop_timer_armed(&l->again))
		return;
	loop_timer_set(&l->again, since >= EVERY_MS ? 0 : EVERY_MS - since);
}

void ship_log_end(struct ship_log *l, int64_t dropped, int64_t taken)
{
	l->ended = true;
	l->dropped = dropped;
	l->taken = taken;
	ship_log_wake(l);
}

struct str ship_log_tail(const struct ship_log *l)
{
	size_t n = l->tail_n < SHIP_TAIL_MAX ? l->tail_n : SHIP_TAIL_MAX;

	return (struct str){ l->tail + l->tail_n - n, n };
}

/* ---- the end -------------------------------------------------------------------------------- */

static void tell(void *arg)
{
	struct ship_log *l = arg;

	if (!l->dead)
		l->done(l->arg, &l->result);
}

static void log_done(struct ship_log *l, const struct err *e)
{
	l->told = true;
	l->result = *e;
	loop_timer_cancel(&l->look);
	mem_free(l->piece);
	l->piece = NULL;
	l->piece_n = 0;
	tell(l);
}

/* After a refusal the server may say anew what it has; in the end we give up. */
static void log_refused(struct ship_log *l, const struct fetch_reply *reply, const struct err *e)
{
	if (++l->refusals >= REFUSALS_MAX && l->ended) {
		log_done(l, e);
		return;
	}
	if (l->refusals == 1)
		log_warn("log refused", LOG_S("attempt", l->to.attempt), LOG_E(e));
	l->known = false;
	log_reset(l);
	loop_timer_set(&l->again, ship_wait(&l->wait, reply));
}

static void log_failed(struct ship_log *l, enum ship_outcome o, const struct fetch_reply *reply,
	const struct err *e)
{
	if (o == SHIP_SUPERSEDED)
		log_done(l, e);
	else if (o == SHIP_REFUSED)
		log_refused(l, reply, e);
	else
		loop_timer_set(&l->again, ship_wait(&l->wait, reply));
}

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? 0 : (uint64_t)st.st_size;
}

static int open_file(const char *path)
{
	return path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
}

/* The spool begins with the prologue: it takes over once it holds all of that. */
static uint64_t spool_size(struct ship_log *l)
{
	int spool = l->at_spool ? -1 : open_file(l->spool);

	if (!l->at_spool && l->fd < 0)
		l->fd = open_file(l->prologue);
	if (spool >= 0 && size_of(spool) >= size_of(l->fd)) {
		if (l->fd >= 0)
			(void)close(l->fd);
		l->fd = spool;
		l->at_spool = true;
	} else if (spool >= 0) {
		(void)close(spool);
	}
	return size_of(l->fd);
}

static void log_turn(struct ship_log *l)
{
	if (l->dead || l->told || l->reading || l->request != NULL)
		return;
	loop_timer_cancel(&l->again);
	if (l->piece_n != 0 && l->known && l->stored >= l->piece_at + l->piece_n)
		l->piece_n = 0;
	if (l->piece_n != 0) {
		log_send(l);
		return;
	}
	if (!l->match_refused && match_news(l->match, false)) {
		log_tell(l);
		return;
	}
	uint64_t size = spool_size(l);
	if (size > l->pos && !l->broken &&
		!(l->ended && l->left != 0 && size == l->pos + l->left)) {
		log_read(l);
	} else if (l->ended) {
		match_end(l->match);
		if (!l->match_refused && match_news(l->match, true))
			log_tell(l);
		else
			log_final(l);
	} else {
		mem_free(l->piece);
		l->piece = NULL;
	}
}

static void tail_add(struct ship_log *l, const unsigned char *p, size_t n)
{
	size_t skip = n > SHIP_TAIL_MAX ? n - SHIP_TAIL_MAX : 0;

	if (l->tail_n + n - skip > sizeof l->tail) {
		size_t keep = l->tail_n < SHIP_TAIL_MAX ? l->tail_n : SHIP_TAIL_MAX;
		memmove(l->tail, l->tail + l->tail_n - keep, keep);
		l->tail_n = keep;
	}
	memcpy(l->tail + l->tail_n, p + skip, n - skip);
	l->tail_n += n - skip;
}

static void tail_frames(struct ship_log *l, size_t n)
{
	struct frame f;

	for (size_t at = 0; at + FRAME_HEADER <= n && frame_get(l->piece + at, &f);
		at += FRAME_HEADER + f.length) {
		tail_add(l, l->piece + at + FRAME_HEADER, f.length);
		l->payload += f.stream != FRAME_SYSTEM ? f.length : 0;
	}
}

/* So that a whole piece never waits for what follows it: the mask decides within its window. */
_Static_assert(MASK_WINDOW + 3 * (FRAME_HEADER + FRAME_PAYLOAD_MAX) <= SHIP_PIECE_MAX,
	"a piece is longer than what the mask holds back");

static void run_read(void *arg)
{
	struct ship_log *l = arg;
	ssize_t n = pread(l->fd, l->piece, l->read_max, (off_t)l->pos);
	bool sound = true;
	size_t whole;

	l->read_err.code = ERR_OK;
	if (n < 0) {
		(void)err_errno(&l->read_err, "read", l->spool);
		return;
	}
	whole = frame_whole(l->piece, (size_t)n, &sound);
	l->left = (uint64_t)n - whole;
	l->broken = whole == 0 && !sound;
	/* More may follow than we have read: only at the very end nothing does. */
	bool last = l->last && (size_t)n < l->read_max;
	l->piece_n = mask_frames(l->mask, l->piece, whole, l->pos, last);
	if (l->piece_n != whole)
		l->left = 0;
	hash_add(l->hash, (struct str){ (const char *)l->piece, l->piece_n });
	tail_frames(l, l->piece_n);
	match_frames(l->match, l->piece, l->piece_n);
}

static void log_read(struct ship_log *l)
{
	uint64_t size = spool_size(l), n = size - l->pos;
	struct err e;

	/* Room for one frame more than there is, so that a frame that grows meanwhile fits. */
	l->read_max = n + READ_FIRST < SHIP_PIECE_MAX ? (size_t)n + READ_FIRST : SHIP_PIECE_MAX;
	l->piece = mem_resize(l->piece, l->read_max, 1);
	l->piece_at = l->pos;
	l->read_at = loop_now(l->to.loop);
	l->last = l->ended;
	if (work_submit(l->to.loop, run_read, log_on_read, l, &e) < 0) {
		loop_timer_set(&l->again, ship_wait(&l->wait, NULL));
		return;
	}
	l->reading = true;
}

static void log_on_read(void *arg)
{
	struct ship_log *l = arg;

	l->reading = false;
	if (is_dead(l))
		return;
	if (l->read_err.code != ERR_OK) {
		log_warn(
			"log cannot be read", LOG_S("attempt", l->to.attempt), LOG_E(&l->read_err));
		loop_timer_set(&l->again, ship_wait(&l->wait, NULL));
		return;
	}
	l->pos += l->piece_n;
	if (l->piece_n != 0 || l->ended)
		log_turn(l);
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Where in the piece the server's own ends; 0 unless that is the edge of a frame. */
static size_t stored_part(const struct ship_log *l)
{
	struct frame f;
	size_t at = 0;

	if (!l->known || l->stored <= l->piece_at)
		return 0;
	while (l->piece_at + at < l->stored && frame_get(l->piece + at, &f))
		at += FRAME_HEADER + f.length;
	return l->piece_at + at == l->stored ? at : 0;
}

/* The first frame alone asks the server what it has, with few bytes. */
static size_t first_frame(const struct ship_log *l)
{
	struct frame f;

	return frame_get(l->piece, &f) ? FRAME_HEADER + f.length : l->piece_n;
}

static void log_send(struct ship_log *l)
{
	size_t skip = stored_part(l), end = l->known ? l->piece_n : first_frame(l);
	char path[SHIP_PATH_MAX];

	(void)str_print(path, sizeof path,
		"/api/v1/workers/self/attempts/%s/log?epoch=%lld&offset=%llu", l->to.attempt,
		(long long)l->to.epoch, (unsigned long long)(l->piece_at + skip));
	const struct fetch_request q = { .method = "PUT",
		.path = path,
		.headers = { "Content-Type: application/octet-stream" },
		.body = { (const char *)l->piece + skip, end - skip },
		.timeout = LOG_TIMEOUT };
	l->request = fetch_start(l->to.http, &q, log_on_sent, l);
}

static int read_position(const struct fetch_reply *reply, uint64_t *ret, struct err *e)
{
	struct arena *a = arena_new(65536);
	struct log_position at;
	int rc = field_decode_reply(log_position_fields, reply->body, a, &at, e);

	if (rc == 0 && at.length < 0)
		rc = err_set(e, ERR_INVALID, "the server's length is negative");
	if (rc == 0)
		*ret = (uint64_t)at.length;
	arena_drop(a);
	return rc;
}

static void log_on_sent(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct ship_log *l = arg;
	struct err e = { .code = ERR_OK };
	uint64_t before = l->known ? l->stored : 0;

	l->request = NULL;
	if (is_dead(l))
		return;
	enum ship_outcome o = ship_outcome(reply, failed, &e);
	if (o == SHIP_OK && read_position(reply, &l->stored, &e) < 0)
		o = SHIP_AGAIN;
	if (o != SHIP_OK) {
		log_failed(l, o, reply, &e);
		return;
	}
	bool moved = !l->known || l->stored > before;
	l->known = true;
	if (l->stored < l->piece_at) /* it has lost some: again from there */
		log_reset(l);
	if (moved) {
		l->wait.tries = 0;
		l->refusals = 0;
		log_turn(l);
	} else {
		loop_timer_set(&l->again, ship_wait(&l->wait, reply));
	}
}

/* ---- what lines have matched ------------------------------------------------------------------
 */

struct list ship_log_matches(const struct ship_log *l, struct arena *a)
{
	return match_list(l->match, a);
}

int ship_log_near(const struct ship_log *l, const char *label)
{
	return match_near(l->match, label);
}

static void log_tell(struct ship_log *l)
{
	struct arena *a = arena_new(BODY_MAX);
	const struct log_matches matches = { l->to.epoch, match_list(l->match, a) };

	buf_clear(&l->body);
	field_encode(log_matches_fields, &matches, &l->body);
	arena_drop(a);
	l->request = ship_document(&l->to, "PUT", "log/matches", buf_str(&l->body), log_on_told, l);
}

static void log_on_told(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct ship_log *l = arg;
	struct err e = { .code = ERR_OK };

	l->request = NULL;
	if (is_dead(l))
		return;
	enum ship_outcome o = ship_outcome(reply, failed, &e);
	if (o == SHIP_AGAIN || o == SHIP_SUPERSEDED) {
		log_failed(l, o, reply, &e);
		return;
	}
	if (o == SHIP_REFUSED) /* the log itself goes on */
		log_warn("matches of log policies refused", LOG_S("attempt", l->to.attempt),
			LOG_E(&e));
	l->match_refused = o == SHIP_REFUSED;
	match_told(l->match);
	log_turn(l);
}

/* ---- agreeing ------------------------------------------------------------------------------- */

int64_t ship_log_dropped(const struct ship_log *l)
{
	uint64_t size = size_of(l->fd);

	if (l->taken >= 0)
		return l->taken > l->payload ? l->taken - l->payload : 0;
	return l->dropped + (size > l->pos ? (int64_t)(size - l->pos) : 0);
}

static void log_final(struct ship_log *l)
{
	unsigned char digest[HASH_SIZE];
	char hex[HASH_HEX + 1];

	hash_peek(l->hash, digest);
	const struct log_final last = { .epoch = l->to.epoch,
		.length = (int64_t)l->pos,
		.dropped = ship_log_dropped(l),
		.digest = str_c(hash_hex(hex, digest)) };
	buf_clear(&l->body);
	field_encode(log_final_fields, &last, &l->body);
	l->request = ship_document(&l->to, "POST", "log/final", buf_str(&l->body), log_on_final, l);
}

static void log_on_final(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct ship_log *l = arg;
	struct err e = { .code = ERR_OK };
	uint64_t length;

	l->request = NULL;
	if (is_dead(l))
		return;
	enum ship_outcome o = ship_outcome(reply, failed, &e);
	if (o == SHIP_OK && read_position(reply, &length, &e) < 0)
		o = SHIP_AGAIN;
	if (o == SHIP_OK && length != l->pos) {
		(void)err_set(&e, ERR_CONFLICT, "the log has %llu bytes here and %llu there",
			(unsigned long long)l->pos, (unsigned long long)length);
		o = SHIP_REFUSED;
	}
	if (o == SHIP_OK)
		log_done(l, &e);
	else
		log_failed(l, o, reply, &e);
}
