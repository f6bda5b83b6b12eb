/*
 * All points of a metric. With max_results a page and a token (the last point's place, so that
 * pages stay true while points are added); without, the whole history, streamed page by page so
 * that its length costs no memory. A page is written as text in the work pool, for it takes longer
 * than the loop may be held.
 *
 *     get_history → (run) → page → on_page → write_points … on_written → reply
 *                             ↑______________ stream _______________|
 */
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/loop/work.h"
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
	/* A page; the work pool's while it is written. */
	struct metric_after *points;
	size_t n;
	bool more;
	struct buf text;
};

static void history_on_run(struct call *c);
static void history_page(void *arg);
static void history_on_page(void *arg, const struct db_rows *rows, const struct err *e);
static void history_write(void *arg);
static void history_on_written(void *arg);
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

static void take_points(struct history *h, const struct db_rows *r)
{
	size_t max = h->limit != 0 ? (size_t)h->limit : PAGE;

	h->more = r->n > max;
	h->n = h->more ? max : r->n;
	h->points = mem_new(h->n, sizeof *h->points);
	for (size_t i = 0; i < h->n; i++)
		h->points[i] = (struct metric_after){ true, db_int(r, i, 2), db_int(r, i, 3),
			db_real(r, i, 0), db_bool(r, i, 1) };
}

static void history_on_page(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct history *h = arg;
	struct err why = *e;

	if (h->gone) {
		http_drop(h->call->req);
		return;
	}
	if (e->code == ERR_OK) {
		take_points(h, &rows[0]);
		buf_init(&h->text, h->limit != 0 ? FLOW_REPLY_MAX : PAGE_BYTES_MAX);
		if (work_submit(h->call->app->loop, history_write, history_on_written, h, &why) ==
			0)
			return;
		mem_free(h->points);
	}
	if (h->begun)
		http_stream_abort(h->call->req);
	else
		call_fail(h->call, &why);
}

static void history_write(void *arg)
{
	struct history *h = arg;

	if (!h->begun)
		buf_adds(&h->text, h->n != 0 ? "{\"metrics\":[" : "{");
	for (size_t i = 0; i < h->n; i++) {
		struct jsn_out w = jsn_out(&h->text);
		const struct metric_after *p = &h->points[i];

		if (!h->first)
			buf_addc(&h->text, ',');
		h->first = false;
		wire_metric(&w, h->key, p->is_nan ? (double)__builtin_nanf("") : p->value, p->time,
			p->step);
	}
	if (h->n != 0)
		h->after = h->points[h->n - 1];
	if (h->limit == 0 && !h->more)
		buf_adds(&h->text, h->first ? "}" : "]}");
}

static void reply_page(struct history *h)
{
	buf_adds(&h->text, h->n != 0 ? "]" : "");
	if (h->more)
		buf_addf(&h->text, ",\"next_page_token\":\"%s\"",
			token_text(h->call->arena, &h->after).p);
	buf_adds(&h->text, "}");
	flow_reply(h->call, &h->text);
}

static void stream_page(struct history *h)
{
	struct http_req *q = h->call->req;
	bool cut = buf_failed(&h->text);

	if (!h->begun)
		http_stream_begin(q, 200, "application/json", -1);
	h->begun = true;
	if (!cut)
		(void)http_stream_write(q, buf_str(&h->text));
	buf_done(&h->text);
	if (cut || h->gone)
		http_stream_abort(q);
	else if (!h->more)
		http_stream_end(q);
	else
		http_stream_on_drain(q, history_page, h);
}

static void history_on_written(void *arg)
{
	struct history *h = arg;

	mem_free(h->points);
	h->points = NULL;
	if (h->gone) {
		buf_done(&h->text);
		http_drop(h->call->req);
	} else if (h->limit != 0) {
		reply_page(h);
	} else {
		stream_page(h);
	}
}

const struct binding mlflow_history_bindings[] = {
	{ "mlflow.metrics.get_history", get_history },
	{ 0 },
};
