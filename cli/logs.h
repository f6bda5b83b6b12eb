/* Logs of runs and steps, followed over lost connections; every line is printed once. */
#ifndef CLI_LOGS_H
#define CLI_LOGS_H
#include "cli/api.h"

enum { LOG_ALL_RANKS = -1 };
struct log_options {
	struct str step; /* STR_NONE: all */
	bool follow, raw, timestamps;
	struct str grep; /* only lines that hold it; STR_NONE: all */
	bool regex, ignore_case;
	int64_t since; /* only lines from this time on; 0: all */
	int64_t tail; /* the last so many lines of what there is already; -1: everything */
	int64_t rank; /* of steps on several workers; LOG_ALL_RANKS: all, each line says whose it is
		       */
	int64_t until; /* on clock_elapsed(): ERR_TIMEOUT from then on; 0: never */
};

/* All steps that have an attempt, in order; with `follow` until the run has ended. */
int logs_run(struct cli *c, struct str run, const struct log_options *o, struct err *e) MUST_CHECK;
/* The last lines of a step on stderr; of several ranks, that which is the cause: *ret_rank, else
 * -1. */
int logs_last(struct cli *c, struct str step_id, int64_t lines, int64_t *ret_rank,
	struct err *e) MUST_CHECK;

#endif
