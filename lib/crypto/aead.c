#include "lib/crypto/aead.h"

#include "lib/base/id.h"
#include "lib/base/mem.h"

#include <openssl/evp.h>

enum { AEAD_MAX = 1 << 30 };

static const unsigned char *bytes(struct str s)
{
	return (const unsigned char *)(s.p != NULL ? s.p : "");
}

static int too_large(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the sealed bytes are too large");
}

int aead_seal(const unsigned char key[AEAD_KEY], struct str aad, struct str plain, struct buf *out,
	struct err *e)
{
	int n;

	if (plain.n > AEAD_MAX || aad.n > AEAD_MAX)
		return too_large(e);
	unsigned char *p = (unsigned char *)buf_room(out, plain.n + AEAD_OVERHEAD);
	if (p == NULL)
		return too_large(e);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	BUG_ON(c == NULL);
	id_random(p, AEAD_NONCE);
	int ok = EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, p);
	ok &= aad.n == 0 || EVP_EncryptUpdate(c, NULL, &n, bytes(aad), (int)aad.n);
	ok &= EVP_EncryptUpdate(c, p + AEAD_NONCE, &n, bytes(plain), (int)plain.n);
	ok &= EVP_EncryptFinal_ex(c, p + AEAD_NONCE + plain.n, &n);
	ok &= EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG, p + AEAD_NONCE + plain.n);
	EVP_CIPHER_CTX_free(c);
	BUG_ON(ok != 1);
	buf_grew(out, plain.n + AEAD_OVERHEAD);
	return 0;
}

int aead_open(const unsigned char key[AEAD_KEY], struct str aad, struct str sealed, struct buf *out,
	struct err *e)
{
	unsigned char tag[AEAD_TAG];
	int n;

	if (sealed.n < AEAD_OVERHEAD)
		return err_set(e, ERR_CORRUPT, "the sealed bytes are too short");
	size_t size = sealed.n - AEAD_OVERHEAD;
	unsigned char *p =
		size <= AEAD_MAX && aad.n <= AEAD_MAX ? (unsigned char *)buf_room(out, size) : NULL;
	if (p == NULL)
		return too_large(e);
	memcpy(tag, sealed.p + sealed.n - AEAD_TAG, AEAD_TAG);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	BUG_ON(c == NULL);
	int ok = EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, bytes(sealed));
	ok &= aad.n == 0 || EVP_DecryptUpdate(c, NULL, &n, bytes(aad), (int)aad.n);
	ok &= EVP_DecryptUpdate(c, p, &n, bytes(sealed) + AEAD_NONCE, (int)size);
	ok &= EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG, tag);
	BUG_ON(ok != 1);
	ok = EVP_DecryptFinal_ex(c, p + size, &n);
	EVP_CIPHER_CTX_free(c);
	if (ok != 1) {
		mem_wipe(p, size);
		return err_set(e, ERR_CORRUPT, "the sealed bytes do not open with this key");
	}
	buf_grew(out, size);
	return 0;
}
