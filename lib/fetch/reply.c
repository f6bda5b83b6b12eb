#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/num.h"
#include "lib/fetch/inside.h"
#include "lib/json/field.h"

#include <stddef.h>
#include <time.h>

/* What comes back: the head, the body on its way to its sink, and what can be read from them. */

#define SET(f, option, value) BUG_ON(curl_easy_setopt((f)->easy, (option), (value)) != CURLE_OK)

struct str fetch_header(const struct fetch_reply *reply, const char *name)
{
	struct str rest = reply->head, line, want = str_c(name);

	while (rest.n != 0 && str_next(&rest, '\n', &line)) {
		if (line.n != 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n > want.n && line.p[want.n] == ':' &&
			str_eq_nocase(str_slice(line, 0, want.n), want))
			return str_trim(str_slice(line, want.n + 1, line.n));
	}
	return STR_NONE;
}

static bool is_failure(const struct fetch *f)
{
	return f->reply.status >= 400;
}

/* The limit of what goes to the sink. */
static uint64_t sink_limit(const struct fetch *f)
{
	if (f->q.to_fd || f->q.push != NULL)
		return f->q.max_bytes != 0 ? f->q.max_bytes : UINT64_MAX;
	return f->q.max_body != 0 ? f->q.max_body : FETCH_BODY_MAX;
}

static int too_large(struct fetch *f)
{
	return err_set(&f->e, ERR_TOO_LARGE, "the reply has more than %llu bytes",
		(unsigned long long)sink_limit(f));
}

static int head_complete(struct fetch *f)
{
	struct fetch_reply *r = &f->reply;
	uint64_t length = 0;
	long status = 0;
	char *from = NULL;

	if (curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK)
		return err_set(&f->e, ERR_NETWORK, "the reply has no status");
	if (status < 200) { /* 100 Continue and the like: the real head follows */
		buf_clear(&f->head);
		return 0;
	}
	f->head_done = true;
	r->status = (int)status;
	if (curl_easy_getinfo(f->easy, CURLINFO_LOCAL_IP, &from) == CURLE_OK && from != NULL)
		(void)str_print(r->from, sizeof r->from, "%s", from);
	r->head = buf_str(&f->head);
	r->content_type = fetch_header(r, "content-type");
	r->location = fetch_header(r, "location");
	r->etag = fetch_header(r, "etag");
	r->retry_after = fetch_header(r, "retry-after");
	if (!is_failure(f) && strcmp(f->method, "HEAD") != 0 &&
		num_parse_u64(fetch_header(r, "content-length"), 0, UINT64_MAX, &length) &&
		length > sink_limit(f))
		return too_large(f);
	if (f->q.on_head != NULL)
		f->q.on_head(f->q.arg, r);
	return 0;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;
	struct str line = { p, size * n };

	if (f->over || f->cancelled)
		return 0;
	if (f->head_done)
		return line.n; /* a trailer */
	if (str_starts(line, STR("HTTP/")))
		buf_clear(&f->head);
	if (str_is(line, "\r\n") || str_is(line, "\n"))
		return head_complete(f) < 0 ? 0 : line.n;
	buf_add(&f->head, line);
	if (!buf_failed(&f->head))
		return line.n;
	(void)err_set(&f->e, ERR_TOO_LARGE, "the head of the reply has more than %d bytes",
		FETCH_HEAD_MAX);
	return 0;
}

static int to_sink(struct fetch *f, struct str bytes)
{
	if (is_failure(f)) {
		buf_add(&f->body, str_slice(bytes, 0, FETCH_ERROR_BODY_MAX - f->body.n));
		return 0;
	}
	if (bytes.n > sink_limit(f) - f->reply.received)
		return too_large(f);
	if (f->q.push != NULL)
		return f->q.push(f->q.arg, bytes, &f->e);
	if (f->q.to_fd)
		return fs_write_all(f->q.out_fd, bytes, "the body of a reply", &f->e);
	buf_add(&f->body, bytes);
	return 0;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;
	struct str bytes = { p, size * n };

	if (f->over || f->cancelled)
		return 0;
	if (f->paused)
		return CURL_WRITEFUNC_PAUSE;
	if (to_sink(f, bytes) < 0)
		return 0; /* fewer than given: libcurl ends the transfer */
	f->reply.received += bytes.n;
	return bytes.n;
}

void reply_setup(struct fetch *f)
{
	uint64_t keep = f->q.to_fd || f->q.push != NULL ? 0 : sink_limit(f);

	buf_init(&f->head, FETCH_HEAD_MAX);
	buf_init(&f->body, keep > FETCH_ERROR_BODY_MAX ? (size_t)keep : FETCH_ERROR_BODY_MAX);
	SET(f, CURLOPT_HEADERFUNCTION, on_header);
	SET(f, CURLOPT_HEADERDATA, f);
	SET(f, CURLOPT_WRITEFUNCTION, on_body);
	SET(f, CURLOPT_WRITEDATA, f);
}

/* ---- reading a reply ------------------------------------------------------------------------- */

struct culprit {
	struct str pointer, detail;
};
static const struct field culprit_fields[] = {
	{ "pointer", FIELD_STR, 0, offsetof(struct culprit, pointer) },
	{ "detail", FIELD_STR, FIELD_TEXT, offsetof(struct culprit, detail), .max = 4096 },
	{ 0 },
};
struct problem {
	struct str code, title, detail, pointer;
	struct list errors;
};
static const struct field problem_fields[] = {
	{ "code", FIELD_STR, 0, offsetof(struct problem, code) },
	{ "title", FIELD_STR, FIELD_TEXT, offsetof(struct problem, title) },
	{ "detail", FIELD_STR, FIELD_TEXT, offsetof(struct problem, detail), .max = 4096 },
	{ "pointer", FIELD_STR, 0, offsetof(struct problem, pointer) },
	{ "errors", FIELD_LIST, 0, offsetof(struct problem, errors), .sub = culprit_fields,
		.size = sizeof(struct culprit) },
	{ 0 },
};

static enum err_code code_of_status(int status)
{
	for (int i = 1; i < ERR_COUNT; i++) {
		if (err_http((enum err_code)i) == status)
			return (enum err_code)i;
	}
	return status >= 500 ? ERR_INTERNAL : ERR_INVALID;
}

static enum err_code code_of(struct str name, int status)
{
	for (int i = 1; i < ERR_COUNT; i++) {
		if (str_is(name, err_name((enum err_code)i)))
			return (enum err_code)i;
	}
	return code_of_status(status);
}

int fetch_problem(const struct fetch_reply *reply, struct err *e)
{
	struct arena *a;
	struct problem p = { .code = STR_NONE };
	struct err ignored;
	struct str text;

	if (reply->status < 400)
		return 0;
	a = arena_new(4 << 20);
	if (!str_starts(reply->content_type, STR("application/problem+json")) ||
		field_decode_reply(problem_fields, reply->body, a, &p, &ignored) < 0)
		p = (struct problem){ .code = STR_NONE };
	text = p.detail.n != 0 ? p.detail : p.title;
	if (text.n != 0)
		(void)err_set(e, code_of(p.code, reply->status), "%.*s", STR_ARG(text));
	else
		(void)err_set(e, code_of(p.code, reply->status),
			"the server answered with status %d", reply->status);
	if (p.pointer.n == 0 && p.errors.n != 0)
		p.pointer = list_at(&p.errors, struct culprit, 0)->pointer;
	if (p.pointer.n != 0)
		(void)str_print(e->field, sizeof e->field, "%.*s", STR_ARG(p.pointer));
	arena_drop(a);
	return -1;
}

int64_t fetch_retry_after(const struct fetch_reply *reply, int64_t now)
{
	uint64_t seconds = 0;
	char text[64];
	int64_t wait;

	if (reply->retry_after.n == 0)
		return 0;
	if (num_parse_u64(reply->retry_after, 0, UINT64_MAX / CLOCK_SECOND, &seconds))
		return seconds < 3600 ? (int64_t)seconds * CLOCK_SECOND : CLOCK_HOUR;
	if (!str_print(text, sizeof text, "%.*s", STR_ARG(reply->retry_after)))
		return 0;
	time_t date = curl_getdate(text, NULL);
	if (date < 0)
		return 0;
	/* By the clock of whoever has sent it, where that is told. */
	time_t sent = str_print(text, sizeof text, "%.*s", STR_ARG(fetch_header(reply, "Date")))
			      ? curl_getdate(text, NULL)
			      : -1;
	wait = (int64_t)date * CLOCK_SECOND - (sent > 0 ? (int64_t)sent * CLOCK_SECOND : now);
	return wait < 0 ? 0 : wait < CLOCK_HOUR ? wait : CLOCK_HOUR;
}
