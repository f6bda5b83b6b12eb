/*
 * Tokens: tdm_<kind>_<id><secret><crc>, as tdm_pat_ + 12 + "_" + 43 + 6 characters of base 62.
 * The id is public and finds the row; the secret has 256 random bits and is never stored, only its
 * MAC under a pepper that is kept outside the database; the CRC lets scanners know a real token
 * without asking. A pattern for them:
 * \btdm_(pat|ci|wk|jb|bs|jn|hk)_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b
 */
#ifndef LIB_CRYPTO_TOKEN_H
#define LIB_CRYPTO_TOKEN_H
#include "lib/crypto/hmac.h"

enum token_kind {
	TOKEN_PAT, /* a person's */
	TOKEN_CI, /* an automation's */
	TOKEN_WORKER,
	TOKEN_JOB,
	TOKEN_BOOTSTRAP,
	TOKEN_JOIN,
	TOKEN_HOOK,
	TOKEN_KIND_COUNT
};

enum { TOKEN_ID = 12, TOKEN_SECRET = 43, TOKEN_MAX = 80 };

struct token {
	enum token_kind kind;
	char id[TOKEN_ID + 1];
	char secret[TOKEN_SECRET + 1];
};

const char *token_kind_name(enum token_kind k); /* "pat" */
struct token token_new(enum token_kind k);
const char *token_format(char out[TOKEN_MAX], const struct token *t); /* returns out */
/* Strict: the exact form, a known kind, the right CRC. */
bool token_parse(struct str text, struct token *ret);
/* What is stored: HMAC-SHA-256(pepper, "tdm_<kind>_<id>_<secret>"). */
void token_mac(const struct token *t, struct str pepper, unsigned char out[HMAC_SIZE]);
/* Constant time. For an unknown id, verify against any bytes, so that it takes as long. */
bool token_verify(const struct token *t, struct str pepper, const unsigned char mac[HMAC_SIZE]);
void token_wipe(struct token *t);

#endif
