/*
 * The log spool: what tidemill-init writes, the worker ships and the server keeps, byte for byte.
 *
 * A spool is a sequence of frames; a frame is a header of 16 bytes and up to FRAME_PAYLOAD_MAX
 * bytes of output, any bytes. Offsets in the protocol are offsets in the spool, and every piece
 * that is shipped starts and ends on a frame's edge.
 *
 *     0  u32 le  length of the payload, 1 … FRAME_PAYLOAD_MAX
 *     4  u8      stream: 1 stdout, 2 stderr, 3 notes of Tidemill itself
 *     5  u8      zero
 *     6  u16 le  rank of the process in its gang
 *     8  u64 le  microseconds since 1970 when the bytes were read
 *
 * libc only: tidemill-init includes this header and nothing else of the tree.
 */
#ifndef API_FRAME_H
#define API_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEADER = 16, FRAME_PAYLOAD_MAX = 65536 };
enum frame_stream { FRAME_STDOUT = 1, FRAME_STDERR = 2, FRAME_SYSTEM = 3 };

struct frame {
	uint32_t length;
	uint8_t stream;
	uint16_t rank;
	uint64_t time_us;
};

static inline void frame_put(unsigned char out[FRAME_HEADER], struct frame f)
{
	for (int i = 0; i < 4; i++)
		out[i] = (unsigned char)(f.length >> (8 * i));
	out[4] = f.stream;
	out[5] = 0;
	out[6] = (unsigned char)f.rank;
	out[7] = (unsigned char)(f.rank >> 8);
	for (int i = 0; i < 8; i++)
		out[8 + i] = (unsigned char)(f.time_us >> (8 * i));
}

/* False when the header cannot be one of a spool. */
static inline bool frame_get(const unsigned char in[FRAME_HEADER], struct frame *ret)
{
	struct frame f = { 0 };

	for (int i = 0; i < 4; i++)
		f.length |= (uint32_t)in[i] << (8 * i);
	for (int i = 0; i < 8; i++)
		f.time_us |= (uint64_t)in[8 + i] << (8 * i);
	f.stream = in[4];
	f.rank = (uint16_t)(in[6] | in[7] << 8);
	if (f.length < 1 || f.length > FRAME_PAYLOAD_MAX || f.stream < FRAME_STDOUT ||
		f.stream > FRAME_SYSTEM || in[5] != 0)
		return false;
	*ret = f;
	return true;
}

/* How many bytes at the start of p[0..n) are whole frames; *ret_ok is false when a header is bad.
 */
static inline size_t frame_whole(const unsigned char *p, size_t n, bool *ret_ok)
{
	size_t at = 0;
	struct frame f;

	*ret_ok = true;
	while (n - at >= FRAME_HEADER) {
		if (!frame_get(p + at, &f)) {
			*ret_ok = false;
			break;
		}
		if (n - at - FRAME_HEADER < f.length)
			break;
		at += FRAME_HEADER + f.length;
	}
	return at;
}

#endif
