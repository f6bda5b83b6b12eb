#include "lib/crypto/token.h"

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"

enum { CRC = 6 };

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static const char *const kinds[TOKEN_KIND_COUNT] = {
	[TOKEN_PAT] = "pat",
	[TOKEN_CI] = "ci",
	[TOKEN_WORKER] = "wk",
	[TOKEN_JOB] = "jb",
	[TOKEN_BOOTSTRAP] = "bs",
	[TOKEN_JOIN] = "jn",
	[TOKEN_HOOK] = "hk",
};

const char *token_kind_name(enum token_kind k)
{
	return kinds[k];
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

struct token token_new(enum token_kind k)
{
	struct token t = { .kind = k };

	random_digits(t.id, TOKEN_ID);
	random_digits(t.secret, TOKEN_SECRET);
	return t;
}

/* All but the CRC. */
static struct str body(char out[TOKEN_MAX], const struct token *t)
{
	bool fits = str_print(out, TOKEN_MAX, "tdm_%s_%s_%s", kinds[t->kind], t->id, t->secret);

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

const char *token_format(char out[TOKEN_MAX], const struct token *t)
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

bool token_parse(struct str text, struct token *ret)
{
	struct str rest = text, prefix, kind, id;
	struct token t = { 0 };
	char crc[CRC + 1];
	int k = 0;

	if (text.n == 0 || text.n >= TOKEN_MAX || !str_next(&rest, '_', &prefix) ||
		!str_next(&rest, '_', &kind) || !str_next(&rest, '_', &id))
		return false;
	while (k < TOKEN_KIND_COUNT && !str_is(kind, kinds[k]))
		k++;
	if (k == TOKEN_KIND_COUNT || !str_is(prefix, "tdm") || id.n != TOKEN_ID ||
		rest.n != TOKEN_SECRET + CRC || !all_digits(id) || !all_digits(rest))
		return false;
	put_crc(crc, str_slice(text, 0, text.n - CRC));
	if (!str_eq(str_slice(text, text.n - CRC, CRC), str_c(crc)))
		return false;
	t.kind = (enum token_kind)k;
	memcpy(t.id, id.p, TOKEN_ID);
	memcpy(t.secret, rest.p, TOKEN_SECRET);
	*ret = t;
	return true;
}

void token_mac(const struct token *t, struct str pepper, unsigned char out[HMAC_SIZE])
{
	char text[TOKEN_MAX];

	hmac_sha256(pepper, body(text, t), out);
	mem_wipe(text, sizeof text);
}

bool token_verify(const struct token *t, struct str pepper, const unsigned char mac[HMAC_SIZE])
{
	unsigned char own[HMAC_SIZE];

	token_mac(t, pepper, own);
	bool same = hmac_equal((struct str){ (const char *)own, HMAC_SIZE },
		(struct str){ (const char *)mac, HMAC_SIZE });
	mem_wipe(own, sizeof own);
	return same;
}

void token_wipe(struct token *t)
{
	mem_wipe(t, sizeof *t);
}
