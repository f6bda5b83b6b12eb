#include "server/store/wait_store.h"

#include "api/run.h"
#include "lib/json/json_read.h"

#include "gen/sql.h"

void wait_store_step(struct db_unit *u, struct str step_id)
{
	db_stmt(u, SQL_WAIT_STEP, DB_TEXT(step_id));
}

void wait_store_run(struct db_unit *u, struct str run_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_WAIT_RUN, DB_TEXT(run_id), DB_TEXT(after), DB_INT(count));
}

void wait_store_some(struct db_unit *u, const struct str *step_ids, size_t n)
{
	db_stmt(u, SQL_WAIT_SOME, DB_TEXTS(step_ids, n));
}

static struct str text(const struct db_rows *r, size_t i, const char *column, struct arena *a)
{
	return arena_str(a, db_str(r, i, db_col(r, column)));
}

static struct list read_needs(struct str json, struct arena *a)
{
	struct list out = { .n = 0 };
	struct jsn_doc *doc;
	struct err e;

	if (jsn_parse(json, &doc, &e) < 0)
		return out;
	size_t n = jsn_count(jsn_root(doc));
	struct wait_need *needs = arena_array_of(a, struct wait_need, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct jsn *v = jsn_at(jsn_root(doc), i);
		needs[i] = (struct wait_need){ arena_str(a, jsn_get_str(jsn_get(v, "name"))),
			arena_str(a, jsn_get_str(jsn_get(v, "state"))),
			arena_str(a, jsn_get_str(jsn_get(v, "why"))) };
	}
	jsn_doc_free(doc);
	out = (struct list){ needs, n };
	return out;
}

static int state_of(struct str name)
{
	for (int i = 0; i < STEP_STATE_COUNT; i++)
		if (str_is(name, step_state_names[i]))
			return i;
	return STEP_WAITING;
}

struct wait_facts wait_read(const struct db_rows *r, size_t i, struct arena *a)
{
	return (struct wait_facts){ .step_id = text(r, i, "step_id", a),
		.run_id = text(r, i, "run_id", a),
		.name = text(r, i, "name", a),
		.pipeline = text(r, i, "pipeline", a),
		.number = db_int(r, i, db_col(r, "number")),
		.state = state_of(db_str(r, i, db_col(r, "state"))),
		.queued = !db_is_null(r, i, db_col(r, "pool")),
		.pool = text(r, i, "pool", a),
		.priority = db_int(r, i, db_col(r, "priority")),
		.cpus = db_real(r, i, db_col(r, "cpus")),
		.memory = db_int(r, i, db_col(r, "memory")),
		.gpus = db_int(r, i, db_col(r, "gpus")),
		.queued_at = db_time(r, i, db_col(r, "queued_at")),
		.not_before = db_time(r, i, db_col(r, "not_before")),
		.deadline = db_time(r, i, db_col(r, "deadline")),
		.needs = read_needs(db_str(r, i, db_col(r, "needs")), a),
		.slots = db_int(r, i, db_col(r, "slots")),
		.matrix = text(r, i, "matrix_of", a),
		.mates = read_needs(db_str(r, i, db_col(r, "mates")), a),
		.held_by = text(r, i, "held_by", a),
		.holder = text(r, i, "holder", a),
		.attempt_state = text(r, i, "attempt_state", a),
		.attempt_reason = text(r, i, "attempt_reason", a),
		.attempt = db_int(r, i, db_col(r, "attempt")),
		.worker_id = text(r, i, "worker_id", a),
		.worker = text(r, i, "worker", a),
		.data = text(r, i, "data", a),
		.data_bytes = db_int(r, i, db_col(r, "data_bytes")) };
}
