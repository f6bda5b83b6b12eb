#include "worker/runtime/docker_auth.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUB "docker.io"

enum { FILE_MAX = 1 << 20, PART_MAX = 4096 };

/* ---- base64 --------------------------------------------------------------------------------- */

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* False for what is no base64, or is longer than there is room for. */
static bool decode(struct str in, char *out, size_t size, size_t *ret_n)
{
	unsigned bits = 0, n_bits = 0;
	size_t n = 0;

	while (in.n > 0 && in.p[in.n - 1] == '=')
		in.n--;
	for (size_t i = 0; i < in.n; i++) {
		int v = value_of(in.p[i]);
		if (v < 0 || n == size)
			return false;
		bits = (bits << 6 | (unsigned)v) & 0xffffffU;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[n++] = (char)(bits >> n_bits & 0xff);
		}
	}
	*ret_n = n;
	return true;
}

/* The form that is safe in addresses, padded, as the daemon wants it. */
static void encode(struct str in, struct buf *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (size_t i = 0; i < in.n; i += 3) {
		unsigned v = 0;
		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < in.n ? (unsigned char)in.p[i + k] : 0U);
		for (size_t k = 0; k < 4; k++)
			buf_addc(out, i + k > in.n ? '=' : digits[v >> (18 - 6 * k) & 63]);
	}
}

/* ---- the file ------------------------------------------------------------------------------- */

static int read_file(const char *file, struct buf *text, struct err *e)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int rc = fd < 0 || fstat(fd, &st) < 0 ? err_errno(e, "open", file) : 0;

	if (fd >= 0)
		(void)close(fd);
	if (rc == 0 && (st.st_mode & 077) != 0)
		rc = err_set(e, ERR_INVALID,
			"%.200s holds passwords and others may read it: chmod 600", file);
	return rc == 0 ? fs_read(file, text, e) : -1;
}

static int parse_file(const char *file, struct jsn_doc **ret, struct err *e)
{
	struct buf text;
	struct err why;
	int rc;

	buf_init(&text, FILE_MAX);
	rc = read_file(file, &text, e);
	/* The parser's words may hold what it read. */
	if (rc == 0 && jsn_parse(buf_str(&text), ret, &why) < 0)
		rc = err_set(e, ERR_INVALID, "%.200s is not JSON", file);
	if (text.p != NULL)
		mem_wipe(text.p, text.cap);
	buf_done(&text);
	if (rc == 0 && jsn_type(jsn_get(jsn_root(*ret), "auths")) != JSN_OBJ) {
		jsn_doc_free(*ret);
		rc = err_set(e, ERR_INVALID,
			"%.200s has no object \"auths\"; helper programs are not used", file);
	}
	return rc;
}

int docker_auth_check(const char *file, struct err *e)
{
	struct jsn_doc *doc;

	if (parse_file(file, &doc, e) < 0)
		return -1;
	jsn_doc_free(doc);
	return 0;
}

/* What stands before the first slash, where that can be a host. */
static struct str registry_of(const char *image)
{
	ptrdiff_t slash = str_find_char(str_c(image), '/');
	struct str first = str_slice(str_c(image), 0, slash > 0 ? (size_t)slash : 0);

	if (str_find_char(first, '.') >= 0 || str_find_char(first, ':') >= 0 ||
		str_is(first, "localhost"))
		return first;
	return STR(HUB);
}

/* "https://index.docker.io/v1/" is how docker login names Docker Hub. */
static struct str host_of(struct str key)
{
	ptrdiff_t at = str_find(key, STR("://"));

	if (at >= 0)
		key = str_slice(key, (size_t)at + 3, key.n);
	at = str_find_char(key, '/');
	if (at >= 0)
		key = str_slice(key, 0, (size_t)at);
	return str_is(key, "index.docker.io") || str_is(key, "registry-1.docker.io") ? STR(HUB)
										     : key;
}

struct login {
	struct str user, password, token;
	char pair[PART_MAX];
};

static int read_entry(const struct jsn *entry, struct str registry, struct login *l, struct err *e)
{
	struct str both = jsn_get_str(jsn_get(entry, "auth"));
	size_t n = 0;

	l->token = jsn_get_str(jsn_get(entry, "identitytoken"));
	l->user = jsn_get_str(jsn_get(entry, "username"));
	l->password = jsn_get_str(jsn_get(entry, "password"));
	if (both.n != 0 && decode(both, l->pair, sizeof l->pair, &n)) {
		struct str pair = { l->pair, n };
		ptrdiff_t colon = str_find_char(pair, ':');
		if (colon > 0) {
			l->user = str_slice(pair, 0, (size_t)colon);
			l->password = str_slice(pair, (size_t)colon + 1, pair.n);
		}
	}
	if (l->token.n == 0 && (l->user.n == 0 || l->password.n == 0))
		return err_set(e, ERR_INVALID,
			"the credentials of %.*s have neither auth nor username and password",
			(int)(registry.n < 100 ? registry.n : 100), registry.p);
	return 0;
}

static void put(struct jsn_out *w, const char *name, struct str value)
{
	jsn_key(w, name);
	jsn_str(w, value);
}

static bool write_header(const struct login *l, struct str registry, char out[DOCKER_AUTH_MAX])
{
	struct buf json, line;
	bool fits;

	buf_init(&json, DOCKER_AUTH_MAX);
	buf_init(&line, DOCKER_AUTH_MAX);
	struct jsn_out w = jsn_out(&json);
	jsn_obj_begin(&w);
	if (l->token.n != 0) {
		put(&w, "identitytoken", l->token);
	} else {
		put(&w, "username", l->user);
		put(&w, "password", l->password);
	}
	put(&w, "serveraddress", registry);
	jsn_obj_end(&w);
	buf_adds(&line, "X-Registry-Auth: ");
	encode(buf_str(&json), &line);
	fits = !buf_failed(&json) && !buf_failed(&line) &&
	       str_print(out, DOCKER_AUTH_MAX, "%.*s", STR_ARG(buf_str(&line)));
	if (json.p != NULL)
		mem_wipe(json.p, json.cap);
	if (line.p != NULL)
		mem_wipe(line.p, line.cap);
	buf_done(&json);
	buf_done(&line);
	return fits;
}

int docker_auth_header(
	const char *file, const char *image, char out[DOCKER_AUTH_MAX], struct err *e)
{
	struct str registry = registry_of(image);
	const struct jsn *auths, *found = NULL;
	struct jsn_doc *doc;
	struct login login;
	int rc = 0;

	out[0] = '\0';
	if (parse_file(file, &doc, e) < 0)
		return -1;
	auths = jsn_get(jsn_root(doc), "auths");
	for (size_t i = 0; i < jsn_count(auths) && found == NULL; i++)
		if (str_eq(host_of(jsn_name(jsn_at(auths, i))), registry))
			found = jsn_at(auths, i);
	if (found != NULL) {
		rc = read_entry(found, registry, &login, e);
		if (rc == 0 && !write_header(&login, registry, out))
			rc = err_set(
				e, ERR_TOO_LARGE, "the credentials of a registry are too large");
		mem_wipe(login.pair, sizeof login.pair);
	}
	jsn_doc_free(doc);
	return rc;
}
