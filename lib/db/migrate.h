/*
 * Schema migrations, one way up: applies what is missing, in the order of their numbers, each in a
 * transaction of its own with its row in schema_migration(version, name, checksum, applied_at).
 * Blocking; for start-up and command lines.
 *
 * One whose first line is "-- outside a transaction" is sent statement by statement (each ends with
 * a ';' at the end of a line), and waits for locks as long as it takes: for CREATE INDEX
 * CONCURRENTLY. When it is cut short it begins anew from its first statement, so it must be one
 * that may run twice.
 *
 * Several processes may start at once: one of them migrates under a session advisory lock (tried
 * again until the deadline), the others find the work done. Refused: a database with versions that
 * this program does not know, an applied migration whose text has changed, a gap in the numbers.
 */
#ifndef LIB_DB_MIGRATE_H
#define LIB_DB_MIGRATE_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct db_migration {
	const char *name; /* a path or file name that begins with its number: "…/0001_init.sql" */
	struct str text;
};

struct db_migrated {
	int64_t version; /* of the schema now */
	size_t applied; /* by this call */
};

/* Migrations must be sorted by number, which counts from 1. deadline: µs to wait for a connection
 * and the lock; 0: 30 s. ERR_DATABASE, ERR_TIMEOUT, ERR_CONFLICT (refused), or ERR_INTERNAL (a
 * migration failed and was rolled back) with the server's message, which is for the operator. */
int db_migrate(const char *conninfo, const struct db_migration *m, size_t n, int64_t deadline,
	struct db_migrated *ret, struct err *e) MUST_CHECK;

#endif
