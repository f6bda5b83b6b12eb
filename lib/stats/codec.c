#include "lib/stats/codec.h"

#include <string.h>

enum { VERSION = 1, TAIL = 4 };
static const uint32_t magic = 0x534d4454; /* "TDMS" */

uint32_t codec_crc(uint32_t crc, const void *p, size_t n)
{
	/* Remainders of the 16 nibbles by the reflected polynomial 0x82f63b78. */
	static const uint32_t table[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6,
		0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
	const uint8_t *b = p;

	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= b[i];
		crc = (crc >> 4) ^ table[crc & 15];
		crc = (crc >> 4) ^ table[crc & 15];
	}
	return ~crc;
}

static void put(struct codec *c, uint64_t v, size_t bytes)
{
	if (c->failed || c->n - c->at < bytes) {
		c->failed = true;
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		c->out[c->at++] = (uint8_t)(v >> (8 * i));
}

void codec_put_u16(struct codec *c, uint16_t v)
{
	put(c, v, 2);
}

void codec_put_u32(struct codec *c, uint32_t v)
{
	put(c, v, 4);
}

void codec_put_u64(struct codec *c, uint64_t v)
{
	put(c, v, 8);
}

void codec_put_f64(struct codec *c, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put(c, bits, 8);
}

void codec_put_bytes(struct codec *c, const void *p, size_t n)
{
	if (c->failed || c->n - c->at < n) {
		c->failed = true;
		return;
	}
	if (n != 0)
		memcpy(c->out + c->at, p, n);
	c->at += n;
}

void codec_write(struct codec *c, uint8_t *out, size_t room, enum codec_kind kind)
{
	*c = (struct codec){ .out = out, .n = room };
	codec_put_u32(c, magic);
	codec_put_u16(c, VERSION);
	codec_put_u16(c, (uint16_t)kind);
}

size_t codec_finish(struct codec *c)
{
	uint32_t crc = codec_crc(0, c->out, c->at);

	codec_put_u32(c, crc);
	return c->failed ? 0 : c->at;
}

static uint64_t get(struct codec *c, size_t bytes)
{
	uint64_t v = 0;

	if (c->failed || c->n - c->at < bytes) {
		c->failed = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)c->in[c->at++] << (8 * i);
	return v;
}

uint16_t codec_get_u16(struct codec *c)
{
	return (uint16_t)get(c, 2);
}

uint32_t codec_get_u32(struct codec *c)
{
	return (uint32_t)get(c, 4);
}

uint64_t codec_get_u64(struct codec *c)
{
	return get(c, 8);
}

double codec_get_f64(struct codec *c)
{
	uint64_t bits = get(c, 8);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

const uint8_t *codec_get_bytes(struct codec *c, size_t n)
{
	const uint8_t *p = c->in + c->at;

	if (c->failed || c->n - c->at < n) {
		c->failed = true;
		return NULL;
	}
	c->at += n;
	return p;
}

bool codec_read(struct codec *c, const uint8_t *p, size_t n, enum codec_kind kind)
{
	struct codec tail = { .in = p, .n = n, .at = n - TAIL };

	*c = (struct codec){ .in = p, .n = n };
	if (p == NULL || n < 8 + TAIL || codec_get_u32(&tail) != codec_crc(0, p, n - TAIL))
		return false;
	c->n = n - TAIL;
	return codec_get_u32(c) == magic && codec_get_u16(c) == VERSION &&
	       codec_get_u16(c) == (uint16_t)kind;
}

bool codec_ended(const struct codec *c)
{
	return !c->failed && c->at == c->n;
}
