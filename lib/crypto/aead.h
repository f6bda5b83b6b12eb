/*
 * Sealed bytes: AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits and associated data
 * that binds the bytes to their place (a table and a row, say), so that they cannot be moved.
 * The form is nonce (12), ciphertext, tag (16). A key may seal 2^32 messages.
 */
#ifndef LIB_CRYPTO_AEAD_H
#define LIB_CRYPTO_AEAD_H
#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { AEAD_KEY = 32, AEAD_NONCE = 12, AEAD_TAG = 16, AEAD_OVERHEAD = AEAD_NONCE + AEAD_TAG };

/* Appends to out; ERR_TOO_LARGE past its ceiling or 1 GiB. */
int aead_seal(const unsigned char key[AEAD_KEY], struct str aad, struct str plain, struct buf *out,
	struct err *e) MUST_CHECK;
/* Appends the plain bytes to out; ERR_CORRUPT, and nothing appended, when the bytes, the key or the
 * associated data are not those that were sealed. */
int aead_open(const unsigned char key[AEAD_KEY], struct str aad, struct str sealed, struct buf *out,
	struct err *e) MUST_CHECK;

#endif
