/* Workers, and their side of attempts. */
#ifndef SERVER_STORE_WORKER_STORE_H
#define SERVER_STORE_WORKER_STORE_H
#include "api/worker.h"
#include "lib/db/row.h"

/* One row (id, pool) when the join token was good and is used up now. */
void worker_store_enroll(struct db_unit *u, struct str token_id, struct str id, struct str name);
void worker_store_add_token(
	struct db_unit *u, struct str id, struct str mac, struct str worker_id, int64_t expires_at);
void worker_store_get(struct db_unit *u, struct str id_or_name, int64_t offline_after);
void worker_store_list(struct db_unit *u, struct str after, int64_t count, int64_t offline_after);
void worker_store_set_state(struct db_unit *u, struct str id_or_name, int state, struct str actor);
void worker_store_delete(struct db_unit *u, struct str id_or_name, struct str actor);
/* ago: microseconds since each was seen. */
void worker_store_seen(struct db_unit *u, const struct str *ids, const int64_t *ago, size_t n);
/* keys: struct goods_key of each. */
void worker_store_holds(struct db_unit *u, struct str id, const struct holds *h, struct str keys);
void worker_store_inventory(struct db_unit *u, struct str id, const struct sync_request *in);

/* Reports of several workers, for one statement. Rows: ord, id, run_id, state of what moved. */
struct reports;
struct reports *reports_new(struct arena *a, size_t room);
void reports_put(
	struct reports *r, int64_t ord, struct str worker_id, const struct sync_attempt *attempt);
void worker_store_report(struct db_unit *u, const struct reports *r);
void worker_store_compare(
	struct db_unit *u, struct str worker_id, const struct str *named, size_t n);
/* Rows: id, run_id of attempts that end because the worker had not heard of them. */
void worker_store_cancel_unheard(
	struct db_unit *u, struct str worker_id, const struct str *known, size_t n);
/* Ends an attempt that no worker can be given. Row: id, run_id. */
void worker_store_refuse(
	struct db_unit *u, struct str worker_id, struct str attempt_id, struct str why);
void worker_store_assignment(struct db_unit *u, struct str attempt_id);
void worker_store_delivered(struct db_unit *u, const struct str *attempt_ids, size_t n);

/* Row: id, step_id, run_id, project_id, spec when the worker holds the attempt under the epoch. */
void attempt_store_held(
	struct db_unit *u, struct str attempt_id, struct str worker_id, int64_t epoch);
/* Row: bytes of the values that other steps of its run have put out. */
void attempt_store_other_values(struct db_unit *u, struct str attempt_id);
/* Row: digest, size of a blob that the attempt reads. */
void attempt_store_reads_blob(struct db_unit *u, struct str attempt_id, struct str digest);
void step_store_output(struct db_unit *u, struct str step_id, struct str name,
	struct str path); /* row: digest, size */
struct output_rows {
	struct str *names, *paths, *digests; /* digests: 32 bytes */
	int64_t *sizes;
	size_t n;
};
/* One row when the epoch was current. */
/* Row: id, made, start_time of its tracking run; of one that has none they are null. */
void attempt_store_tracking(
	struct db_unit *u, struct str attempt_id, struct str worker_id, int64_t epoch);
void attempt_store_warning(struct db_unit *u, struct str attempt_id, struct str worker_id,
	const struct attempt_warning *w);
/* matches: a JSON list; one row when the epoch was current. */
void attempt_store_matches(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, struct str matches);
/* Replaces the step's checkpoint; one row when the epoch was current. rows->names is not used. */
void attempt_store_checkpoint(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, const struct output_rows *rows);
/* Rows: those of the steps that need no checkpoint any more. */
void checkpoint_store_useless(struct db_unit *u, const struct str *step_ids, size_t n);
/* Replaces the step's outputs; one row when the epoch was current. summary: JSON by output. */
void attempt_store_outputs(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, const struct output_rows *rows, struct str summary);

#endif
