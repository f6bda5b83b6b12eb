/*
 * What PostgreSQL itself can do on this machine, by libpq alone: the floors of the benchmarks that
 * end in a commit. usage: bench_floor_pg CONNINFO [SECONDS] (2 per figure). Works in a table of its
 * own, which it drops, and prints one JSON object:
 *
 *     round_trip_p50_ms, round_trip_p99_ms   SELECT of one value, prepared
 *     commit_p50_ms, commit_p99_ms, commits_per_s
 *                                            INSERT of one row with its index, durable
 *     unnest_rows_per_s, unnest_p50_ms       INSERT … SELECT FROM unnest of 100 rows, durable
 *     points_per_s, points_1000_ms           metric points, 1,000 by unnest, each once by all its
 * columns points_20_per_s                        the same by 20
 */
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/db/arg.h"
#include "lib/db/encode.h"
#include "lib/db/sql.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100, POINTS = 1000, CLIENTS = 20, KEYS = 10, ARGS = 6, TIMES_MAX = 2000000 };

static double *times; /* ms */
static size_t ntimes;
static int64_t seconds = 2;

static void must(PGconn *pg, PGresult *res)
{
	ExecStatusType st = PQresultStatus(res);

	if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK) {
		(void)fprintf(stderr, "floor_pg: %s", PQerrorMessage(pg));
		exit(1);
	}
	PQclear(res);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double q)
{
	return ntimes > 0 ? times[(size_t)(q * (double)(ntimes - 1))] : 0;
}

/* Runs the prepared statement again and again, with values that `fill` makes anew; returns how many
 * times a second. */
static double measure(PGconn *pg, const char *statement, int n, struct buf *values,
	void (*fill)(struct buf *values))
{
	const char *at[ARGS];
	int lengths[ARGS], formats[ARGS] = { 1, 1, 1, 1, 1, 1 };
	int64_t start = clock_elapsed(&clock_real), before = start, now = start;

	ntimes = 0;
	while (now - start < seconds * CLOCK_SECOND && ntimes < TIMES_MAX) {
		fill(values);
		for (int i = 0; i < n; i++) {
			at[i] = values[i].p;
			lengths[i] = (int)values[i].n;
		}
		before = clock_elapsed(&clock_real);
		must(pg, PQexecPrepared(pg, statement, n, at, lengths, formats, 1));
		now = clock_elapsed(&clock_real);
		times[ntimes++] = (double)(now - before) / 1000;
	}
	qsort(times, ntimes, sizeof *times, by_value);
	return (double)ntimes * 1e6 / (double)(now - start);
}

static void put(struct buf *b, uint32_t type, struct db_arg v)
{
	struct err e;

	buf_clear(b);
	if (db_encode(b, type, &v, &e) < 0)
		bug_at(__FILE__, __LINE__, e.msg);
}

static int64_t next_id;
static const char text[] =
	"{\"step\": \"train\", \"priority\": 0, \"gpus\": 2, \"pool\": \"a100\"}";
static const struct str payload = { text, sizeof text - 1 };

static void fill_one(struct buf *values)
{
	put(&values[0], SQL_TYPE_INT8, DB_INT(next_id++));
	put(&values[1], SQL_TYPE_JSONB, DB_JSON(payload));
}

static void fill_many(struct buf *values)
{
	int64_t ids[ROWS];
	struct str data[ROWS];

	for (int i = 0; i < ROWS; i++) {
		ids[i] = next_id++;
		data[i] = payload;
	}
	put(&values[0], SQL_TYPE_INT8_ARRAY, DB_INTS(ids, ROWS));
	put(&values[1], SQL_TYPE_JSONB_ARRAY, DB_JSONS(data, ROWS));
}

static size_t points; /* of one statement */

static void fill_points(struct buf *values)
{
	static int64_t runs[POINTS], keys[POINTS], steps[POINTS], at[POINTS];
	static double reals[POINTS];
	static bool nans[POINTS];

	for (size_t i = 0; i < points; i++) {
		runs[i] = 1;
		keys[i] = next_id % KEYS;
		steps[i] = next_id / KEYS;
		at[i] = next_id++;
		reals[i] = 1.0 / (double)next_id;
	}
	put(&values[0], SQL_TYPE_INT8_ARRAY, DB_INTS(runs, points));
	put(&values[1], SQL_TYPE_INT8_ARRAY, DB_INTS(keys, points));
	put(&values[2], SQL_TYPE_INT8_ARRAY, DB_INTS(steps, points));
	put(&values[3], SQL_TYPE_INT8_ARRAY, DB_INTS(at, points));
	put(&values[4], SQL_TYPE_FLOAT8_ARRAY, DB_REALS(reals, points));
	put(&values[5], SQL_TYPE_BOOL_ARRAY, DB_BOOLS(nans, points));
}

static void prepare_points(PGconn *pg)
{
	must(pg, PQexec(pg, "DROP TABLE IF EXISTS floor_pg_point"));
	must(pg, PQexec(pg, "CREATE TABLE floor_pg_point (run bigint, key int, step bigint, time "
			    "bigint, value float8, is_nan boolean, "
			    "PRIMARY KEY (run, key, step, time, value, is_nan))"));
	must(pg, PQprepare(pg, "points",
			 "INSERT INTO floor_pg_point SELECT * FROM unnest($1::bigint[], "
			 "$2::bigint[], $3::bigint[], $4::bigint[], $5::float8[], $6::bool[]) "
			 "ON CONFLICT DO NOTHING",
			 0, NULL));
}

static void prepare(PGconn *pg)
{
	must(pg, PQexec(pg, "DROP TABLE IF EXISTS floor_pg"));
	must(pg, PQexec(pg, "CREATE TABLE floor_pg (id bigint PRIMARY KEY, state text NOT NULL "
			    "DEFAULT 'queued', "
			    "at timestamptz NOT NULL DEFAULT now(), data jsonb)"));
	must(pg, PQexec(pg, "CREATE INDEX ON floor_pg (state, id)"));
	must(pg, PQprepare(pg, "echo", "SELECT $1::bigint", 0, NULL));
	must(pg,
		PQprepare(pg, "one",
			"INSERT INTO floor_pg (id, data) VALUES ($1::bigint, $2::jsonb)", 0, NULL));
	must(pg, PQprepare(pg, "many",
			 "INSERT INTO floor_pg (id, data) SELECT * FROM unnest($1::bigint[], "
			 "$2::jsonb[])",
			 0, NULL));
}

int main(int argc, char **argv)
{
	PGconn *pg = PQconnectdb(argc > 1 ? argv[1] : "");
	struct buf values[ARGS];
	double per_s;

	if (PQstatus(pg) != CONNECTION_OK) {
		(void)fprintf(stderr, "floor_pg: %s", PQerrorMessage(pg));
		return 1;
	}
	if (argc > 2 && !num_parse_i64(str_c(argv[2]), 1, 3600, &seconds)) {
		(void)fprintf(stderr, "usage: bench_floor_pg CONNINFO [SECONDS]\n");
		return 2;
	}
	times = mem_new(TIMES_MAX, sizeof *times);
	for (int i = 0; i < ARGS; i++)
		buf_init(&values[i], 1 << 20);
	must(pg, PQexec(pg, "SET client_min_messages = warning"));
	prepare(pg);
	prepare_points(pg);
	(void)measure(pg, "echo", 1, values, fill_one);
	(void)printf("{\"round_trip_p50_ms\": %.3f, \"round_trip_p99_ms\": %.3f, ", quantile(.5),
		quantile(.99));
	per_s = measure(pg, "one", 2, values, fill_one);
	(void)printf("\"commit_p50_ms\": %.3f, \"commit_p99_ms\": %.3f, \"commits_per_s\": %.0f, ",
		quantile(.5), quantile(.99), per_s);
	per_s = measure(pg, "many", 2, values, fill_many) * ROWS;
	(void)printf("\"unnest_rows_per_s\": %.0f, \"unnest_p50_ms\": %.3f, ", per_s, quantile(.5));
	points = POINTS;
	per_s = measure(pg, "points", ARGS, values, fill_points) * POINTS;
	(void)printf("\"points_per_s\": %.0f, \"points_1000_ms\": %.3f, ", per_s, quantile(.5));
	points = CLIENTS;
	per_s = measure(pg, "points", ARGS, values, fill_points) * CLIENTS;
	(void)printf("\"points_20_per_s\": %.0f}\n", per_s);
	must(pg, PQexec(pg, "DROP TABLE floor_pg_point"));
	must(pg, PQexec(pg, "DROP TABLE floor_pg"));
	PQfinish(pg);
	for (int i = 0; i < ARGS; i++)
		buf_done(&values[i]);
	mem_free(times);
	return 0;
}
