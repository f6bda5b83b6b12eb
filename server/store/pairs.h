/* Labels and the like (FIELD_MAP) as a JSON parameter. */
#ifndef SERVER_STORE_PAIRS_H
#define SERVER_STORE_PAIRS_H
#include "lib/db/arg.h"
#include "lib/json/field.h"

/* The JSON object of a list of struct field_pair; its text lives in the buffer, which the caller
 * ends after the statement has been added. */
struct db_arg pairs_json(const struct list *pairs, struct buf *b);

#endif
