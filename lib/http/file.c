#include "lib/http/inside.h"

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/loop/work.h"

#include <errno.h>
#include <unistd.h>

/*
 * A file as an answer: conditions and range are judged at once, then pieces are read in the pool
 * and handed to the connection without a copy; the next piece is read when the client has taken
 * enough.
 *
 *     http_reply_file → file_next → file_read (thread) → file_on_read → file_next … → end
 */

enum { PIECE = 256 << 10 };

struct file_flow {
	struct http_req *q;
	int fd, error;
	int64_t at, end;
	char *piece;
	size_t n;
	http_inspect_cb *inspect;
	void *inspect_arg;
};

static void file_next(void *arg);
static void file_read(void *arg);
static void file_on_read(void *arg);

static void flow_free(void *arg)
{
	struct file_flow *f = arg;

	close(f->fd);
	mem_free(f->piece);
	mem_free(f);
}

static void piece_release(const void *p, size_t n, void *arg)
{
	(void)p, (void)n;
	mem_free(arg);
}

static void file_next(void *arg)
{
	struct file_flow *f = arg;
	struct err e;

	if (f->at == f->end) {
		http_stream_end(f->q);
		return;
	}
	if (http_gone(f->q)) {
		http_drop(f->q);
		return;
	}
	f->n = f->end - f->at < PIECE ? (size_t)(f->end - f->at) : PIECE;
	f->piece = mem_new(f->n, 1);
	if (work_submit(http_call_of(f->q)->server->loop, file_read, file_on_read, f, &e) < 0)
		http_stream_abort(f->q);
}

static void file_read(void *arg)
{
	struct file_flow *f = arg;
	size_t got = 0;

	f->error = 0;
	while (got < f->n) {
		ssize_t n = pread(f->fd, f->piece + got, f->n - got, f->at + (int64_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			f->error = n < 0 ? errno : ENODATA; /* the file has shrunk */
			return;
		}
		got += (size_t)n;
	}
	if (f->inspect != NULL && f->inspect(f->inspect_arg, (struct str){ f->piece, f->n },
					  f->at + (int64_t)f->n == f->end) < 0)
		f->error = EBADMSG;
}

static void file_on_read(void *arg)
{
	struct file_flow *f = arg;
	char *piece = f->piece;

	if (f->error != 0 || http_gone(f->q)) {
		http_stream_abort(f->q);
		return;
	}
	f->piece = NULL;
	f->at += (int64_t)f->n;
	stream_add(http_call_of(f->q),
		&(struct stream_ref){
			.p = piece, .n = f->n, .release = piece_release, .arg = piece });
	if (f->at == f->end || http_gone(f->q))
		file_next(f);
	else
		http_stream_on_drain(f->q, file_next, f);
}

/* When the client leaves while we wait for it to take more. A read that is under way comes to
 * file_on_read by itself. */
static void file_on_close(void *arg)
{
	struct file_flow *f = arg;

	if (f->piece == NULL)
		http_drop(f->q);
}

/* ---- conditions ---- */

static bool etag_listed(struct str list, struct str etag)
{
	struct str one;

	if (etag.n == 0 || list.n == 0)
		return false;
	while (str_next(&list, ',', &one)) {
		one = str_trim(one);
		if (str_starts(one, STR("W/")))
			one = str_slice(one, 2, one.n - 2);
		if (str_is(one, "*") ||
			(one.n == etag.n + 2 && one.p[0] == '"' && one.p[one.n - 1] == '"' &&
				str_eq(str_slice(one, 1, etag.n), etag)))
			return true;
	}
	return false;
}

enum range { RANGE_ALL, RANGE_PART, RANGE_BAD };

/* One range of RFC 9110, 14.1.2. Several ranges, and what is not understood, mean the whole file.
 */
static enum range range_of(struct str v, int64_t size, int64_t *ret_from, int64_t *ret_end)
{
	struct str first;
	int64_t a = 0, b = size - 1;
	bool has_a, has_b;

	if (!str_starts(v, STR("bytes=")) || str_find_char(v, ',') >= 0)
		return RANGE_ALL;
	v = str_slice(v, 6, v.n - 6);
	if (str_find_char(v, '-') < 0 || !str_next(&v, '-', &first))
		return RANGE_ALL;
	has_a = first.n != 0;
	has_b = v.n != 0;
	if ((has_a && !num_parse_i64(first, 0, INT64_MAX - 1, &a)) ||
		(has_b && !num_parse_i64(v, 0, INT64_MAX - 1, &b)) || (!has_a && !has_b) ||
		(has_a && b < a && has_b))
		return RANGE_ALL;
	if (!has_a) { /* the last b bytes */
		if (b == 0 || size == 0)
			return RANGE_BAD;
		a = b < size ? size - b : 0;
		b = size - 1;
	}
	if (a >= size)
		return RANGE_BAD;
	*ret_from = a;
	*ret_end = (b < size - 1 ? b : size - 1) + 1;
	return RANGE_PART;
}

static bool if_range_fits(const struct http_req *q, struct str etag)
{
	struct str v = http_header(q, "if-range");

	return v.p == NULL || (etag.n != 0 && v.n == etag.n + 2 && v.p[0] == '"' &&
				      v.p[v.n - 1] == '"' && str_eq(str_slice(v, 1, etag.n), etag));
}

static void headers_add(struct http_req *q, const struct http_file *f)
{
	if (f->etag.n != 0)
		http_reply_header(q, "ETag", arena_printf(q->arena, "\"%.*s\"", STR_ARG(f->etag)));
	http_reply_header(q, "Accept-Ranges", STR("bytes"));
	if (f->download_name.n != 0) {
		struct buf b;

		/* RFC 8187: everything but unreserved characters is encoded. */
		buf_init(&b, 4096);
		buf_adds(&b, "attachment; filename*=UTF-8''");
		for (size_t i = 0; i < f->download_name.n && i < 1000; i++) {
			unsigned char c = (unsigned char)f->download_name.p[i];
			bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				     (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';

			buf_addf(&b, plain ? "%c" : "%%%02X", c);
		}
		http_reply_header(q, "Content-Disposition", buf_str(&b));
		buf_done(&b);
	}
	/* Whatever a user has stored is never run as a page of ours. */
	http_reply_header(q, "Content-Security-Policy", STR("sandbox; default-src 'none'"));
}

static void file_begin(
	struct http_req *q, const struct http_file *f, int status, int64_t from, int64_t end)
{
	struct file_flow *flow = mem_new_of(struct file_flow);

	*flow = (struct file_flow){ .q = q, .fd = f->fd, .at = from, .end = end };
	if (from == 0 && end == f->size) {
		flow->inspect = f->inspect;
		flow->inspect_arg = f->inspect_arg;
	}
	arena_defer(q->arena, flow_free, flow);
	http_stream_begin(q, status, f->type, end - from);
	if (str_is(q->method, "HEAD")) {
		http_call_of(q)->sent = (uint64_t)(end - from);
		flow->at = end;
	}
	http_on_close(q, file_on_close, flow);
	file_next(flow);
}

void http_reply_file(struct http_req *q, const struct http_file *f)
{
	int64_t from = 0, end = f->size;
	struct str range = http_header(q, "range");
	enum range r = RANGE_ALL;
	int status = 200;

	if (http_gone(q)) {
		close(f->fd);
		http_drop(q);
		return;
	}
	headers_add(q, f);
	if (etag_listed(http_header(q, "if-none-match"), f->etag)) {
		close(f->fd);
		http_reply_empty(q, 304);
		return;
	}
	if (range.p != NULL && str_is(q->method, "GET") && if_range_fits(q, f->etag))
		r = range_of(range, f->size, &from, &end);
	if (r == RANGE_BAD) {
		struct err e;

		close(f->fd);
		http_reply_header(q, "Content-Range",
			arena_printf(q->arena, "bytes */%lld", (long long)f->size));
		err_set(&e, ERR_RANGE, "The range lies outside the %lld bytes", (long long)f->size);
		if (f->refuse != NULL)
			f->refuse(f->refuse_arg, &e);
		else
			http_reply_err(q, &e);
		return;
	}
	if (r == RANGE_PART) {
		status = 206;
		http_reply_header(q, "Content-Range",
			arena_printf(q->arena, "bytes %lld-%lld/%lld", (long long)from,
				(long long)end - 1, (long long)f->size));
	}
	file_begin(q, f, status, from, end);
}
