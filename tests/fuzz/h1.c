/*
 * The reader of HTTP heads and bodies: the same bytes in any pieces must give the same result, all
 * offsets must lie within the head, and a refusal must have its reason. The first two bytes choose
 * where the input is cut.
 */
#include "lib/http/h1.h"
#include "lib/base/mem.h"

struct seen {
	enum h1_status head, body;
	enum err_code code;
	size_t used, data;
	uint64_t sum;
};

static void check_span(const struct h1_head *h, struct h1_span s)
{
	BUG_ON(s.n > h->size || s.at > h->size - s.n);
}

static void check_head(const struct h1_head *h)
{
	check_span(h, h->method);
	check_span(h, h->target);
	check_span(h, h->path);
	check_span(h, h->query);
	check_span(h, h->host);
	for (size_t i = 0; i < h->n_fields; i++) {
		check_span(h, h->fields[i].name);
		check_span(h, h->fields[i].value);
	}
}

static void read_head(struct h1_head *h, struct str p, struct seen *o)
{
	/* A copy of exactly these bytes: reading past them is seen by the sanitizer. */
	char *copy = mem_new(p.n + 1, 1);

	memcpy(copy + 1, p.p, p.n);
	o->head = h1_head_feed(h, (struct str){ copy + 1, p.n });
	mem_free(copy);
	if (o->head == H1_BAD) {
		BUG_ON(h->why == NULL || h->code == ERR_OK);
		o->code = h->code;
	} else if (o->head == H1_DONE) {
		BUG_ON(h->size > p.n);
		check_head(h);
		o->used = h->size;
	}
}

static struct seen read_in_pieces(struct str p, size_t first, size_t step)
{
	static const struct h1_limits limits = { 300, 200, 1000, 20 };
	struct seen o = { .head = H1_MORE, .body = H1_MORE };
	struct h1_head h;
	struct h1_body b = { .state = 0 };
	bool begun = false;

	h1_head_init(&h, &limits);
	for (size_t have = first < p.n ? first : p.n;; have += step) {
		have = have < p.n ? have : p.n;
		if (o.head == H1_MORE)
			read_head(&h, (struct str){ p.p, have }, &o);
		if (o.head == H1_DONE && !begun) {
			h1_body_init(&b, h.framing, h.length);
			begun = true;
		}
		while (begun && o.body == H1_MORE) {
			struct str data;
			size_t used;

			o.body = h1_body_feed(
				&b, (struct str){ p.p + o.used, have - o.used }, &used, &data);
			BUG_ON(used > have - o.used || data.n > used);
			o.used += used;
			o.data += data.n;
			for (size_t i = 0; i < data.n; i++)
				o.sum = o.sum * 31 + (unsigned char)data.p[i];
			if (used == 0)
				break;
		}
		if (have == p.n)
			break;
	}
	BUG_ON(o.body == H1_BAD && b.why == NULL);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str p;
	struct seen whole, cut;

	if (size < 2)
		return 0;
	p = (struct str){ (const char *)data + 2, size - 2 };
	whole = read_in_pieces(p, p.n, 1);
	cut = read_in_pieces(p, data[0], 1 + (size_t)data[1]);
	BUG_ON(whole.head != cut.head || whole.body != cut.body || whole.code != cut.code ||
		whole.used != cut.used || whole.data != cut.data || whole.sum != cut.sum);
	return 0;
}
