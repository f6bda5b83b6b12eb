#include "lib/json/yaml.h"
#include "tests/unit/unit.h"

static struct err err;

static const char *json_of(const char *text, struct buf *b)
{
	buf_clear(b);
	if (yaml_to_json(str_c(text), b, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return b->p;
}

void test_yaml__plain_scalars_follow_the_core_schema(void **state)
{
	static const struct {
		const char *yaml, *json;
	} rows[] = {
		{ "~", "null" },
		{ "null", "null" },
		{ "\"null\"", "\"null\"" },
		{ "true", "true" },
		{ "FALSE", "false" },
		{ "yes", "\"yes\"" },
		{ "on", "\"on\"" },
		{ "'12'", "\"12\"" },
		{ "12", "12" },
		{ "-0", "0" },
		{ "+7", "7" },
		{ "0", "0" },
		{ "0o17", "15" },
		{ "0x1F", "31" },
		{ "0o18", "\"0o18\"" },
		{ "0x", "\"0x\"" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "-9223372036854775808", "-9223372036854775808" },
		{ "1.5", "1.5" },
		{ ".5", "0.5" },
		{ "1.", "1.0" },
		{ "-1e3", "-1000.0" },
		{ "+1.0", "1.0" },
		{ "1e", "\"1e\"" },
		{ ".", "\".\"" },
		{ "1.2.3", "\"1.2.3\"" },
		{ ".inf", "\".inf\"" },
		{ "2001-01-01", "\"2001-01-01\"" },
		{ "12:30", "\"12:30\"" },
		{ "1_000", "\"1_000\"" },
		{ "40GiB..", "\"40GiB..\"" },
		{ "H100:4", "\"H100:4\"" },
		{ "\"a\\tb\\u00e4\"", "\"a\\tb\xc3\xa4\"" },
		{ "|\n  a\n  b\n", "\"a\\nb\\n\"" },
		{ ">-\n  a\n  b\n", "\"a b\"" },
		{ "[1, [], {}, {a: }]", "[1,[],{},{\"a\":null}]" },
		{ "b: 1\na: {x: [y, 2]}\n", "{\"b\":1,\"a\":{\"x\":[\"y\",2]}}" },
		{ "1: a\ntrue: b", "{\"1\":\"a\",\"true\":\"b\"}" },
		{ "%YAML 1.2\n---\na: 1\n...\n", "{\"a\":1}" },
		{ "\xef\xbb\xbf"
		  "a: 1",
			"{\"a\":1}" },
	};
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(json_of(rows[i].yaml, &b), rows[i].json);
	buf_done(&b);
}

void test_yaml__what_is_outside_the_subset_is_placed(void **state)
{
	static const struct {
		const char *yaml, *says, *field;
	} rows[] = {
		{ "", "line 1, column 1: the YAML text is empty", "" },
		{ "# nothing\n", "the YAML text is empty", "" },
		{ "a: 1\nb: &x 2\n", "line 2, column 4: /b: anchors (&) are not supported", "/b" },
		{ "a: *x\n", "line 1, column 4: /a: aliases", "/a" },
		{ "a:\n  - x\n  - !!str 5\n", "line 3, column 5: /a/1: tags (!)", "/a/1" },
		{ "a: {<<: {b: 1}}", "line 1, column 5: /a: merge keys", "/a" },
		{ "a: {x: 1, y: 2, x: 3}", "line 1, column 17: /a/x: is given twice", "/a/x" },
		{ "[a]: 1", "line 1, column 1: a key must be a string", "" },
		{ "a: 1\n---\nb: 1\n", "line 2, column 1: the text must hold one document", "" },
		{ "a: 007", "line 1, column 4: /a: is a number with leading zeros", "/a" },
		{ "a: 9223372036854775808", "line 1, column 4: /a: is a number too large", "/a" },
		{ "a: 0x8000000000000000", "too large", "/a" },
		{ "a: 1e999", "too large", "/a" },
		{ "a: \"\\0\"", "line 1, column 4: /a: must not contain", "/a" },
		{ "a: 1\n b: 2\n", "line 2, column 3: mapping values", "" },
		{ "a:\n\tb: 1\n", "line 2, column 1: /a: found a character", "/a" },
		{ "a: [1, 2", "line 2, column 1: /a: did not find", "/a" },
		{ "b: 1\n\xc3\xa4: \xff", "line 2, column 4: must be UTF-8", "" },
		{ "a: \"\x01\"", "line 1, column 5: must be UTF-8", "" },
	};
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(yaml_to_json(str_c(rows[i].yaml), &b, &err), -1);
		if (strstr(err.msg, rows[i].says) == NULL || strcmp(err.field, rows[i].field) != 0)
			fail_msg("%s: '%s' %s", rows[i].yaml, err.field, err.msg);
		assert_true(err.code == ERR_MALFORMED || err.code == ERR_INVALID);
	}
	assert_int_equal(yaml_to_json(STR("a: \xc3\xa4\0b"), &b, &err), -1);
	buf_done(&b);
}

void test_yaml__limits_hold(void **state)
{
	struct buf in, out;

	(void)state;
	buf_init(&in, YAML_TEXT_MAX + 1);
	buf_init(&out, 1 << 20);
	for (int i = 0; i < 33; i++)
		buf_addc(&in, '[');
	assert_int_equal(yaml_to_json(buf_str(&in), &out, &err), -1);
	assert_non_null(strstr(err.msg, "32 levels"));
	buf_clear(&in);
	while (in.n < 200000)
		buf_adds(&in, "- ");
	assert_int_equal(yaml_to_json(buf_str(&in), &out, &err), -1);
	assert_non_null(strstr(err.msg, "32 levels"));
	buf_clear(&in);
	for (int i = 0; i < FIELD_NODES_MAX - 1; i++)
		buf_adds(&in, "- 1\n");
	assert_int_equal(yaml_to_json(buf_str(&in), &out, &err), 0);
	buf_adds(&in, "- 1\n");
	assert_int_equal(yaml_to_json(buf_str(&in), &out, &err), -1);
	assert_non_null(strstr(err.msg, "line 50000, column 3: "));
	buf_clear(&in);
	for (int i = 0; i < 20000; i++)
		buf_addf(&in, "k%d: 1\n", i);
	buf_adds(&in, "k7: 2\n");
	assert_int_equal(yaml_to_json(buf_str(&in), &out, &err), -1);
	assert_non_null(strstr(err.msg, "line 20001, column 1: /k7: is given twice"));
	while (!in.failed)
		buf_addc(&in, ' ');
	in.failed = false;
	assert_int_equal(yaml_to_json(buf_str(&in), &out, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	buf_done(&in);
	buf_done(&out);
}

struct step {
	struct str key, run, gpus;
	struct list needs, env;
	int64_t memory;
};
struct pipeline {
	struct str kind;
	struct list steps;
};
#define STEP(m) offsetof(struct step, m)
static const struct field step_fields[] = {
	{ "run", FIELD_ANY, FIELD_REQUIRED, STEP(run) },
	{ "gpus", FIELD_ANY, 0, STEP(gpus) },
	{ "needs", FIELD_LIST, FIELD_NAME, STEP(needs), .item = FIELD_STR },
	{ "env", FIELD_MAP, 0, STEP(env) },
	{ "memory", FIELD_SIZE, 0, STEP(memory), .fallback = "1GiB" },
	{ 0 },
};
static const struct field pipeline_fields[] = {
	{ "kind", FIELD_STR, FIELD_REQUIRED, offsetof(struct pipeline, kind) },
	{ "steps", FIELD_DICT, FIELD_REQUIRED | FIELD_NAME, offsetof(struct pipeline, steps),
		.min = 1, .sub = step_fields, .size = sizeof(struct step) },
	{ 0 },
};

static const char text[] = "kind: Pipeline # a comment\n"
			   "steps:\n"
			   "  train:\n"
			   "    run: [python3, train.py, \"${inputs.from}\"]\n"
			   "    gpus: H100:4\n"
			   "    env: {OMP_NUM_THREADS: \"1\"}\n"
			   "  evaluate:\n"
			   "    needs: [train]\n"
			   "    run: |\n"
			   "      python3 evaluate.py\n"
			   "    gpus: {count: 2}\n"
			   "    memory: 2GiB\n";

void test_yaml__decodes_through_field_tables(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct pipeline p;

	(void)state;
	if (yaml_decode(pipeline_fields, str_c(text), a, &p, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(p.steps.n, 2);
	const struct step *train = list_at(&p.steps, struct step, 0);
	assert_string_equal(train->key.p, "train");
	assert_string_equal(train->run.p, "[\"python3\",\"train.py\",\"${inputs.from}\"]");
	assert_string_equal(train->gpus.p, "\"H100:4\"");
	assert_int_equal(train->memory, 1 << 30);
	assert_string_equal(train[1].run.p, "\"python3 evaluate.py\\n\"");
	assert_string_equal(train[1].gpus.p, "{\"count\":2}");
	assert_string_equal(list_at(&train[1].needs, struct str, 0)->p, "train");
	arena_drop(a);
}

void test_yaml__errors_have_line_column_and_path(void **state)
{
	static const struct {
		const char *yaml, *msg;
	} rows[] = {
		{ "kind: 5\nsteps: {}\n",
			"line 1, column 1: /kind: must be a string (put it in quotes), not a whole "
			"number" },
		{ "kind: P\nsteps: {}\n", "line 2, column 1: /steps: must not be empty" },
		{ "kind: P\n", "line 1, column 1: /steps: is required" },
		{ "kind: P\nsteps:\n  a:\n    rnu: x\n",
			"line 4, column 5: /steps/a/rnu: is not known here; did you mean 'run'?" },
		{ "kind: P\nsteps:\n  a: {}\n", "line 3, column 3: /steps/a/run: is required" },
		{ "kind: P\nsteps:\n  a:\n    run: x\n    needs:\n      - b\n      - C\n",
			"line 7, column 9: /steps/a/needs/1: must be 1 to 63 of a-z, 0-9, '.', '_' "
			"and '-', starting with a letter or digit" },
		{ "kind: P\nsteps:\n  a:\n    run: x\n    env: {A: 1}\n",
			"line 5, column 11: /steps/a/env/A: must be a string (put it in quotes), "
			"not "
			"a whole number" },
		{ "- x\n", "line 1, column 1: must be an object, not a list" },
	};
	struct arena *a = arena_new(1 << 20);
	struct pipeline p;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(
			yaml_decode(pipeline_fields, str_c(rows[i].yaml), a, &p, &err), -1);
		assert_string_equal(err.msg, rows[i].msg);
		assert_int_equal(err.code, ERR_INVALID);
	}
	(void)err_field(&err, "/steps/evaluate/needs/0", "names no step");
	yaml_locate(str_c(text), &err);
	assert_string_equal(err.msg, "line 8, column 13: /steps/evaluate/needs/0: names no step");
	(void)err_field(&err, "/steps/evaluate/retries/user", "is too small");
	yaml_locate(str_c(text), &err);
	assert_non_null(strstr(err.msg, "line 7, column 3: "));
	arena_drop(a);
}
