/*
 * The form of a named statement. tools/sqlgen.awk makes a table of them, and an enum that indexes
 * it, from *.sql files; lib/db is told which table to use (db_new).
 */
#ifndef LIB_DB_SQL_H
#define LIB_DB_SQL_H
#include <stdint.h>

struct sql {
	const char *name, *text;
	int nparams;
	char kind; /* 'o'ne row or none, 'm'any rows, 'e'xec: no rows, 'p'art: for db_add_text */
	const uint32_t *types; /* nparams type OIDs; NULL when there are none */
};

/* PostgreSQL's fixed OIDs (catalog/pg_type.dat) of the types that parameters and columns may have.
 */
enum sql_type {
	SQL_TYPE_BOOL = 16,
	SQL_TYPE_BYTEA = 17,
	SQL_TYPE_CHAR = 18,
	SQL_TYPE_NAME = 19,
	SQL_TYPE_INT8 = 20,
	SQL_TYPE_INT2 = 21,
	SQL_TYPE_INT4 = 23,
	SQL_TYPE_TEXT = 25,
	SQL_TYPE_OID = 26,
	SQL_TYPE_JSON = 114,
	SQL_TYPE_FLOAT4 = 700,
	SQL_TYPE_FLOAT8 = 701,
	SQL_TYPE_BPCHAR = 1042,
	SQL_TYPE_VARCHAR = 1043,
	SQL_TYPE_DATE = 1082,
	SQL_TYPE_TIMESTAMPTZ = 1184,
	SQL_TYPE_VOID = 2278,
	SQL_TYPE_JSONB = 3802,
	SQL_TYPE_BOOL_ARRAY = 1000,
	SQL_TYPE_BYTEA_ARRAY = 1001,
	SQL_TYPE_INT2_ARRAY = 1005,
	SQL_TYPE_INT4_ARRAY = 1007,
	SQL_TYPE_TEXT_ARRAY = 1009,
	SQL_TYPE_VARCHAR_ARRAY = 1015,
	SQL_TYPE_INT8_ARRAY = 1016,
	SQL_TYPE_FLOAT8_ARRAY = 1022,
	SQL_TYPE_DATE_ARRAY = 1182,
	SQL_TYPE_TIMESTAMPTZ_ARRAY = 1185,
	SQL_TYPE_JSONB_ARRAY = 3807
};

#endif
