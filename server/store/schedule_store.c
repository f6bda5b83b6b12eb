#include "server/store/schedule_store.h"

#include "gen/sql.h"
#include "lib/base/clock.h"

enum { TRIGGERS_MAX = 32, KEY_MAX = CLOCK_TEXT_MAX };

void schedule_store_put(struct db_unit *u, struct str project_id, struct str name,
	const struct list *triggers, const int64_t *nexts, int64_t now)
{
	struct str crons[TRIGGERS_MAX], zones[TRIGGERS_MAX], dsts[TRIGGERS_MAX],
		misseds[TRIGGERS_MAX];
	int64_t maxes[TRIGGERS_MAX], at[TRIGGERS_MAX];
	size_t n = 0;

	BUG_ON(triggers->n > TRIGGERS_MAX);
	for (size_t i = 0; i < triggers->n; i++) {
		const struct trigger_spec *t = list_at(triggers, struct trigger_spec, i);
		if (!t->has_schedule)
			continue;
		crons[n] = t->schedule.cron;
		zones[n] = t->schedule.timezone;
		dsts[n] = str_c(dst_policy_names[t->schedule.dst]);
		misseds[n] = str_c(missed_policy_names[t->schedule.missed]);
		maxes[n] = t->schedule.max;
		at[n++] = nexts[i];
	}
	db_stmt(u, SQL_SCHEDULE_PUT, DB_TEXT(project_id), DB_TEXT(name), DB_TEXTS(crons, n),
		DB_TEXTS(zones, n), DB_TEXTS(dsts, n), DB_TEXTS(misseds, n), DB_INTS(maxes, n),
		DB_TIMES(at, n), DB_TIME(now));
}

void schedule_store_circle(struct db_unit *u, struct str project_id, struct str name,
	const struct str *upstream, size_t n)
{
	db_stmt(u, SQL_PIPELINE_CIRCLE, DB_TEXT(project_id), DB_TEXT(name), DB_TEXTS(upstream, n));
}

void schedule_store_reached(struct db_unit *u, int64_t now)
{
	db_stmt(u, SQL_SCHEDULE_REACHED, DB_TIME(now));
}

void schedule_store_settle(struct db_unit *u, struct str pipeline_id, struct str cron,
	struct str timezone, int64_t was, const struct schedule_due *due, int64_t now)
{
	char texts[SCHEDULE_MAX + 2][KEY_MAX];
	struct str keys[SCHEDULE_MAX + 2];

	for (size_t i = 0; i < due->n; i++)
		keys[i] = str_c(clock_format(texts[i], due->at[i]));
	db_stmt(u, SQL_SCHEDULE_SETTLE, DB_TEXT(pipeline_id), DB_TEXT(cron), DB_TEXT(timezone),
		DB_TIME(was), DB_TIME(due->settled), DB_TIME(due->next), DB_TEXTS(keys, due->n),
		DB_TIMES(due->at, due->n), DB_INT(due->missed), DB_INT(due->started_late),
		DB_TIME(now));
}

void schedule_store_later(struct db_unit *u, struct str pipeline_id, struct str cron,
	struct str timezone, int64_t next)
{
	db_stmt(u, SQL_SCHEDULE_LATER, DB_TEXT(pipeline_id), DB_TEXT(cron), DB_TEXT(timezone),
		DB_TIME(next));
}

void trigger_store_upstream(struct db_unit *u, struct str run_id, int64_t now)
{
	db_stmt(u, SQL_TRIGGER_UPSTREAM, DB_TEXT(run_id), DB_TIME(now));
}

void trigger_store_upstream_missed(struct db_unit *u, int64_t now)
{
	db_stmt(u, SQL_TRIGGER_UPSTREAM_MISSED, DB_TIME(now));
}

void trigger_store_dataset(struct db_unit *u, struct str version_id, int64_t now)
{
	db_stmt(u, SQL_TRIGGER_DATASET, DB_TEXT(version_id), DB_TIME(now));
}

void trigger_store_dataset_missed(struct db_unit *u, int64_t now)
{
	db_stmt(u, SQL_TRIGGER_DATASET_MISSED, DB_TIME(now));
}

void trigger_store_look(struct db_unit *u, int64_t now)
{
	db_stmt(u, SQL_TRIGGER_DUE_LOOK, DB_TIME(now));
}

void trigger_store_take(struct db_unit *u, int64_t now, int64_t until, int64_t count)
{
	db_stmt(u, SQL_TRIGGER_DUE_TAKE, DB_TIME(now), DB_TIME(until), DB_INT(count));
}

void trigger_store_made(struct db_unit *u, const struct trigger_key *k)
{
	db_stmt(u, SQL_TRIGGER_DUE_MADE, DB_TEXT(k->pipeline_id), DB_TEXT(k->trigger),
		DB_TEXT(k->key));
}

void trigger_store_failed(
	struct db_unit *u, const struct trigger_key *k, int64_t try_at, struct str error)
{
	db_stmt(u, SQL_TRIGGER_DUE_FAILED, DB_TEXT(k->pipeline_id), DB_TEXT(k->trigger),
		DB_TEXT(k->key), DB_TIME(try_at), DB_TEXT(error));
}

void trigger_store_refused(struct db_unit *u, const struct trigger_key *k, struct str error)
{
	db_stmt(u, SQL_TRIGGER_DUE_REFUSED, DB_TEXT(k->pipeline_id), DB_TEXT(k->trigger),
		DB_TEXT(k->key), DB_TEXT(error));
}

void trigger_store_forget(struct db_unit *u, int64_t before)
{
	db_stmt(u, SQL_TRIGGER_DUE_FORGET, DB_TIME(before));
}
