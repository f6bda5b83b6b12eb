#include "lib/db/binary.h"
#include "lib/db/conninfo.h"
#include "lib/db/encode.h"
#include "lib/db/sqlstate.h"
#include "tests/unit/unit.h"

#include <math.h>

static struct str encoded(struct buf *b, uint32_t type, struct db_arg v)
{
	struct err e;

	buf_clear(b);
	assert_int_equal(db_encode(b, type, &v, &e), 0);
	return buf_str(b);
}

static void refused(uint32_t type, struct db_arg v, enum err_code code)
{
	struct err e = { .code = ERR_OK };
	struct buf b;

	buf_init(&b, 1000);
	assert_int_equal(db_encode(&b, type, &v, &e), -1);
	assert_int_equal(e.code, code);
	buf_done(&b);
}

static void assert_bytes(struct str s, const char *bytes, size_t n)
{
	assert_int_equal(s.n, n);
	assert_memory_equal(s.p, bytes, n);
}

void test_db__values_have_the_servers_binary_form(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	assert_bytes(encoded(&b, SQL_TYPE_BOOL, DB_BOOL(true)), "\1", 1);
	assert_bytes(encoded(&b, SQL_TYPE_INT2, DB_INT(-2)), "\xff\xfe", 2);
	assert_bytes(encoded(&b, SQL_TYPE_INT4, DB_INT(INT32_MIN)), "\x80\0\0\0", 4);
	assert_bytes(encoded(&b, SQL_TYPE_INT8, DB_INT(258)), "\0\0\0\0\0\0\1\2", 8);
	assert_bytes(encoded(&b, SQL_TYPE_FLOAT8, DB_REAL(1.0)), "\x3f\xf0\0\0\0\0\0\0", 8);
	assert_bytes(encoded(&b, SQL_TYPE_TEXT, DB_TEXT(STR_NONE)), "", 0);
	assert_bytes(encoded(&b, SQL_TYPE_JSONB, DB_JSON(STR("{}"))), "\1{}", 3);
	assert_bytes(encoded(&b, SQL_TYPE_JSON, DB_JSON(STR("{}"))), "{}", 2);
	assert_bytes(
		encoded(&b, SQL_TYPE_TIMESTAMPTZ, DB_TIME(DB_EPOCH_US + 1)), "\0\0\0\0\0\0\0\1", 8);
	assert_bytes(encoded(&b, SQL_TYPE_DATE, DB_DATE(10956)), "\xff\xff\xff\xff", 4);
	assert_bytes(encoded(&b, SQL_TYPE_INT8_ARRAY, DB_INTS(NULL, 0)),
		"\0\0\0\0\0\0\0\0\0\0\0\x14", 12);
	buf_done(&b);
}

void test_db__arrays_survive_the_way_there_and_back(void **state)
{
	static const struct str texts[] = { { "", 0 }, { "ab", 2 }, { "x", 1 } };
	static const bool nulls[] = { false, true, false };
	struct arena *a = arena_new(1 << 16);
	struct binary_array in;
	struct list out;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	(void)encoded(&b, SQL_TYPE_TEXT_ARRAY, db_with_nulls(DB_TEXTS(texts, 3), nulls));
	assert_true(binary_array(buf_str(&b), &in));
	assert_int_equal(in.n, 3);
	assert_int_equal(in.type, SQL_TYPE_TEXT);
	assert_true(binary_array_items(&in, a, &out));
	assert_null(list_at(&out, struct str, 1)->p); /* NULL */
	assert_non_null(list_at(&out, struct str, 0)->p); /* empty */
	assert_true(str_is(*list_at(&out, struct str, 2), "x"));
	/* No cut of it is taken for an array. */
	for (size_t n = 0; n < b.n; n++)
		assert_false(binary_array((struct str){ b.p, n }, &in) && n != 12);
	b.p[15] = 4; /* one element more than there are */
	assert_false(binary_array(buf_str(&b), &in));
	b.p[12] = (char)0xff;
	assert_false(binary_array(buf_str(&b), &in));
	b.p[3] = 2; /* two dimensions */
	assert_false(binary_array(buf_str(&b), &in));
	buf_done(&b);
	arena_drop(a);
}

void test_db__values_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	refused(SQL_TYPE_INT2, DB_INT(32768), ERR_INVALID);
	refused(SQL_TYPE_INT4, DB_INT(INT64_C(-2147483649)), ERR_INVALID);
	refused(SQL_TYPE_TEXT, DB_TEXT(((struct str){ "a\0", 2 })), ERR_INVALID);
	refused(SQL_TYPE_JSONB, DB_JSON(((struct str){ "\0", 1 })), ERR_INVALID);
	refused(SQL_TYPE_TIMESTAMPTZ, DB_TIME(INT64_MIN + 5), ERR_INVALID);
	refused(SQL_TYPE_DATE, DB_DATE(INT64_MAX), ERR_INVALID);
	static const char large[2000];
	refused(SQL_TYPE_BYTEA, DB_BYTES(((struct str){ large, sizeof large })), ERR_TOO_LARGE);
}

void test_db__binary_values_are_read_by_type_and_length(void **state)
{
	struct str s;
	int64_t i = 0;
	double f = 0;

	(void)state;
	assert_true(binary_int(SQL_TYPE_INT4, (struct str){ "\xff\xff\xff\xfe", 4 }, &i));
	assert_int_equal(i, -2);
	assert_true(binary_int(SQL_TYPE_OID, (struct str){ "\xff\xff\xff\xfe", 4 }, &i));
	assert_int_equal(i, 4294967294);
	assert_false(binary_int(SQL_TYPE_INT4, (struct str){ "\0\0", 2 }, &i));
	assert_false(binary_int(SQL_TYPE_TEXT, (struct str){ "\0\0\0\0", 4 }, &i));
	assert_true(binary_real(SQL_TYPE_FLOAT4, (struct str){ "\x3f\xc0\0\0", 4 }, &f));
	assert_true(fabs(f - 1.5) < 1e-12);
	assert_true(binary_time(
		SQL_TYPE_TIMESTAMPTZ, (struct str){ "\x7f\xff\xff\xff\xff\xff\xff\xff", 8 }, &i));
	assert_true(i == INT64_MAX);
	assert_true(binary_date(SQL_TYPE_DATE, (struct str){ "\0\0\0\1", 4 }, &i));
	assert_int_equal(i, DB_EPOCH_DAYS + 1);
	assert_true(binary_text(SQL_TYPE_JSONB, STR("\1[]"), &s) && str_is(s, "[]"));
	assert_false(binary_text(SQL_TYPE_JSONB, STR("\2[]"), &s));
	assert_true(binary_text(70000, STR("fancy"), &s) && str_is(s, "fancy")); /* an enum */
	assert_false(binary_text(1700, STR("\0\0"), &s)); /* numeric */
	assert_false(binary_is_known(1700));
}

void test_db__sqlstates_become_errors(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(sqlstate_read("23505", "secret", &e), SQLSTATE_FAIL);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_null(strstr(e.msg, "secret"));
	(void)sqlstate_read("23503", "insert or update on table \"kid\" violates", &e);
	assert_int_equal(e.code, ERR_NOT_FOUND);
	(void)sqlstate_read("23503", "update or delete on table \"item\" violates", &e);
	assert_int_equal(e.code, ERR_CONFLICT);
	(void)sqlstate_read("21000", "", &e);
	assert_int_equal(e.code, ERR_INVALID);
	(void)sqlstate_read("22P02", "", &e);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(sqlstate_read("40P01", "", &e), SQLSTATE_RESEND);
	assert_true(err_retryable(e.code));
	(void)sqlstate_read("57014", "", &e);
	assert_int_equal(e.code, ERR_TIMEOUT);
	assert_int_equal(sqlstate_read("57P01", "", &e), SQLSTATE_RECONNECT);
	assert_int_equal(e.code, ERR_DATABASE);
	(void)sqlstate_read("42P01", "", &e);
	assert_int_equal(e.code, ERR_INTERNAL);
	assert_true(sqlstate_is_odd("42P01"));
	assert_false(sqlstate_is_odd("23505"));
}

void test_db__conninfo_keeps_the_operators_word(void **state)
{
	struct conninfo c;
	struct conninfo_hosts h;
	struct err e;

	(void)state;
	assert_int_equal(conninfo_parse(&c,
				 "postgresql://u:p@db.example:5433/"
				 "d?keepalives_idle=7&options=-c%20jit%3Don",
				 "tidemill", "-c statement_timeout=5000", &e),
		0);
	assert_string_equal(conninfo_get(&c, "keepalives_idle"), "7");
	assert_string_equal(conninfo_get(&c, "application_name"), "tidemill");
	assert_string_equal(conninfo_get(&c, "target_session_attrs"), "primary");
	assert_non_null(strstr(conninfo_get(&c, "options"), "statement_timeout=5000"));
	assert_true(str_ends(str_c(conninfo_get(&c, "options")), STR(" -c jit=on")));
	assert_true(conninfo_needs_lookup(&c, &h));
	assert_string_equal(h.host, "db.example");
	conninfo_hosts_done(&h);
	conninfo_done(&c);
	assert_int_equal(conninfo_parse(&c, "postgresql://u:hidden@[::1", "", "", &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_null(strstr(e.msg, "hidden"));
}

void test_db__host_names_become_addresses(void **state)
{
	struct conninfo c;
	struct conninfo_hosts h;
	struct err e;

	(void)state;
	assert_int_equal(
		conninfo_parse(&c, "host=/run/pg,localhost,10.0.0.1 port=1,2,3", "", "", &e), 0);
	assert_true(conninfo_needs_lookup(&c, &h));
	conninfo_resolve(&h);
	assert_int_equal(h.err.code, ERR_OK);
	assert_true(str_starts(str_c(h.ret_host), STR("/run/pg,localhost")));
	assert_true(str_ends(str_c(h.ret_host), STR(",10.0.0.1")));
	assert_non_null(strstr(h.ret_addr, "127.0.0.1"));
	assert_true(str_starts(str_c(h.ret_port), STR("1,2")) &&
		    str_ends(str_c(h.ret_port), STR(",3")));
	conninfo_hosts_done(&h);
	conninfo_done(&c);
	assert_int_equal(conninfo_parse(&c, "host=/run/pg", "", "", &e), 0);
	assert_false(conninfo_needs_lookup(&c, &h));
	conninfo_done(&c);
}
