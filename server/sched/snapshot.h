/*
 * A recorded look of the scheduler: everything that a pass of placement sees, and what it decided,
 * as lines of JSON (NDJSON), so that the decision can be made again elsewhere and explained. The
 * first line counts the others; lines name each other by their number among those of their kind.
 * There are ids, names, labels and amounts in it, no secrets, nothing of what steps run.
 *
 * Bounded: a snapshot has at most 20,000 steps (the most urgent), and neither writer nor reader
 * goes beyond SNAPSHOT_BYTES_MAX.
 */
#ifndef SERVER_SCHED_SNAPSHOT_H
#define SERVER_SCHED_SNAPSHOT_H
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "server/core/place_why.h"

enum { SNAPSHOT_BYTES_MAX = 64 << 20, SNAPSHOT_ARENA = 512 << 20 };

/* Appends the lines; fails by the buffer's ceiling. */
void snapshot_write(
	const struct place_snapshot *s, const struct place_result *r, int64_t at, struct buf *out);

struct snapshot_file {
	struct place_snapshot snapshot;
	struct place_assignment *placed; /* as they were recorded */
	uint32_t *waiting;
	const struct place_preempted *preempted;
	size_t placed_n, waiting_n, preempted_n;
	int64_t at;
};
/* The message names the line. The result borrows nothing of the text. */
int snapshot_read(
	struct str text, struct arena *a, struct snapshot_file *ret, struct err *e) MUST_CHECK;

#endif
