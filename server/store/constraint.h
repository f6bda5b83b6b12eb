/* Violated constraints in words: which rule of the schema a user's request has broken. */
#ifndef SERVER_STORE_CONSTRAINT_H
#define SERVER_STORE_CONSTRAINT_H
#include "lib/db/db.h"

/* Replaces the message of a conflict by that of its constraint; leaves other errors as they are. */
void constraint_explain(const struct db_rows *rows, struct err *e);

#endif
