/* HMAC-SHA-256 (RFC 2104), streaming and at once, and comparison in constant time. */
#ifndef LIB_CRYPTO_HMAC_H
#define LIB_CRYPTO_HMAC_H
#include "lib/base/str.h"

enum { HMAC_SIZE = 32 };

struct hmac;

struct hmac *hmac_new(struct str key);
void hmac_free(struct hmac *h); /* NULL is fine; wipes the key */
void hmac_add(struct hmac *h, struct str bytes);
/* The code of what was added; the hmac then starts anew with the same key. */
void hmac_end(struct hmac *h, unsigned char out[HMAC_SIZE]);

void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SIZE]);
/* Takes as long whether the bytes differ or not; different lengths are told at once. */
bool hmac_equal(struct str a, struct str b);

#endif
