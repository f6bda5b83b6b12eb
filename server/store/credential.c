#include "server/store/credential.h"

#include "lib/base/mem.h"

struct pepper {
	unsigned char bytes[PEPPER_SIZE];
};

static struct str view(const struct pepper *p)
{
	return (struct str){ (const char *)p->bytes, PEPPER_SIZE };
}

struct pepper *pepper_new(const unsigned char bytes[PEPPER_SIZE])
{
	struct pepper *p = mem_new_of(struct pepper);

	memcpy(p->bytes, bytes, PEPPER_SIZE);
	return p;
}

void pepper_free(struct pepper *p)
{
	if (p == NULL)
		return;
	mem_wipe(p->bytes, PEPPER_SIZE);
	mem_free(p);
}

static struct credential_row row_of(
	const struct pepper *p, struct token_text *t, enum credential_kind kind, struct arena *a)
{
	char text[TOKEN_TEXT_MAX];
	unsigned char *mac = arena_alloc(a, HMAC_SIZE);

	token_text_mac(t, view(p), mac);
	struct credential_row row = { arena_str(a, str_c(t->id)),
		str_c(credential_kind_names[kind]), { (const char *)mac, HMAC_SIZE },
		arena_str(a, str_c(token_text_format(text, t))) };
	token_text_wipe(t);
	mem_wipe(text, sizeof text);
	return row;
}

struct credential_row credential_mint(
	const struct pepper *p, enum credential_kind kind, struct arena *a)
{
	struct token_text t = token_text_make(credential_kind_names[kind]);

	return row_of(p, &t, kind, a);
}

/* Base 62 of keyed bytes. 43 characters from 64 bytes: each is a byte modulo 62, so a little less
 * than 256 bits, which is plenty. */
static void fill(char *out, size_t n, const unsigned char *bytes)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	for (size_t i = 0; i < n; i++)
		out[i] = digits[bytes[i] % 62];
	out[n] = '\0';
}

struct credential_row credential_derive(
	const struct pepper *p, enum credential_kind kind, struct str seed, struct arena *a)
{
	struct token_text t;
	unsigned char bytes[2 * HMAC_SIZE];

	(void)str_print(t.kind, sizeof t.kind, "%s", credential_kind_names[kind]);
	memcpy(bytes, credential_keyed(p, "derive-1:", seed, a).p, HMAC_SIZE);
	memcpy(bytes + HMAC_SIZE, credential_keyed(p, "derive-2:", seed, a).p, HMAC_SIZE);
	fill(t.id, TOKEN_ID, bytes);
	fill(t.secret, TOKEN_SECRET, bytes + TOKEN_ID);
	mem_wipe(bytes, sizeof bytes);
	return row_of(p, &t, kind, a);
}

bool credential_verify(const struct pepper *p, const struct token_text *t, const unsigned char *mac)
{
	static const unsigned char nothing[HMAC_SIZE];

	return token_text_verify(t, view(p), mac != NULL ? mac : nothing) && mac != NULL;
}

struct str credential_keyed(
	const struct pepper *p, const char *purpose, struct str text, struct arena *a)
{
	struct hmac *h = hmac_new(view(p));
	unsigned char *out = arena_alloc(a, HMAC_SIZE);

	hmac_add(h, str_c(purpose));
	hmac_add(h, text);
	hmac_end(h, out);
	hmac_free(h);
	return (struct str){ (const char *)out, HMAC_SIZE };
}
