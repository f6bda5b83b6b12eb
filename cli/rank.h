/* The ranks of a step on several workers: where each runs, how it has ended, and which is the
 * cause. */
#ifndef CLI_RANK_H
#define CLI_RANK_H
#include "cli/api.h"
#include "lib/json/json_read.h"

struct rank_row {
	struct str attempt, reason, ended_at;
	bool failed; /* by itself, or lost: not one that was stopped */
};

/* Of the step's newest attempt, by rank, as struct rank_row; the one attempt of a step on one
 * worker, of which only `attempt` is filled in; empty before the first. In the client's arena. */
int rank_list(struct cli *c, const struct jsn *step, struct list *ret, struct err *e) MUST_CHECK;
/* The rank whose end was that of all: the first that failed for the step's reason; 0 when none is
 * known. */
size_t rank_cause(const struct list *rows, struct str step_reason);
/* On a terminal, below a run: the ranks of its steps on several workers. */
int rank_show(struct cli *c, struct str run, struct err *e) MUST_CHECK;

#endif
