/* Logs of runs and steps, followed over lost connections; every line is printed once. */
#ifndef CLI_LOGS_H
#define CLI_LOGS_H
#include "cli/api.h"

struct log_options {
	struct str step; /* STR_NONE: all */
	bool follow, raw, timestamps;
	struct str grep; /* only lines that hold it; STR_NONE: all */
	bool regex, ignore_case;
	int64_t since; /* only lines from this time on; 0: all */
	int64_t tail; /* the last so many lines of what there is already; -1: everything */
	int64_t rank; /* of steps on several workers */
	int64_t until; /* on clock_elapsed(): ERR_TIMEOUT from then on; 0: never */
};

/* All steps that have an attempt, in order; with `follow` until the run has ended. */
int logs_run(struct cli *c, struct str run, const struct log_options *o, struct err *e) MUST_CHECK;
/* The newest attempt of the step, of the rank that is asked for where it has several; "": none. */
int rank_attempt(struct cli *c, const struct log_options *o, const struct jsn *step,
	struct str *ret, struct err *e) MUST_CHECK;
/* The last lines of a step on stderr. */
int logs_last(struct cli *c, struct str step_id, int64_t lines, struct err *e) MUST_CHECK;

/* Which lines were printed: all below `next`, and these ranges above it. Lines come out of order
 * when one stream ends a line while another has one open. Pure. */
enum { SEEN_RANGES = 16 };
struct seen {
	int64_t next; /* 0: nothing is known yet, the first line will say */
	struct {
		int64_t from, to;
	} ahead[SEEN_RANGES];
	size_t n_ahead;
};
/* False when the line was printed before; else it counts as printed now. */
bool seen_add(struct seen *s, int64_t line);

#endif
