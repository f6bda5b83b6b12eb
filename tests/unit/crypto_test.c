#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/crypto/hash.h"
#include "lib/crypto/hmac.h"
#include "lib/crypto/token.h"
#include "tests/unit/unit.h"

static struct str view(const unsigned char *p, size_t n)
{
	return (struct str){ (const char *)p, n };
}

/* FIPS 180-4 and NIST's example values. */
void test_hash__published_vectors(void **state)
{
	static const struct {
		const char *text, *hex;
	} rows[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	unsigned char digest[HASH_SIZE], back[HASH_SIZE];
	char hex[HASH_HEX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		hash_sha256(str_c(rows[i].text), digest);
		assert_string_equal(hash_hex(hex, digest), rows[i].hex);
		assert_true(hash_parse_hex(str_c(hex), back));
		assert_memory_equal(back, digest, HASH_SIZE);
	}
	assert_false(hash_parse_hex(str_slice(str_c(hex), 1, 64), back));
	hex[5] = 'A';
	assert_false(hash_parse_hex(str_c(hex), back));
}

void test_hash__streams_a_million_letters_in_uneven_pieces(void **state)
{
	struct hash *h = hash_new();
	unsigned char digest[HASH_SIZE];
	char letters[777], hex[HASH_HEX + 1];
	size_t left = 1000000;

	(void)state;
	memset(letters, 'a', sizeof letters);
	while (left > 0) {
		size_t n = left < sizeof letters ? left : sizeof letters;
		hash_add(h, (struct str){ letters, n });
		left -= n;
	}
	hash_peek(h, digest);
	assert_string_equal(hash_hex(hex, digest),
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	hash_end(h, digest);
	assert_string_equal(hash_hex(hex, digest),
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	hash_add(h, STR("abc"));
	hash_end(h, digest);
	assert_memory_equal(digest, "\xba\x78\x16\xbf", 4);
	hash_free(h);
}

void test_hash__crc32_is_zlibs(void **state)
{
	static const char text[] = "The quick brown fox jumps over the lazy dog";

	(void)state;
	assert_int_equal(hash_crc32(0, STR("123456789")), 0xcbf43926);
	assert_int_equal(hash_crc32(0, str_c(text)), 0x414fa339);
	assert_int_equal(hash_crc32(0, STR_NONE), 0);
	for (size_t cut = 0; cut <= strlen(text); cut++) {
		uint32_t crc = hash_crc32(0, str_slice(str_c(text), 0, cut));
		assert_int_equal(hash_crc32(crc, str_c(text + cut)), 0x414fa339);
	}
}

/* RFC 4231, section 4. */
void test_hmac__published_vectors(void **state)
{
	static const struct {
		int key, times;
		const char *text, *hex;
	} rows[] = {
		{ 0x0b, 20, "Hi There",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ 0xaa, 131,
			"This is a test using a larger than block-size key and a larger than "
			"block-size data. The key needs to be hashed before being used by the "
			"HMAC algorithm.",
			"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};
	unsigned char key[131], code[HMAC_SIZE];
	char hex[HASH_HEX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		memset(key, rows[i].key, sizeof key);
		hmac_sha256(view(key, (size_t)rows[i].times), str_c(rows[i].text), code);
		assert_string_equal(hash_hex(hex, code), rows[i].hex);
	}
	struct hmac *h = hmac_new(STR("Jefe"));
	for (int again = 0; again < 2; again++) {
		hmac_add(h, STR("what do ya want "));
		hmac_add(h, STR("for nothing?"));
		hmac_end(h, code);
		assert_string_equal(hash_hex(hex, code),
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	}
	hmac_free(h);
	assert_true(hmac_equal(STR("abc"), STR("abc")));
	assert_false(hmac_equal(STR("abc"), STR("abd")));
	assert_false(hmac_equal(STR("abc"), STR("ab")));
}

void test_token__format_parse_verify(void **state)
{
	unsigned char mac[HMAC_SIZE];
	char text[TOKEN_TEXT_MAX];

	static const char *const kinds[] = { "pat", "ci", "wk", "jb", "bs", "jn", "hk" };

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		struct token_text t = token_text_make(kinds[k]), back;

		assert_true(token_text_parse(str_c(token_text_format(text, &t)), &back));
		assert_string_equal(back.kind, kinds[k]);
		assert_string_equal(back.id, t.id);
		assert_string_equal(back.secret, t.secret);
		token_text_mac(&t, STR("pepper"), mac);
		assert_true(token_text_verify(&back, STR("pepper"), mac));
		assert_false(token_text_verify(&back, STR("Pepper"), mac));
		back.secret[42] = back.secret[42] == 'a' ? 'b' : 'a';
		assert_false(token_text_verify(&back, STR("pepper"), mac));
	}
}

void test_token__one_wrong_character_is_refused(void **state)
{
	/* A fixed token, so that the format cannot drift. */
	static const char good[] =
		"tdm_pat_0123456789AB_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
	struct token_text t = { .kind = "pat" }, back;
	char text[TOKEN_TEXT_MAX], bad[TOKEN_TEXT_MAX + 2];

	(void)state;
	memcpy(t.id, "0123456789AB", 13);
	memcpy(t.secret, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG", 44);
	token_text_format(text, &t);
	assert_memory_equal(text, good, strlen(good));
	assert_int_equal(strlen(text), strlen(good) + 6);
	size_t n = strlen(text);
	for (size_t i = 0; i < n; i++) {
		memcpy(bad, text, n + 1);
		bad[i] = bad[i] == 'z' ? 'y' : 'z';
		assert_false(token_text_parse(str_c(bad), &back));
		bad[i] = '\0';
		assert_false(token_text_parse((struct str){ bad, n }, &back));
		assert_false(token_text_parse((struct str){ text, i }, &back));
	}
	memcpy(bad, text, n + 1);
	memcpy(bad + n, "0", 2);
	assert_false(token_text_parse(str_c(bad), &back));
	assert_false(token_text_parse(STR_NONE, &back));
	assert_false(token_text_parse(STR("tdm_pat_"), &back));
	/* A changed kind breaks the CRC, a kind of the wrong length the form. */
	memcpy(bad, text, n + 1);
	memcpy(bad + 4, "pax", 3);
	assert_false(token_text_parse(str_c(bad), &back));
	assert_true(token_text_parse(str_c(text), &back));
}
