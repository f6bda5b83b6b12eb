/* What tables of fields say about themselves, and what may be wrong with them. */
#include "api/route.h"
#include "lib/json/json_read.h"
#include "tests/unit/field_table.h"

void test_field__documents_every_member_with_its_limits(void **state)
{
	static const char *const rows[] = {
		"| `name` | name | required |  | Its \"name\" |\n",
		"| `b` | true or false | `true` |  |  |\n",
		"| `i` | whole number | `3` | -2 to 7 |  |\n",
		"| `r` | number |  | -1 to 1.5 |  |\n",
		"| `s` | text |  | 2 to 3 characters |  |\n",
		"| `e` | word |  | `min`, `max` |  |\n",
		"| `span` | duration | `10m` | at most 90d |  |\n",
		"| `z` | size |  | 1 KiB to 1 GiB |  |\n",
		"| `o.x` | whole number | required | 1 to 9 |  |\n",
		"| `parts` | list of objects |  | at most 2 items |  |\n",
		"| `names` | list of names |  | at most 3 items |  |\n",
		"| `env` | texts by name |  | at most 2 members of up to 4 characters |  |\n",
		"| `raw` | several forms |  | at most 20 bytes as JSON |  |\n",
		"\n**`here.parts[]`**\n\n| key |",
		"\n**`here.steps.NAME`**\n\n| key |",
		"| `run` | text | required | at most 10 characters |  |\n",
	};
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	field_doc(all_fields, "here", &b);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (str_find(buf_str(&b), str_c(rows[i])) < 0)
			fail_msg("%s is not in\n%s", rows[i], b.p);
	assert_true(str_find(buf_str(&b), STR("`made`")) < 0);
	buf_done(&b);
}

void test_field__schema_says_what_the_table_says(void **state)
{
	static const struct {
		const char *pointer, *text;
	} rows[] = {
		{ "/type", "\"object\"" },
		{ "/required", "[\"name\"]" },
		{ "/additionalProperties", "false" },
		{ "/properties/name/pattern", "\"^[a-z0-9][a-z0-9._-]{0,62}$\"" },
		{ "/properties/name/description", "\"Its \\\"name\\\"\"" },
		{ "/properties/b", "{\"type\":\"boolean\",\"default\":true}" },
		{ "/properties/i",
			"{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":-2,\"maximum\":7,"
			"\"default\":3}" },
		{ "/properties/r/anyOf/0",
			"{\"type\":\"number\",\"minimum\":-1.0,\"maximum\":1.5}" },
		{ "/properties/r/anyOf/1/enum", "[\"NaN\",\"Infinity\",\"-Infinity\"]" },
		{ "/properties/s",
			"{\"type\":[\"string\",\"null\"],\"minLength\":2,\"maxLength\":3}" },
		{ "/properties/secret/writeOnly", "true" },
		{ "/properties/made/readOnly", "true" },
		{ "/properties/e", "{\"type\":\"string\",\"enum\":[\"min\",\"max\"]}" },
		{ "/properties/t", "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}" },
		{ "/properties/day", "{\"type\":\"string\",\"format\":\"date\"}" },
		{ "/properties/span/default", "\"10m\"" },
		{ "/properties/z/maximum", "1073741824" },
		{ "/properties/o/required", "[\"x\"]" },
		{ "/properties/parts/items/properties/x/maximum", "9" },
		{ "/properties/parts/maxItems", "2" },
		{ "/properties/names/items/type", "\"string\"" },
		{ "/properties/env/additionalProperties", "{\"type\":\"string\",\"maxLength\":4}" },
		{ "/properties/env/propertyNames/maxLength", "5" },
		{ "/properties/steps/additionalProperties/required", "[\"run\"]" },
		{ "/properties/raw", "{\"type\":[\"integer\",\"string\"]}" },
	};
	struct jsn_doc *d;
	struct buf b, one;

	(void)state;
	buf_init(&b, 65536);
	buf_init(&one, 65536);
	field_schema(all_fields, &b);
	assert_int_equal(jsn_parse(buf_str(&b), &d, &err), 0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		buf_clear(&one);
		jsn_write(jsn_find(jsn_root(d), rows[i].pointer), &one);
		if (!str_is(buf_str(&one), rows[i].text))
			fail_msg("%s: %s", rows[i].pointer, one.p);
	}
	jsn_doc_free(d);
	buf_done(&one);
	buf_done(&b);
}

void test_field__a_schema_names_what_every_reply_has(void **state)
{
	struct reply {
		struct str id, note;
		int64_t level, ended, count;
		bool has_level, has_count;
	};
	static const struct field fields[] = {
		{ "id", FIELD_STR, FIELD_READONLY, offsetof(struct reply, id) },
		{ "note", FIELD_STR, FIELD_READONLY | FIELD_OMIT_EMPTY,
			offsetof(struct reply, note) },
		{ "level", FIELD_INT, FIELD_READONLY | FIELD_NULLABLE,
			offsetof(struct reply, level), FIELD_HAS(struct reply, has_level) },
		{ "ended", FIELD_TIME, FIELD_READONLY | FIELD_NULLABLE,
			offsetof(struct reply, ended) },
		{ "count", FIELD_INT, FIELD_READONLY, offsetof(struct reply, count),
			FIELD_HAS(struct reply, has_count) },
		{ 0 },
	};
	struct jsn_doc *d;
	struct buf b, one;

	(void)state;
	buf_init(&b, 65536);
	buf_init(&one, 65536);
	field_schema(fields, &b);
	assert_int_equal(jsn_parse(buf_str(&b), &d, &err), 0);
	jsn_write(jsn_find(jsn_root(d), "/required"), &one);
	assert_true(str_is(buf_str(&one), "[\"id\",\"level\",\"ended\"]"));
	jsn_doc_free(d);
	buf_done(&one);
	buf_done(&b);
}

void test_field__flaws_of_tables_are_found(void **state)
{
	static const struct field bad[][3] = {
		{ { "a", FIELD_BOOL, 0, 0 }, { "a", FIELD_INT, 0, 8 }, { 0 } },
		{ { "a", FIELD_ENUM, 0, 0 }, { 0 } },
		{ { "a", FIELD_OBJ, 0, 0 }, { 0 } },
		{ { "a", FIELD_DICT, 0, 0, .sub = part_fields, .size = 8 }, { 0 } },
		{ { "a", FIELD_LIST, 0, 0, .sub = all_fields, .size = 8 }, { 0 } },
		{ { "a", FIELD_LIST, 0, 0, .item = FIELD_MAP }, { 0 } },
		{ { "a", FIELD_INT, 0, 0, .min = 5, .max = 4 }, { 0 } },
		{ { "a", FIELD_INT, 0, 0, .max = 4, .fallback = "5" }, { 0 } },
		{ { "a", FIELD_ENUM, 0, 0, .names = modes, .fallback = "mid" }, { 0 } },
		{ { "a", FIELD_RAW, 0, 0, .schema = "{" }, { 0 } },
		{ { "a", FIELD_INT, FIELD_NAME, 0 }, { 0 } },
		{ { "a", FIELD_STR, FIELD_REQUIRED, 0, .fallback = "x" }, { 0 } },
		{ { "a", FIELD_STR, FIELD_READONLY | FIELD_WRITEONLY, 0 }, { 0 } },
		{ { "a", FIELD_STR, 0, 1000 }, { 0 } },
	};

	(void)state;
	if (field_table_check(all_fields, sizeof(struct all), &err) < 0)
		fail_msg("%s: %s", err.field, err.msg);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (field_table_check(bad[i], 64, &err) == 0)
			fail_msg("table %zu is taken", i);
}

void test_field__the_tables_of_the_api_are_sound(void **state)
{
	(void)state;
	for (const struct route *r = routes; r->id != NULL; r++) {
		if ((r->in != NULL && field_table_check(r->in, r->in_size, &err) < 0) ||
			(r->out != NULL && field_table_check(r->out, r->out_size, &err) < 0) ||
			(r->query != NULL && field_table_check(r->query, r->query_size, &err) < 0))
			fail_msg("%s: %s: %s", r->id, err.field, err.msg);
	}
}
