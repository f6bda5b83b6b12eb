/*
 * The text of API tokens: tdm_<kind>_<id>_<secret><crc>, with a kind of 2 or 3 lower-case letters,
 * and 12, 43 and 6 characters of base 62. The id is public and finds the row; the secret has 256
 * random bits and is never stored, only its MAC under a pepper that is kept outside the database;
 * the CRC lets scanners know a real token without asking. A pattern for them:
 * \btdm_[a-z]{2,3}_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b. What the kinds mean is for others to say.
 */
#ifndef LIB_CRYPTO_TOKEN_H
#define LIB_CRYPTO_TOKEN_H
#include "lib/crypto/hmac.h"

enum { TOKEN_KIND = 3, TOKEN_ID = 12, TOKEN_SECRET = 43, TOKEN_TEXT_MAX = 80 };

struct token_text {
	char kind[TOKEN_KIND + 1];
	char id[TOKEN_ID + 1];
	char secret[TOKEN_SECRET + 1];
};

struct token_text token_text_make(const char *kind);
const char *token_text_format(char out[TOKEN_TEXT_MAX], const struct token_text *t); /* out */
/* Strict: the exact form and the right CRC. That the kind is a known one is for the caller. */
bool token_text_parse(struct str text, struct token_text *ret);
/* What is stored: HMAC-SHA-256(pepper, "tdm_<kind>_<id>_<secret>"), so that neither kind nor id can
 * be exchanged. */
void token_text_mac(const struct token_text *t, struct str pepper, unsigned char out[HMAC_SIZE]);
/* Constant time. For an unknown id, verify against any bytes, so that it takes as long. */
bool token_text_verify(
	const struct token_text *t, struct str pepper, const unsigned char mac[HMAC_SIZE]);
void token_text_wipe(struct token_text *t);

#endif
