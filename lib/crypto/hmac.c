#include "lib/crypto/hmac.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"

#include <openssl/crypto.h>

/* H(key ^ opad, H(key ^ ipad, text)) over lib/crypto/hash, which has SHA-256 already. */

enum { BLOCK = 64 };

struct hmac {
	struct hash *hash;
	unsigned char key[BLOCK];
};

static void add_key(struct hmac *h, unsigned char pad)
{
	unsigned char block[BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = h->key[i] ^ pad;
	hash_add(h->hash, (struct str){ (const char *)block, BLOCK });
	mem_wipe(block, sizeof block);
}

struct hmac *hmac_new(struct str key)
{
	struct hmac *h = mem_new_of(struct hmac);

	h->hash = hash_new();
	if (key.n > BLOCK)
		hash_sha256(key, h->key);
	else if (key.n != 0)
		memcpy(h->key, key.p, key.n);
	add_key(h, 0x36);
	return h;
}

void hmac_free(struct hmac *h)
{
	if (h == NULL)
		return;
	hash_free(h->hash);
	mem_wipe(h->key, sizeof h->key);
	mem_free(h);
}

void hmac_add(struct hmac *h, struct str bytes)
{
	hash_add(h->hash, bytes);
}

void hmac_end(struct hmac *h, unsigned char out[HMAC_SIZE])
{
	unsigned char inner[HASH_SIZE];

	hash_end(h->hash, inner);
	add_key(h, 0x5c);
	hash_add(h->hash, (struct str){ (const char *)inner, sizeof inner });
	hash_end(h->hash, out);
	add_key(h, 0x36);
}

void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SIZE])
{
	struct hmac *h = hmac_new(key);

	hmac_add(h, bytes);
	hmac_end(h, out);
	hmac_free(h);
}

bool hmac_equal(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || CRYPTO_memcmp(a.p, b.p, a.n) == 0);
}
