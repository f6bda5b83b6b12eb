/* Little-endian bytes with a CRC-32C at the end: the stored form of profiles and counters. Writing
 * past the room and reading past the end stick as failures. Internal to lib/stats. */
#ifndef LIB_STATS_CODEC_H
#define LIB_STATS_CODEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum codec_kind {
	CODEC_PROFILE = 1,
	CODEC_COUNTS,
	CODEC_CATEGORIES,
};

struct codec {
	uint8_t *out; /* when writing */
	const uint8_t *in; /* when reading */
	size_t at, n;
	bool failed;
};

/* CRC-32C (Castagnoli, RFC 3720 B.4), continued from `crc`; start with 0. */
uint32_t codec_crc(uint32_t crc, const void *p, size_t n);

/* Starts with magic, version and kind. */
void codec_write(struct codec *c, uint8_t *out, size_t room, enum codec_kind kind);
void codec_put_u16(struct codec *c, uint16_t v);
void codec_put_u32(struct codec *c, uint32_t v);
void codec_put_u64(struct codec *c, uint64_t v);
void codec_put_f64(struct codec *c, double v);
void codec_put_bytes(struct codec *c, const void *p, size_t n);
/* Appends the checksum; returns the length, or 0 when the room did not suffice. */
size_t codec_finish(struct codec *c);

/* False when magic, version, kind or checksum are wrong. */
bool codec_read(struct codec *c, const uint8_t *p, size_t n, enum codec_kind kind);
uint16_t codec_get_u16(struct codec *c); /* 0 after a failure */
uint32_t codec_get_u32(struct codec *c);
uint64_t codec_get_u64(struct codec *c);
double codec_get_f64(struct codec *c);
const uint8_t *codec_get_bytes(struct codec *c, size_t n); /* NULL after a failure */
bool codec_ended(const struct codec *c); /* all read, nothing failed */

#endif
