#include "lib/crypto/token.h"

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"

enum { CRC = 6 };

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static bool is_kind(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 'a' || s.p[i] > 'z')
			return false;
	return s.n >= 2 && s.n <= TOKEN_KIND;
}

/* Bytes of 248 and more are thrown away, so that all 62 digits are equally likely. */
static void random_digits(char *out, size_t n)
{
	unsigned char pool[64];

	for (size_t i = 0; i < n;) {
		id_random(pool, sizeof pool);
		for (size_t j = 0; j < sizeof pool && i < n; j++)
			if (pool[j] < 248)
				out[i++] = digits[pool[j] % 62];
	}
	out[n] = '\0';
	mem_wipe(pool, sizeof pool);
}

struct token_text token_text_make(const char *kind)
{
	struct token_text t = { 0 };

	BUG_ON(!is_kind(str_c(kind)));
	(void)str_print(t.kind, sizeof t.kind, "%s", kind);
	random_digits(t.id, TOKEN_ID);
	random_digits(t.secret, TOKEN_SECRET);
	return t;
}

/* All but the CRC. */
static struct str body(char out[TOKEN_TEXT_MAX], const struct token_text *t)
{
	bool fits = str_print(out, TOKEN_TEXT_MAX, "tdm_%s_%s_%s", t->kind, t->id, t->secret);

	BUG_ON(!fits);
	return str_c(out);
}

static void put_crc(char out[CRC + 1], struct str s)
{
	uint32_t crc = hash_crc32(0, s);

	for (int i = CRC; i-- > 0; crc /= 62)
		out[i] = digits[crc % 62];
	out[CRC] = '\0';
}

const char *token_text_format(char out[TOKEN_TEXT_MAX], const struct token_text *t)
{
	struct str s = body(out, t);
	char crc[CRC + 1];

	put_crc(crc, s);
	memcpy(out + s.n, crc, sizeof crc);
	return out;
}

static bool all_digits(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\0' || strchr(digits, s.p[i]) == NULL)
			return false;
	return true;
}

bool token_text_parse(struct str text, struct token_text *ret)
{
	struct str rest = text, prefix, kind, id;
	struct token_text t = { 0 };
	char crc[CRC + 1];

	if (text.n == 0 || text.n >= TOKEN_TEXT_MAX || !str_next(&rest, '_', &prefix) ||
		!str_next(&rest, '_', &kind) || !str_next(&rest, '_', &id))
		return false;
	if (!is_kind(kind) || !str_is(prefix, "tdm") || id.n != TOKEN_ID ||
		rest.n != TOKEN_SECRET + CRC || !all_digits(id) || !all_digits(rest))
		return false;
	put_crc(crc, str_slice(text, 0, text.n - CRC));
	if (!str_eq(str_slice(text, text.n - CRC, CRC), str_c(crc)))
		return false;
	memcpy(t.kind, kind.p, kind.n);
	memcpy(t.id, id.p, TOKEN_ID);
	memcpy(t.secret, rest.p, TOKEN_SECRET);
	*ret = t;
	return true;
}

void token_text_mac(const struct token_text *t, struct str pepper, unsigned char out[HMAC_SIZE])
{
	char text[TOKEN_TEXT_MAX];

	hmac_sha256(pepper, body(text, t), out);
	mem_wipe(text, sizeof text);
}

bool token_text_verify(
	const struct token_text *t, struct str pepper, const unsigned char mac[HMAC_SIZE])
{
	unsigned char own[HMAC_SIZE];

	token_text_mac(t, pepper, own);
	bool same = hmac_equal((struct str){ (const char *)own, HMAC_SIZE },
		(struct str){ (const char *)mac, HMAC_SIZE });
	mem_wipe(own, sizeof own);
	return same;
}

void token_text_wipe(struct token_text *t)
{
	mem_wipe(t, sizeof *t);
}
