/*
 * Calls that make a token: sends the unit that writes it, and answers with its row. The secret is
 * in the answer to the request that made it; a repeated one, by its Idempotency-Key, gets the row
 * alone.
 */
#ifndef SERVER_REST_MINTED_H
#define SERVER_REST_MINTED_H
#include "server/rest/call.h"
#include "server/store/credential.h"

/*
 * When a token that is made now ends. It does not outlive its maker's, which would otherwise have
 * no end: without `given` it ends no later, with it the call is answered and false is returned. The
 * token of an administrator that is good for a day or more is bound by neither.
 */
bool minted_end(struct call *c, const struct field_span *life, bool given, int64_t *ret_ends);
void minted_create(struct call *c, struct db_unit *u, const struct credential_row *row);
/* Without a key: for callers whose own credential is used up by it. */
void minted_send(struct call *c, struct db_unit *u, const struct credential_row *row);

#endif
