#include "server/rest/log_inside.h"

/* The worst that LOG_FOLLOW_TEXT bytes become in JSON, and what stands around them. */
enum { BATCH_MAX = LOG_EVENT_TEXT + 6 * LOG_FOLLOW_TEXT + 4096 };

void log_batch_add(struct log_batch *b, const struct log_line *line)
{
	struct buf one;

	if (b->n == 0) {
		buf_init(&b->json, BATCH_MAX);
		buf_adds(&b->json, "{\"lines\":[");
	}
	buf_init(&one, BATCH_MAX);
	field_encode(log_line_fields, line, &one);
	if (b->n++ != 0)
		buf_addc(&b->json, ',');
	buf_add(&b->json, buf_str(&one));
	b->json.failed |= one.failed;
	buf_done(&one);
}

bool log_batch_is_large(const struct log_batch *b)
{
	return b->n != 0 && b->json.n >= LOG_EVENT_TEXT;
}

struct sse_event *log_batch_event(struct log_batch *b, int64_t id, size_t *ret_n)
{
	char text[24];
	struct sse_event *ev;

	(void)str_print(text, sizeof text, "%lld", (long long)id);
	buf_adds(&b->json, "]}");
	BUG_ON(buf_failed(&b->json));
	*ret_n = b->json.n;
	ev = sse_event_new(str_c(text), STR("lines"), buf_str(&b->json));
	log_batch_done(b);
	return ev;
}

void log_batch_done(struct log_batch *b)
{
	if (b->n != 0)
		buf_done(&b->json);
	b->n = 0;
}
