#include "lib/crypto/hash.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <openssl/evp.h>

struct hash {
	EVP_MD_CTX *ctx;
};

/* With the algorithm that the context has: to look it up costs more than to hash a token. */
static void start_again(struct hash *h)
{
	BUG_ON(EVP_DigestInit_ex(h->ctx, NULL, NULL) != 1);
}

struct hash *hash_new(void)
{
	struct hash *h = mem_new_of(struct hash);

	h->ctx = EVP_MD_CTX_new();
	BUG_ON(h->ctx == NULL || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1);
	return h;
}

void hash_free(struct hash *h)
{
	if (h == NULL)
		return;
	EVP_MD_CTX_free(h->ctx);
	mem_free(h);
}

void hash_add(struct hash *h, struct str bytes)
{
	BUG_ON(EVP_DigestUpdate(h->ctx, bytes.p, bytes.n) != 1);
}

void hash_end(struct hash *h, unsigned char out[HASH_SIZE])
{
	BUG_ON(EVP_DigestFinal_ex(h->ctx, out, NULL) != 1);
	start_again(h);
}

void hash_peek(const struct hash *h, unsigned char out[HASH_SIZE])
{
	EVP_MD_CTX *copy = EVP_MD_CTX_new();

	BUG_ON(copy == NULL || EVP_MD_CTX_copy_ex(copy, h->ctx) != 1);
	BUG_ON(EVP_DigestFinal_ex(copy, out, NULL) != 1);
	EVP_MD_CTX_free(copy);
}

void hash_sha256(struct str bytes, unsigned char out[HASH_SIZE])
{
	BUG_ON(EVP_Digest(bytes.n != 0 ? bytes.p : "", bytes.n, out, NULL, EVP_sha256(), NULL) !=
		1);
}

const char *hash_hex(char out[HASH_HEX + 1], const unsigned char digest[HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < HASH_SIZE; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[HASH_HEX] = '\0';
	return out;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hash_parse_hex(struct str hex, unsigned char out[HASH_SIZE])
{
	unsigned char bytes[HASH_SIZE];

	if (hex.n != HASH_HEX)
		return false;
	for (size_t i = 0; i < HASH_SIZE; i++) {
		int high = digit(hex.p[2 * i]), low = digit(hex.p[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		bytes[i] = (unsigned char)(high << 4 | low);
	}
	memcpy(out, bytes, sizeof bytes);
	return true;
}

/* Eight bytes a step: M. Kounavis and F. Berry, "A systematic approach to building high performance
 * software-based CRC generators", 2005. The tables are made before main() runs, so that threads
 * only ever read them. */
static uint32_t crc_table[8][256];

__attribute__((constructor)) static void make_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int bit = 0; bit < 8; bit++)
			c = (c & 1) != 0 ? c >> 1 ^ UINT32_C(0xEDB88320) : c >> 1;
		crc_table[0][i] = c;
	}
	for (int t = 1; t < 8; t++)
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = crc_table[t - 1][i];
			crc_table[t][i] = c >> 8 ^ crc_table[0][c & 255];
		}
}

static uint32_t load32(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t hash_crc32(uint32_t crc, struct str bytes)
{
	const unsigned char *p = (const unsigned char *)bytes.p;
	size_t n = bytes.n;

	crc = ~crc;
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t a = crc ^ load32(p), b = load32(p + 4);

		crc = crc_table[7][a & 255] ^ crc_table[6][a >> 8 & 255] ^
		      crc_table[5][a >> 16 & 255] ^ crc_table[4][a >> 24] ^ crc_table[3][b & 255] ^
		      crc_table[2][b >> 8 & 255] ^ crc_table[1][b >> 16 & 255] ^
		      crc_table[0][b >> 24];
	}
	for (; n > 0; n--, p++)
		crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 255];
	return ~crc;
}
