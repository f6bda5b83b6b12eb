/*
 * Which of the free GPUs of a worker a step gets: those that are nearest to each other, and of
 * equally near sets the one that leaves others the nearest ones. Pure.
 *
 * What counts, in this order: pairs among the chosen without an NVLink between them; pairs whose
 * GPUs are on different NUMA nodes; the same two of those that stay free; and the positions, the
 * least first. What a worker has not told counts as not linked, and as one node.
 *
 * Exact, as long as that takes PLACE_NEAR_TRIES looks: GPUs with the same links and node are the
 * same to everybody, so that it takes few where all are linked with all, and for up to 16 free GPUs
 * it is always exact. Beyond that, the best of those that were looked at.
 */
#ifndef SERVER_CORE_PLACE_NEAR_H
#define SERVER_CORE_PLACE_NEAR_H
#include "server/core/place.h"

enum { PLACE_NEAR_TRIES = 50000 };

/* Chooses `want` of the n GPUs of the worker at the positions `from`, which ascend; so do those
 * that it writes to ret. */
void place_nearest(const struct place_worker *w, const uint32_t *from, uint32_t n, uint32_t want,
	uint32_t *ret);

#endif
