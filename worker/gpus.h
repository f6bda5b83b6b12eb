/* The host's GPUs as the server is told of them, looked at every GPUS_EVERY_S on a work thread. */
#ifndef WORKER_GPUS_H
#define WORKER_GPUS_H
#include "api/worker.h"

struct loop;
struct gpus;

enum { GPUS_EVERY_S = 20 };

typedef void gpus_cb(void *arg); /* something has changed; also after the first look */

/* `library` may be NULL. */
struct gpus *gpus_new(struct loop *loop, const char *library, gpus_cb *changed, void *arg)
	__attribute__((returns_nonnull));
void gpus_free(struct gpus *g); /* when gpus_busy is false; NULL is fine */
bool gpus_busy(const struct gpus *g);
void gpus_stop(struct gpus *g); /* starts no more looks */

bool gpus_ready(const struct gpus *g); /* the first look is over */
/* struct device; slices take the place of a GPU that is split. Until the next change. */
const struct list *gpus_list(const struct gpus *g);
/* NULL when there is no such device. */
const struct device *gpus_find(const struct gpus *g, struct str uuid);
/* How much of the last moments a device was used, in percent; -1: not known. */
int gpus_use(const struct gpus *g, struct str uuid);
/* Bytes of its memory that are in use; -1: not known. */
int64_t gpus_memory_used(const struct gpus *g, struct str uuid);
uint64_t gpus_looks(const struct gpus *g); /* that have been taken so far */
void gpus_look(struct gpus *g); /* takes one soon, before its time */
const char *gpus_complaint(const struct gpus *g); /* why they cannot be listed, or "" */

#endif
