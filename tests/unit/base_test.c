#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/fs.h"
#include "lib/base/id.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void bump(void *arg)
{
	++*(int *)arg;
}

void test_arena__cleanups_run_once_on_the_last_drop(void **state)
{
	int n = 0;
	struct arena *a = arena_new(4096);

	(void)state;
	arena_defer(a, bump, &n);
	arena_hold(a);
	arena_drop(a);
	assert_int_equal(n, 0);
	arena_drop(a);
	assert_int_equal(n, 1);
}

void test_arena__large_and_small_pieces_are_zero_and_apart(void **state)
{
	struct arena *a = arena_new(1 << 20);
	char *small = arena_alloc(a, 3), *large = arena_alloc(a, 100000);

	(void)state;
	for (int i = 0; i < 100000; i++)
		assert_int_equal(large[i], 0);
	memset(large, 1, 100000);
	assert_int_equal(small[0] + small[1] + small[2], 0);
	assert_string_equal(arena_printf(a, "%d-%s", 7, "x").p, "7-x");
	arena_drop(a);
}

void test_arena__goes_on_beyond_its_limit_and_says_so(void **state)
{
	struct arena *a = arena_new(1000);
	struct err e;

	(void)state;
	memset(arena_alloc(a, 900), 1, 900);
	assert_int_equal(arena_check(a, &e), 0);
	assert_true(arena_room(a) < 100);
	memset(arena_alloc(a, 100000), 1, 100000);
	assert_int_equal(arena_room(a), 0);
	assert_int_equal(arena_check(a, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_non_null(strstr(e.msg, "1000 bytes"));
	arena_drop(a);
}

void test_buf__what_is_cut_short_is_not_kept_for_whole(void **state)
{
	struct arena *a = arena_new(4096);
	struct buf b;
	struct err e;

	(void)state;
	buf_init(&b, 5);
	buf_adds(&b, "12345");
	assert_string_equal(buf_keep(&b, a).p, "12345");
	assert_int_equal(arena_check(a, &e), 0);
	buf_adds(&b, "12345");
	buf_addc(&b, '6');
	assert_int_equal(buf_keep(&b, a).n, 5);
	assert_int_equal(arena_check(a, &e), -1);
	assert_non_null(strstr(e.msg, "larger than 5 bytes"));
	arena_drop(a);
}

void test_buf__ceiling_is_exact_and_sticky(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 5);
	buf_adds(&b, "12345");
	assert_false(buf_failed(&b));
	buf_addc(&b, '6');
	assert_true(buf_failed(&b));
	buf_adds(&b, "");
	assert_true(buf_failed(&b));
	assert_string_equal(buf_str(&b).p, "12345");
	buf_clear(&b);
	buf_addf(&b, "%03d", 7);
	buf_drop_front(&b, 1);
	assert_string_equal(buf_str(&b).p, "07");
	buf_done(&b);
}

void test_err__cuts_between_characters(void **state)
{
	char text[400];
	struct err e;

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'a', shift);
		for (size_t i = shift; i + 4 < sizeof text; i += 4)
			memcpy(text + i, "\xf0\x9f\x9a\x82", 5);
		(void)err_set(&e, ERR_INVALID, "%s", text);
		assert_true(str_utf8_valid(str_c(e.msg)));
		assert_in_range(strlen(e.msg), sizeof e.msg - 5, sizeof e.msg - 1);
		(void)err_field(&e, "/x", "y");
		err_field_prefix(&e, text);
		assert_true(str_utf8_valid(str_c(e.field)));
		text[shift + 100] = '\0';
		(void)err_field(&e, "", "y");
		err_field_prefix(&e, text + shift + 20);
		err_field_prefix(&e, text + shift + 40);
		assert_true(str_utf8_valid(str_c(e.field)));
		assert_true(strlen(e.field) > 100);
	}
	(void)err_set(&e, ERR_INVALID, "%s", "ends with \xe2\x80\xa6");
	assert_string_equal(e.msg, "ends with \xe2\x80\xa6");
}

void test_err__field_grows_from_the_inside_and_is_escaped(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(err_field(&e, "", "bad %d", 1), -1);
	err_field_prefix(&e, "a/b~c");
	err_field_prefix(&e, "spec");
	assert_string_equal(e.field, "/spec/a~1b~0c");
	assert_int_equal(err_http(e.code), 422);
}

void test_str__utf8(void **state)
{
	static const char *const bad[] = { "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
		"\xe2\x82", "\x80", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80" };

	(void)state;
	assert_true(str_utf8_valid(STR("a\0é€😀")));
	assert_int_equal(str_utf8_count(STR("é€😀")), 3);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(str_utf8_valid(str_c(bad[i])));
}

void test_str__next_keeps_empty_pieces(void **state)
{
	struct str rest = STR("a,,b,"), piece;
	int n = 0;

	(void)state;
	while (str_next(&rest, ',', &piece))
		n++;
	assert_int_equal(n, 4);
}

void test_str__names_and_globs(void **state)
{
	(void)state;
	assert_true(str_is_name(STR("ridership-2.x_y")));
	assert_false(str_is_name(STR("-a")));
	assert_false(str_is_name(STR("A")));
	assert_false(str_is_name(STR("")));
	assert_false(str_is_name(
		STR("0123456789012345678901234567890123456789012345678901234567890123")));
	assert_true(str_glob(STR("*_Home"), STR("Cubs_Home")));
	assert_false(str_glob(STR("*_Home"), STR("Cubs_Homer")));
	assert_true(str_glob(STR("a*b?d"), STR("axxbbcd")));
	assert_true(str_glob(STR("*"), STR("")));
}

void test_num__integers_are_strict(void **state)
{
	static const char *const bad[] = { "", "+3", " 3", "3 ", "0x5", "03",
		"18446744073709551616", "1e3" };
	uint64_t u;
	int64_t i;

	(void)state;
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
		assert_false(num_parse_u64(str_c(bad[k]), 0, UINT64_MAX, &u));
	assert_true(num_parse_u64(STR("18446744073709551615"), 0, UINT64_MAX, &u));
	assert_true(num_parse_i64(STR("-9223372036854775808"), INT64_MIN, INT64_MAX, &i));
	assert_true(i == INT64_MIN);
	assert_false(num_parse_i64(STR("9223372036854775808"), INT64_MIN, INT64_MAX, &i));
	assert_false(num_parse_i64(STR("--1"), INT64_MIN, INT64_MAX, &i));
}

void test_num__doubles_round_trip_and_stay_real(void **state)
{
	static const double values[] = { 0.1, 1.0, -0.0, 1e300, 5e-324, 1.7976931348623157e308,
		1.0 / 3 };
	char text[NUM_DOUBLE_MAX];
	double back;

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		assert_true(num_parse_double(str_c(num_format_double(text, values[i])), &back));
		assert_true(memcmp(&back, &values[i], sizeof back) == 0);
		assert_non_null(strpbrk(text, ".e"));
	}
	assert_string_equal(num_format_double(text, (double)NAN), "NaN");
	assert_false(num_parse_double(STR("1e400"), &back));
	assert_false(num_parse_double(STR("nan"), &back));
	assert_false(num_parse_double(STR(".5"), &back));
}

void test_num__sizes(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(num_parse_size(STR("2GiB"), &v));
	assert_true(v == UINT64_C(2147483648));
	assert_true(num_parse_size(STR("40GB"), &v));
	assert_true(v == UINT64_C(40000000000));
	assert_false(num_parse_size(STR("99999999999TiB"), &v));
	assert_false(num_parse_size(STR("1gb"), &v));
	assert_true(num_is_size(STR("100000000000000000000GiB")) && num_is_size(STR("1PiB")));
	assert_false(num_is_size(STR("GiB")) || num_is_size(STR("")) || num_is_size(STR("-1GiB")));
	assert_false(num_is_size(STR("1gb")));
}

void test_clock__calendar_agrees_with_every_day_of_eight_centuries(void **state)
{
	struct clock_date d = { 1600, 1, 1 };

	(void)state;
	for (int64_t day = clock_days(d); d.year < 2400; day++) {
		struct clock_date got = clock_date(day);
		assert_true(got.year == d.year && got.month == d.month && got.day == d.day);
		bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
		int length = d.month == 2 ? 28 + leap : 30 + (d.month + (d.month > 7)) % 2;
		if (d.day++ == length) {
			d.day = 1;
			if (d.month++ == 12) {
				d.month = 1;
				d.year++;
			}
		}
	}
}

void test_clock__text_forms(void **state)
{
	char text[CLOCK_TEXT_MAX];
	int64_t us;

	(void)state;
	assert_true(clock_parse(STR("2026-11-30T02:57:58.25+01:30"), &us));
	assert_string_equal(clock_format(text, us), "2026-11-30T01:27:58.250000Z");
	assert_true(clock_parse(STR("1969-12-31T23:59:59Z"), &us));
	assert_true(us == -CLOCK_SECOND);
	assert_string_equal(clock_format(text, us), "1969-12-31T23:59:59Z");
	assert_false(clock_parse(STR("2023-02-29"), &us));
	assert_false(clock_parse(STR("2026-11-30T02:57:58"), &us));
	assert_false(clock_parse(STR("2026-11-30T25:00:00Z"), &us));
}

void test_clock__years_have_four_digits(void **state)
{
	static const char *const out[] = { "0000-12-31", "10000-01-01", "9999-12-31T23:59:59-00:01",
		"0001-01-01T00:00:00+00:01", "10000-01-01T00:00:00Z" };
	char text[CLOCK_TEXT_MAX];
	int64_t us;

	(void)state;
	assert_true(clock_parse(STR("0001-01-01T00:00:00Z"), &us));
	assert_int_equal(us, CLOCK_MIN);
	assert_true(clock_parse(STR("9999-12-31T23:59:59.999999Z"), &us));
	assert_int_equal(us, CLOCK_END - 1);
	assert_string_equal(clock_format(text, us), "9999-12-31T23:59:59.999999Z");
	assert_true(clock_in_years(CLOCK_MIN) && clock_in_years(CLOCK_END - 1));
	assert_false(clock_in_years(CLOCK_MIN - 1) || clock_in_years(CLOCK_END));
	for (size_t i = 0; i < sizeof out / sizeof out[0]; i++)
		assert_false(clock_parse(str_c(out[i]), &us));
}

void test_clock__lengths_are_written_in_whole_units(void **state)
{
	char text[CLOCK_SPAN_TEXT_MAX];

	(void)state;
	assert_string_equal(clock_format_span(text, 0), "0s");
	assert_string_equal(clock_format_span(text, 90 * CLOCK_SECOND), "90s");
	assert_string_equal(clock_format_span(text, 90 * CLOCK_MINUTE), "90m");
	assert_string_equal(clock_format_span(text, 2 * CLOCK_HOUR), "2h");
	assert_string_equal(clock_format_span(text, 30 * CLOCK_DAY), "30d");
	assert_string_equal(clock_format_span(text, CLOCK_DAY + CLOCK_SECOND), "86401s");
}

void test_num__sizes_are_exact_or_rounded(void **state)
{
	char text[NUM_SIZE_MAX];

	(void)state;
	assert_string_equal(num_format_size(text, 0), "0 B");
	assert_string_equal(num_format_size(text, 1023), "1023 B");
	assert_string_equal(num_format_size(text, 4 << 20), "4 MiB");
	assert_string_equal(num_format_size(text, (4 << 20) + 1), "4.0 MiB");
	assert_string_equal(num_format_size(text, 1536), "1.5 KiB");
	assert_string_equal(num_format_size(text, UINT64_C(1) << 63), "8 EiB");
}

void test_clock__spans_are_calendar_spans(void **state)
{
	struct clock_span span;
	char text[CLOCK_TEXT_MAX];
	int64_t us;

	(void)state;
	assert_true(clock_parse_date(STR("2008-01-31"), &us));
	assert_true(clock_parse_span(STR("1mo"), &span));
	assert_string_equal(clock_format_date(text, clock_add(us, span, 1)), "2008-02-29");
	assert_true(clock_parse_span(STR("3y"), &span));
	assert_string_equal(clock_format_date(text, clock_add(us, span, -1)), "2005-01-31");
	assert_true(clock_parse_span(STR("1d12h"), &span));
	assert_true(span.us == 36 * CLOCK_HOUR);
	assert_true(clock_parse_span(STR("90m"), &span));
	assert_true(span.us == 90 * CLOCK_MINUTE);
	assert_false(clock_parse_span(STR("5"), &span));
	assert_false(clock_parse_span(STR("m"), &span));
	assert_false(clock_parse_span(STR("1 d"), &span));
}

void test_id__is_sortable_and_recognised(void **state)
{
	char a[ID_MAX], b[ID_MAX];

	(void)state;
	id_new(a, "run", &clock_real);
	assert_true(id_is(str_c(a), "run"));
	assert_false(id_is(str_c(a), "ru"));
	assert_false(id_is(str_c("run_01kb9zv1f0m3s8q2x7w4t6y5zI"), "run"));
	id_new(b, "run", &clock_real);
	assert_string_not_equal(a, b);
	assert_memory_equal(a, b, 10);
}

void test_map__keeps_what_was_put_through_growth_and_removal(void **state)
{
	struct map *m = map_new();
	char key[16];
	int values[1000];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		(void)str_print(key, sizeof key, "k%d", i);
		assert_null(map_put(m, str_c(key), &values[i]));
	}
	for (int i = 0; i < 1000; i += 2) {
		(void)str_print(key, sizeof key, "k%d", i);
		assert_ptr_equal(map_remove(m, str_c(key)), &values[i]);
	}
	assert_int_equal(map_count(m), 500);
	for (int i = 0; i < 1000; i++) {
		(void)str_print(key, sizeof key, "k%d", i);
		assert_ptr_equal(map_get(m, str_c(key)), i % 2 ? (void *)&values[i] : NULL);
	}
	map_free(m);
}

void test_fs__the_first_writer_of_a_file_stays(void **state)
{
	char dir[] = "/tmp/tidemill-unit-XXXXXX", path[64];
	struct buf b;
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)str_print(path, sizeof path, "%s/key", dir);
	assert_int_equal(fs_write_first(path, STR("one"), 0600, &e), 0);
	assert_int_equal(fs_write_first(path, STR("two"), 0600, &e), 0);
	buf_init(&b, 64);
	assert_int_equal(fs_read(path, &b, &e), 0);
	assert_true(str_is(buf_str(&b), "one"));
	buf_done(&b);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing is left beside it */
}

/* A tree deeper than paths and descriptors reach, with folders that may not be written or read, and
 * a link that leads out of it. */
void test_fs__a_hostile_tree_is_removed_and_nothing_beside_it(void **state)
{
	enum { LEVELS = 3000, NOBODY = 65534 };
	char dir[] = "/tmp/tidemill-unit-XXXXXX", other[] = "/tmp/tidemill-unit-XXXXXX", path[64];
	bool root = geteuid() == 0;
	struct err e;

	(void)state;
	assert_int_equal(root ? seteuid(NOBODY) : 0, 0);
	assert_non_null(mkdtemp(dir));
	assert_non_null(mkdtemp(other));
	(void)str_print(path, sizeof path, "%s/kept", other);
	assert_int_equal(fs_write_atomic(path, STR("x"), 0600, &e), 0);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat(other, fd, "out"), 0);
	for (int i = 0; i < LEVELS; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		int file = openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(file >= 0 && next >= 0);
		(void)close(file);
		assert_int_equal(fchmod(fd, i % 3 == 0 ? 0500 : i % 3 == 1 ? 0000 : 0755), 0);
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
	assert_int_equal(fs_remove_tree(other, &e), 0);
	assert_int_equal(root ? seteuid(0) : 0, 0);
}

static int count_file(void *arg, const char *path, int64_t size, struct err *e)
{
	(void)path, (void)size, (void)e;
	++*(int *)arg;
	return 0;
}

void test_fs__a_walk_beneath_follows_no_link(void **state)
{
	char dir[] = "/tmp/tidemill-unit-XXXXXX", path[64];
	struct err e;
	int n = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)str_print(path, sizeof path, "%s/a/b", dir);
	assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
	(void)str_print(path, sizeof path, "%s/a/b/f", dir);
	assert_int_equal(fs_write_atomic(path, STR("x"), 0600, &e), 0);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat("a", fd, "link"), 0);
	assert_int_equal(fs_walk_beneath(fd, "a/b", count_file, NULL, &n, &e), 0);
	assert_int_equal(n, 1);
	assert_int_equal(fs_walk_beneath(fd, "link/b", count_file, NULL, &n, &e), -1);
	assert_int_equal(fs_walk_beneath(fd, "link", count_file, NULL, &n, &e), -1);
	assert_int_equal(fs_walk_beneath(fd, "..", count_file, NULL, &n, &e), -1);
	assert_int_equal(n, 1);
	(void)close(fd);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
}

void test_fs__atomic_write_read_and_beneath(void **state)
{
	char dir[] = "/tmp/tidemill-unit-XXXXXX", path[64];
	struct buf b;
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)str_print(path, sizeof path, "%s/a/b", dir);
	assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
	(void)str_print(path, sizeof path, "%s/a/b/f", dir);
	assert_int_equal(fs_write_atomic(path, STR("hello"), 0600, &e), 0);
	buf_init(&b, 5);
	assert_int_equal(fs_read(path, &b, &e), 0);
	assert_string_equal(b.p, "hello");
	buf_done(&b);
	buf_init(&b, 4);
	assert_int_equal(fs_read(path, &b, &e), -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	buf_done(&b);
	(void)str_print(path, sizeof path, "%s/a/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	buf_init(&b, 4);
	assert_int_equal(fs_read(path, &b, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_non_null(strstr(e.msg, "is a pipe; it must be a regular file"));
	buf_done(&b);
	(void)str_print(path, sizeof path, "%s/a/link", dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fs_open_file_beneath(fd, "a/link", &e), -1);
	assert_int_equal(fs_open_file_beneath(fd, "../../etc/passwd", &e), -1);
	assert_int_equal(fs_open_file_beneath(fd, "/etc/passwd", &e), -1);
	int file = fs_open_file_beneath(fd, "a/b/f", &e);
	assert_true(file >= 0);
	(void)close(file);
	(void)close(fd);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
	assert_int_equal(access(dir, F_OK), -1);
}
