#include "server/command.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/db/migrate.h"
#include "lib/db/row.h"
#include "lib/json/json_write.h"
#include "lib/loop/loop.h"
#include "server/app.h"
#include "server/assets.h"
#include "server/sched/pool.h"
#include "server/sched/replay.h"
#include "server/secret_key.h"
#include "server/store/auth_store.h"
#include "server/store/credential.h"
#include "server/store/sched_store.h"

#include "gen/sql.h"

#include <stdio.h>

enum { MIGRATIONS_MAX = 999, COMMAND_ARENA = 1 << 20 };

int command_migrate(const struct settings *conf, int64_t *ret_version, struct err *e)
{
	static const struct str folder = { "schema/migrations/", sizeof "schema/migrations/" - 1 };
	struct db_migration *list = mem_new(MIGRATIONS_MAX, sizeof *list);
	struct db_migrated done;
	size_t n = 0;

	for (const struct asset *a = assets; a->path != NULL && n < MIGRATIONS_MAX; a++)
		if (str_starts(str_c(a->path), folder))
			list[n++] = (struct db_migration){ a->path,
				{ a->begin, (size_t)(a->end - a->begin) } };
	int rc = db_migrate(conf->database_url.p, list, n, 0, &done, e);
	mem_free(list);
	if (rc == 0)
		*ret_version = done.version;
	return rc;
}

/* One unit, run to its end. */
struct sync {
	struct loop *loop;
	struct err err;
	int64_t number; /* first column of the first row of the first statement that has one */
};

static void sync_on_done(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sync *s = arg;

	s->err = *e;
	if (e->code == ERR_OK && rows[0].n != 0 && rows[0].cols != 0)
		s->number = db_int(&rows[0], 0, 0);
	loop_stop(s->loop);
}

static int run_unit(struct loop *loop, struct db_unit *u, int64_t *ret_number, struct err *e)
{
	struct sync s = { .loop = loop };

	db_send(u, DB_WRITE, sync_on_done, &s);
	loop_run(loop);
	if (s.err.code != ERR_OK) {
		*e = s.err;
		return -1;
	}
	*ret_number = s.number;
	return 0;
}

struct local {
	struct app app;
	struct arena *arena;
};

static int local_open(struct local *l, const struct settings *conf, struct err *e)
{
	*l = (struct local){ .app = { .conf = *conf, .clock = &clock_real } };
	if (command_migrate(conf, &l->app.schema, e) < 0)
		return -1;
	l->app.pepper = secret_key_open(conf->data_dir.p, e);
	if (l->app.pepper == NULL)
		return -1;
	l->app.loop = loop_new();
	loop_serves_nobody(l->app.loop);
	l->app.db = db_new(l->app.loop, &(struct db_conf){ .conninfo = conf->database_url.p,
						.table = sql_table,
						.count = SQL_COUNT,
						.conns = { [DB_WRITE] = 1 } });
	l->arena = arena_new(COMMAND_ARENA);
	return 0;
}

static void local_close(struct local *l)
{
	if (l->app.loop != NULL) {
		db_free(l->app.db);
		loop_step(l->app.loop, false);
		loop_free(l->app.loop);
	}
	pepper_free(l->app.pepper);
	arena_drop(l->arena);
}

static int print_token(
	struct local *l, enum credential_kind kind, struct str name, struct str data, struct err *e)
{
	struct credential_row row = credential_mint(l->app.pepper, kind, l->arena);
	struct db_unit *u = db_unit(l->app.db, l->arena);
	int64_t ignored;

	auth_store_token_add(u, &(struct token_row){ .id = row.id,
					.kind = row.kind,
					.mac = row.mac,
					.name = name,
					.data = data,
					.expires_at = clock_now(&clock_real) + CLOCK_HOUR });
	if (run_unit(l->app.loop, u, &ignored, e) < 0)
		return -1;
	if (printf("%s\n", row.text.p) < 0 || fflush(stdout) != 0)
		return err_errno(e, "write", "the token");
	return 0;
}

int command_bootstrap(const struct settings *conf, bool recover, struct err *e)
{
	struct local l;
	int64_t admins = 0;
	int rc = local_open(&l, conf, e);

	if (rc == 0) {
		struct db_unit *u = db_unit(l.app.db, l.arena);
		auth_store_admin_count(u);
		rc = run_unit(l.app.loop, u, &admins, e);
	}
	if (rc == 0 && admins > 0 && !recover)
		rc = err_set(e, ERR_CONFLICT,
			"there is an administrator already; use --recover to make another way in");
	if (rc == 0)
		rc = print_token(&l, CREDENTIAL_BOOTSTRAP,
			recover ? STR("recover") : STR("bootstrap"),
			recover ? STR("{\"recover\":true}") : STR_NONE, e);
	local_close(&l);
	return rc;
}

int command_join_token(const struct settings *conf, const char *pool, struct err *e)
{
	struct local l;
	struct buf b;
	int rc;

	if (!str_is_name(str_c(pool)))
		return err_set(e, ERR_INVALID, "the pool's name must be of [a-z0-9._-], up to 63");
	rc = local_open(&l, conf, e);
	if (rc == 0) {
		buf_init(&b, 512);
		struct jsn_out w = jsn_out(&b);
		jsn_obj_begin(&w);
		jsn_key(&w, "pool");
		jsn_text(&w, pool);
		jsn_key(&w, "labels");
		jsn_raw(&w, STR("{}"));
		jsn_obj_end(&w);
		rc = print_token(&l, CREDENTIAL_JOIN, STR("join"), buf_str(&b), e);
		buf_done(&b);
	}
	local_close(&l);
	return rc;
}

/* ---- the scheduler's look ---- */

struct looking {
	struct sync sync;
	struct pool *pool;
};

static void looking_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct looking *l = arg;

	l->sync.err = *e;
	if (e->code == ERR_OK)
		pool_read(l->pool, rows);
	loop_stop(l->sync.loop);
}

static int64_t as_stored(void *arg, struct str worker_id, int64_t stored)
{
	(void)arg, (void)worker_id;
	return stored;
}

static void decide(struct pool *pool, const struct settings *conf, struct arena *a, struct buf *out)
{
	int64_t now = clock_now(&clock_real), next;
	struct place_snapshot s;
	struct place_result r;

	pool_snapshot(pool, now, conf->worker_lost_after, as_stored, NULL, a, &s, &next);
	pool_add_running(pool, now, a, &s);
	place_pass(&s, a, &r);
	snapshot_write(&s, &r, now, out);
}

static int print_out(const struct buf *b, const char *what, struct err *e)
{
	if (buf_failed(b))
		return err_set(e, ERR_TOO_LARGE, "%s is too large", what);
	if (fwrite(b->p, 1, b->n, stdout) != b->n || fflush(stdout) != 0)
		return err_errno(e, "write", what);
	return 0;
}

int command_snapshot(const struct settings *conf, struct err *e)
{
	struct local l;
	struct looking look;
	struct buf out;
	int rc = local_open(&l, conf, e);

	if (rc == 0) {
		look = (struct looking){ .sync = { .loop = l.app.loop }, .pool = pool_new() };
		struct db_unit *u = db_unit(l.app.db, l.arena);
		sched_store_memory(u);
		db_send(u, DB_WRITE, looking_on_rows, &look);
		loop_run(l.app.loop);
		struct arena *a = arena_new(SNAPSHOT_ARENA);
		buf_init(&out, SNAPSHOT_BYTES_MAX);
		*e = look.sync.err;
		rc = e->code == ERR_OK ? 0 : -1;
		if (rc == 0) {
			decide(look.pool, conf, a, &out);
			rc = print_out(&out, "the snapshot", e);
		}
		buf_done(&out);
		arena_drop(a);
		pool_free(look.pool);
	}
	local_close(&l);
	return rc;
}

int command_replay(const char *file, const char *step, struct err *e)
{
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	struct snapshot_file f;
	struct buf text, said;

	buf_init(&text, SNAPSHOT_BYTES_MAX);
	buf_init(&said, 1 << 20);
	int rc = fs_read(file, &text, e);
	if (rc == 0)
		rc = snapshot_read(buf_str(&text), a, &f, e);
	if (rc == 0 && step != NULL && !replay_has_step(&f, str_c(step)))
		rc = err_set(e, ERR_INVALID, "there is no step %.60s in the snapshot", step);
	if (rc == 0) {
		bool same = replay_snapshot(&f, step != NULL ? str_c(step) : STR_NONE, &said);
		rc = print_out(&said, "the answer", e);
		if (rc == 0 && !same)
			rc = err_set(e, ERR_CONFLICT, "the recorded decision is another one");
	}
	buf_done(&said);
	buf_done(&text);
	arena_drop(a);
	return rc;
}
