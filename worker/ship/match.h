/*
 * Looks for the patterns of log policies in the lines of a spool, as they are shipped: after the
 * mask, so that no pattern can find a secret. Lines are counted as the server counts them
 * (server/store/log_text.h). A line is looked at in the pieces between its '\r', up to
 * MATCH_PIECE_MAX bytes of each, and counts once for a policy. Any bytes are legal.
 *
 * One thread at a time.
 */
#ifndef WORKER_SHIP_MATCH_H
#define WORKER_SHIP_MATCH_H
#include "api/worker.h"

enum { MATCH_PIECE_MAX = 16384, MATCH_NEAR = 200 };

struct match;

/* NULL when there are no policies. policies: struct log_policy, borrowed; ones whose patterns
 * cannot be read are left out, with a warning. */
struct match *match_new(const struct list *policies);
void match_free(struct match *m); /* NULL is fine, here and below */
void match_reset(struct match *m); /* the spool is read from its start again */
void match_frames(struct match *m, const unsigned char *p, size_t n); /* whole frames */
void match_end(struct match *m); /* nothing follows: lines that are open have ended */

/* Whether a policy has matched, or with `counts` a line has, since match_told(). */
bool match_news(const struct match *m, bool counts);
void match_told(struct match *m);
/* The policies that have matched so far: struct log_match, in the arena. */
struct list match_list(const struct match *m, struct arena *a);
/* The policy with that label of which one of the last MATCH_NEAR lines is; its number in the
 * assignment, or -1. */
int match_near(const struct match *m, const char *label);

#endif
