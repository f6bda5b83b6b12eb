#include "server/sched/gang.h"

#include "lib/json/json_read.h"

/* ---- reading -------------------------------------------------------------------------------- */

static int state_of(struct str name)
{
	for (int i = 0; i < ATTEMPT_STATE_COUNT; i++)
		if (str_is(name, attempt_state_names[i]))
			return i;
	return ATTEMPT_ASSIGNED;
}

static struct str text(const struct jsn *object, const char *key, struct arena *a)
{
	return arena_str(a, jsn_get_str(jsn_get(object, key)));
}

static void read_rank(const struct jsn *r, struct arena *a, struct gang_rank *ret)
{
	*ret = (struct gang_rank){ .id = text(r, "id", a),
		.worker_id = text(r, "worker_id", a),
		.worker = text(r, "worker", a),
		.reason = text(r, "reason", a),
		.message = text(r, "message", a),
		.state = state_of(jsn_get_str(jsn_get(r, "state"))),
		.started_at = jsn_get_int(jsn_get(r, "started_at"), 0),
		.ended_at = jsn_get_int(jsn_get(r, "ended_at"), 0),
		.ready = jsn_get_bool(jsn_get(r, "ready"), false),
		.released = jsn_get_bool(jsn_get(r, "released"), false),
		.stopping = jsn_get_bool(jsn_get(r, "stopping"), false) };
}

int gang_read(struct str ranks, bool led, struct arena *a, struct gang *ret, struct err *e)
{
	struct jsn_doc *doc;

	if (jsn_parse(ranks, &doc, e) < 0)
		return -1;
	size_t n = jsn_count(jsn_root(doc));
	struct gang_rank *list = arena_array_of(a, struct gang_rank, n + 1);
	for (size_t i = 0; i < n; i++)
		read_rank(jsn_at(jsn_root(doc), i), a, &list[i]);
	jsn_doc_free(doc);
	*ret = (struct gang){ .ranks = { list, n }, .led = led };
	return 0;
}

/* ---- judging -------------------------------------------------------------------------------- */

static const struct gang_rank *rank_at(const struct gang *g, size_t i)
{
	return list_at(&g->ranks, struct gang_rank, i);
}

bool gang_rank_ended(const struct gang_rank *r)
{
	return r->state >= ATTEMPT_SUCCEEDED;
}

static enum reason_blame blame_of(struct str name)
{
	for (int i = 0; i < REASON_COUNT; i++)
		if (str_is(name, reason_names[i]))
			return reason_blame((enum reason)i);
	return BLAME_INFRA;
}

/* The rank whose end is the cause of the others', or SIZE_MAX: the first that failed by a fault of
 * ours, which the others may only have noticed; else the first that failed at all. */
static size_t cause_of(const struct gang *g)
{
	size_t found = SIZE_MAX;
	bool infra = false;

	for (size_t i = 0; i < g->ranks.n; i++) {
		const struct gang_rank *r = rank_at(g, i);
		if (r->state != ATTEMPT_FAILED && r->state != ATTEMPT_LOST)
			continue;
		bool ours = blame_of(r->reason) != BLAME_USER;
		if (found == SIZE_MAX || (ours && !infra) ||
			(ours == infra && r->ended_at < rank_at(g, found)->ended_at)) {
			found = i;
			infra = ours;
		}
	}
	return found;
}

/* "ended with exit code 3" of "the command ended with exit code 3" */
static struct str predicate(struct str message, const char **colon)
{
	static const struct str subject = { "the command ", 12 };

	*colon = "";
	if (str_starts(message, subject))
		return str_slice(message, subject.n, message.n);
	*colon = ":";
	return message;
}

static struct str missing(const struct gang *g, struct arena *a)
{
	struct str out = STR("");

	for (size_t i = 0; i < g->ranks.n; i++)
		if (!rank_at(g, i)->ready)
			out = arena_printf(a, "%.*s%srank %zu on %.*s", STR_ARG(out),
				out.n != 0 ? ", " : "", i, STR_ARG(rank_at(g, i)->worker));
	return out;
}

static struct str message_of(const struct gang *g, size_t cause, struct arena *a)
{
	const struct gang_rank *r = rank_at(g, cause);
	size_t stopped = 0, failed = 0;
	struct str others = STR("");
	const char *colon;

	if (str_is(r->reason, reason_names[REASON_START_TIMEOUT]) && missing(g, a).n != 0)
		return arena_printf(
			a, "not all ranks were ready in time: %.*s not", STR_ARG(missing(g, a)));
	for (size_t i = 0; i < g->ranks.n; i++) {
		stopped += i != cause && rank_at(g, i)->state == ATTEMPT_CANCELLED;
		failed += i != cause && (rank_at(g, i)->state == ATTEMPT_FAILED ||
						rank_at(g, i)->state == ATTEMPT_LOST);
	}
	if (stopped != 0)
		others = arena_printf(
			a, "; %zu other rank%s stopped", stopped, stopped == 1 ? " was" : "s were");
	if (failed != 0)
		others = arena_printf(a, "%.*s; %zu more failed", STR_ARG(others), failed);
	struct str what = predicate(r->message, &colon);
	return arena_printf(a, "rank %zu on %.*s%s %.*s%.*s", cause, STR_ARG(r->worker), colon,
		STR_ARG(what), STR_ARG(others));
}

/* All have ended. */
static void conclude(const struct gang *g, struct arena *a, struct gang_verdict *v)
{
	size_t cause = cause_of(g);
	const struct gang_rank *first = rank_at(g, 0);

	if (g->led && first->state == ATTEMPT_SUCCEEDED) {
		v->state = ATTEMPT_SUCCEEDED;
		return;
	}
	if (cause != SIZE_MAX) {
		v->state = ATTEMPT_FAILED;
		v->reason = rank_at(g, cause)->reason;
		v->message = message_of(g, cause, a);
		return;
	}
	v->state = ATTEMPT_SUCCEEDED;
	for (size_t i = 0; i < g->ranks.n; i++) {
		const struct gang_rank *r = rank_at(g, i);
		if (r->state != ATTEMPT_CANCELLED ||
			(v->state == ATTEMPT_CANCELLED &&
				str_is(r->reason, reason_names[REASON_GANG_STOPPED])))
			continue;
		v->state = ATTEMPT_CANCELLED;
		v->reason = r->reason;
		v->message = r->message;
	}
}

void gang_judge(const struct gang *g, struct arena *a, struct gang_verdict *ret)
{
	bool over = true, broken = false, ready = true, released = false;
	int least = ATTEMPT_SUCCEEDED;

	*ret = (struct gang_verdict){ .reason = STR(""), .message = STR("") };
	for (size_t i = 0; i < g->ranks.n; i++) {
		const struct gang_rank *r = rank_at(g, i);
		over &= gang_rank_ended(r);
		broken |= r->state > ATTEMPT_SUCCEEDED;
		ready &= r->ready && !gang_rank_ended(r);
		released |= r->released;
		least = r->state < least ? r->state : least;
		if (r->started_at != 0 && (ret->started_at == 0 || r->started_at < ret->started_at))
			ret->started_at = r->started_at;
	}
	if (over) {
		conclude(g, a, ret);
		return;
	}
	ret->stop = broken || (g->led && rank_at(g, 0)->state == ATTEMPT_SUCCEEDED);
	ret->release = ready && !released && !ret->stop;
	/* Until the last of them has ended the step is where it was. */
	ret->state = ret->stop ? ATTEMPT_PREPARING : least;
}
