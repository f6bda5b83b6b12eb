/*
 * All points of a metric. With max_results a page and a token (the last point's place, so that
 * pages stay true while points are added); without, the whole history, streamed page by page so
 * that its length costs no memory.
 *
 *     get_history → (run) → page → on_page → reply
 *                             ↑___ stream ___|
 */
#include "lib/base/num.h"
#include "server/mlflow/handlers.h"
#include "server/mlflow/limits.h"
#include "server/mlflow/wire.h"
#include "server/store/tracking_store.h"

enum { PAGE = 25000, PAGE_BYTES_MAX = 32 << 20 };

struct history {
	struct call *call;
	struct str key;
	struct metric_after after;
	int64_t limit; /* 0: all */
	bool begun, first, gone;
};

static void history_on_run(struct call *c);
static void history_page(void *arg);
static void history_on_page(void *arg, const struct db_rows *rows, const struct err *e);
static void history_on_close(void *arg);

static bool token_parse(struct str token, struct metric_after *ret)
{
	struct str time, step, bits;
	uint64_t raw;

	if (!str_next(&token, '_', &time) || !str_next(&token, '_', &step) ||
		!str_next(&token, '_', &bits) ||
		!num_parse_i64(time, INT64_MIN, INT64_MAX, &ret->time) ||
		!num_parse_i64(step, INT64_MIN, INT64_MAX, &ret->step) ||
		!num_parse_hex_u64(bits, &raw) || (!str_is(token, "0") && !str_is(token, "1")))
		return false;
	memcpy(&ret->value, &raw, sizeof raw);
	ret->is_nan = str_is(token, "1");
	ret->has = true;
	return ret->value == ret->value;
}

static struct str token_text(struct arena *a, const struct metric_after *p)
{
	uint64_t raw;

	memcpy(&raw, &p->value, sizeof raw);
	return arena_printf(a, "%lld_%lld_%llx_%d", (long long)p->time, (long long)p->step,
		(unsigned long long)raw, p->is_nan);
}

static void get_history(struct call *c)
{
	struct str id = flow_arg(c, "run_id"), max = flow_arg(c, "max_results");
	struct str token = flow_arg(c, "page_token");
	struct history *h = arena_new_of(c->arena, struct history);

	*h = (struct history){ .call = c, .key = flow_arg(c, "metric_key"), .first = true };
	if (!flow_need(c, id.n != 0 ? id : flow_arg(c, "run_uuid"), "run_id") ||
		!flow_need(c, h->key, "metric_key"))
		return;
	if (max.n != 0 && !num_parse_i64(max, 1, INT64_MAX, &h->limit)) {
		flow_invalid(c,
			"Invalid value %.*s for parameter 'max_results' supplied: it must be a "
			"positive integer.",
			STR_ARG(str_slice(max, 0, 100)));
		return;
	}
	if (token.n != 0 && !token_parse(token, &h->after)) {
		flow_invalid(c, "Invalid page token");
		return;
	}
	if (h->limit > PAGE)
		h->limit = PAGE;
	flow_of(c)->mine = h;
	flow_find_run(c, id.n != 0 ? id : flow_arg(c, "run_uuid"), FLOW_READ, history_on_run);
}

static void history_on_run(struct call *c)
{
	struct history *h = flow_of(c)->mine;

	http_on_close(c->req, history_on_close, h);
	history_page(h);
}

static void history_on_close(void *arg)
{
	struct history *h = arg;

	h->gone = true;
}

static void history_page(void *arg)
{
	struct history *h = arg;
	struct call *c = h->call;
	int64_t count = (h->limit != 0 ? h->limit : PAGE) + 1;
	struct db_unit *u = db_unit(c->app->db, c->arena);

	metric_store_history(u, flow_of(c)->run.run_id, h->key, &h->after, count);
	db_send(u, DB_READ, history_on_page, h);
}

/* Writes up to n points and remembers the last one. */
static void put_points(struct history *h, const struct db_rows *r, size_t n, struct buf *b)
{
	for (size_t i = 0; i < n; i++) {
		struct jsn_out w = jsn_out(b);
		struct metric_after *p = &h->after;

		*p = (struct metric_after){ true, db_int(r, i, 2), db_int(r, i, 3),
			db_real(r, i, 0), db_bool(r, i, 1) };
		if (!h->first)
			buf_addc(b, ',');
		h->first = false;
		wire_metric(&w, h->key, p->is_nan ? (double)__builtin_nanf("") : p->value, p->time,
			p->step);
	}
}

static void reply_page(struct history *h, const struct db_rows *r)
{
	struct buf b;
	size_t n = r->n > (size_t)h->limit ? (size_t)h->limit : r->n;

	buf_init(&b, FLOW_REPLY_MAX);
	buf_adds(&b, n != 0 ? "{\"metrics\":[" : "{");
	put_points(h, r, n, &b);
	buf_adds(&b, n != 0 ? "]" : "");
	if (r->n > n)
		buf_addf(
			&b, ",\"next_page_token\":\"%s\"", token_text(h->call->arena, &h->after).p);
	buf_adds(&b, "}");
	flow_reply(h->call, &b);
}

static void stream_page(struct history *h, const struct db_rows *r)
{
	struct http_req *q = h->call->req;
	struct buf b;
	size_t n = r->n > PAGE ? PAGE : r->n;

	if (!h->begun)
		http_stream_begin(q, 200, "application/json", -1);
	buf_init(&b, PAGE_BYTES_MAX);
	if (!h->begun)
		buf_adds(&b, n != 0 ? "{\"metrics\":[" : "{");
	h->begun = true;
	put_points(h, r, n, &b);
	if (r->n <= n)
		buf_adds(&b, h->first ? "}" : "]}");
	bool cut = buf_failed(&b);
	if (!cut)
		(void)http_stream_write(q, buf_str(&b));
	buf_done(&b);
	if (cut || h->gone)
		http_stream_abort(q);
	else if (r->n <= n)
		http_stream_end(q);
	else
		http_stream_on_drain(q, history_page, h);
}

static void history_on_page(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct history *h = arg;

	if (h->gone)
		http_drop(h->call->req);
	else if (e->code != ERR_OK && h->begun)
		http_stream_abort(h->call->req);
	else if (e->code != ERR_OK)
		call_fail(h->call, e);
	else if (h->limit != 0)
		reply_page(h, &rows[0]);
	else
		stream_page(h, &rows[0]);
}

const struct binding mlflow_history_bindings[] = {
	{ "mlflow.metrics.get_history", get_history },
	{ 0 },
};
