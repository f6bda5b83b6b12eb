/* logs.step and logs.attempt: which log is meant, and in which form it is wanted. */
#include "server/rest/logs.h"

#include "server/rest/handlers.h"
#include "server/rest/log_inside.h"

static bool is_search(const struct log_query *q)
{
	return q->grep.n != 0 || q->has_since;
}

static void reply_log(struct call *c, const struct log_state *st)
{
	const struct log_query *q = c->query;

	if (q->raw)
		log_raw_reply(c, st);
	else if (is_search(q))
		log_search_reply(c, st);
	else
		log_page_reply(c, st);
}

static void log_on_state(struct call *c, const struct db_rows *rows)
{
	struct log_state st;
	struct err e;

	if (!log_store_state(&rows[0], 0, c->arena, &st)) {
		call_not_found(c, "attempt");
	} else if (st.removed) {
		(void)err_set(&e, ERR_GONE, "the log was removed when its time was over");
		call_fail(c, &e);
	} else {
		reply_log(c, &st);
	}
}

static bool query_ok(struct call *c)
{
	const struct log_query *q = c->query;

	if (q->raw && q->follow)
		call_invalid(c, "/raw", "cannot be combined with follow");
	else if (q->from != 0 && q->tail != 0)
		call_invalid(c, "/from", "cannot be combined with tail");
	else if (is_search(q) && (q->raw || q->follow || q->tail != 0))
		call_invalid(c, q->grep.n != 0 ? "/grep" : "/since",
			"cannot be combined with raw, follow or tail");
	else if (q->grep.n == 0 && (q->regex || q->ignore_case))
		call_invalid(c, q->regex ? "/regex" : "/ignore_case", "goes with grep");
	else
		return true;
	return false;
}

static void read_log(struct call *c, struct str attempt_id)
{
	struct db_unit *u = call_unit(c);

	log_store_get(u, attempt_id);
	call_send(c, u, DB_READ, log_on_state);
}

static void log_attempt(struct call *c)
{
	const struct log_query *q = c->query;

	if (!query_ok(c))
		return;
	if (q->follow)
		log_follow_attempt(c);
	else
		read_log(c, call_param(c, "attempt"));
}

bool log_has_rank(struct call *c, const struct db_rows *rows)
{
	const struct log_query *q = c->query;
	int64_t nodes = db_int(rows, 0, db_col(rows, "nodes"));
	struct err e;

	if (q->rank < nodes)
		return true;
	(void)err_field(&e, "/rank", "the step has %lld rank%s, counted from 0", (long long)nodes,
		nodes == 1 ? "" : "s");
	call_fail(c, &e);
	return false;
}

static void log_step_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		call_not_found(c, "step");
	} else if (!log_has_rank(c, &rows[0])) {
		return;
	} else if (db_is_null(&rows[0], 0, 1)) {
		struct log_state none = { .attempt_id = STR(""),
			.ended = db_bool(&rows[0], 0, 0),
			.project_id = c->project_id };
		reply_log(c, &none);
	} else {
		read_log(c, arena_str(c->arena, db_str(&rows[0], 0, 1)));
	}
}

static void log_step(struct call *c)
{
	const struct log_query *q = c->query;

	if (!query_ok(c))
		return;
	if (q->follow) {
		log_follow_step(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	log_store_of_step(u, call_param(c, "step"), q->rank);
	call_send(c, u, DB_READ, log_step_on_row);
}

const struct binding log_bindings[] = {
	{ "logs.attempt", log_attempt },
	{ "logs.step", log_step },
	{ 0 },
};
