#include "lib/db/migrate.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/db/conninfo.h"

#include <libpq-fe.h>
#include <poll.h>

/* One of all advisory locks; the key says "tidemill" in hexadecimal. */
#define LOCK_KEY "x'746964656d696c6c'::bigint"

enum { PAUSE_MS = 100, SUM_HEX = 64 };

struct run {
	PGconn *pg;
	const struct db_migration *m;
	size_t n;
	int64_t end; /* of waiting, on clock_elapsed's clock */
	struct db_migrated got;
};

static bool may_wait(const struct run *r)
{
	if (clock_elapsed(&clock_real) >= r->end)
		return false;
	(void)poll(NULL, 0, PAUSE_MS);
	return true;
}

static int server_says(const struct run *r, enum err_code c, const char *doing, struct err *e)
{
	struct str rest = str_c(PQerrorMessage(r->pg)), first = STR_NONE;

	(void)str_next(&rest, '\n', &first);
	return err_set(e, c, "%s: %.*s", doing, STR_ARG(first));
}

/* Such as that a table is there already. */
static void silence(void *arg, const PGresult *notice)
{
	(void)arg, (void)notice;
}

static int open_session(struct run *r, const char *conninfo, struct err *e)
{
	struct conninfo info = { .n = 0 };
	bool bad;

	if (conninfo_parse(&info, conninfo, "tidemill-migrate", "-c lock_timeout=3s", e) < 0)
		return -1;
	do {
		PQfinish(r->pg);
		r->pg = PQconnectdbParams(
			(const char *const *)info.words, (const char *const *)info.values, 0);
		bad = PQstatus(r->pg) != CONNECTION_OK;
		(void)PQsetNoticeReceiver(r->pg, silence, NULL);
	} while (bad && may_wait(r));
	conninfo_done(&info);
	return bad ? server_says(r, ERR_DATABASE, "The database cannot be reached", e) : 0;
}

/* The result of one statement with text values, or NULL and an error. */
static PGresult *query(
	struct run *r, const char *sql, int n, const char *const *values, struct err *e)
{
	PGresult *res = PQexecParams(r->pg, sql, n, NULL, values, NULL, NULL, 0);
	ExecStatusType st = PQresultStatus(res);

	if (st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK)
		return res;
	PQclear(res);
	(void)server_says(r, ERR_INTERNAL, "The schema cannot be read", e);
	return NULL;
}

static int run_text(struct run *r, const char *sql, struct err *e)
{
	PGresult *res = PQexec(r->pg, sql);
	ExecStatusType st = PQresultStatus(res);

	PQclear(res);
	if (st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK || st == PGRES_EMPTY_QUERY)
		return 0;
	return server_says(r, ERR_INTERNAL, "The schema cannot be changed", e);
}

static int lock(struct run *r, struct err *e)
{
	for (;;) {
		PGresult *res = query(r, "SELECT pg_try_advisory_lock(" LOCK_KEY ")", 0, NULL, e);
		bool got = res != NULL && PQgetvalue(res, 0, 0)[0] == 't';

		if (res == NULL)
			return -1;
		PQclear(res);
		if (got)
			return 0;
		if (!may_wait(r))
			return err_set(e, ERR_TIMEOUT,
				"Another process has been migrating the database for too long");
	}
}

/* The number at the start of the file's name. */
static int number_of(const struct db_migration *m, int64_t *ret, struct err *e)
{
	const char *slash = strrchr(m->name, '/'), *file = slash != NULL ? slash + 1 : m->name;
	struct str digits = { file, strspn(file, "0123456789") };

	while (digits.n > 1 && digits.p[0] == '0')
		digits = str_slice(digits, 1, digits.n);
	if (!num_parse_i64(digits, 1, INT32_MAX, ret))
		return err_set(e, ERR_INVALID, "The migration %.100s has no number", m->name);
	return 0;
}

static const char *file_of(const struct db_migration *m)
{
	const char *slash = strrchr(m->name, '/');

	return slash != NULL ? slash + 1 : m->name;
}

static int check_numbers(const struct run *r, struct err *e)
{
	for (size_t i = 0; i < r->n; i++) {
		int64_t number;

		if (number_of(&r->m[i], &number, e) < 0)
			return -1;
		if (number != (int64_t)i + 1)
			return err_set(e, ERR_CONFLICT,
				"The migration %.100s should have the number %zu",
				file_of(&r->m[i]), i + 1);
	}
	return 0;
}

static int checksum(
	struct run *r, const struct db_migration *m, char out[SUM_HEX + 1], struct err *e)
{
	const char *const values[1] = { m->text.p };
	const int lengths[1] = { (int)m->text.n }, formats[1] = { 1 };
	const Oid types[1] = { 17 };
	PGresult *res = PQexecParams(
		r->pg, "SELECT encode(sha256($1), 'hex')", 1, types, values, lengths, formats, 0);
	bool ok = PQresultStatus(res) == PGRES_TUPLES_OK;

	if (ok)
		(void)str_print(out, SUM_HEX + 1, "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
	return ok ? 0 : server_says(r, ERR_INTERNAL, "The schema cannot be checked", e);
}

static int check_row(struct run *r, const PGresult *res, int row, struct err *e)
{
	int64_t version = 0;
	char sum[SUM_HEX + 1];

	(void)num_parse_i64(str_c(PQgetvalue(res, row, 0)), 0, INT64_MAX, &version);
	if (version != (int64_t)row + 1)
		return err_set(e, ERR_CONFLICT, "The database lacks the migration %d but has %lld",
			row + 1, (long long)version);
	if ((size_t)version > r->n)
		return err_set(e, ERR_CONFLICT,
			"The database has the schema %lld (%.80s); this program knows only %zu: "
			"use a newer one",
			(long long)PQntuples(res), PQgetvalue(res, PQntuples(res) - 1, 2), r->n);
	if (checksum(r, &r->m[row], sum, e) < 0)
		return -1;
	if (strcmp(sum, PQgetvalue(res, row, 1)) != 0)
		return err_set(e, ERR_CONFLICT,
			"The migration %.100s was changed after the database had applied it",
			file_of(&r->m[row]));
	r->got.version = version;
	return 0;
}

static int read_applied(struct run *r, struct err *e)
{
	PGresult *res = query(r, "SELECT to_regclass('schema_migration') IS NOT NULL", 0, NULL, e);
	bool there = res != NULL && PQgetvalue(res, 0, 0)[0] == 't';
	int rc = res != NULL ? 0 : -1;

	PQclear(res);
	if (!there)
		return rc;
	res = query(r, "SELECT version, checksum, name FROM schema_migration ORDER BY version", 0,
		NULL, e);
	rc = res != NULL ? 0 : -1;
	for (int i = 0; rc == 0 && i < PQntuples(res); i++)
		rc = check_row(r, res, i, e);
	PQclear(res);
	return rc;
}

static int insert_row(struct run *r, size_t i, struct err *e)
{
	char sum[SUM_HEX + 1], version[24];
	const char *const values[3] = { version, file_of(&r->m[i]), sum };
	PGresult *res;

	(void)str_print(version, sizeof version, "%zu", i + 1);
	if (checksum(r, &r->m[i], sum, e) < 0)
		return -1;
	res = query(r,
		"INSERT INTO schema_migration (version, name, checksum) "
		"VALUES ($1::bigint, $2::text, $3::text)",
		3, values, e);
	PQclear(res);
	return res != NULL ? 0 : -1;
}

/* A part of a file; *ret_locked_out: others hold what it wants. */
static int run_part(struct run *r, size_t i, struct str part, bool *ret_locked_out, struct err *e)
{
	char *text = mem_dupn(part.p, part.n);
	PGresult *res = PQexec(r->pg, text);
	ExecStatusType st = PQresultStatus(res);
	const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
	int rc = 0;

	mem_free(text);
	*ret_locked_out = state != NULL && strcmp(state, "55P03") == 0;
	if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK && st != PGRES_EMPTY_QUERY)
		rc = server_says(r, ERR_INTERNAL, file_of(&r->m[i]), e);
	PQclear(res);
	return rc;
}

static int run_apart(struct run *r, size_t i, struct err *e)
{
	struct str rest = r->m[i].text;
	bool locked_out;
	int rc = run_text(r, "SET lock_timeout = 0", e);

	while (rc == 0 && rest.n != 0) {
		ptrdiff_t end = str_find(rest, STR(";\n"));
		struct str part = end < 0 ? rest : str_slice(rest, 0, (size_t)end + 1);
		rest = str_slice(rest, part.n, rest.n);
		rc = run_part(r, i, part, &locked_out, e);
	}
	return rc == 0 ? run_text(r, "RESET lock_timeout", e) : -1;
}

static int try_one(struct run *r, size_t i, bool *ret_locked_out, struct err *e)
{
	bool apart = str_starts(r->m[i].text, STR("-- outside a transaction\n"));
	int rc = apart ? run_apart(r, i, e) : 0;

	*ret_locked_out = false;
	if (rc == 0)
		rc = run_text(r, "BEGIN", e);
	if (rc == 0 && !apart)
		rc = run_part(r, i, r->m[i].text, ret_locked_out, e);
	if (rc == 0)
		rc = insert_row(r, i, e);
	if (rc == 0)
		return run_text(r, "COMMIT", e);
	PQclear(PQexec(r->pg, "ROLLBACK"));
	return rc;
}

/* Others may hold a table for a while: the lock_timeout keeps the queue behind us short. */
static int apply_one(struct run *r, size_t i, struct err *e)
{
	bool locked_out;

	while (try_one(r, i, &locked_out, e) < 0)
		if (!locked_out || !may_wait(r))
			return -1;
	r->got.version = (int64_t)i + 1;
	r->got.applied++;
	log_debug("migration applied", LOG_S("name", file_of(&r->m[i])));
	return 0;
}

static int migrate(struct run *r, struct err *e)
{
	static const char table[] = "CREATE TABLE IF NOT EXISTS schema_migration ("
				    "version bigint PRIMARY KEY, name text NOT NULL, "
				    "checksum text NOT NULL, "
				    "applied_at timestamptz NOT NULL DEFAULT now())";

	if (lock(r, e) < 0 || read_applied(r, e) < 0 || run_text(r, table, e) < 0)
		return -1;
	while ((size_t)r->got.version < r->n)
		if (apply_one(r, (size_t)r->got.version, e) < 0)
			return -1;
	return 0;
}

int db_migrate(const char *conninfo, const struct db_migration *m, size_t n, int64_t deadline,
	struct db_migrated *ret, struct err *e)
{
	struct run r = { .m = m, .n = n };
	int rc;

	r.end = clock_elapsed(&clock_real) + (deadline > 0 ? deadline : 30 * CLOCK_SECOND);
	rc = check_numbers(&r, e);
	if (rc == 0)
		rc = open_session(&r, conninfo, e);
	if (rc == 0)
		rc = migrate(&r, e);
	PQfinish(r.pg); /* the session's end gives the lock back */
	if (rc == 0)
		*ret = r.got;
	return rc;
}
