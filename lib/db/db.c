/*
 * The pool. A unit goes from db_send into its lane's queue; at the end of the turn the queue is
 * pumped into the least busy connections; conn.c brings it back through pool_unit_over() or
 * pool_unit_again(); callbacks run at the end of the turn, and what they send goes out right after.
 */
#include "lib/db/db.h"

#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/db/pool.h"
#include "lib/loop/defer.h"

#include <math.h>

#define HELD_UP (CLOCK_SECOND / 20)

enum { DEPTH = 32, READ_DEPTH = 8, QUEUE_MAX = 20000, GRACE_S = 5, LOCK_MS = 2000 };

const double db_bucket_s[DB_BUCKETS] = { .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5,
	HUGE_VAL };

static void db_finish(void *arg);
static void db_release(void *arg);
static void unit_on_deadline(void *arg);
static void unit_on_delayed(void *arg);

static struct lane *lane_of(struct db *db, enum db_lane id)
{
	return &db->lanes[db->lanes[id].nconns > 0 ? id : DB_WRITE];
}

/* All statements of a read see one snapshot. */
/* Who stands still in the middle of a write must not hold its locks for longer than a lease lasts.
 */
#define WRITE_SESSION "-c idle_in_transaction_session_timeout=4s -c tcp_user_timeout=4000 "
#define READ_SESSION                                                                               \
	"-c default_transaction_read_only=on "                                                     \
	"-c default_transaction_isolation=repeatable\\ read"

/* Plans are kept for as long as the session lives, and most are made while tables are small, when
 * to read a whole one looks cheap: short statements go by their keys. */
#define SHORT_SESSION "-c enable_seqscan=off "

static const char *const lane_session[DB_LANE_COUNT] = {
	[DB_READ] = SHORT_SESSION READ_SESSION,
	[DB_WRITE] = SHORT_SESSION WRITE_SESSION,
	[DB_RELAXED] = SHORT_SESSION WRITE_SESSION "-c synchronous_commit=off",
	[DB_BULK] = "",
};

static void lane_init(struct lane *l, struct db *db, const struct db_conf *conf, enum db_lane id)
{
	static const unsigned usual[DB_LANE_COUNT] = { 3, 2, 1, 1 };
	int64_t timeout = conf->statement_timeout > 0 ? conf->statement_timeout : 5 * CLOCK_SECOND;
	bool chosen = false;
	char session[512];
	struct err e;

	for (int i = 0; i < DB_LANE_COUNT; i++)
		chosen = chosen || conf->conns[i] > 0;
	if (id == DB_BULK)
		timeout = conf->bulk_timeout > 0 ? conf->bulk_timeout : 5 * CLOCK_MINUTE;
	*l = (struct lane){ .db = db, .read_only = id == DB_READ };
	l->nconns = chosen ? conf->conns[id] : usual[id];
	if (l->nconns == 0 && id == DB_WRITE)
		l->nconns = 1;
	/* Reads are kept short of company: a slow one holds up what stands behind it. */
	l->depth = conf->depth > 0 ? conf->depth : l->read_only ? READ_DEPTH : DEPTH;
	l->stall_us = timeout + GRACE_S * CLOCK_SECOND;
	TAILQ_INIT(&l->waiting);
	TAILQ_INIT(&l->delayed);
	(void)str_print(session, sizeof session,
		"-c statement_timeout=%lld -c lock_timeout=%d -c jit=off %s",
		(long long)(timeout / 1000), LOCK_MS, lane_session[id]);
	if (conninfo_parse(&l->info, conf->conninfo, conf->name != NULL ? conf->name : "tidemill",
		    session, &e) < 0)
		bug_at(e.file, e.line, e.msg); /* callers check with db_conf_check() */
}

struct db *db_new(struct loop *loop, const struct db_conf *conf)
{
	struct db *db = mem_new_of(struct db);

	db->loop = loop;
	db->table = conf->table;
	db->count = conf->count;
	db->queue_max = conf->queue_max > 0 ? conf->queue_max : QUEUE_MAX;
	db->deadline = conf->deadline > 0 ? conf->deadline : 5 * CLOCK_SECOND;
	db->plans = mem_new(db->count + 1, sizeof(void *));
	TAILQ_INIT(&db->done);
	for (int i = 0; i < DB_LANE_COUNT; i++) {
		struct lane *l = &db->lanes[i];

		lane_init(l, db, conf, (enum db_lane)i);
		l->conns = mem_new(l->nconns + 1, sizeof *l->conns);
		for (unsigned k = 0; k < l->nconns; k++)
			conn_init(&l->conns[k], l);
	}
	return db;
}

int db_conf_check(const struct db_conf *conf, struct err *e)
{
	struct conninfo info = { .n = 0 };
	int rc = conninfo_parse(&info, conf->conninfo, "", "", e);

	conninfo_done(&info);
	return rc;
}

static void lane_cancel(struct lane *l, struct units *from)
{
	struct db_unit *u;

	while ((u = TAILQ_FIRST(from)) != NULL) {
		TAILQ_REMOVE(from, u, link);
		(void)err_set(&u->err, ERR_CANCELLED, "The program is ending");
		pool_unit_over(u);
	}
	l->nwaiting = 0;
}

static void complete_all(struct db *db)
{
	struct db_unit *u;

	while ((u = TAILQ_FIRST(&db->done)) != NULL) {
		TAILQ_REMOVE(&db->done, u, link);
		unit_complete(u);
	}
}

void db_free(struct db *db)
{
	if (db == NULL)
		return;
	db->closed = db->finishing = true; /* db_release() does the rest, and nothing after it */
	for (int i = 0; i < DB_LANE_COUNT; i++) {
		struct lane *l = &db->lanes[i];

		for (unsigned k = 0; k < l->nconns; k++)
			conn_done(&l->conns[k]);
		lane_cancel(l, &l->waiting);
		lane_cancel(l, &l->delayed);
	}
	complete_all(db);
	loop_defer(db->loop, db_release, db);
}

/* Frees at the end of a turn: db_free may be called in the callback of a unit. */
static void db_release(void *arg)
{
	struct db *db = arg;

	complete_all(db);
	for (int i = 0; i < DB_LANE_COUNT; i++) {
		conninfo_done(&db->lanes[i].info);
		mem_free(db->lanes[i].conns);
	}
	for (size_t i = 0; i < db->count; i++)
		plans_free(&db->plans[i]);
	mem_free(db->plans);
	unit_scratch_done(&db->scratch);
	mem_free(db);
}

bool db_is_up(const struct db *db)
{
	for (int i = 0; i < DB_LANE_COUNT; i++) {
		const struct lane *l = &db->lanes[i];
		bool up = l->nconns == 0;

		for (unsigned k = 0; k < l->nconns; k++)
			up = up || l->conns[k].link.state == LINK_UP;
		if (!up)
			return false;
	}
	return true;
}

bool db_is_idle(const struct db *db)
{
	for (int i = 0; i < DB_LANE_COUNT; i++) {
		const struct lane *l = &db->lanes[i];

		if (!TAILQ_EMPTY(&l->waiting) || !TAILQ_EMPTY(&l->delayed))
			return false;
		for (unsigned k = 0; k < l->nconns; k++)
			if (l->conns[k].nsent > 0)
				return false;
	}
	return TAILQ_EMPTY(&db->done);
}

const char *db_last_error(const struct db *db)
{
	for (int i = 0; i < DB_LANE_COUNT; i++)
		for (unsigned k = 0; k < db->lanes[i].nconns; k++)
			if (db->lanes[i].conns[k].link.why[0] != '\0')
				return db->lanes[i].conns[k].link.why;
	return "";
}

bool db_outcome_unknown(const struct db_rows *rows)
{
	return rows->fault != NULL && rows->fault->outcome_unknown;
}

bool db_violated(const struct db_rows *rows, const char *constraint)
{
	return rows->fault != NULL && strcmp(rows->fault->constraint, constraint) == 0;
}

/* ---- a unit on its way --------------------------------------------------------------------------
 */

static void post_finish(struct db *db)
{
	if (!db->finish_posted && !db->finishing)
		loop_defer(db->loop, db_finish, db);
	db->finish_posted = true;
}

void pool_unit_over(struct db_unit *u)
{
	struct db_stats *st = &u->db->lanes[u->lane].stats;

	loop_timer_cancel(&u->timer);
	u->state = UNIT_DONE;
	if (u->err.code == ERR_OK)
		st->done++;
	else
		st->failed++;
	TAILQ_INSERT_TAIL(&u->db->done, u, link);
	post_finish(u->db);
}

void pool_pump_soon(struct db *db)
{
	db->pump_wanted = true;
	post_finish(db);
}

/* Nothing is half known: what could not be held as a whole is not sent either. */
static void check_memory(struct db_unit *u)
{
	struct err e;

	if (u->err.code == ERR_OK && u->arena != NULL && arena_check(u->arena, &e) < 0)
		u->err = e;
}

void db_send(struct db_unit *u, enum db_lane lane, db_cb *cb, void *arg)
{
	struct db *db = u->db;
	struct lane *l = lane_of(db, lane);

	BUG_ON(u->state != UNIT_NEW);
	u->lane = (enum db_lane)(l - db->lanes);
	u->cb = cb;
	u->arg = arg;
	u->queued_at = loop_now(db->loop);
	u->due = u->queued_at + u->wait_max;
	check_memory(u);
	if (db->closed)
		(void)err_set(&u->err, ERR_CANCELLED, "The program is ending");
	else if (u->err.code == ERR_OK && l->nwaiting >= db->queue_max)
		(void)err_set(&u->err, ERR_UNAVAILABLE, "Too much is waiting for the database");
	if (u->err.code != ERR_OK || u->nstmts == 0) {
		pool_unit_over(u);
		return;
	}
	u->state = UNIT_WAITING;
	TAILQ_INSERT_TAIL(&l->waiting, u, link);
	l->nwaiting++;
	pool_pump_soon(db);
}

static void unit_leave_queue(struct db_unit *u)
{
	struct lane *l = &u->db->lanes[u->lane];

	if (u->state == UNIT_WAITING) {
		TAILQ_REMOVE(&l->waiting, u, link);
		l->nwaiting--;
	} else {
		TAILQ_REMOVE(&l->delayed, u, link);
	}
}

void db_cancel(struct db_unit *u)
{
	u->cancelled = true;
	if (u->state != UNIT_WAITING && u->state != UNIT_DELAYED)
		return;
	unit_leave_queue(u);
	(void)err_set(&u->err, ERR_CANCELLED, "Cancelled");
	pool_unit_over(u);
}

/* To the head of the queue: it has waited before. */
static void unit_wait_again(struct db_unit *u)
{
	struct lane *l = &u->db->lanes[u->lane];

	u->state = UNIT_WAITING;
	TAILQ_INSERT_HEAD(&l->waiting, u, link);
	l->nwaiting++;
	loop_timer_init(&u->timer, u->db->loop, unit_on_deadline, u);
	loop_timer_at(&u->timer, u->due);
	pool_pump_soon(u->db);
}

void pool_unit_again(struct db_unit *u, unsigned delay_ms)
{
	struct lane *l = &u->db->lanes[u->lane];
	uint32_t r;

	if (u->cancelled) {
		(void)err_set(&u->err, ERR_CANCELLED, "Cancelled");
		pool_unit_over(u);
		return;
	}
	l->stats.resent++;
	if (delay_ms == 0) {
		unit_wait_again(u);
		return;
	}
	id_random(&r, sizeof r);
	u->state = UNIT_DELAYED;
	TAILQ_INSERT_TAIL(&l->delayed, u, link);
	loop_timer_init(&u->timer, u->db->loop, unit_on_delayed, u);
	loop_timer_set(&u->timer, 1 + r % delay_ms);
}

static void unit_on_delayed(void *arg)
{
	struct db_unit *u = arg;

	TAILQ_REMOVE(&u->db->lanes[u->lane].delayed, u, link);
	unit_wait_again(u);
}

static bool lane_has_link(const struct lane *l)
{
	for (unsigned k = 0; k < l->nconns; k++)
		if (l->conns[k].link.state == LINK_UP)
			return true;
	return false;
}

static void unit_on_deadline(void *arg)
{
	struct db_unit *u = arg;
	struct lane *l = &u->db->lanes[u->lane];

	unit_leave_queue(u);
	l->stats.timed_out++;
	if (lane_has_link(l))
		(void)err_set(&u->err, ERR_UNAVAILABLE, "The database is too busy; try again");
	else
		(void)err_set(&u->err, ERR_DATABASE, "The database cannot be reached");
	pool_unit_over(u);
}

/* ---- the end of the turn ------------------------------------------------------------------------
 */

/* What has been out for this long may wait for a lock, and all behind it with it. */
static bool is_held_up(const struct conn *c, int64_t now)
{
	const struct db_unit *first = TAILQ_FIRST(&c->sent);

	return first != NULL && now - first->sent_at > HELD_UP;
}

static struct conn *least_busy(struct lane *l)
{
	int64_t now = loop_now(l->db->loop);
	struct conn *best = NULL;
	bool best_held = false;

	for (unsigned k = 0; k < l->nconns; k++) {
		struct conn *c = &l->conns[k];
		bool held = is_held_up(c, now);

		if (!conn_can_take(c) ||
			(best != NULL && (held != best_held ? held : c->nsent >= best->nsent)))
			continue;
		best = c;
		best_held = held;
	}
	return best;
}

static void lane_pump(struct lane *l)
{
	struct db_unit *u;
	struct conn *c;

	while ((u = TAILQ_FIRST(&l->waiting)) != NULL && (c = least_busy(l)) != NULL) {
		TAILQ_REMOVE(&l->waiting, u, link);
		l->nwaiting--;
		loop_timer_cancel(&u->timer);
		conn_send(c, u);
	}
	/* Only those that could not go at once pay for a timer; the newest are at the end. */
	TAILQ_FOREACH_REVERSE(u, &l->waiting, units, link)
	{
		if (loop_timer_armed(&u->timer))
			break;
		loop_timer_init(&u->timer, l->db->loop, unit_on_deadline, u);
		loop_timer_at(&u->timer, u->due);
	}
}

static void db_finish(void *arg)
{
	struct db *db = arg;

	if (db->closed)
		return;
	db->finishing = true;
	complete_all(db);
	if (db->closed)
		return;
	if (db->pump_wanted) {
		db->pump_wanted = false;
		for (int i = 0; i < DB_LANE_COUNT; i++)
			lane_pump(&db->lanes[i]);
	}
	db->finishing = db->finish_posted = false;
	if (!TAILQ_EMPTY(&db->done) || db->pump_wanted)
		post_finish(db);
}

struct db_stats db_stats(const struct db *db, enum db_lane lane)
{
	const struct lane *l = &db->lanes[lane];
	struct db_stats s = l->stats;

	s.conns = l->nconns;
	s.queued = l->nwaiting;
	for (unsigned k = 0; k < l->nconns; k++) {
		const struct conn *c = &l->conns[k];

		s.up += c->link.state == LINK_UP;
		s.in_flight += c->nsent;
		s.connects += c->link.connects;
		s.losses += c->link.losses;
	}
	return s;
}
