#include "server/rest/cursor.h"

#include "api/page.h"
#include "lib/crypto/hash.h"

_Static_assert((int)HASH_SIZE > (int)PAGE_CURSOR_MARK, "a mark is the beginning of a digest");

/* Of the operation and what its path names; filters may change from page to page. */
static void mark_of(const struct call *c, struct str key, unsigned char out[HASH_SIZE])
{
	struct hash *h = hash_new();
	size_t param = 0;

	hash_add(h, str_c(c->route->id));
	for (const char *p = c->route->path; *p != '\0'; p++) {
		if (*p != '{')
			continue;
		hash_add(h, (struct str){ "", 1 });
		hash_add(h, c->req->params[param++]);
	}
	hash_add(h, (struct str){ "", 1 });
	hash_add(h, key);
	hash_end(h, out);
	hash_free(h);
}

void cursor_put(const struct call *c, struct str key, struct buf *out)
{
	unsigned char mark[HASH_SIZE];

	mark_of(c, key, mark);
	for (size_t i = 0; i < PAGE_CURSOR_MARK; i++)
		buf_addf(out, "%02x", mark[i]);
	for (size_t i = 0; i < key.n; i++)
		buf_addf(out, "%02x", (unsigned char)key.p[i]);
}

static int hex_value(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static bool read_hex(struct str hex, char *out)
{
	for (size_t i = 0; i + 1 < hex.n; i += 2) {
		int high = hex_value(hex.p[i]), low = hex_value(hex.p[i + 1]);
		if (high < 0 || low < 0)
			return false;
		out[i / 2] = (char)(high << 4 | low);
	}
	return hex.n % 2 == 0;
}

bool cursor_key(const struct call *c, struct str cursor, struct str *ret_key)
{
	unsigned char mark[HASH_SIZE];
	char *bytes = arena_alloc(c->arena, cursor.n / 2 + 1);

	if (cursor.n <= 2 * PAGE_CURSOR_MARK || !read_hex(cursor, bytes))
		return false;
	struct str key = { bytes + PAGE_CURSOR_MARK, cursor.n / 2 - PAGE_CURSOR_MARK };
	mark_of(c, key, mark);
	if (memcmp(mark, bytes, PAGE_CURSOR_MARK) != 0 || !str_utf8_valid(key) ||
		str_find_char(key, '\0') >= 0)
		return false;
	*ret_key = key;
	return true;
}
