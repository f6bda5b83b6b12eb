/*
 * The sender of notifications: what is pending goes out in one transaction per interval; what comes
 * meanwhile waits for the next. After a connection loss the batch in flight is sent again, since a
 * notification that comes twice does no harm.
 */
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/encode.h"
#include "lib/db/link.h"
#include "lib/db/listen.h"
#include "lib/db/sql.h"
#include "lib/loop/defer.h"

#include <libpq-fe.h>

enum {
	PAYLOADS_MAX = 64,
	CHANNELS_MAX = 64,
	INTERVAL_US = 5000,
	ANSWER_MS = 5000,
	ARRAY_BYTES = 8 << 20
};

struct hints { /* of one channel, to be sent */
	char *channel;
	size_t n;
	char *payloads[PAYLOADS_MAX];
};

struct db_notify {
	struct conninfo info;
	struct link link;
	int64_t interval, last;
	struct loop_timer timer; /* the next transaction, or the end of waiting for its answer */
	struct hints channels[CHANNELS_MAX];
	size_t nchannels;
	size_t sent[CHANNELS_MAX]; /* how many payloads of each are in flight, from the first */
	bool busy;
};

static void notify_on_up(void *arg);
static void notify_on_timer(void *arg);
static void notify_on_input(void *arg);
static void notify_on_down(void *arg);

static const struct link_ops ops = { notify_on_up, notify_on_input, notify_on_down };

struct db_notify *db_notify_new(struct loop *loop, const char *conninfo, int64_t interval)
{
	struct db_notify *n = mem_new_of(struct db_notify);
	struct err e;

	n->interval = interval > 0 ? interval : INTERVAL_US;
	if (conninfo_parse(&n->info, conninfo, "tidemill-notify",
		    "-c statement_timeout=5000 -c synchronous_commit=off", &e) < 0)
		bug_at(e.file, e.line, e.msg);
	loop_timer_init(&n->timer, loop, notify_on_timer, n);
	link_init(&n->link, loop, &n->info, &ops, n);
	n->link.label = "notify";
	link_start(&n->link);
	return n;
}

static void hints_drop(struct hints *h, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(h->payloads[i]);
	h->n -= count;
	memmove(h->payloads, h->payloads + count, h->n * sizeof h->payloads[0]);
}

void db_notify_free(struct db_notify *n)
{
	if (n == NULL)
		return;
	loop_timer_cancel(&n->timer);
	link_done(&n->link);
	for (size_t i = 0; i < n->nchannels; i++) {
		hints_drop(&n->channels[i], n->channels[i].n);
		mem_free(n->channels[i].channel);
	}
	conninfo_done(&n->info);
	loop_defer(n->link.loop, mem_free, n);
}

static void arm(struct db_notify *n)
{
	if (!n->busy && n->link.state == LINK_UP && !loop_timer_armed(&n->timer))
		loop_timer_at(&n->timer, n->last + n->interval);
}

static size_t channel_of(struct db_notify *n, const char *channel)
{
	size_t i = 0;

	while (i < n->nchannels && strcmp(n->channels[i].channel, channel) != 0)
		i++;
	if (i == n->nchannels) {
		BUG_ON(i == CHANNELS_MAX);
		n->channels[n->nchannels++].channel = mem_dup(channel);
	}
	return i;
}

void db_notify_send(struct db_notify *n, const char *channel, struct str payload)
{
	size_t at = channel_of(n, channel), first = n->sent[at];
	struct hints *h = &n->channels[at];

	if (payload.n > DB_NOTIFY_PAYLOAD || (payload.n > 0 && memchr(payload.p, 0, payload.n)))
		payload = STR_NONE;
	for (size_t i = first; i < h->n; i++)
		if (h->payloads[i][0] == '\0' || str_is(payload, h->payloads[i]))
			return; /* said already */
	if (payload.n == 0 || h->n == PAYLOADS_MAX) {
		/* "Anything may have changed" says it all. What is in flight stays. */
		while (h->n > first)
			mem_free(h->payloads[--h->n]);
		payload = STR_NONE;
	}
	if (h->n == PAYLOADS_MAX) { /* all in flight: the last one is said again, as anything */
		mem_free(h->payloads[--h->n]);
		n->sent[at]--;
	}
	h->payloads[h->n++] = mem_dupn(payload.p != NULL ? payload.p : "", payload.n);
	arm(n);
}

static void notify_on_up(void *arg)
{
	struct db_notify *n = arg;

	for (size_t i = 0; i < n->nchannels; i++)
		if (n->channels[i].n > 0)
			arm(n);
}

/* The two arrays of everything that is pending. False when there is nothing. */
static bool gather(struct db_notify *n, struct buf *channels, struct buf *payloads)
{
	struct str *c = mem_new((size_t)CHANNELS_MAX * PAYLOADS_MAX, sizeof *c);
	struct str *p = mem_new((size_t)CHANNELS_MAX * PAYLOADS_MAX, sizeof *p);
	struct db_arg channel_arg, payload_arg;
	size_t count = 0;
	struct err e;

	for (size_t i = 0; i < n->nchannels; i++) {
		struct hints *h = &n->channels[i];

		for (size_t k = 0; k < h->n; k++) {
			c[count] = str_c(h->channel);
			p[count++] = str_c(h->payloads[k]);
		}
		n->sent[i] = h->n;
	}
	channel_arg = DB_TEXTS(c, count);
	payload_arg = DB_TEXTS(p, count);
	BUG_ON(db_encode(channels, SQL_TYPE_TEXT_ARRAY, &channel_arg, &e) < 0);
	BUG_ON(db_encode(payloads, SQL_TYPE_TEXT_ARRAY, &payload_arg, &e) < 0);
	mem_free(c);
	mem_free(p);
	return count > 0;
}

static void send_pending(struct db_notify *n)
{
	static const Oid types[2] = { SQL_TYPE_TEXT_ARRAY, SQL_TYPE_TEXT_ARRAY };
	static const int formats[2] = { 1, 1 };
	struct buf channels, payloads;
	int rc = 1;

	buf_init(&channels, ARRAY_BYTES);
	buf_init(&payloads, ARRAY_BYTES);
	if (gather(n, &channels, &payloads)) {
		const char *const values[2] = { channels.p, payloads.p };
		const int lengths[2] = { (int)channels.n, (int)payloads.n };

		n->busy = true;
		n->last = loop_now(n->link.loop);
		loop_timer_set(&n->timer, ANSWER_MS);
		rc = PQsendQueryParams(n->link.pg,
			"SELECT pg_notify(c, p) FROM unnest($1, $2) AS t (c, p)", 2, types, values,
			lengths, formats, 1);
	}
	buf_done(&channels);
	buf_done(&payloads);
	if (rc != 1)
		link_drop(&n->link, PQerrorMessage(n->link.pg));
	else if (!link_flush(&n->link))
		return; /* on_down has run */
}

static void notify_on_timer(void *arg)
{
	struct db_notify *n = arg;

	if (n->link.state != LINK_UP)
		return;
	if (n->busy)
		link_drop(&n->link, "the server does not answer any more");
	else
		send_pending(n);
}

static void forget_sent(struct db_notify *n)
{
	n->busy = false;
	loop_timer_cancel(&n->timer);
	for (size_t i = 0; i < n->nchannels; i++) {
		hints_drop(&n->channels[i], n->sent[i]);
		n->sent[i] = 0;
		if (n->channels[i].n > 0)
			arm(n);
	}
}

static void notify_on_input(void *arg)
{
	struct db_notify *n = arg;

	while (n->busy && PQisBusy(n->link.pg) == 0) {
		PGresult *res = PQgetResult(n->link.pg);
		ExecStatusType st = PQresultStatus(res);

		PQclear(res);
		if (res == NULL) {
			forget_sent(n);
		} else if (PQstatus(n->link.pg) != CONNECTION_OK) {
			link_drop(&n->link, PQerrorMessage(n->link.pg));
			return;
		} else if (st != PGRES_TUPLES_OK) {
			/* Not sent again: it would be refused again. Hints may be lost. */
			log_warn("notifications refused", LOG_S("why", PQerrorMessage(n->link.pg)));
		}
	}
}

static void notify_on_down(void *arg)
{
	struct db_notify *n = arg;

	n->busy = false;
	loop_timer_cancel(&n->timer);
	memset(n->sent, 0, sizeof n->sent);
}
