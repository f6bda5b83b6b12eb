/*
 * What steps need on a worker, images and versions of data sets, under short names: hashes, by
 * which the scheduler finds out who holds what. They only say who is preferred, so a name that
 * meets another one does no harm.
 */
#ifndef SERVER_SCHED_GOODS_H
#define SERVER_SCHED_GOODS_H
#include "api/worker.h"

struct goods_key {
	uint64_t key, bytes;
};
uint64_t goods_key(enum hold_kind kind, struct str name);
/* All of them, as bytes. */
struct str goods_keys(const struct holds *h, struct arena *a);

#endif
