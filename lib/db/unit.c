#include "lib/db/unit.h"

#include "lib/base/mem.h"
#include "lib/db/encode.h"
#include "lib/db/pool.h"

#include <libpq-fe.h>

struct db_unit *db_unit(struct db *db, struct arena *arena)
{
	struct db_unit *u = mem_new_of(struct db_unit);

	u->db = db;
	u->arena = arena;
	if (arena != NULL)
		arena_hold(arena);
	u->wait_max = db->deadline;
	buf_init(&u->bytes, UNIT_BYTES_MAX);
	return u;
}

static void rows_free(struct db_unit *u)
{
	for (size_t i = 0; u->rows != NULL && i < u->nstmts; i++)
		PQclear(u->rows[i].res);
	mem_free(u->rows);
	u->rows = NULL;
}

static void unit_destroy(struct db_unit *u)
{
	rows_free(u);
	for (size_t i = 0; i < u->nstmts; i++) {
		mem_free(u->stmts[i].text);
		mem_free(u->stmts[i].types);
		plans_free(&u->stmts[i].plans);
	}
	loop_timer_cancel(&u->timer);
	buf_done(&u->bytes);
	mem_free(u->stmts);
	mem_free(u->values);
	arena_drop(u->arena);
	mem_free(u);
}

void db_unit_free(struct db_unit *u)
{
	if (u == NULL)
		return;
	BUG_ON(u->state != UNIT_NEW);
	unit_destroy(u);
}

size_t db_unit_count(const struct db_unit *u)
{
	return u->nstmts;
}

void db_unit_set_deadline(struct db_unit *u, int64_t us)
{
	u->wait_max = us;
}

/* Makes room for one more item in an array that doubles. */
static void *room(void *items, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return items;
	*cap = *cap > 0 ? *cap * 2 : 4;
	return mem_resize(items, *cap, size);
}

static void add_value(struct db_unit *u, uint32_t type, const struct db_arg *v)
{
	struct unit_value *to;
	struct err e;

	u->values = room(u->values, u->nvalues, &u->values_cap, sizeof *u->values);
	to = &u->values[u->nvalues++];
	*to = (struct unit_value){ u->bytes.n, -1 };
	if (v->is_null || u->err.code != ERR_OK)
		return;
	if (db_encode(&u->bytes, type, v, &e) < 0)
		u->err = e;
	else
		to->n = (int)(u->bytes.n - to->at);
}

static struct unit_stmt *add_stmt(struct db_unit *u, const char *name, size_t n)
{
	struct unit_stmt *st;

	BUG_ON(u->state != UNIT_NEW || n > UINT16_MAX);
	if (u->nstmts == UNIT_STMTS_MAX && u->err.code == ERR_OK)
		(void)err_set(&u->err, ERR_TOO_LARGE, "A transaction has more than %d statements",
			UNIT_STMTS_MAX);
	u->stmts = room(u->stmts, u->nstmts, &u->stmts_cap, sizeof *u->stmts);
	st = &u->stmts[u->nstmts++];
	*st = (struct unit_stmt){ .name = name, .first = u->nvalues, .nparams = (int)n };
	return st;
}

void db_add(struct db_unit *u, unsigned id, const struct db_arg *args, size_t n)
{
	const struct sql *sql;
	struct unit_stmt *st;

	BUG_ON(id >= u->db->count);
	sql = &u->db->table[id];
	if (n != (size_t)sql->nparams || sql->kind == 'p')
		bug_at(__FILE__, __LINE__, sql->name);
	st = add_stmt(u, sql->name, n);
	st->id = id;
	for (size_t i = 0; i < n; i++)
		add_value(u, sql->types[i], &args[i]);
}

void db_add_text(
	struct db_unit *u, const char *name, struct str text, const struct db_arg *args, size_t n)
{
	struct unit_stmt *st = add_stmt(u, name, n);
	uint32_t *types = mem_new(n + 1, sizeof *types);

	st->id = UNIT_DYNAMIC;
	st->text = mem_dupn(text.p, text.n);
	st->types = types;
	for (size_t i = 0; i < n; i++) {
		types[i] = db_arg_type(&args[i]);
		add_value(u, types[i], &args[i]);
	}
}

void unit_scratch_fill(struct unit_scratch *s, const struct db_unit *u, const struct unit_stmt *st)
{
	size_t n = (size_t)st->nparams;

	if (n > s->cap) {
		s->cap = n + 16;
		s->values = mem_resize(s->values, s->cap, sizeof *s->values);
		s->lengths = mem_resize(s->lengths, s->cap, sizeof *s->lengths);
		s->formats = mem_resize(s->formats, s->cap, sizeof *s->formats);
	}
	for (size_t i = 0; i < n; i++) {
		const struct unit_value *v = &u->values[st->first + i];

		s->lengths[i] = v->n < 0 ? 0 : v->n;
		s->formats[i] = 1;
		/* An empty value needs a pointer too: NULL would be NULL. */
		s->values[i] = v->n < 0 ? NULL : v->n == 0 ? "" : u->bytes.p + v->at;
	}
}

void unit_scratch_done(struct unit_scratch *s)
{
	mem_free(s->values);
	mem_free(s->lengths);
	mem_free(s->formats);
	*s = (struct unit_scratch){ .cap = 0 };
}

void unit_reset(struct db_unit *u)
{
	rows_free(u);
	u->rows = mem_new(u->nstmts + 1, sizeof *u->rows);
	u->pos = u->nprepares = u->syncs = 0;
	u->resend = false;
	u->err = (struct err){ .code = ERR_OK };
	u->fault = (struct db_fault){ .statement = 0 };
}

void unit_take(struct db_unit *u, size_t stmt, PGresult *res)
{
	const char *changed = PQcmdTuples(res);
	struct unit_stmt *st = &u->stmts[stmt];
	int64_t n = 0;

	while (*changed >= '0' && *changed <= '9')
		n = n * 10 + (*changed++ - '0');
	u->rows[stmt] = (struct db_rows){
		.n = (size_t)PQntuples(res),
		.cols = (size_t)PQnfields(res),
		.affected = n,
		.res = res,
		.plans = st->id == UNIT_DYNAMIC ? &st->plans : &u->db->plans[st->id],
	};
}

void unit_complete(struct db_unit *u)
{
	struct db_rows none = { .fault = u->err.code != ERR_OK ? &u->fault : NULL };

	u->state = UNIT_DONE;
	if (u->cb != NULL)
		u->cb(u->arg, none.fault == NULL && u->rows != NULL ? u->rows : &none, &u->err);
	unit_destroy(u);
}
