#include "lib/fetch/fetch.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/fetch/inside.h"
#include "lib/loop/defer.h"

/*
 * libcurl's multi handle on the loop. libcurl tells which sockets to watch and when to wake it; we
 * tell it what happened, and afterwards, outside of its callbacks, collect what is finished.
 *
 * A request leaves in complete(), which takes the handle out of libcurl, calls back, and frees.
 * Starting, cancelling and resuming may be asked for inside libcurl's callbacks, where its handles
 * must not be touched: they are deferred to the end of the turn. f->pending counts such calls still
 * to come, so that a request which completed meanwhile is freed by the last of them.
 */

#define SET(c, option, value) BUG_ON(curl_multi_setopt((c)->multi, (option), (value)) != CURLM_OK)

enum { KEEP_PER_REQUEST = 4 };

static void collect(struct fetch_client *c);

/* ---- sockets and timer ----------------------------------------------------------------------- */

static void on_ready(void *arg, int what)
{
	struct watch *w = arg; /* may be gone after curl_multi_socket_action */
	struct fetch_client *c = w->client;
	int running = 0, mask = 0;

	mask |= (what & LOOP_READ) != 0 ? CURL_CSELECT_IN : 0;
	mask |= (what & LOOP_WRITE) != 0 ? CURL_CSELECT_OUT : 0;
	BUG_ON(curl_multi_socket_action(c->multi, w->socket, mask, &running) != CURLM_OK);
	collect(c);
}

static void on_time(void *arg)
{
	struct fetch_client *c = arg;
	int running = 0;

	BUG_ON(curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running) != CURLM_OK);
	collect(c);
}

static void watch_free(struct watch *w)
{
	if (w->prev != NULL)
		w->prev->next = w->next;
	else
		w->client->watches = w->next;
	if (w->next != NULL)
		w->next->prev = w->prev;
	loop_fd_free(w->fd);
	mem_free(w);
}

static struct watch *watch_new(struct fetch_client *c, int socket)
{
	struct watch *w = mem_new_of(struct watch);

	w->client = c;
	w->socket = socket;
	w->fd = loop_fd_new(c->loop, socket, 0, on_ready, w);
	w->next = c->watches;
	if (w->next != NULL)
		w->next->prev = w;
	c->watches = w;
	BUG_ON(curl_multi_assign(c->multi, socket, w) != CURLM_OK);
	return w;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *arg, void *watch)
{
	struct watch *w = watch;
	int want = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) { /* the descriptor may be closed and reused right after */
		if (w != NULL)
			watch_free(w);
		return 0;
	}
	if (w == NULL)
		w = watch_new(arg, socket);
	want |= (what & CURL_POLL_IN) != 0 ? LOOP_READ : 0;
	want |= (what & CURL_POLL_OUT) != 0 ? LOOP_WRITE : 0;
	loop_fd_want(w->fd, want);
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
	struct fetch_client *c = arg;

	(void)multi;
	if (ms < 0)
		loop_timer_cancel(&c->timer);
	else
		loop_timer_set(&c->timer, ms); /* zero: in the next turn, never from here */
	return 0;
}

/* ---- client ---------------------------------------------------------------------------------- */

static char *copy(const char *s)
{
	return s != NULL ? mem_dup(s) : NULL;
}

static int check_options(const struct fetch_options *o, struct err *e)
{
	size_t n = o->base_url != NULL ? strlen(o->base_url) : 0;

	if ((o->token != NULL || o->token_file != NULL) && o->base_url == NULL)
		return err_set(e, ERR_INVALID, "a token needs the server that it is for");
	if (o->token != NULL && o->token_file != NULL)
		return err_set(e, ERR_INVALID, "a token or a token file, not both");
	if (o->base_url != NULL && !str_starts(str_c(o->base_url), STR("https://")) &&
		(o->https_only || !str_starts(str_c(o->base_url), STR("http://"))))
		return err_set(e, ERR_INVALID, "a server's address starts with %shttps://",
			o->https_only ? "" : "http:// or ");
	if (n > 2048)
		return err_set(e, ERR_INVALID, "a server's address is longer than 2048 bytes");
	return 0;
}

static void start_curl(void)
{
	static bool started; /* loop thread only, as all of this */

	if (started)
		return;
	BUG_ON(curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK);
	started = true;
}

/*
 * How many connections libcurl may hold, those in use among them. Left to itself it takes four
 * times the transfers that it has at the moment when one ends. That is too few here: transfers that
 * end in one turn of the loop leave one by one, those that follow them are all added at its end, so
 * that the last ones to leave find a small limit and close what the followers need. The most
 * transfers that there were at once is what counts. A connection is opened only when none to that
 * host is idle, so that one host never has more than that; the rest is for clients of several
 * hosts.
 */
static void keep_connections(struct fetch_client *c)
{
	unsigned most = c->most != 0 ? c->most : 1;

	SET(c, CURLMOPT_MAXCONNECTS,
		(long)(c->max_connections != 0 ? c->max_connections : most * KEEP_PER_REQUEST));
}

static void multi_add(struct fetch *f)
{
	struct fetch_client *c = f->client;

	BUG_ON(curl_multi_add_handle(c->multi, f->easy) != CURLM_OK);
	f->in_multi = true;
	if (++c->n_in_multi <= c->most)
		return;
	c->most = c->n_in_multi;
	keep_connections(c);
}

static void multi_remove(struct fetch *f)
{
	if (!f->in_multi)
		return;
	BUG_ON(curl_multi_remove_handle(f->client->multi, f->easy) != CURLM_OK);
	f->in_multi = false;
	f->client->n_in_multi--;
}

struct fetch_client *fetch_client_new(
	struct loop *loop, const struct fetch_options *o, struct err *e)
{
	struct fetch_client *c;

	if (check_options(o, e) < 0)
		return NULL;
	start_curl();
	c = mem_new_of(struct fetch_client);
	c->loop = loop;
	c->base_url = copy(o->base_url);
	for (size_t n = c->base_url != NULL ? strlen(c->base_url) : 0;
		n != 0 && c->base_url[n - 1] == '/'; n--)
		c->base_url[n - 1] = '\0'; /* paths bring their own */
	c->unix_socket = copy(o->unix_socket);
	c->ca_file = copy(o->ca_file);
	c->token = copy(o->token);
	c->token_file = copy(o->token_file);
	c->user_agent = copy(o->user_agent != NULL ? o->user_agent : "tidemill/" TIDEMILL_VERSION);
	c->https_only = o->https_only;
	c->connect_timeout = o->connect_timeout > 0 ? o->connect_timeout : 5 * CLOCK_SECOND;
	c->timeout = o->timeout > 0 ? o->timeout : 60 * CLOCK_SECOND;
	if (o->n_allow != 0) {
		c->allow = mem_new(o->n_allow, sizeof *c->allow);
		memcpy(c->allow, o->allow, o->n_allow * sizeof *c->allow);
	}
	c->guard = (struct guard){ o->guard, c->allow, o->n_allow };
	loop_timer_init(&c->timer, loop, on_time, c);
	c->multi = curl_multi_init();
	BUG_ON(c->multi == NULL);
	SET(c, CURLMOPT_SOCKETFUNCTION, on_socket);
	SET(c, CURLMOPT_SOCKETDATA, c);
	SET(c, CURLMOPT_TIMERFUNCTION, on_timer);
	SET(c, CURLMOPT_TIMERDATA, c);
	c->max_connections = o->max_connections;
	keep_connections(c);
	return c;
}

static void fetch_release(struct fetch *f);
static void complete(struct fetch *f, const struct err *e);

void fetch_client_free(struct fetch_client *c)
{
	struct err e;

	if (c == NULL)
		return;
	BUG_ON(c->collecting);
	(void)err_set(&e, ERR_CANCELLED, "cancelled");
	while (c->first != NULL)
		complete(c->first, &e);
	BUG_ON(curl_multi_cleanup(c->multi) != CURLM_OK);
	while (c->watches != NULL)
		watch_free(c->watches);
	loop_timer_cancel(&c->timer);
	if (c->token != NULL)
		mem_wipe(c->token, strlen(c->token));
	mem_free(c->base_url);
	mem_free(c->unix_socket);
	mem_free(c->ca_file);
	mem_free(c->token);
	mem_free(c->token_file);
	mem_free(c->user_agent);
	mem_free(c->allow);
	mem_free(c);
}

/* ---- a request, in the order of its life ------------------------------------------------------
 */

static void on_admitted(void *arg);

struct fetch *fetch_start(
	struct fetch_client *c, const struct fetch_request *q, fetch_done_cb *done, void *done_arg)
{
	struct fetch *f = mem_new_of(struct fetch);

	f->client = c;
	f->q = *q;
	f->done = done;
	f->done_arg = done_arg;
	(void)str_print(f->method, sizeof f->method, "%s",
		q->method != NULL              ? q->method
		: q->has_fd || q->pull != NULL ? "PUT"
					       : "GET");
	f->q.method = NULL;
	f->next = c->first;
	if (f->next != NULL)
		f->next->prev = f;
	c->first = f;
	f->refused = request_setup(f, &f->e) < 0;
	f->pending++;
	loop_defer(c->loop, on_admitted, f);
	f->q.path = NULL; /* copied by libcurl by now */
	memset(f->q.headers, 0, sizeof f->q.headers);
	return f;
}

/* At the end of the turn, since we may have been asked from within one of libcurl's callbacks. */
static void on_admitted(void *arg)
{
	struct fetch *f = arg;

	f->pending--;
	if (f->over) {
		fetch_release(f);
	} else if (f->cancelled) {
		return; /* on_cancelled comes next */
	} else if (f->refused) {
		complete(f, &f->e);
	} else {
		multi_add(f);
	}
}

static void on_cancelled(void *arg)
{
	struct fetch *f = arg;
	struct err e;

	f->pending--;
	(void)err_set(&e, ERR_CANCELLED, "cancelled");
	if (!f->over)
		complete(f, &e);
	else
		fetch_release(f);
}

void fetch_cancel(struct fetch *f)
{
	if (f->over || f->cancelled)
		return;
	f->cancelled = true;
	f->pending++;
	loop_defer(f->client->loop, on_cancelled, f);
}

void fetch_pause(struct fetch *f)
{
	f->paused = true;
}

static void outcome(struct fetch *f, CURLcode rc, struct err *e);

static void on_resumed(void *arg)
{
	struct fetch *f = arg;
	struct err e;
	CURLcode rc;

	f->pending--;
	f->resuming = false;
	if (f->over) {
		fetch_release(f);
		return;
	}
	if (!f->in_multi || f->cancelled)
		return;
	rc = curl_easy_pause(f->easy, CURLPAUSE_CONT); /* may push what it held back */
	if (rc == CURLE_OK)
		return;
	outcome(f, rc, &e);
	complete(f, &e);
}

void fetch_resume(struct fetch *f)
{
	f->paused = false;
	if (f->over || f->resuming)
		return;
	f->resuming = true;
	f->pending++;
	loop_defer(f->client->loop, on_resumed, f);
}

/* What libcurl's code and our own findings amount to. */
static void outcome(struct fetch *f, CURLcode rc, struct err *e)
{
	const char *why = f->why[0] != '\0' ? f->why : curl_easy_strerror(rc);

	*e = f->e;
	if (rc == CURLE_OK && e->code == ERR_OK)
		return;
	if (e->code != ERR_OK)
		return;
	if (f->blocked.code != ERR_OK && rc == CURLE_COULDNT_CONNECT)
		*e = f->blocked;
	else if (rc == CURLE_OPERATION_TIMEDOUT)
		(void)err_set(e, ERR_TIMEOUT, "no whole answer in time: %.200s", why);
	else if (rc == CURLE_URL_MALFORMAT)
		(void)err_set(e, ERR_INVALID, "the address cannot be used: %.200s", why);
	else
		(void)err_set(e, ERR_NETWORK, "the request failed: %.200s", why);
}

/* All that is finished; callbacks may start new requests meanwhile. */
static void collect(struct fetch_client *c)
{
	CURLMsg *m;
	int left = 0;

	while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
		CURLcode rc = m->data.result;
		char *private = NULL;
		struct err e;
		if (m->msg != CURLMSG_DONE)
			continue;
		BUG_ON(curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private) != CURLE_OK);
		struct fetch *f = (struct fetch *)(void *)private;
		if (f->cancelled)
			continue; /* on_cancelled comes at the end of this turn */
		outcome(f, rc, &e);
		c->collecting = true;
		complete(f, &e);
		c->collecting = false;
	}
}

static void complete(struct fetch *f, const struct err *e)
{
	struct fetch_client *c = f->client;
	struct err outcome_copy = *e;

	multi_remove(f);
	f->over = true;
	if (f->prev != NULL)
		f->prev->next = f->next;
	else
		c->first = f->next;
	if (f->next != NULL)
		f->next->prev = f->prev;
	f->reply.body = buf_str(&f->body);
	f->done(f->done_arg, &f->reply, &outcome_copy);
	fetch_release(f);
}

/* Frees a request that is over, when no deferred call is still to come. */
static void fetch_release(struct fetch *f)
{
	if (f->pending != 0)
		return;
	curl_easy_cleanup(f->easy);
	for (struct curl_slist *h = f->headers; h != NULL; h = h->next)
		mem_wipe(h->data, strlen(h->data)); /* one of them may be the token */
	curl_slist_free_all(f->headers);
	buf_done(&f->head);
	buf_done(&f->body);
	mem_free(f);
}

/* ---- without a loop of one's own ---------------------------------------------------------------
 */

struct waiting {
	struct fetch_reply *reply;
	struct buf *memory;
	struct err *e;
	bool over;
};

static struct str moved(struct str s, const struct fetch_reply *from, const char *head)
{
	return s.p != NULL ? (struct str){ head + (s.p - from->head.p), s.n } : STR_NONE;
}

static void on_waited(void *arg, const struct fetch_reply *reply, const struct err *e)
{
	struct waiting *w = arg;
	size_t at = w->memory->n;

	w->over = true;
	*w->e = *e;
	if (e->code != ERR_OK)
		return;
	buf_add(w->memory, reply->head);
	buf_add(w->memory, reply->body);
	if (buf_failed(w->memory)) {
		(void)err_set(
			w->e, ERR_TOO_LARGE, "the reply has more than %zu bytes", w->memory->max);
		return;
	}
	const char *head = w->memory->p != NULL ? w->memory->p + at : NULL;
	*w->reply = *reply;
	w->reply->head = (struct str){ head, reply->head.n };
	w->reply->body = (struct str){ head != NULL ? head + reply->head.n : NULL, reply->body.n };
	w->reply->content_type = moved(reply->content_type, reply, head);
	w->reply->location = moved(reply->location, reply, head);
	w->reply->etag = moved(reply->etag, reply, head);
	w->reply->retry_after = moved(reply->retry_after, reply, head);
}

int fetch_sync(struct fetch_client *c, const struct fetch_request *q, struct fetch_reply *ret,
	struct buf *memory, struct err *e)
{
	struct err result = { .code = ERR_OK };
	struct waiting w = { ret, memory, &result, false };

	(void)fetch_start(c, q, on_waited, &w);
	while (!w.over)
		loop_step(c->loop, true);
	if (result.code == ERR_OK)
		return 0;
	*e = result;
	return -1;
}
