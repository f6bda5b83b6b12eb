#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/fetch/inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* From a struct fetch_request to a libcurl handle: address, headers, token, body, limits. */

/* libcurl's options are set by a variadic macro that can only fail for want of memory or of a
 * feature; either is a bug here. */
#define SET(f, option, value) BUG_ON(curl_easy_setopt((f)->easy, (option), (value)) != CURLE_OK)

enum { STREAM_BUFFER = 256 * 1024, EXPECT_FROM = 1 << 20, TOKEN_MAX = 4096, DEAD_PEER_MS = 60000 };

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct fetch *f = arg;
	unsigned dead = DEAD_PEER_MS;
	int fd;

	if (purpose != CURLSOCKTYPE_IPCXN)
		return CURL_SOCKET_BAD;
	if (f->client->unix_socket == NULL &&
		guard_check(&f->client->guard, &address->addr, address->addrlen, &f->blocked) < 0)
		return CURL_SOCKET_BAD;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		address->protocol);
	if (fd >= 0 && address->family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof dead);
	return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

/* ---- body ------------------------------------------------------------------------------------ */

static ptrdiff_t read_fd(struct fetch *f, char *out, size_t n)
{
	ssize_t got;

	if (n > (uint64_t)f->q.length - f->sent)
		n = (size_t)((uint64_t)f->q.length - f->sent);
	if (n == 0)
		return 0;
	do
		got = read(f->q.fd, out, n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(&f->e, "read", "the body of the request");
	if (got == 0)
		return err_set(&f->e, ERR_IO,
			"the body of the request ends after %llu of %lld bytes",
			(unsigned long long)f->sent, (long long)f->q.length);
	return got;
}

static size_t on_read(char *out, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;
	ptrdiff_t got;

	if (f->over || f->cancelled)
		return CURL_READFUNC_ABORT;
	got = f->q.has_fd ? read_fd(f, out, size * n) : f->q.pull(f->q.arg, out, size * n, &f->e);
	if (got == FETCH_LATER)
		return CURL_READFUNC_PAUSE;
	if (got < 0)
		return CURL_READFUNC_ABORT;
	f->sent += (uint64_t)got;
	return (size_t)got;
}

/* A connection that was closed while idle is noticed after the first bytes went out: rewind. */
static int on_seek(void *arg, curl_off_t to, int whence)
{
	struct fetch *f = arg;

	if (!f->q.has_fd || whence != SEEK_SET ||
		lseek(f->q.fd, (off_t)(f->fd_start + to), SEEK_SET) < 0)
		return CURL_SEEKFUNC_CANTSEEK;
	f->sent = (uint64_t)to;
	return CURL_SEEKFUNC_OK;
}

static int setup_body(struct fetch *f, struct err *e)
{
	const struct fetch_request *q = &f->q;
	const char *method = f->method;
	bool streams = q->has_fd || q->pull != NULL;

	if (streams && q->length < (q->has_fd ? 0 : -1))
		return err_set(e, ERR_INVALID, "the body of a request needs a length");
	if (streams) {
		f->fd_start = q->has_fd ? (int64_t)lseek(q->fd, 0, SEEK_CUR) : 0;
		SET(f, CURLOPT_UPLOAD, 1L);
		SET(f, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->length);
		SET(f, CURLOPT_READFUNCTION, on_read);
		SET(f, CURLOPT_READDATA, f);
		SET(f, CURLOPT_SEEKFUNCTION, on_seek);
		SET(f, CURLOPT_SEEKDATA, f);
		SET(f, CURLOPT_UPLOAD_BUFFERSIZE, (long)STREAM_BUFFER);
	} else if (q->body.n != 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
		   strcmp(method, "PATCH") == 0) {
		SET(f, CURLOPT_POST, 1L);
		SET(f, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
		SET(f, CURLOPT_POSTFIELDS, q->body.n != 0 ? q->body.p : "");
	} else if (strcmp(method, "HEAD") == 0) {
		SET(f, CURLOPT_NOBODY, 1L);
		return 0;
	} else if (strcmp(method, "GET") == 0) {
		SET(f, CURLOPT_HTTPGET, 1L);
		return 0;
	}
	SET(f, CURLOPT_CUSTOMREQUEST, method);
	return 0;
}

/* ---- headers --------------------------------------------------------------------------------- */

static int add_header(struct fetch *f, const char *line, struct err *e)
{
	struct str s = str_c(line);
	ptrdiff_t colon = str_find_char(s, ':');
	struct curl_slist *more;

	for (size_t i = 0; i < s.n; i++) {
		if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
			return err_set(e, ERR_INVALID, "a header holds a control character");
	}
	if (colon <= 0 || str_find_char(str_slice(s, 0, (size_t)colon), ' ') >= 0)
		return err_set(e, ERR_INVALID, "a header has no name");
	more = curl_slist_append(f->headers, line);
	BUG_ON(more == NULL);
	f->headers = more;
	return 0;
}

static int add_token(struct fetch *f, const char *token, struct err *e)
{
	char line[TOKEN_MAX + 32];
	struct str t = str_c(token);

	while (t.n != 0 && (t.p[t.n - 1] == '\n' || t.p[t.n - 1] == '\r'))
		t.n--;
	if (t.n == 0 || str_has_control(t) || str_find_char(t, ' ') >= 0 ||
		!str_print(line, sizeof line, "Authorization: Bearer %.*s", STR_ARG(t)))
		return err_set(e, ERR_INVALID, "the token is empty, too long or not plain text");
	int rc = add_header(f, line, e);
	mem_wipe(line, sizeof line);
	return rc;
}

static int add_token_of_file(struct fetch *f, struct err *e)
{
	struct buf text;
	int rc;

	buf_init(&text, TOKEN_MAX);
	rc = fs_read(f->client->token_file, &text, e);
	if (rc == 0)
		rc = add_token(f, text.n != 0 ? text.p : "", e);
	if (text.p != NULL)
		mem_wipe(text.p, text.cap);
	buf_done(&text);
	return rc;
}

/* Waiting for "100 Continue" saves a refused large body; for a small one it only costs a round
 * trip, or a second with servers that do not know it. */
static bool is_small(const struct fetch_request *q)
{
	return q->length >= 0 && q->length <= EXPECT_FROM;
}

static int setup_headers(struct fetch *f, struct err *e)
{
	static const char type[] = "Content-Type:";
	bool typed = false;

	if ((f->q.has_fd || f->q.pull != NULL) && is_small(&f->q) &&
		add_header(f, "Expect:", e) < 0)
		return -1;

	for (size_t i = 0; i < FETCH_MAX_HEADERS && f->q.headers[i] != NULL; i++) {
		struct str line = str_c(f->q.headers[i]);
		if (add_header(f, f->q.headers[i], e) < 0)
			return -1;
		typed = typed || str_eq_nocase(str_slice(line, 0, sizeof type - 1), str_c(type));
	}
	if (!typed && add_header(f, type, e) < 0) /* else libcurl names one */
		return -1;
	if (f->client->token != NULL && add_token(f, f->client->token, e) < 0)
		return -1;
	if (f->client->token_file != NULL && add_token_of_file(f, e) < 0)
		return -1;
	SET(f, CURLOPT_HTTPHEADER, f->headers);
	return 0;
}

/* ---- address --------------------------------------------------------------------------------- */

static int check_url(const struct fetch_client *c, const char *url, struct err *e)
{
	CURLU *parts = curl_url();
	char *scheme = NULL, *user = NULL;
	bool ok;

	BUG_ON(parts == NULL);
	for (const char *p = url; *p != '\0'; p++) {
		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\' || *p == '#') {
			curl_url_cleanup(parts);
			return err_set(e, ERR_INVALID,
				"an address holds a character that must be "
				"encoded");
		}
	}
	ok = curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
	     curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	     curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_NO_USER &&
	     (strcmp(scheme, "https") == 0 || (!c->https_only && strcmp(scheme, "http") == 0));
	curl_free(scheme);
	curl_free(user);
	curl_url_cleanup(parts);
	return ok ? 0
		  : err_set(e, ERR_INVALID,
			    "an address must be %shttps://host/path without "
			    "credentials",
			    c->https_only ? "" : "http:// or ");
}

static int setup_url(struct fetch *f, struct err *e)
{
	const struct fetch_client *c = f->client;
	const char *path = f->q.path;
	struct buf url;
	int rc = 0;

	buf_init(&url, 32768);
	if (path == NULL || path[0] == '\0')
		rc = err_set(e, ERR_INVALID, "a request needs a path or an address");
	else if (path[0] != '/' && (c->token != NULL || c->token_file != NULL))
		rc = err_set(e, ERR_INVALID, "this client's token is for its own server only");
	else if (path[0] == '/' && c->base_url == NULL)
		rc = err_set(e, ERR_INVALID, "a path was given to a client without a server");
	if (rc == 0) {
		buf_adds(&url, path[0] == '/' ? c->base_url : "");
		buf_adds(&url, path);
		rc = buf_failed(&url) ? err_set(e, ERR_INVALID, "an address is longer than 32 KiB")
				      : check_url(c, url.p, e);
	}
	if (rc == 0)
		SET(f, CURLOPT_URL, url.p); /* copied */
	buf_done(&url);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Zero would mean no limit. */
static long to_ms(int64_t us)
{
	return us >= 1000 ? (long)(us / 1000) : 1;
}

static void setup_limits(struct fetch *f)
{
	const struct fetch_request *q = &f->q;
	int64_t whole = q->timeout == 0 ? f->client->timeout : q->timeout;

	SET(f, CURLOPT_CONNECTTIMEOUT_MS, to_ms(f->client->connect_timeout));
	if (whole > 0)
		SET(f, CURLOPT_TIMEOUT_MS, to_ms(whole));
	if (q->idle_timeout > 0) {
		SET(f, CURLOPT_LOW_SPEED_TIME, (long)((q->idle_timeout + 999999) / 1000000));
		SET(f, CURLOPT_LOW_SPEED_LIMIT, (long)(q->min_rate != 0 ? q->min_rate : 1));
	}
	if (q->to_fd)
		SET(f, CURLOPT_BUFFERSIZE, (long)STREAM_BUFFER);
}

static void setup_domain(struct fetch *f)
{
	const struct fetch_client *c = f->client;

	SET(f, CURLOPT_PRIVATE, f);
	SET(f, CURLOPT_ERRORBUFFER, f->why);
	SET(f, CURLOPT_NOSIGNAL, 1L);
	SET(f, CURLOPT_PROTOCOLS_STR, c->https_only ? "https" : "http,https");
	SET(f, CURLOPT_FOLLOWLOCATION, 0L);
	SET(f, CURLOPT_PROXY, "");
	SET(f, CURLOPT_NOPROXY, "*");
	SET(f, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(f, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(f, CURLOPT_SSL_VERIFYPEER, 1L);
	SET(f, CURLOPT_SSL_VERIFYHOST, 2L);
	SET(f, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(f, CURLOPT_PATH_AS_IS, 1L);
	SET(f, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(f, CURLOPT_TCP_KEEPIDLE, 30L);
	SET(f, CURLOPT_TCP_KEEPINTVL, 10L);
	SET(f, CURLOPT_USERAGENT, c->user_agent);
	SET(f, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	SET(f, CURLOPT_OPENSOCKETDATA, f);
	if (c->ca_file != NULL)
		SET(f, CURLOPT_CAINFO, c->ca_file);
	if (c->unix_socket != NULL)
		SET(f, CURLOPT_UNIX_SOCKET_PATH, c->unix_socket);
}

int request_setup(struct fetch *f, struct err *e)
{
	f->easy = curl_easy_init();
	BUG_ON(f->easy == NULL);
	setup_domain(f);
	setup_limits(f);
	reply_setup(f);
	if (setup_url(f, e) < 0 || setup_headers(f, e) < 0)
		return -1;
	return setup_body(f, e);
}
