/*
 * The workers' exchange. One request goes: store what the worker reports, with others in one commit
 * (sync_report → sync_on_reported) → compare what it has with what it should have (sync_compare →
 * sync_on_compared), unless that was done and nothing has changed → answer the difference, with the
 * details of new attempts (sync_on_details), or park until something changes and compare again.
 * Every part may be repeated without harm.
 */
#include "server/rest/sync.h"
#include "api/run.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/group.h"
#include "lib/loop/loop.h"
#include "server/rest/handlers.h"
#include "server/rest/sync_group.h"
#include "server/sched/assignment.h"
#include "server/sched/fleet.h"
#include "server/sched/goods.h"
#include "server/sched/progress.h"
#include "server/sched/sched.h"
#include "server/store/worker_store.h"

enum {
	PARK_MS = 25000,
	REPORT_BYTES = 512,
	REPORT_ARENA = 32 << 20,
	ASSIGN_MAX = SYNC_GROUP_MAX, /* assignments in one reply */
	REPLY_BYTES = 20 << 20 /* of assignments; a worker takes replies of 32 MiB */
};

struct reporter {
	struct db_group *group;
};

struct sync {
	struct call *call;
	const struct sync_request *in;
	uint64_t inventory;
	struct str holds; /* keys of what it holds, as in goods.h */
	size_t news; /* attempts whose state is not stored yet */
	struct str *ids; /* of the attempts that the worker has named */
	struct fleet_wait *wait;
	uint64_t wakes; /* of the worker, when the comparison began */
	uint64_t turn; /* among the worker's requests that may be parked */
	int64_t deadline; /* loop time: until then the request may be parked */
	struct sync_reply reply;
	struct str *missing; /* attempts that the worker should have and has not */
	size_t missing_n;
	struct str *refused, *why; /* of those: what no worker can be given, and why not */
	size_t refused_n;
	bool unsure; /* not all of the news were taken: somebody knows better */
	bool left; /* the client has gone */
	struct sync_asked asked;
};

static void sync_report(struct call *c);
static void sync_on_reported(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);
static void sync_look(struct call *c);
static void sync_compare(struct call *c);
static void sync_on_compared(struct call *c, const struct db_rows *rows);
static void park(struct call *c);
static void sync_on_details(void *arg, const struct db_rows *rows, const struct err *failed);
static void sync_on_woken(void *arg, bool replaced);
static void sync_on_left(void *arg);

static void inventory_on_stored(struct call *c, const struct db_rows *rows)
{
	const struct sync *s = c->state;

	(void)rows;
	if (s->in->has_holds)
		sched_worker_holds(c->app->sched, c->who.worker_id, s->holds);
	fleet_note_inventory(c->app->fleet, c->who.worker_id, s->inventory);
	sync_report(c);
}

static void worker_sync(struct call *c)
{
	struct sync *s = arena_new_of(c->arena, struct sync);
	const struct sync_request *in = c->in;

	*s = (struct sync){
		.call = c, .in = in, .ids = arena_array_of(c->arena, struct str, in->attempts.n + 1)
	};
	c->state = s;
	for (size_t i = 0; i < in->attempts.n; i++)
		s->ids[i] = list_at(&in->attempts, struct sync_attempt, i)->id;
	s->deadline = clock_elapsed(c->app->clock) + PARK_MS * 1000;
	s->inventory = sync_inventory_hash(in);
	fleet_seen(c->app->fleet, c->who.worker_id);
	if (in->wait)
		s->turn = fleet_turn(c->app->fleet, c->who.worker_id);
	fleet_keep_states(c->app->fleet, c->who.worker_id, s->ids, in->attempts.n);
	bool known = fleet_knows_inventory(c->app->fleet, c->who.worker_id, s->inventory);
	if (known && !in->has_holds) {
		sync_report(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	if (!known)
		worker_store_inventory(u, c->who.worker_id, in);
	if (in->has_holds) {
		s->holds = goods_keys(&in->holds, c->arena);
		worker_store_holds(u, c->who.worker_id, &in->holds, s->holds);
	}
	call_send(c, u, DB_WRITE, inventory_on_stored);
}

/* ---- reports ---- */

/* That it is ready is news, too. */
static int told_state(const struct sync_attempt *a)
{
	return a->ready ? ATTEMPT_STATE_COUNT : a->state;
}

static bool is_news(const struct call *c, const struct sync_attempt *a)
{
	return a->state != ATTEMPT_ASSIGNED &&
	       !fleet_knows_state(c->app->fleet, c->who.worker_id, a->id, told_state(a));
}

static void sync_report(struct call *c)
{
	struct sync *s = c->state;
	struct err e;

	for (size_t i = 0; i < s->in->attempts.n; i++)
		s->news += is_news(c, list_at(&s->in->attempts, struct sync_attempt, i));
	if (s->news == 0)
		sync_look(c);
	else if (db_group_add(c->app->reporter->group, s, s->news * REPORT_BYTES, &e) < 0)
		call_fail(c, &e);
}

static void reporter_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct arena *a = arena_new(REPORT_ARENA);
	size_t room = 1;

	(void)arg;
	for (size_t i = 0; i < n; i++)
		room += ((struct sync *)items[i])->news;
	struct reports *r = reports_new(a, room);
	for (size_t i = 0; i < n; i++) {
		const struct sync *s = items[i];
		for (size_t k = 0, left = s->news; k < s->in->attempts.n && left > 0; k++) {
			const struct sync_attempt *attempt =
				list_at(&s->in->attempts, struct sync_attempt, k);
			if (!is_news(s->call, attempt))
				continue;
			reports_put(r, (int64_t)i + 1, s->call->who.worker_id, attempt);
			left--;
		}
	}
	worker_store_report(u, r);
	arena_drop(a);
}

/* Rows of one item stand anywhere among the batch's. Nothing follows for a run from that a worker
 * prepares an attempt. Only what has moved, or had ended before, is noted: a success whose log is
 * not complete is reported again. */
static void note_states(struct sync *s, const struct db_rows *rows, int64_t ord)
{
	struct app *app = s->call->app;
	size_t moved = 0;

	for (size_t i = 0; i < rows->n; i++) {
		if (db_int(rows, i, 0) != ord)
			continue;
		moved++;
		if (!str_is(db_str(rows, i, 3), "preparing"))
			progress_run(app, db_str(rows, i, 2));
	}
	s->unsure = moved != s->news;
	for (size_t i = 0; i < s->in->attempts.n; i++) {
		const struct sync_attempt *a = list_at(&s->in->attempts, struct sync_attempt, i);
		if (a->state != ATTEMPT_SUCCEEDED)
			fleet_note_state(app->fleet, s->call->who.worker_id, a->id, told_state(a));
	}
}

static void sync_on_reported(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct sync *s = item;

	(void)arg;
	if (e->code != ERR_OK) {
		call_fail(s->call, e);
		return;
	}
	note_states(s, rows, row == DB_NO_ROW ? -1 : db_int(rows, row, 0));
	if (row != DB_NO_ROW)
		app_changed(s->call->app);
	sync_look(s->call);
}

struct reporter *reporter_new(struct app *app)
{
	struct reporter *r = mem_new_of(struct reporter);

	r->group = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_WRITE,
			.build = reporter_build,
			.done = sync_on_reported,
			.arg = r,
			.result = 0,
			.batch_max = 200 });
	return r;
}

void reporter_free(struct reporter *r)
{
	if (r == NULL)
		return;
	db_group_free(r->group);
	mem_free(r);
}

/* ---- the difference ---- */

static void sync_look(struct call *c)
{
	struct sync *s = c->state;

	if (s->unsure || s->in->checkpoints.n != 0 ||
		!fleet_agrees(c->app->fleet, c->who.worker_id, &s->in->attempts)) {
		sync_compare(c);
		return;
	}
	s->wakes = fleet_wakes(c->app->fleet, c->who.worker_id);
	park(c);
}

static void sync_compare(struct call *c)
{
	struct sync *s = c->state;
	struct db_unit *u = call_unit(c);

	s->wakes = fleet_wakes(c->app->fleet, c->who.worker_id);
	(void)fleet_take(c->app->fleet, c->who.worker_id, c->arena); /* what is read has it, too */
	worker_store_compare(u, c->who.worker_id, s->ids, s->in->attempts.n);
	if (s->in->checkpoints.n != 0)
		checkpoint_store_useless(u, s->in->checkpoints.items, s->in->checkpoints.n);
	call_send(c, u, DB_READ, sync_on_compared);
}

static bool ended(int attempt_state)
{
	return attempt_state >= ATTEMPT_SUCCEEDED;
}

static bool ended_name(struct str name)
{
	return str_is(name, "succeeded") || str_is(name, "failed") || str_is(name, "cancelled") ||
	       str_is(name, "lost");
}

static void add_cancel(struct sync *s, const struct sync_attempt *a, struct str reason)
{
	*list_at(&s->reply.cancel, struct sync_cancel, s->reply.cancel.n++) =
		(struct sync_cancel){ a->id, a->epoch, arena_str(s->call->arena, reason) };
}

static void add_release(struct sync *s, const struct sync_attempt *a, struct str json)
{
	struct sync_release *r =
		list_at(&s->reply.release, struct sync_release, s->reply.release.n);

	*r = (struct sync_release){ .attempt = a->id, .epoch = a->epoch };
	s->reply.release.n += sync_read_ranks(json, s->call->arena, &r->ranks);
}

/* What the worker has under an epoch that is not the server's is superseded, and so is what the
 * server knows nothing of; what has ended on both sides may go. */
static void judge(
	struct sync *s, const struct sync_attempt *a, const struct db_rows *known, size_t row)
{
	bool mine = row != SIZE_MAX && db_bool(known, row, db_col(known, "mine")) &&
		    db_int(known, row, db_col(known, "epoch")) == a->epoch;
	bool over = !mine || ended_name(db_str(known, row, db_col(known, "state")));

	if (over && ended(a->state))
		*list_at(&s->reply.forget, struct str, s->reply.forget.n++) = a->id;
	else if (over && !a->cancelling)
		add_cancel(s, a, STR("superseded"));
	else if (!over && !a->cancelling && !ended(a->state) &&
		 db_bool(known, row, db_col(known, "cancelling")))
		add_cancel(s, a,
			db_bool(known, row, db_col(known, "preempted"))
				? STR("preempted")
				: db_str(known, row, db_col(known, "stop_reason")));
	else if (!over && !a->released && !db_is_null(known, row, db_col(known, "release")))
		add_release(s, a, db_str(known, row, db_col(known, "release")));
}

static size_t row_of(const struct db_rows *rows, struct str id)
{
	size_t col = db_col(rows, "id");

	for (size_t i = 0; i < rows->n; i++)
		if (str_eq(db_str(rows, i, col), id))
			return i;
	return SIZE_MAX;
}

static bool named(const struct sync *s, struct str id)
{
	for (size_t k = 0; k < s->in->attempts.n; k++)
		if (str_eq(s->ids[k], id))
			return true;
	return false;
}

/* What the worker should have and has not named. Returns whether something was cancelled before it
 * had heard of it. */
static bool find_missing(struct call *c, struct sync *s, const struct db_rows *rows)
{
	size_t id = db_col(rows, "id"), gone = db_col(rows, "unheard");
	bool unheard = false;

	s->missing = arena_array_of(c->arena, struct str, rows->n + 1);
	s->missing_n = 0;
	for (size_t i = 0; i < rows->n; i++) {
		if (db_is_null(rows, i, id) || named(s, db_str(rows, i, id)))
			continue;
		if (db_bool(rows, i, gone))
			unheard = true;
		else if (s->missing_n < ASSIGN_MAX)
			s->missing[s->missing_n++] = arena_str(c->arena, db_str(rows, i, id));
	}
	return unheard;
}

static void discard(struct call *c, struct sync *s, const struct db_rows *useless)
{
	struct str *ids = arena_array_of(c->arena, struct str, useless->n + 1);

	for (size_t i = 0; i < useless->n; i++)
		ids[i] = arena_str(c->arena, db_str(useless, i, 0));
	s->reply.discard = (struct list){ ids, useless->n };
}

static struct sync_asked *asked(struct sync *s, sync_group_cb *cb)
{
	s->asked = (struct sync_asked){ .app = s->call->app,
		.worker_id = s->call->who.worker_id,
		.attempts = s->missing,
		.n = s->missing_n,
		.cb = cb,
		.arg = s };
	return &s->asked;
}

static void sync_on_sighted(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sync *s = arg;

	(void)rows;
	if (e->code == ERR_OK)
		call_reply(s->call, 200, sync_reply_fields, &s->reply);
	else
		call_fail(s->call, e);
}

/* An answer renews what the worker holds: see fleet_is_stored. */
static void sync_reply_now(struct call *c)
{
	struct sync *s = c->state;
	struct err e;

	if (fleet_is_stored(c->app->fleet, c->who.worker_id))
		call_reply(c, 200, sync_reply_fields, &s->reply);
	else if (sync_group_sight(c->app->sync_group, asked(s, sync_on_sighted), &e) < 0)
		call_fail(c, &e);
}

static void ask_details(struct call *c)
{
	struct sync *s = c->state;
	struct err e;

	if (sync_group_details(c->app->sync_group, asked(s, sync_on_details), &e) < 0)
		call_fail(c, &e);
}

static void park(struct call *c)
{
	struct sync *s = c->state;
	int64_t left_ms = (s->deadline - clock_elapsed(c->app->clock)) / 1000;

	if (!s->in->wait || left_ms <= 0 || c->app->draining || s->left ||
		!fleet_is_last(c->app->fleet, c->who.worker_id, s->turn)) {
		sync_reply_now(c);
		return;
	}
	/* Something has changed while the database was read: the read may be older. */
	if (s->wakes != fleet_wakes(c->app->fleet, c->who.worker_id)) {
		sync_compare(c);
		return;
	}
	s->wait = fleet_park(c->app->fleet, c->who.worker_id, left_ms, sync_on_woken, c);
	http_on_close(c->req, sync_on_left, c);
}

static void unheard_on_ended(struct call *c, const struct db_rows *rows)
{
	for (size_t i = 0; i < rows[0].n; i++)
		progress_run(c->app, db_str(&rows[0], i, 1));
	sync_compare(c);
}

static void end_unheard(struct call *c)
{
	const struct sync *s = c->state;
	struct db_unit *u = call_unit(c);

	worker_store_cancel_unheard(u, c->who.worker_id, s->ids, s->in->attempts.n);
	call_send(c, u, DB_WRITE, unheard_on_ended);
}

static void sync_on_compared(struct call *c, const struct db_rows *rows)
{
	struct sync *s = c->state;
	size_t n = s->in->attempts.n;
	bool active = rows[0].n != 0 && str_is(db_str(&rows[0], 0, 0), "active");

	s->reply = (struct sync_reply){
		.cancel = { arena_array_of(c->arena, struct sync_cancel, n + 1), 0 },
		.release = { arena_array_of(c->arena, struct sync_release, n + 1), 0 },
		.forget = { arena_array_of(c->arena, struct str, n + 1), 0 },
		.drain = rows[0].n != 0 && !active
	};
	for (size_t i = 0; i < n; i++) {
		const struct sync_attempt *a = list_at(&s->in->attempts, struct sync_attempt, i);
		judge(s, a, &rows[0], row_of(&rows[0], a->id));
	}
	if (s->in->checkpoints.n != 0)
		discard(c, s, &rows[1]);
	if (find_missing(c, s, &rows[0])) {
		end_unheard(c);
	} else if (s->missing_n != 0) {
		ask_details(c);
	} else if (s->reply.cancel.n != 0 || s->reply.release.n != 0 || s->reply.forget.n != 0 ||
		   s->reply.discard.n != 0) {
		sync_reply_now(c);
	} else {
		if (active)
			fleet_agreed(c->app->fleet, c->who.worker_id, s->wakes, &s->in->attempts);
		park(c);
	}
}

/* A request whose place was taken ends with nothing: to park it again would take the place back. */
static void sync_on_woken(void *arg, bool replaced)
{
	struct call *c = arg;
	struct sync *s = c->state;

	s->wait = NULL;
	if (replaced) {
		sync_reply_now(c);
		return;
	}
	s->reply.assign = fleet_take(c->app->fleet, c->who.worker_id, c->arena);
	if (s->reply.assign.n != 0 || clock_elapsed(c->app->clock) >= s->deadline)
		sync_reply_now(c);
	else
		sync_compare(c);
}

static void sync_on_left(void *arg)
{
	struct call *c = arg;
	struct sync *s = c->state;

	s->left = true;
	if (s->wait == NULL)
		return; /* an answer is on its way and will be dropped */
	fleet_unpark(s->wait);
	s->wait = NULL;
	http_drop(c->req);
}

/* ---- the details of an assignment ---- */

/* What may go into this reply beside what is in it already. */
static struct assignment_size room_of(const struct sync *s)
{
	size_t used = 4 * s->reply.cancel.n + s->reply.forget.n + s->reply.discard.n;

	for (size_t i = 0; i < s->reply.release.n; i++)
		used += 4 + 3 * list_at(&s->reply.release, struct sync_release, i)->ranks.n;
	return (struct assignment_size){ ASSIGNMENT_VALUES_MAX - used, REPLY_BYTES };
}

static bool fits(struct assignment_size *left, struct assignment_size takes)
{
	if (takes.values > left->values || takes.bytes > left->bytes)
		return false;
	left->values -= takes.values;
	left->bytes -= takes.bytes;
	return true;
}

static void refused_on_ended(struct call *c, const struct db_rows *rows)
{
	const struct sync *s = c->state;

	for (size_t i = 0; i < s->refused_n; i++)
		if (rows[i].n != 0)
			progress_run(c->app, db_str(&rows[i], 0, 1));
	sync_reply_now(c);
}

/* An attempt that no worker can be given ends alone; the others go on. */
static void end_refused(struct call *c)
{
	const struct sync *s = c->state;
	struct db_unit *u = call_unit(c);

	for (size_t i = 0; i < s->refused_n; i++)
		worker_store_refuse(u, c->who.worker_id, s->refused[i], s->why[i]);
	call_send(c, u, DB_WRITE, refused_on_ended);
}

static void refuse(struct call *c, struct sync *s, struct str attempt, const struct err *e)
{
	log_warn("attempt cannot be given to a worker", LOG_STR("attempt", attempt), LOG_E(e),
		LOG_S("field", e->field));
	s->refused[s->refused_n] = attempt;
	s->why[s->refused_n++] =
		arena_printf(c->arena, "%s%s%s", e->field, e->field[0] != '\0' ? ": " : "", e->msg);
}

static void sync_on_details(void *arg, const struct db_rows *rows, const struct err *failed)
{
	struct sync *s = arg;
	struct call *c = s->call;
	struct assignment *list = arena_array_of(c->arena, struct assignment, s->missing_n);
	struct assignment_size left = room_of(s), takes;
	struct err e;
	size_t n = 0;

	if (failed->code != ERR_OK) {
		call_fail(c, failed);
		return;
	}
	s->refused = arena_array_of(c->arena, struct str, s->missing_n);
	s->why = arena_array_of(c->arena, struct str, s->missing_n);
	s->refused_n = 0;
	for (size_t i = 0; i < s->missing_n; i++) {
		if (rows[i].n == 0)
			continue;
		if (assignment_read(c->app, &rows[i], 0, c->arena, &list[n], &takes, &e) < 0)
			refuse(c, s, s->missing[i], &e);
		else if (fits(&left, takes))
			n++; /* else it comes with the next exchange, where it is missing again */
	}
	s->reply.assign = (struct list){ list, n };
	if (s->refused_n != 0)
		end_refused(c);
	else
		sync_reply_now(c);
}

const struct binding sync_bindings[] = {
	{ "workers.sync", worker_sync },
	{ 0 },
};
