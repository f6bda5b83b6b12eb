#include "server/sched/fleet.h"

#include "api/run.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json_read.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/hub.h"
#include "server/store/worker_store.h"

enum {
	FLUSH_MS = 2000,
	FLUSH_ARENA = 8 << 20,
	HANDED_VALUES = ASSIGNMENT_VALUES_MAX,
	HANDED_BYTES = 16 << 20,
	AGREED_US = 20000000,
	STORED_US = 10000000,
	INVENTORY_US = 60000000,
	QUIET_US = 600000000 /* a worker that was silent for so long is not kept in mind */
};

struct fleet_wait {
	struct fleet *fleet;
	struct host *host; /* NULL: a newer request has taken the place */
	struct loop_timer timer;
	fleet_cb *cb;
	void *arg;
};

/* An attempt on which a worker and the server agree. */
struct agreed {
	char id[ID_MAX];
	int64_t epoch;
};

/* An assignment on its way to a parked worker. */
struct handed {
	struct handed *next;
	struct arena *arena;
	const struct assignment *given;
};

/* A worker that has been heard of by this server. */
struct host {
	uint64_t wakes; /* since we know it */
	char *id;
	int64_t seen_at, stored_at; /* stored_at: loop_now(), when the database was told last */
	uint64_t inventory; /* 0: not known to be stored */
	int64_t inventory_at; /* loop_now() */
	struct map *states; /* of its attempts: the last one stored + 1; NULL before the first */
	bool dirty; /* seen since the last flush */
	uint64_t turns; /* requests that may be parked, so far */
	struct fleet_wait *wait;
	struct handed *handed; /* the last one first */
	size_t handed_n;
	struct assignment_size size; /* of them */
	struct agreed *agreed;
	size_t agreed_n;
	uint64_t agreed_wakes;
	int64_t agreed_at; /* clock_elapsed(); 0: on nothing */
};

struct fleet {
	struct app *app;
	struct map *hosts;
	struct loop_timer flush;
	struct hub_listener *listener;
	size_t parked;
	size_t flushing; /* flushes whose callbacks will come */
	bool closing;
};

/* Sightings on their way to the database. */
struct flush {
	struct fleet *fleet;
	struct arena *arena;
	struct str *ids;
	int64_t *ago; /* µs */
	size_t n;
	int64_t asked; /* loop_now() */
};

static void fleet_on_flush(void *arg);
static void fleet_on_flushed(void *arg, const struct db_rows *rows, const struct err *e);
static void fleet_on_event(void *arg, const struct event *ev, struct str project_id);

struct fleet *fleet_new(struct app *app)
{
	struct fleet *f = mem_new_of(struct fleet);

	f->app = app;
	f->hosts = map_new();
	f->listener = hub_listen(app->hub, fleet_on_event, f);
	loop_timer_init(&f->flush, app->loop, fleet_on_flush, f);
	loop_timer_every(&f->flush, FLUSH_MS);
	return f;
}

static void drop_handed(void *arg)
{
	struct handed *list = arg;

	for (struct handed *next; list != NULL; list = next) {
		next = list->next;
		arena_drop(list->arena);
	}
}

static void host_free(struct host *h)
{
	drop_handed(h->handed);
	map_free(h->states);
	mem_free(h->agreed);
	mem_free(h->id);
	mem_free(h);
}

void fleet_free(struct fleet *f)
{
	size_t at = 0;
	struct str key;
	void *value;

	if (f == NULL)
		return;
	fleet_on_flush(f);
	loop_timer_cancel(&f->flush);
	hub_unlisten(f->listener);
	while (map_next(f->hosts, &at, &key, &value)) {
		struct host *h = value;
		BUG_ON(h->wait != NULL);
		host_free(h);
	}
	map_free(f->hosts);
	f->hosts = NULL;
	f->closing = true;
	if (f->flushing == 0)
		mem_free(f);
}

static struct host *host_of(struct fleet *f, struct str id)
{
	struct host *h = map_get(f->hosts, id);

	if (h == NULL) {
		h = mem_new_of(struct host);
		h->id = mem_dupn(id.p, id.n);
		(void)map_put(f->hosts, id, h);
	}
	return h;
}

void fleet_seen(struct fleet *f, struct str worker_id)
{
	struct host *h = host_of(f, worker_id);

	h->seen_at = clock_now(f->app->clock);
	h->dirty = true;
}

bool fleet_knows_inventory(const struct fleet *f, struct str worker_id, uint64_t hash)
{
	const struct host *h = map_get(f->hosts, worker_id);

	return h != NULL && h->inventory == hash &&
	       loop_now(f->app->loop) - h->inventory_at < INVENTORY_US;
}

void fleet_note_inventory(struct fleet *f, struct str worker_id, uint64_t hash)
{
	struct host *h = host_of(f, worker_id);

	h->inventory = hash;
	h->inventory_at = loop_now(f->app->loop);
}

bool fleet_is_stored(const struct fleet *f, struct str worker_id)
{
	const struct host *h = map_get(f->hosts, worker_id);

	return h != NULL && h->stored_at != 0 && loop_now(f->app->loop) - h->stored_at < STORED_US;
}

void fleet_note_stored(struct fleet *f, struct str worker_id, int64_t asked)
{
	host_of(f, worker_id)->stored_at = asked;
}

bool fleet_knows_state(
	const struct fleet *f, struct str worker_id, struct str attempt_id, int state)
{
	const struct host *h = map_get(f->hosts, worker_id);

	return h != NULL && h->states != NULL &&
	       (intptr_t)map_get(h->states, attempt_id) == state + 1;
}

void fleet_note_state(struct fleet *f, struct str worker_id, struct str attempt_id, int state)
{
	struct host *h = host_of(f, worker_id);

	if (h->states == NULL)
		h->states = map_new();
	(void)map_put(h->states, attempt_id, (void *)(intptr_t)(state + 1));
}

void fleet_keep_states(struct fleet *f, struct str worker_id, const struct str *attempts, size_t n)
{
	struct host *h = host_of(f, worker_id);
	struct map *kept;

	if (h->states == NULL || map_count(h->states) <= n)
		return;
	kept = map_new();
	for (size_t i = 0; i < n; i++) {
		void *state = map_get(h->states, attempts[i]);
		if (state != NULL)
			(void)map_put(kept, attempts[i], state);
	}
	map_free(h->states);
	h->states = kept;
}

int64_t fleet_seen_at(const struct fleet *f, struct str worker_id)
{
	const struct host *h = map_get(f->hosts, worker_id);

	return h != NULL ? h->seen_at : 0;
}

int64_t fleet_last_seen(void *fleet, struct str worker_id, int64_t stored)
{
	int64_t here = fleet_seen_at(fleet, worker_id);

	return here > stored ? here : stored;
}

static struct flush *flush_new(struct fleet *f)
{
	struct arena *a = arena_new(FLUSH_ARENA);
	struct flush *out = arena_new_of(a, struct flush);
	size_t room = map_count(f->hosts) + 1;

	*out = (struct flush){ .fleet = f,
		.arena = a,
		.ids = arena_array_of(a, struct str, room),
		.ago = arena_array_of(a, int64_t, room),
		.asked = loop_now(f->app->loop) };
	return out;
}

/* A worker with a parked request is there for as long as the connection is. */
static void fleet_on_flush(void *arg)
{
	struct fleet *f = arg;
	struct flush *out = flush_new(f);
	int64_t now = clock_now(f->app->clock);
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(f->hosts, &at, &key, &value)) {
		struct host *h = value;
		if (h->wait != NULL)
			h->seen_at = now;
		if (!h->dirty && h->wait == NULL) {
			if (now - h->seen_at > QUIET_US)
				host_free(map_remove(f->hosts, key));
			continue;
		}
		out->ids[out->n] = arena_str(out->arena, key);
		out->ago[out->n++] = now > h->seen_at ? now - h->seen_at : 0;
		h->dirty = false;
	}
	if (out->n == 0) {
		arena_drop(out->arena);
		return;
	}
	struct db_unit *u = db_unit(f->app->db, NULL);
	worker_store_seen(u, out->ids, out->ago, out->n);
	f->flushing++;
	db_send(u, DB_RELAXED, fleet_on_flushed, out);
}

/* A worker that was seen before this one was sent, and not later, is not dirty: it is flushed anew
 * when the write has failed. */
static void fleet_on_flushed(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct flush *out = arg;
	struct fleet *f = out->fleet;

	(void)rows;
	f->flushing--;
	for (size_t i = 0; !f->closing && i < out->n; i++) {
		struct host *h = map_get(f->hosts, out->ids[i]);
		if (h != NULL && e->code == ERR_OK)
			h->stored_at = out->asked;
		else if (h != NULL)
			h->dirty = true;
	}
	arena_drop(out->arena);
	if (f->closing && f->flushing == 0)
		mem_free(f);
}

static void wait_on_timer(void *arg)
{
	struct fleet_wait *w = arg;
	fleet_cb *cb = w->cb;
	void *cb_arg = w->arg;
	bool replaced = w->host == NULL;

	fleet_unpark(w);
	cb(cb_arg, replaced);
}

struct fleet_wait *fleet_park(
	struct fleet *f, struct str worker_id, int64_t ms, fleet_cb *cb, void *arg)
{
	struct host *h = host_of(f, worker_id);
	struct fleet_wait *w = mem_new_of(struct fleet_wait);

	if (h->wait != NULL) {
		h->wait->host = NULL;
		loop_timer_set(&h->wait->timer, 0);
	}
	*w = (struct fleet_wait){ .fleet = f, .host = h, .cb = cb, .arg = arg };
	loop_timer_init(&w->timer, f->app->loop, wait_on_timer, w);
	/* What was handed to the one before is this one's now. */
	loop_timer_set(&w->timer, h->handed != NULL ? 0 : ms);
	h->wait = w;
	f->parked++;
	return w;
}

void fleet_unpark(struct fleet_wait *w)
{
	loop_timer_cancel(&w->timer);
	if (w->host != NULL)
		w->host->wait = NULL;
	w->fleet->parked--;
	mem_free(w);
}

/* By the timer, so that the callback never runs inside the waker. */
void fleet_wake(struct fleet *f, struct str worker_id)
{
	struct host *h = map_get(f->hosts, worker_id);

	if (h == NULL)
		return;
	h->wakes++;
	if (h->wait != NULL)
		loop_timer_set(&h->wait->timer, 0);
}

static bool is_agreed(const struct fleet *f, const struct host *h)
{
	return h->agreed_at != 0 && h->agreed_wakes == h->wakes &&
	       clock_elapsed(f->app->clock) - h->agreed_at < AGREED_US;
}

static void agree_on(struct host *h, size_t i, struct str id, int64_t epoch)
{
	(void)str_print(h->agreed[i].id, sizeof h->agreed[i].id, "%.*s", STR_ARG(id));
	h->agreed[i].epoch = epoch;
}

void fleet_agreed(
	struct fleet *f, struct str worker_id, uint64_t wakes, const struct list *attempts)
{
	struct host *h = host_of(f, worker_id);

	h->agreed = mem_resize(h->agreed, attempts->n, sizeof *h->agreed);
	h->agreed_n = attempts->n;
	h->agreed_wakes = wakes;
	h->agreed_at = clock_elapsed(f->app->clock);
	for (size_t i = 0; i < attempts->n; i++) {
		const struct sync_attempt *a = list_at(attempts, struct sync_attempt, i);
		agree_on(h, i, a->id, a->epoch);
	}
}

/* Usually they are named in the same order again. */
static const struct agreed *find_agreed(const struct host *h, struct str id, size_t guess)
{
	if (str_is(id, h->agreed[guess].id))
		return &h->agreed[guess];
	for (size_t i = 0; i < h->agreed_n; i++)
		if (str_is(id, h->agreed[i].id))
			return &h->agreed[i];
	return NULL;
}

bool fleet_agrees(const struct fleet *f, struct str worker_id, const struct list *attempts)
{
	const struct host *h = map_get(f->hosts, worker_id);

	if (h == NULL || !is_agreed(f, h) || attempts->n != h->agreed_n)
		return false;
	for (size_t i = 0; i < attempts->n; i++) {
		const struct sync_attempt *a = list_at(attempts, struct sync_attempt, i);
		const struct agreed *known = find_agreed(h, a->id, i);
		if (known == NULL || known->epoch != a->epoch || a->cancelling ||
			a->state >= ATTEMPT_SUCCEEDED)
			return false;
	}
	return true;
}

bool fleet_is_parked(const struct fleet *f, struct str worker_id)
{
	const struct host *h = map_get(f->hosts, worker_id);

	return h != NULL && h->wait != NULL;
}

static bool may_hand(const struct host *h, struct assignment_size size)
{
	return h != NULL && h->wait != NULL && h->size.values + size.values <= HANDED_VALUES &&
	       h->size.bytes + size.bytes <= HANDED_BYTES;
}

void fleet_hand(struct fleet *f, struct str worker_id, struct arena *a,
	const struct assignment *given, struct assignment_size size)
{
	struct host *h = map_get(f->hosts, worker_id);
	bool agreed = h != NULL && is_agreed(f, h), hands = may_hand(h, size);

	if (hands) {
		struct handed *one = arena_new_of(a, struct handed);
		arena_hold(a);
		*one = (struct handed){ h->handed, a, given };
		h->handed = one;
		h->handed_n++;
		h->size.values += size.values;
		h->size.bytes += size.bytes;
	}
	fleet_wake(f, worker_id);
	if (hands && agreed)
		h->agreed_wakes = h->wakes;
}

struct list fleet_take(struct fleet *f, struct str worker_id, struct arena *a)
{
	struct host *h = map_get(f->hosts, worker_id);
	struct list out = { NULL, 0 };

	if (h == NULL || h->handed == NULL)
		return out;
	out.n = h->handed_n;
	out.items = arena_array_of(a, struct assignment, out.n);
	h->agreed = mem_resize(h->agreed, h->agreed_n + out.n, sizeof *h->agreed);
	for (struct handed *one = h->handed; one != NULL; one = one->next) {
		*list_at(&out, struct assignment, --h->handed_n) = *one->given;
		agree_on(h, h->agreed_n++, one->given->attempt, one->given->epoch);
	}
	arena_defer(a, drop_handed, h->handed);
	h->handed = NULL;
	h->size = (struct assignment_size){ 0, 0 };
	return out;
}

uint64_t fleet_wakes(struct fleet *f, struct str worker_id)
{
	return host_of(f, worker_id)->wakes;
}

uint64_t fleet_turn(struct fleet *f, struct str worker_id)
{
	return ++host_of(f, worker_id)->turns;
}

bool fleet_is_last(const struct fleet *f, struct str worker_id, uint64_t turn)
{
	const struct host *h = map_get(f->hosts, worker_id);

	return h == NULL || h->turns == turn;
}

void fleet_wake_all(struct fleet *f)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(f->hosts, &at, &key, &value)) {
		struct host *h = value;
		if (h->wait != NULL)
			loop_timer_set(&h->wait->timer, 0);
	}
}

size_t fleet_parked(const struct fleet *f)
{
	return f->parked;
}

/* A cheap look at what most workers have said themselves. */
static bool is_lost(const struct event *ev)
{
	return str_is(ev->type, "attempt.ended") && str_find(ev->data, STR("\"lost\"")) >= 0;
}

/* Assignments and cancellations by other servers, operators' words, and what was given up. */
static void fleet_on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct fleet *f = arg;
	struct jsn_doc *doc;
	struct err e;

	(void)project_id;
	if (str_starts(ev->type, STR("worker."))) {
		struct host *h = map_get(f->hosts, ev->subject);
		if (h != NULL)
			h->inventory = 0;
		fleet_wake(f, ev->subject);
		return;
	}
	if (!str_is(ev->type, "step.assigned") && !str_is(ev->type, "attempt.cancel_requested") &&
		!str_is(ev->type, "attempt.preempted") && !str_is(ev->type, "attempt.stored") &&
		!str_is(ev->type, "attempt.released") && !is_lost(ev))
		return;
	if (jsn_parse(ev->data, &doc, &e) < 0)
		return;
	/* Our own assignments have woken their workers already. */
	if (!str_is(jsn_get_str(jsn_get(jsn_root(doc), "server")), f->app->instance))
		fleet_wake(f, jsn_get_str(jsn_get(jsn_root(doc), "worker_id")));
	jsn_doc_free(doc);
}
