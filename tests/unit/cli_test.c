#include "api/route.h"
#include "cli/api.h"
#include "cli/cell.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/files.h"
#include "cli/help.h"
#include "cli/logs.h"
#include "cli/shape.h"
#include "cli/sse.h"
#include "cli/tail.h"
#include "cli/view.h"
#include "lib/base/num.h"

#include "tests/unit/unit.h"

/* ---- the table ------------------------------------------------------------------------------- */

void test_command__table_is_sound(void **state)
{
	(void)state;
	for (const struct command *a = commands; a->name != NULL; a++) {
		int min, max;
		assert_non_null(a->fn);
		assert_true(a->doc != NULL && a->doc[0] != '\0');
		if (a->route != NULL)
			assert_non_null(route_find(a->route));
		command_arity(a, &min, &max);
		assert_true(min >= 0 && (max < 0 || max >= min));
		for (const struct command *b = a + 1; b->name != NULL; b++)
			assert_string_not_equal(a->name, b->name);
		for (const struct flag *f = a->flags; f != NULL && f->name != NULL; f++) {
			assert_true((f->type == FLAG_BOOL) == (f->arg == NULL));
			assert_ptr_equal(command_flag(a, str_c(f->name)), f);
			if (f->letter != 0)
				assert_ptr_equal(command_letter(a, f->letter), f);
			for (const struct flag *g = global_flags; g->name != NULL; g++) {
				assert_string_not_equal(f->name, g->name);
				assert_true(f->letter == 0 || f->letter != g->letter);
			}
		}
	}
}

/* Parameters of a generic command's path: as many arguments, {project} apart. */
void test_command__arguments_fill_the_path(void **state)
{
	command_fn *const shared[] = {
		command_find(2, (const char *[]){ "run", "steps" }, &(int){ 0 })->fn,
		command_find(2, (const char *[]){ "run", "step" }, &(int){ 0 })->fn,
		command_find(2, (const char *[]){ "run", "cancel" }, &(int){ 0 })->fn,
		command_find(2, (const char *[]){ "run", "delete" }, &(int){ 0 })->fn
	};

	(void)state;
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		int min, max, want = 0;
		bool is_shared = false;
		for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
			is_shared = is_shared || cmd->fn == shared[i];
		if (!is_shared)
			continue;
		struct str path = str_c(route_find(cmd->route)->path), piece;
		while (str_next(&path, '/', &piece)) {
			if (piece.n > 0 && piece.p[0] == '{' && !str_is(piece, "{project}"))
				want++;
		}
		command_arity(cmd, &min, &max);
		assert_int_equal(min, want);
		assert_int_equal(max, want);
	}
}

void test_command__find_takes_the_longest(void **state)
{
	const char *const argv[] = { "model", "alias", "set", "m", "champion", "2" };
	int words = 0;

	(void)state;
	assert_string_equal(command_find(6, argv, &words)->name, "model alias set");
	assert_int_equal(words, 3);
	assert_null(command_find(2, argv, &words));
	assert_null(command_find(0, argv, &words));
}

void test_command__suggests_the_nearest(void **state)
{
	static const struct {
		const char *words[3], *near;
	} rows[] = {
		{ { "run", "lst" }, "run list" },
		{ { "runs", "list" }, "run list" },
		{ { "pipelines" }, "pipeline" },
		{ { "log" }, "logs" },
		{ { "verison" }, "version" },
		{ { "frobnicate", "everything" }, NULL },
		{ { "run", "frobnicate" }, NULL },
		{ { "xyz" }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int n = 0;
		while (rows[i].words[n] != NULL)
			n++;
		struct str near = command_suggest(n, rows[i].words);
		if (!str_eq(near, rows[i].near != NULL ? str_c(rows[i].near) : STR("")))
			fail_msg("%s: '%.*s'", rows[i].words[0], STR_ARG(near));
	}
}

void test_command__arity(void **state)
{
	int words, min, max;

	(void)state;
	command_arity(command_find(2, (const char *[]){ "dataset", "push" }, &words), &min, &max);
	assert_int_equal(min, 2);
	assert_int_equal(max, -1);
	command_arity(command_find(2, (const char *[]){ "run", "submit" }, &words), &min, &max);
	assert_int_equal(min, 0);
	assert_int_equal(max, 1);
	command_arity(command_find(2, (const char *[]){ "run", "list" }, &words), &min, &max);
	assert_int_equal(min, 0);
	assert_int_equal(max, 0);
}

static bool help_has(int n, const char *const *words, const char *what)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	bool has = help_words(n, words, &text) && str_find(buf_str(&text), str_c(what)) >= 0;
	buf_done(&text);
	return has;
}

void test_help__names_every_command(void **state)
{
	const char *words[4];

	(void)state;
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		char name[64], line[80];
		int n = 0;
		assert_true(help_has(0, NULL, cmd->name));
		assert_true(str_print(name, sizeof name, "%s", cmd->name));
		for (char *p = name; p != NULL && n < 4; n++) {
			words[n] = p;
			p = strchr(p, ' ');
			if (p != NULL)
				*p++ = '\0';
		}
		assert_true(str_print(line, sizeof line, "usage: tidemill %s", cmd->name));
		assert_true(help_has(n, words, line));
		for (int k = 1; k < n; k++) /* each group */
			assert_true(help_has(k, words, cmd->name));
	}
	assert_true(help_has(1, (const char *[]){ "exit-codes" }, " 10  the run failed"));
	assert_true(help_has(1, (const char *[]){ "environment" }, "TIDEMILL_TOKEN_FILE "));
	assert_true(help_has(1, (const char *[]){ "man" }, ".TH TIDEMILL 1 "));
	assert_false(help_has(1, (const char *[]){ "frobnicate" }, ""));
	assert_false(help_has(2, (const char *[]){ "run", "frobnicate" }, ""));
}

void test_help__has_every_exit_code(void **state)
{
	static const enum cli_exit codes[] = { EXIT_DONE, EXIT_OTHER, EXIT_USAGE, EXIT_NOT_FOUND,
		EXIT_DENIED, EXIT_CONFLICT, EXIT_UNREACHABLE, EXIT_TIMEOUT, EXIT_RUN_FAILED,
		EXIT_RUN_CANCELLED, EXIT_GATE, EXIT_RUN_LOST, EXIT_INTERRUPTED };
	size_t i = 0;

	(void)state;
	for (; help_exit_codes[i].name != NULL; i++) {
		int64_t code;
		assert_true(num_parse_i64(str_c(help_exit_codes[i].name), 0, 255, &code));
		assert_int_equal(code, codes[i]);
	}
	assert_int_equal(i, sizeof codes / sizeof *codes);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int path_of(const char *pattern, struct str a, struct str b, struct buf *out)
{
	const struct str params[API_PARAMS] = { a, b };
	struct err e;

	buf_clear(out);
	return api_path(pattern, STR("p"), params, out, &e);
}

void test_api__path_is_escaped(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	assert_int_equal(path_of("/api/v1/projects/{project}/datasets/{dataset}/files/{path*}",
				 STR("a/b c%"), STR("x/ü.csv"), &out),
		0);
	assert_string_equal(out.p, "/api/v1/projects/p/datasets/a%2Fb%20c%25/files/x/%C3%BC.csv");
	assert_int_equal(path_of("/a/{x}/b", STR(".."), STR_NONE, &out), -1);
	assert_int_equal(path_of("/a/{x}/b", STR(""), STR_NONE, &out), -1);
	assert_int_equal(path_of("/livez", STR_NONE, STR_NONE, &out), 0);
	assert_string_equal(out.p, "/livez");
	buf_done(&out);
}

void test_api__query_leaves_out_what_is_not_there(void **state)
{
	const struct api_pair pairs[] = { { "a", STR_NONE }, { "b", STR("1&2") }, { "c", STR("") },
		{ NULL, STR_NONE } };
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	buf_adds(&out, "/x");
	api_query(pairs, 4, &out);
	assert_string_equal(out.p, "/x?b=1%262&c=");
	buf_done(&out);
}

void test_files__paths_stay_below_their_folder(void **state)
{
	(void)state;
	assert_true(files_path_ok(STR("a/b.csv")));
	assert_true(files_path_ok(STR("..a")));
	assert_false(files_path_ok(STR("/a")));
	assert_false(files_path_ok(STR("a/../b")));
	assert_false(files_path_ok(STR("a//b")));
	assert_false(files_path_ok(STR("a/")));
	assert_false(files_path_ok(STR("a\nb")));
	assert_false(files_path_ok(STR("")));
}

/* ---- server-sent events ---------------------------------------------------------------------- */

static int collect(void *arg, const struct sse_message *m, struct err *e)
{
	(void)e;
	buf_addf(arg, "[%.*s|%.*s]", STR_ARG(m->event), STR_ARG(m->data));
	return 0;
}

static const char stream_text[] = ": hello\r\nid: 7\r\nevent: lines\r\ndata: a\r\ndata:b\r\n\r\n"
				  "data\n\nevent: x\n\nid: 8\rdata: z\r\rretry: 5\n\ndata: lost";
static const char stream_want[] = "[lines|a\nb][message|][message|z]";

void test_sse__any_split_gives_the_same(void **state)
{
	struct sse_parser p;
	struct buf got;
	struct err e;

	(void)state;
	buf_init(&got, 65536);
	for (size_t cut = 0; cut < sizeof stream_text; cut++) {
		buf_clear(&got);
		sse_init(&p, collect, &got);
		assert_int_equal(sse_add(&p, str_slice(STR(stream_text), 0, cut), &e), 0);
		assert_int_equal(sse_add(&p, str_slice(STR(stream_text), cut, SIZE_MAX), &e), 0);
		assert_string_equal(got.p, stream_want);
		assert_string_equal(p.id, "8");
		sse_restart(&p);
		assert_int_equal(sse_add(&p, STR("data: n\n\n"), &e), 0);
		assert_true(str_ends(buf_str(&got), STR("[message|n]")));
		sse_done(&p);
	}
	buf_done(&got);
}

/* ---- which lines were printed ---------------------------------------------------------------- */

void test_logs__lines_come_once(void **state)
{
	struct seen s = { .next = 1 };

	(void)state;
	assert_true(seen_add(&s, 1));
	assert_false(seen_add(&s, 1));
	assert_true(seen_add(&s, 3));
	assert_true(seen_add(&s, 4));
	assert_false(seen_add(&s, 3));
	assert_int_equal(s.next, 2);
	assert_true(seen_add(&s, 2));
	assert_int_equal(s.next, 5);
	assert_int_equal(s.n_ahead, 0);
	assert_false(seen_add(&s, 4));
}

void test_logs__many_gaps_are_given_up_from_below(void **state)
{
	struct seen s = { .next = 1 };
	int64_t line = 3;

	(void)state;
	for (int i = 0; i <= SEEN_RANGES; i++, line += 2)
		assert_true(seen_add(&s, line));
	assert_int_equal(s.next, 4);
	assert_int_equal(s.n_ahead, SEEN_RANGES);
	assert_false(seen_add(&s, 1));
	assert_true(seen_add(&s, 4));
}

void test_view__a_log_cannot_move_the_cursor(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	view_clean(STR("a\033[31mred\033[0m\033[2J\033]0;t\a\x9b \xc2\x9bzü\t\x7f"), &out);
	assert_string_equal(out.p, "a\033[31mred\033[0m[2J]0;t\x9b zü\t\033[0m");
	buf_done(&out);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void cell_is(
	enum cell_place place, enum column_kind kind, const char *json, const char *want)
{
	struct jsn_doc *doc;
	struct buf out;
	struct err e;

	assert_int_equal(jsn_parse(str_c(json), &doc, &e), 0);
	buf_init(&out, 4096);
	cell_add(place, kind, jsn_root(doc), &out);
	if (!str_eq(buf_str(&out), str_c(want)))
		fail_msg("%s: '%.*s', not '%s'", json, STR_ARG(buf_str(&out)), want);
	buf_done(&out);
	jsn_doc_free(doc);
}

void test_cell__is_for_people_on_a_terminal_and_exact_elsewhere(void **state)
{
	static const struct {
		enum column_kind kind;
		const char *json, *exact, *table;
	} rows[] = {
		{ COLUMN_SIZE, "1610612736", "1610612736", "1.5 GiB" },
		{ COLUMN_REAL, "0.123456789", "0.123456789", "0.1235" },
		{ COLUMN_REAL, "\"NaN\"", "NaN", "NaN" },
		{ COLUMN_SHARE, "0.60417", "0.60417", "60.4%" },
		{ COLUMN_TEXT, "null", "", "" },
		{ COLUMN_TEXT, "\"a\\u001b[2Jb\\nc\"", "a [2Jb c", "a [2Jb c" },
		{ COLUMN_TEXT, "[\"a\",1,true]", "a,1,yes", "a,1,yes" },
		{ COLUMN_TEXT, "[{\"a\":1},[2,3]]", "(a=1),(2,3)", "(a=1),(2,3)" },
		{ COLUMN_TEXT, "{\"a\":{\"b\":[]},\"c\":{}}", "(a=(b=),c=)", "(a=(b=),c=)" },
		{ COLUMN_PAIRS, "{\"a\":0.5,\"b\":{\"c\":\"d\"}}", "a=0.5,b=(c=d)",
			"a=0.5,b=(c=d)" },
		{ COLUMN_COMMIT, "\"0123456789abcdef\"", "0123456789abcdef", "0123456789ab" },
		{ COLUMN_TIME, "\"2001-01-31T01:02:03.5Z\"", "2001-01-31T01:02:03.5Z",
			"2001-01-31" },
		{ COLUMN_TIME, "\"never\"", "never", "never" },
		{ COLUMN_DATE, "\"2001-01-31T00:00:00Z\"", "2001-01-31", "2001-01-31" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cell_is(CELL_EXACT, rows[i].kind, rows[i].json, rows[i].exact);
		cell_is(CELL_TABLE, rows[i].kind, rows[i].json, rows[i].table);
	}
	cell_is(CELL_LINE, COLUMN_TIME, "\"2001-01-31T01:02:03.5Z\"", "2001-01-31 01:02:03Z");
	cell_is(CELL_FIELD, COLUMN_TIME, "\"2001-01-31T01:02:03.5Z\"",
		"2001-01-31 01:02:03Z (2001-01-31)");
	cell_is(CELL_FIELD, COLUMN_COMMIT, "\"0123456789abcdef\"", "0123456789abcdef");
}

void test_cell__ages_are_near_or_dates(void **state)
{
	static const struct {
		int64_t ago;
		const char *want;
	} rows[] = { { 0, "0s ago" }, { 59 * CLOCK_SECOND, "59s ago" },
		{ 119 * CLOCK_SECOND, "1m ago" }, { 3 * CLOCK_HOUR + 1, "3h ago" },
		{ 59 * CLOCK_DAY, "59d ago" }, { 60 * CLOCK_DAY, "2026-10-01" },
		{ -90 * CLOCK_MINUTE, "in 1h" }, { -400 * CLOCK_DAY, "2028-01-04" } };
	struct buf out;
	int64_t now;

	(void)state;
	assert_true(clock_parse(STR("2026-11-30T00:00:00Z"), &now));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_init(&out, 100);
		cell_add_age(now - rows[i].ago, now, &out);
		assert_string_equal(out.p, rows[i].want);
		buf_done(&out);
	}
}

void test_cell__lengths_of_time(void **state)
{
	static const struct {
		int64_t us;
		const char *exact, *table;
	} rows[] = { { 0, "0.000", "0.0s" }, { 9940000, "9.940", "9.9s" },
		{ 59999000, "59.999", "59s" }, { 65 * CLOCK_SECOND, "65.000", "1m 05s" },
		{ 3 * CLOCK_HOUR, "10800.000", "3h 00m" },
		{ 50 * CLOCK_HOUR, "180000.000", "2d 2h" }, { -1, "0.000", "0.0s" } };
	struct jsn_doc *doc;
	struct buf out;
	struct err e;
	int64_t start;

	(void)state;
	assert_int_equal(jsn_parse(STR("{\"a\":\"2026-11-30T00:00:00Z\","
				       "\"b\":\"2026-11-30T00:01:40Z\",\"c\":null}"),
				 &doc, &e),
		0);
	const struct jsn *from = jsn_find(jsn_root(doc), "/a");
	assert_true(clock_parse(jsn_get_str(from), &start));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_init(&out, 100);
		cell_add_length(
			CELL_EXACT, from, jsn_find(jsn_root(doc), "/c"), start + rows[i].us, &out);
		assert_string_equal(out.p, rows[i].exact);
		buf_clear(&out);
		cell_add_length(CELL_TABLE, from, NULL, start + rows[i].us, &out);
		assert_string_equal(out.p, rows[i].table);
		buf_done(&out);
	}
	buf_init(&out, 100);
	cell_add_length(CELL_TABLE, from, jsn_find(jsn_root(doc), "/b"), 0, &out);
	assert_string_equal(out.p, "1m 40s");
	buf_clear(&out);
	cell_add_length(CELL_TABLE, jsn_find(jsn_root(doc), "/c"), NULL, start, &out);
	assert_int_equal(out.n, 0);
	buf_done(&out);
	jsn_doc_free(doc);
}

static void shape_is(shape_fn *shape, const char *json, const char *want)
{
	struct jsn_doc *doc;
	struct buf out;
	struct err e;

	assert_int_equal(jsn_parse(str_c(json), &doc, &e), 0);
	buf_init(&out, 4096);
	shape(jsn_root(doc), &out);
	if (!str_eq(buf_str(&out), str_c(want)))
		fail_msg("%s: '%.*s', not '%s'", json, STR_ARG(buf_str(&out)), want);
	buf_done(&out);
	jsn_doc_free(doc);
}

void test_shape__steps_stand_in_an_order_in_which_they_can_run(void **state)
{
	(void)state;
	shape_is(shape_steps,
		"{\"a\":{\"run\":[\"x\",\"two words\"],\"needs\":[\"c\",\"b\"]},"
		"\"b\":{\"run\":\"set -e\\nmore\",\"needs\":[\"c\"]},\"c\":{\"run\":\"true\"}}",
		"c\ttrue\nb\tset -e …  (needs c)\na\tx 'two words'  (needs c,b)\n");
	shape_is(shape_steps, "{}", "");
}

void test_shape__inputs_have_their_rules(void **state)
{
	(void)state;
	shape_is(shape_inputs,
		"{\"n\":{\"type\":\"number\",\"default\":1.0,\"min\":0.0,\"max\":5.5},"
		"\"s\":{\"type\":\"string\",\"choices\":[\"a\",\"b\"],\"description\":\"Which\"}}",
		"n\tnumber, default 1, at least 0, at most 5.5\n"
		"s\tstring, required, one of a,b: Which\n");
}

/* ---- documents ------------------------------------------------------------------------------- */

static void check_split(const char *text, size_t n, const struct document *want)
{
	struct document found[8];
	struct list l = { found, 0 };
	struct err e;

	assert_int_equal(document_split(STR("f"), str_c(text), &l, &e), 0);
	assert_int_equal(l.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(found[i].line, want[i].line);
		assert_true(str_eq(found[i].text, want[i].text));
	}
}

#define DOC(at, what) ((struct document){ .text = STR(what), .line = (at) })

void test_document__marks_part_documents(void **state)
{
	(void)state;
	check_split("", 1, &DOC(0, ""));
	check_split("a: 1\n", 1, &DOC(0, "a: 1\n"));
	check_split("# x\n---\na: 1\n---\n# end\n", 1, &DOC(0, "# x\n---\na: 1\n"));
	check_split("a: 1\n---\n\n---\nb: 2", 2,
		(const struct document[]){ DOC(0, "a: 1\n"), DOC(3, "---\nb: 2") });
	check_split("--- {a: 1}\r\n--- # x\r\nb: 2\r\n...\r\n", 2,
		(const struct document[]){
			DOC(0, "--- {a: 1}\r\n"), DOC(1, "--- # x\r\nb: 2\r\n...\r\n") });
	check_split("a: |\n  ---\n  x\n---b: 2\n", 1, &DOC(0, "a: |\n  ---\n  x\n---b: 2\n"));
}

static struct err failed(struct document d, const char *field, const char *msg)
{
	struct err e;

	(void)err_field(&e, field, "%s", msg);
	d.file = STR("f.yaml");
	(void)document_fail(&d, &e);
	return e;
}

void test_document__errors_name_the_place_in_the_file(void **state)
{
	struct document d = DOC(4, "kind: P\nspec:\n  a: 1\n");

	(void)state;
	assert_string_equal(failed(d, "/source/spec/a", "line 3, column 3: /spec/a: is odd").msg,
		"f.yaml:7:3: /spec/a: is odd");
	assert_string_equal(failed(d, "/spec/a/b", "is odd").msg, "f.yaml:7:3: /spec/a/b: is odd");
	assert_string_equal(failed(d, "/source/kind", "is odd").msg, "f.yaml:5:1: /kind: is odd");
	assert_string_equal(failed(d, "", "is taken").msg, "f.yaml: is taken");
	assert_string_equal(failed(d, "/spec/a", "is odd").field, "");
	assert_string_equal(failed(d, "/inputs/n", "is odd").msg, "is odd");
	assert_string_equal(failed(d, "/inputs/n", "is odd").field, "/inputs/n");
}
