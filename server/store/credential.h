/*
 * Credentials as they are stored: only HMACs under the pepper, which is never in the database
 * (server/secret_key.h). Also keyed values derived from it, for sessions and job tokens.
 */
#ifndef SERVER_STORE_CREDENTIAL_H
#define SERVER_STORE_CREDENTIAL_H
#include "api/auth.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/crypto/token.h"

struct pepper;

enum { PEPPER_SIZE = 32 };
struct pepper *pepper_new(const unsigned char bytes[PEPPER_SIZE]) __attribute__((returns_nonnull));
void pepper_free(struct pepper *p); /* wipes it; NULL is fine */

/* A new credential: its text for the user, its row for the store. */
struct credential_row {
	struct str id, kind, mac, text;
};
struct credential_row credential_mint(
	const struct pepper *p, enum credential_kind kind, struct arena *a);
/* The same each time for the same seed: a job's token can be handed out again without being kept.
 */
struct credential_row credential_derive(
	const struct pepper *p, enum credential_kind kind, struct str seed, struct arena *a);
/* Constant time; mac may be NULL for an unknown id, which takes as long. */
bool credential_verify(
	const struct pepper *p, const struct token_text *t, const unsigned char *mac);
/* HMAC of purpose and text, 32 bytes. */
struct str credential_keyed(
	const struct pepper *p, const char *purpose, struct str text, struct arena *a);

#endif
