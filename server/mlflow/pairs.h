/* Tags and params of a message, checked and made unique, as columns for the store. */
#ifndef SERVER_MLFLOW_PAIRS_H
#define SERVER_MLFLOW_PAIRS_H
#include "server/mlflow/limits.h"
#include "server/mlflow/message.h"
#include "server/store/tracking_store.h"

struct pair_rules {
	const char *list; /* "tags" */
	size_t value_max; /* code points; longer ones are cut */
	bool refuse_long; /* or refused */
};
/* Sorted by key; of those that come twice the last one stays. False when it has been answered.
 * `room`: free places for pairs_add(). */
bool pairs_take(struct call *c, const struct list *pairs, struct pair_rules rules, size_t room,
	struct pair_columns *ret);
/* The value of a key, p is NULL without. */
struct str pairs_find(const struct pair_columns *p, const char *key);
/* Adds one; there must be room. */
void pairs_add(struct pair_columns *p, struct str key, struct str value);
/* The keys that come more than once as Python writes a list, or empty. */
struct str pairs_duplicates(struct call *c, const struct list *pairs);

#endif
