/* The log of one attempt: every line is printed once, over lost connections. */
#ifndef CLI_TAIL_H
#define CLI_TAIL_H
#include "cli/logs.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"

#include <stdio.h>

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

/* The caller sets the first ones; the rest begins as zero. */
struct tail {
	struct cli *c;
	const struct log_options *o;
	struct str step, attempt; /* the name of one, the id of the other */
	FILE *to;
	bool of_gang; /* and of which rank: */
	int64_t rank;

	struct regex *re; /* of --grep while following: pages are searched by the server */
	struct seen seen;
	struct buf line;
	char from[24], last[24], since[CLOCK_TEXT_MAX];
	bool pending; /* a line was open when we last heard of it */
	bool over;
};

/* From line `from` on, to its end or as long as it grows; 0: what the options say. */
int tail_show(struct tail *t, int64_t from, struct err *e) MUST_CHECK;
/* What has come since; `from` of the first call is in t->seen.next. */
int tail_more(struct tail *t, bool *ret_news, struct err *e) MUST_CHECK;
/* The number of the first line that is still to come, or still open. */
int tail_find_end(struct cli *c, struct str attempt, int64_t *ret, struct err *e) MUST_CHECK;
bool tail_is_search(const struct log_options *o); /* --grep or --since */

#endif
