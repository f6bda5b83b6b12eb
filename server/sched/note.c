#include "server/sched/note.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "lib/loop/loop.h"
#include "server/app.h"
#include "server/sched/pool.h"
#include "server/sched/why.h"
#include "server/store/sched_store.h"

enum { NOTE_ARENA = 64 << 20, NOTES_MAX = 500, BUDGET_US = 10000, LOOK_EVERY = 64 };
#define NOTE_AFTER CLOCK_SECOND

struct note {
	struct app *app;
	size_t from; /* in the order of the queue: where the next look begins */
	bool writing, closing;
};

struct look {
	struct note *note;
	struct arena *arena;
	struct map *said; /* first blocker -> struct said */
	struct blocked_rows rows;
};

/* What is said of all steps that share their blockers. */
struct said {
	const char *kind;
	struct str message;
	bool never;
	uint64_t hash;
};

static void note_on_written(void *arg, const struct db_rows *rows, const struct err *e);

struct note *note_new(struct app *app)
{
	struct note *n = mem_new_of(struct note);

	n->app = app;
	return n;
}

void note_free(struct note *n)
{
	if (n == NULL)
		return;
	n->closing = true;
	if (!n->writing)
		mem_free(n);
}

static const struct said *say(struct look *l, const struct place_blocker *b)
{
	struct str key = { (const char *)&b, sizeof b };
	struct said *s = map_get(l->said, key);
	char text[PLACE_TEXT_MAX];

	if (s != NULL)
		return s;
	s = arena_new_of(l->arena, struct said);
	s->kind = place_blocker_name(b->kind);
	s->message = arena_str(l->arena, str_c(place_explain(text, b, false)));
	s->never = b->never;
	s->hash = pool_blocked_hash(str_c(s->kind), s->never, s->message);
	(void)map_put(l->said, key, s);
	return s;
}

static void look_at(struct look *l, struct pool *pool, const struct why_view *v, size_t i)
{
	const struct place_step *step = &v->snapshot.steps[v->result.waiting[i]];
	uint64_t *known = pool_blocked(pool, step->id);
	uint32_t n;

	if (known == NULL || v->at - step->queued_at < NOTE_AFTER)
		return;
	const struct said *s = say(l, place_blockers(&v->result, i, &n));
	if (*known == s->hash)
		return;
	*known = s->hash;
	struct blocked_rows *r = &l->rows;
	r->step_ids[r->n] = arena_str(l->arena, step->id);
	r->kinds[r->n] = str_c(s->kind);
	r->messages[r->n] = s->message;
	r->unsatisfiable[r->n++] = s->never;
}

void note_tick(struct note *n, struct pool *pool, int64_t epoch)
{
	int64_t began = clock_elapsed(n->app->clock);

	if (n->writing || pool_steps(pool) == 0)
		return;
	const struct why_view *v = why_view_of(n->app->why, pool);
	size_t count = v->result.waiting_n;
	struct arena *a = arena_new(NOTE_ARENA);
	struct look l = { .note = n, .arena = a, .said = map_new() };
	l.rows = (struct blocked_rows){ .step_ids = arena_array_of(a, struct str, NOTES_MAX),
		.kinds = arena_array_of(a, struct str, NOTES_MAX),
		.messages = arena_array_of(a, struct str, NOTES_MAX),
		.unsatisfiable = arena_array_of(a, bool, NOTES_MAX) };
	for (size_t looked = 0; looked < count && l.rows.n < NOTES_MAX; looked++) {
		if (looked % LOOK_EVERY == 0 && clock_elapsed(n->app->clock) - began > BUDGET_US)
			break;
		look_at(&l, pool, v, n->from++ % count);
	}
	map_free(l.said);
	if (l.rows.n == 0) {
		arena_drop(a);
		return;
	}
	n->writing = true;
	struct db_unit *u = db_unit(n->app->db, a);
	sched_store_block(u, n->app->instance, epoch, &l.rows);
	db_send(u, DB_WRITE, note_on_written, n);
	arena_drop(a);
}

/* What was not written is read again with the queue, and then differs again. */
static void note_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct note *n = arg;

	(void)rows;
	n->writing = false;
	if (n->closing)
		mem_free(n);
	else if (e->code == ERR_OK)
		app_changed(n->app);
}
