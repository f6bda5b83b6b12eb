#include "server/store/sched_store.h"

#include "gen/sql.h"

void sched_store_acquire(struct db_unit *u, const char *role, const char *holder, int64_t schema)
{
	db_stmt(u, SQL_LEASE_ACQUIRE, DB_TEXTZ(role), DB_TEXTZ(holder), DB_INT(schema));
}

void sched_store_renew(
	struct db_unit *u, const char *role, const char *holder, int64_t epoch, int64_t schema)
{
	db_stmt(u, SQL_LEASE_RENEW, DB_TEXTZ(role), DB_TEXTZ(holder), DB_INT(epoch),
		DB_INT(schema));
}

void sched_store_release(struct db_unit *u, const char *role, const char *holder, int64_t epoch)
{
	db_stmt(u, SQL_LEASE_RELEASE, DB_TEXTZ(role), DB_TEXTZ(holder), DB_INT(epoch));
}

void sched_store_memory(struct db_unit *u)
{
	db_add(u, SQL_SCHED_QUEUE_ALL, NULL, 0);
	db_add(u, SQL_SCHED_WORKERS, NULL, 0);
	db_add(u, SQL_SCHED_ATTEMPTS, NULL, 0);
	db_add(u, SQL_SCHED_PROJECTS, NULL, 0);
	db_add(u, SQL_SCHED_POOLS, NULL, 0);
}

void sched_store_queue_some(struct db_unit *u, const struct str *step_ids, size_t n)
{
	db_stmt(u, SQL_SCHED_QUEUE_SOME, DB_TEXTS(step_ids, n));
}

void sched_store_workers_some(struct db_unit *u, const struct str *ids, size_t n)
{
	db_stmt(u, SQL_SCHED_WORKERS_SOME, DB_TEXTS(ids, n));
}

void sched_store_assign(
	struct db_unit *u, const char *holder, int64_t epoch, const struct assign_rows *r)
{
	db_stmt(u, SQL_SCHED_ASSIGN, DB_TEXTZ(holder), DB_INT(epoch), DB_TEXTS(r->step_ids, r->n),
		DB_TEXTS(r->attempt_ids, r->n), DB_TEXTS(r->worker_ids, r->n),
		DB_TEXTS(r->runtimes, r->n), DB_JSONS(r->devices, r->n),
		DB_TEXTS(r->token_ids, r->n), DB_BLOBS(r->token_macs, r->n),
		DB_BOOLS(r->delivered, r->n), DB_INTS(r->ranks, r->n));
}

void sched_store_preempt(
	struct db_unit *u, const char *holder, int64_t epoch, const struct preempt_rows *r)
{
	db_stmt(u, SQL_SCHED_PREEMPT, DB_TEXTZ(holder), DB_INT(epoch),
		DB_TEXTS(r->attempt_ids, r->attempts_n), DB_TEXTS(r->by_steps, r->attempts_n),
		DB_TEXTS(r->whys, r->attempts_n), DB_TEXTS(r->step_ids, r->steps_n),
		DB_TEXTS(r->workers, r->steps_n));
}

void sched_store_lose(
	struct db_unit *u, const char *holder, int64_t epoch, int64_t led_us, int64_t offline_us)
{
	db_stmt(u, SQL_SCHED_LOSE, DB_TEXTZ(holder), DB_INT(epoch), DB_INT(led_us),
		DB_INT(offline_us));
}

void sched_store_silent(struct db_unit *u, int64_t silent_for_us)
{
	db_stmt(u, SQL_SCHED_SILENT, DB_INT(silent_for_us));
}

void sched_store_block(
	struct db_unit *u, const char *holder, int64_t epoch, const struct blocked_rows *r)
{
	db_stmt(u, SQL_SCHED_BLOCK, DB_TEXTZ(holder), DB_INT(epoch), DB_TEXTS(r->step_ids, r->n),
		DB_TEXTS(r->kinds, r->n), DB_TEXTS(r->messages, r->n),
		DB_BOOLS(r->unsatisfiable, r->n));
}

void sched_store_queue_late(struct db_unit *u)
{
	db_add(u, SQL_SCHED_QUEUE_LATE, NULL, 0);
}
