#include "worker/evidence.h"

#include "lib/json/json_write.h"

#include <sys/types.h>

static void put(struct jsn_out *w, const char *name, int64_t value)
{
	if (value == 0)
		return;
	jsn_key(w, name);
	jsn_int(w, value);
}

/* Where the last `lines` lines of the text begin. */
static size_t tail_start(struct str text, size_t lines)
{
	size_t at = text.n;

	if (at > 0 && text.p[at - 1] == '\n')
		at--;
	while (at > 0)
		if (text.p[--at] == '\n' && --lines == 0)
			return at + 1;
	return 0;
}

static void put_lines(struct jsn_out *w, struct str text, size_t lines, struct arena *a)
{
	struct str rest, line;

	rest = str_slice(text, tail_start(text, lines), text.n);
	if (rest.n > 0 && rest.p[rest.n - 1] == '\n')
		rest.n--;
	if (rest.n == 0)
		return;
	/* What JSON, or whoever shows it, cannot bear. */
	char *clean = arena_dup(a, rest);
	for (size_t i = 0; i < rest.n; i++)
		if (((unsigned char)clean[i] < 0x20 && clean[i] != '\n') || clean[i] == 0x7f)
			clean[i] = ' ';
	rest.p = clean;
	jsn_key(w, "log_tail");
	jsn_list_begin(w);
	while (str_next(&rest, '\n', &line))
		jsn_str(w, line);
	jsn_list_end(w);
}

static void put_str(struct jsn_out *w, const char *name, struct str value)
{
	if (value.n == 0)
		return;
	jsn_key(w, name);
	jsn_str(w, value);
}

/* The digest is what stands behind the @ of the reference, or the id of an image that has none. */
static void put_image(struct jsn_out *w, const struct evidence *v)
{
	ptrdiff_t at = str_find_char(v->image_ref, '@');

	if (v->image_id.n == 0 && v->image_fault.n == 0)
		return;
	put_str(w, "image", v->image);
	put_str(w, "image_id", v->image_id);
	put_str(w, "image_ref", v->image_ref);
	put_str(w, "image_digest", str_slice(v->image_ref, (size_t)(at + 1), v->image_ref.n));
	put_str(w, "image_fault", v->image_fault);
}

struct str evidence_image(const struct evidence *v, struct arena *a)
{
	struct buf b;

	if (v->image_ref.n == 0)
		return STR("");
	buf_init(&b, EVIDENCE_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	put_image(&w, v);
	jsn_obj_end(&w);
	struct str text = arena_str(a, buf_str(&b));
	buf_done(&b);
	return text;
}

static void put_all(struct buf *b, const struct evidence *v, size_t lines, struct arena *a)
{
	const struct runtime_status *s = v->status;
	struct jsn_out w = jsn_out(b);

	jsn_obj_begin(&w);
	put(&w, "peak_memory", s->max_rss);
	put(&w, "user_us", s->user_us);
	put(&w, "system_us", s->system_us);
	put(&w, "stdout_bytes", s->stdout_bytes);
	put(&w, "stderr_bytes", s->stderr_bytes);
	put(&w, "dropped_bytes", s->dropped_bytes);
	put(&w, "lost_bytes", s->lost_bytes);
	put(&w, "signal", s->signo);
	put(&w, "oom_kills", s->oom_kills);
	put(&w, "container_memory_peak", s->memory_peak);
	put(&w, "container_memory_limit", s->memory_limit);
	put(&w, "read_bytes", s->read_bytes);
	put(&w, "written_bytes", s->written_bytes);
	put(&w, "throttled_us", s->throttled_us);
	put_str(&w, "killed_by", str_c(runtime_killer_name(s->killer)));
	put_image(&w, v);
	if (v->resumed) {
		jsn_key(&w, "resumed");
		jsn_bool(&w, true);
	}
	if (v->checkpoint != NULL && v->checkpoint[0] != '\0') {
		jsn_key(&w, "checkpoint");
		jsn_text(&w, v->checkpoint);
	}
	if (lines != 0 && v->log_tail.n != 0)
		put_lines(&w, v->log_tail, lines, a);
	jsn_obj_end(&w);
}

struct str evidence_make(const struct evidence *v, struct arena *a)
{
	struct buf b;

	buf_init(&b, EVIDENCE_MAX);
	put_all(&b, v, EVIDENCE_LINES, a);
	for (size_t lines = EVIDENCE_LINES / 2; buf_failed(&b); lines /= 2) {
		buf_clear(&b);
		put_all(&b, v, lines, a);
		if (lines == 0)
			break;
	}
	struct str text = arena_str(a, buf_str(&b));
	buf_done(&b);
	return text;
}
