/*
 * Credentials as they are stored: only HMACs under the pepper, which lives in a file below data-dir
 * (0600), never in the database. Also keyed values derived from it, for sessions and job tokens.
 */
#ifndef SERVER_STORE_CREDENTIAL_H
#define SERVER_STORE_CREDENTIAL_H
#include "api/auth.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/crypto/token.h"

struct pepper;

/* Reads the pepper, or makes it on first use. */
struct pepper *pepper_open(const char *data_dir, struct err *e) MUST_CHECK;
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
