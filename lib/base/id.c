#include "lib/base/id.h"

#include "lib/base/err.h"

#include <errno.h>
#include <sys/random.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_random(void *out, size_t n)
{
	unsigned char *p = out;

	while (n != 0) {
		ssize_t got = getrandom(p, n, 0);
		if (got < 0) {
			BUG_ON(errno != EINTR);
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
}

const char *id_new(char out[ID_MAX], const char *prefix, const struct clock *c)
{
	uint64_t ms = (uint64_t)(clock_now(c) / 1000);
	unsigned char random[10];
	size_t n = strlen(prefix);

	BUG_ON(n < 2 || n > 5);
	memcpy(out, prefix, n);
	out[n++] = '_';
	for (int i = 9; i >= 0; i--)
		out[n++] = alphabet[ms >> (5 * i) & 31];
	id_random(random, sizeof random);
	/* 80 bits are 16 digits of 5 bits: two groups of 40 bits. */
	for (int half = 0; half < 2; half++) {
		uint64_t bits = 0;
		for (int i = 0; i < 5; i++)
			bits = bits << 8 | random[half * 5 + i];
		for (int i = 7; i >= 0; i--)
			out[n++] = alphabet[bits >> (5 * i) & 31];
	}
	out[n] = '\0';
	return out;
}

bool id_is(struct str s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s.n != n + 1 + ID_ULID || memcmp(s.p, prefix, n) != 0 || s.p[n] != '_')
		return false;
	for (size_t i = n + 1; i < s.n; i++)
		if (s.p[i] == '\0' || strchr(alphabet, s.p[i]) == NULL)
			return false;
	return true;
}

const char *id_hex(char out[ID_HEX + 1])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char random[ID_HEX / 2];

	id_random(random, sizeof random);
	for (size_t i = 0; i < sizeof random; i++) {
		out[2 * i] = hex[random[i] >> 4];
		out[2 * i + 1] = hex[random[i] & 15];
	}
	out[ID_HEX] = '\0';
	return out;
}
