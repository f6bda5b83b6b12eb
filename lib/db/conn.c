/*
 * The pipeline of one connection.
 *
 * A unit is sent as its prepares, each with a sync of its own so that one that fails harms no
 * other, then its statements and their sync. For each of these commands the server gives one
 * result; libpq adds a NULL after each but the syncs. A failure turns the rest up to the sync into
 * PGRES_PIPELINE_ABORTED; the unit ends at its sync in any case, and only then: an error may still
 * come with the commit (deferred constraints). A unit that counts on a prepare which has failed
 * before it finds no statement of that name (26000), and is sent again.
 */
#include "lib/db/conn.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/pool.h"
#include "lib/db/sqlstate.h"

#include <libpq-fe.h>

enum { NULLS_MAX = 3, RESEND_MS = 20 };

static void conn_on_up(void *arg);
static void conn_on_input(void *arg);
static bool conn_take(struct conn *c, PGresult *res);
static bool conn_take_error(struct conn *c, struct db_unit *u, const PGresult *res);
static void conn_take_sync(struct conn *c, struct db_unit *u);
static void conn_on_down(void *arg);
static void conn_on_stall(void *arg);

static const struct link_ops ops = { conn_on_up, conn_on_input, conn_on_down };

void conn_init(struct conn *c, struct lane *lane)
{
	struct db *db = lane->db;

	*c = (struct conn){ .lane = lane, .prepared = mem_new(db->count + 1, 1) };
	TAILQ_INIT(&c->sent);
	loop_timer_init(&c->stall, db->loop, conn_on_stall, c);
	link_init(&c->link, db->loop, &lane->info, &ops, c);
	link_start(&c->link);
}

void conn_done(struct conn *c)
{
	struct db_unit *u;

	loop_timer_cancel(&c->stall);
	link_done(&c->link);
	mem_free(c->prepared);
	c->prepared = NULL;
	while ((u = TAILQ_FIRST(&c->sent)) != NULL) {
		TAILQ_REMOVE(&c->sent, u, link);
		(void)err_set(&u->err, ERR_CANCELLED, "The program is ending");
		u->fault.outcome_unknown = !c->lane->read_only;
		pool_unit_over(u);
	}
	c->nsent = 0;
}

bool conn_can_take(const struct conn *c)
{
	return c->link.state == LINK_UP && !c->retiring && !c->link.blocked &&
	       c->nsent < c->lane->depth;
}

static void conn_on_up(void *arg)
{
	struct conn *c = arg;
	struct db *db = c->lane->db;

	BUG_ON(PQenterPipelineMode(c->link.pg) != 1);
	memset(c->prepared, 0, db->count);
	for (size_t i = 0; i < db->count; i++)
		plans_free(&db->plans[i]); /* the schema may be another by now */
	pool_pump_soon(db);
}

static bool put_prepares(struct conn *c, struct db_unit *u)
{
	const struct sql *table = c->lane->db->table;

	for (size_t i = 0; i < u->nstmts; i++) {
		struct unit_stmt *st = &u->stmts[i];

		st->prepares = st->id != UNIT_DYNAMIC && c->prepared[st->id] == 0;
		if (!st->prepares)
			continue;
		if (PQsendPrepare(c->link.pg, st->name, table[st->id].text, st->nparams,
			    table[st->id].types) != 1 ||
			PQpipelineSync(c->link.pg) != 1)
			return false;
		c->prepared[st->id] = 1;
		u->nprepares++;
	}
	return true;
}

static bool put_statements(struct conn *c, struct db_unit *u)
{
	struct unit_scratch *s = &c->lane->db->scratch;

	for (size_t i = 0; i < u->nstmts; i++) {
		const struct unit_stmt *st = &u->stmts[i];
		int rc;

		unit_scratch_fill(s, u, st);
		if (st->id == UNIT_DYNAMIC)
			rc = PQsendQueryParams(c->link.pg, st->text, st->nparams, st->types,
				s->values, s->lengths, s->formats, 1);
		else
			rc = PQsendQueryPrepared(c->link.pg, st->name, st->nparams, s->values,
				s->lengths, s->formats, 1);
		if (rc != 1)
			return false;
	}
	return PQpipelineSync(c->link.pg) == 1;
}

void conn_send(struct conn *c, struct db_unit *u)
{
	int64_t now = loop_now(c->lane->db->loop);

	unit_reset(u);
	u->state = UNIT_SENT;
	u->sent_at = now;
	u->tries++;
	TAILQ_INSERT_TAIL(&c->sent, u, link);
	if (c->nsent++ == 0) {
		c->heard_us = now;
		loop_timer_set(&c->stall, c->lane->stall_us / 1000);
	}
	if (!put_prepares(c, u) || !put_statements(c, u))
		link_drop(&c->link, PQerrorMessage(c->link.pg));
	else if (!link_flush(&c->link))
		return; /* its units have been dealt with */
}

static void conn_on_input(void *arg)
{
	struct conn *c = arg;
	PGconn *pg = c->link.pg;
	int nulls = 0;

	c->heard_us = loop_now(c->lane->db->loop);
	while (c->nsent > 0 && PQisBusy(pg) == 0) {
		PGresult *res = PQgetResult(pg);

		if (res == NULL && ++nulls > NULLS_MAX) {
			link_drop(&c->link, "the pipeline is out of step");
			return;
		}
		if (res == NULL)
			continue; /* the end of one command's results */
		nulls = 0;
		if (!conn_take(c, res))
			return;
	}
	if (c->retiring && c->nsent == 0)
		link_drop(&c->link, "a new session is needed");
	else if (PQstatus(pg) == CONNECTION_OK && link_flush(&c->link))
		pool_pump_soon(c->lane->db);
}

/* False when the connection is gone. Owns res. */
static bool conn_take(struct conn *c, PGresult *res)
{
	struct db_unit *u = TAILQ_FIRST(&c->sent);
	size_t stmt = u->pos - u->nprepares;
	bool alive = true;

	switch (PQresultStatus(res)) {
	case PGRES_PIPELINE_SYNC:
		if (u->syncs++ == u->nprepares)
			conn_take_sync(c, u);
		break;
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
		if (u->pos >= u->nprepares && stmt < u->nstmts) {
			unit_take(u, stmt, res);
			res = NULL;
		}
		u->pos++;
		break;
	case PGRES_PIPELINE_ABORTED: u->pos++; break;
	default: alive = conn_take_error(c, u, res); break;
	}
	PQclear(res);
	return alive;
}

/* The statement that prepare number `k` was for; the statement itself when k is past them. */
static size_t statement_at(const struct db_unit *u, size_t pos)
{
	size_t i = 0;

	if (pos >= u->nprepares)
		return pos - u->nprepares;
	for (size_t k = 0; i < u->nstmts && (!u->stmts[i].prepares || k++ < pos);)
		i++;
	return i;
}

static const char *field_of(const PGresult *res, int code)
{
	const char *z = PQresultErrorField(res, code);

	return z != NULL ? z : "";
}

static void log_refusal(const struct db_unit *u, const char *state, const PGresult *res)
{
	size_t i = u->fault.statement;
	const char *name = i < u->nstmts ? u->stmts[i].name : "commit";

	if (sqlstate_is_odd(state))
		log_warn("statement refused", LOG_S("statement", name), LOG_S("sqlstate", state),
			LOG_S("says", field_of(res, PG_DIAG_MESSAGE_PRIMARY)));
	else
		log_debug("statement refused", LOG_S("statement", name), LOG_S("sqlstate", state));
}

static bool conn_take_error(struct conn *c, struct db_unit *u, const PGresult *res)
{
	const char *state = field_of(res, PG_DIAG_SQLSTATE);
	const char *severity = field_of(res, PG_DIAG_SEVERITY_NONLOCALIZED);
	enum sqlstate_action action;

	if (*state == '\0' || strcmp(severity, "ERROR") != 0 ||
		PQstatus(c->link.pg) != CONNECTION_OK) {
		link_drop(&c->link, PQresultErrorMessage(res));
		return false;
	}
	size_t at = statement_at(u, u->pos);
	bool preparing = u->pos++ < u->nprepares;
	if (at < u->nstmts && u->stmts[at].id != UNIT_DYNAMIC &&
		(preparing || strcmp(state, "26000") == 0))
		c->prepared[u->stmts[at].id] = 0;
	if (u->err.code != ERR_OK)
		return true; /* what follows from the first */
	u->fault.statement = at;
	action = sqlstate_read(state, field_of(res, PG_DIAG_MESSAGE_PRIMARY), &u->err);
	(void)str_print(u->fault.sqlstate, sizeof u->fault.sqlstate, "%s", state);
	(void)str_print(u->fault.constraint, sizeof u->fault.constraint, "%s",
		field_of(res, PG_DIAG_CONSTRAINT_NAME));
	log_refusal(u, state, res);
	if (action == SQLSTATE_RECONNECT && c->lane->read_only) /* a write in the wrong lane */
		(void)err_set(&u->err, ERR_INTERNAL, "The database refused a statement");
	else if (action == SQLSTATE_RECONNECT || action == SQLSTATE_RENEW)
		c->retiring = true;
	u->resend = action == SQLSTATE_RESEND || action == SQLSTATE_RENEW;
	return true;
}

static void conn_take_sync(struct conn *c, struct db_unit *u)
{
	struct db_stats *st = &c->lane->stats;
	int64_t now = loop_now(c->lane->db->loop), took = now - u->sent_at;
	size_t i = 0;

	TAILQ_REMOVE(&c->sent, u, link);
	c->nsent--;
	if (u->resend && u->tries <= UNIT_TRIES && now < u->due) {
		pool_unit_again(u, (unsigned)RESEND_MS << u->tries);
		return;
	}
	while (i + 1 < DB_BUCKETS && (double)took > db_bucket_s[i] * 1e6)
		i++;
	st->run_buckets[i]++;
	st->run_us += (uint64_t)took;
	st->wait_us += (uint64_t)(u->sent_at - u->queued_at);
	pool_unit_over(u);
}

static void conn_on_down(void *arg)
{
	struct conn *c = arg;
	int64_t now = loop_now(c->lane->db->loop);
	struct db_unit *u;

	loop_timer_cancel(&c->stall);
	c->retiring = false;
	c->nsent = 0;
	/* From the last, since each of those that are sent again goes to the head of the queue. */
	while ((u = TAILQ_LAST(&c->sent, units)) != NULL) {
		TAILQ_REMOVE(&c->sent, u, link);
		if (c->lane->read_only && u->tries <= UNIT_TRIES && now < u->due) {
			pool_unit_again(u, 0);
			continue;
		}
		if (u->err.code == ERR_OK) {
			(void)err_set(&u->err, ERR_DATABASE, "The database connection was lost");
			u->fault.outcome_unknown = !c->lane->read_only;
		}
		pool_unit_over(u);
	}
}

static void conn_on_stall(void *arg)
{
	struct conn *c = arg;
	int64_t silent = loop_now(c->lane->db->loop) - c->heard_us;

	if (c->nsent == 0)
		return;
	if (silent >= c->lane->stall_us)
		link_drop(&c->link, "the server does not answer any more");
	else
		loop_timer_set(&c->stall, (c->lane->stall_us - silent) / 1000 + 1);
}
