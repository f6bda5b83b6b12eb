/* What the database knows of why steps wait: the graph, groups, retries, preparation. */
#ifndef SERVER_STORE_WAIT_STORE_H
#define SERVER_STORE_WAIT_STORE_H
#include "lib/base/arena.h"
#include "lib/db/row.h"

struct wait_need {
	struct str name, state;
	struct str why; /* what it waits for in turn, as last noted; or "" */
};

struct wait_facts {
	struct str step_id, run_id, name, pipeline;
	int64_t number;
	int state; /* enum step_state */
	bool queued; /* it stands in the queue, and what follows is of there */
	struct str pool;
	int64_t priority, memory, gpus, queued_at, not_before, deadline;
	double cpus;
	struct list needs; /* struct wait_need: those that have not succeeded */
	int64_t slots; /* of its matrix: how many may be on their way; 0: all, or it has none */
	struct str matrix;
	struct list mates; /* struct wait_need: those that are */
	struct str held_by; /* the concurrency group that holds its run back, or "" */
	struct str holder; /* … for this run */
	struct str attempt_state, attempt_reason, worker_id, worker; /* of the newest attempt */
	int64_t attempt;
	struct str data; /* of an assigned step: the data sets that it brings */
	int64_t data_bytes;
};

void wait_store_step(struct db_unit *u, struct str step_id);
void wait_store_run(struct db_unit *u, struct str run_id, struct str after, int64_t count);
void wait_store_some(struct db_unit *u, const struct str *step_ids, size_t n);
/* A row of any of them; copies. */
struct wait_facts wait_read(const struct db_rows *rows, size_t i, struct arena *a);

#endif
