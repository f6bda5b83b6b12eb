/*
 * Calls that make a token: sends the unit that writes it, and answers with its row. The secret is
 * in the answer to the request that made it; a repeated one, by its Idempotency-Key, gets the row
 * alone.
 */
#ifndef SERVER_REST_MINTED_H
#define SERVER_REST_MINTED_H
#include "server/rest/call.h"
#include "server/store/credential.h"

void minted_create(struct call *c, struct db_unit *u, const struct credential_row *row);
/* Without a key: for callers whose own credential is used up by it. */
void minted_send(struct call *c, struct db_unit *u, const struct credential_row *row);

#endif
