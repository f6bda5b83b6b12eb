/* The group commit that the workers' reports share; owned by the app. */
#ifndef SERVER_REST_SYNC_H
#define SERVER_REST_SYNC_H
#include "lib/base/arena.h"

struct app;
struct reporter;
struct sync_request;

struct reporter *reporter_new(struct app *app);
void reporter_free(struct reporter *r); /* NULL is fine */
/* Where the ranks of a gang are, as sync_compare has them: struct rank_place. False: not all. */
bool sync_read_ranks(struct str json, struct arena *a, struct list *ret);

/* Everything of the request that is stored as the worker's inventory; of the free disk only what
 * changes by a gigabyte. */
uint64_t sync_inventory_hash(const struct sync_request *in);

#endif
