/* SHA-256, streaming and at once, its hex form, and the CRC-32 of zlib. A struct hash belongs to
 * one thread at a time; the functions without one may be called from any. Nothing fails: OpenSSL
 * without SHA-256 ends the process. */
#ifndef LIB_CRYPTO_HASH_H
#define LIB_CRYPTO_HASH_H
#include "lib/base/str.h"

enum { HASH_SIZE = 32, HASH_HEX = 64 };

struct hash;

struct hash *hash_new(void);
void hash_free(struct hash *h); /* NULL is fine */
void hash_add(struct hash *h, struct str bytes);
/* The digest of what was added; the hash then starts anew. */
void hash_end(struct hash *h, unsigned char out[HASH_SIZE]);
/* The digest so far; more may be added after. */
void hash_peek(const struct hash *h, unsigned char out[HASH_SIZE]);

void hash_sha256(struct str bytes, unsigned char out[HASH_SIZE]);
/* 64 lower-case hex digits. Returns out. */
const char *hash_hex(char out[HASH_HEX + 1], const unsigned char digest[HASH_SIZE]);
/* Exactly 64 lower-case hex digits. */
bool hash_parse_hex(struct str hex, unsigned char out[HASH_SIZE]);

/* CRC-32 (reflected polynomial 0xEDB88320), continued from `crc`; start with 0. */
uint32_t hash_crc32(uint32_t crc, struct str bytes);

#endif
