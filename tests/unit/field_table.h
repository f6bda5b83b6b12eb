/* A table with a field of every type, and the struct it is read into. */
#ifndef TESTS_UNIT_FIELD_TABLE_H
#define TESTS_UNIT_FIELD_TABLE_H
#include "lib/json/field.h"
#include "tests/unit/unit.h"

enum mode { MODE_MIN, MODE_MAX };
static const char *const modes[] = { "min", "max", NULL };

struct part {
	int64_t x;
	bool has_x;
};
static const struct field part_fields[] = {
	{ "x", FIELD_INT, FIELD_REQUIRED, offsetof(struct part, x), FIELD_HAS(struct part, has_x),
		.min = 1, .max = 9 },
	{ 0 },
};

struct step {
	struct str key;
	struct str run;
};
static const struct field step_fields[] = {
	{ "run", FIELD_STR, FIELD_TEXT | FIELD_REQUIRED, offsetof(struct step, run), .max = 10 },
	{ 0 },
};

struct all {
	bool b, has_b, has_i, has_r, has_e, has_z, has_day, null_s, has_o;
	int64_t i, t, day, z;
	double r;
	struct str name, s, text, secret, raw, made;
	int e;
	struct field_span span;
	struct part o;
	struct list parts, names, numbers, env, steps;
};
#define AT(m)  offsetof(struct all, m)
#define HAS(m) FIELD_HAS(struct all, has_##m)
static const struct field all_fields[] = {
	{ "name", FIELD_STR, FIELD_REQUIRED | FIELD_NAME, AT(name), .doc = "Its \"name\"" },
	{ "b", FIELD_BOOL, 0, AT(b), HAS(b), .fallback = "true" },
	{ "i", FIELD_INT, 0, AT(i), HAS(i), .min = -2, .max = 7, .fallback = "3" },
	{ "r", FIELD_REAL, FIELD_NONFINITE, AT(r), HAS(r), .rmin = -1, .rmax = 1.5 },
	{ "s", FIELD_STR, FIELD_NULLABLE, AT(s), .null = FIELD_HAS(struct all, null_s), .min = 2,
		.max = 3 },
	{ "text", FIELD_STR, FIELD_TEXT | FIELD_OMIT_EMPTY, AT(text), .max = 100 },
	{ "secret", FIELD_STR, FIELD_WRITEONLY, AT(secret) },
	{ "made", FIELD_STR, FIELD_READONLY | FIELD_OMIT_EMPTY, AT(made) },
	{ "e", FIELD_ENUM, 0, AT(e), HAS(e), .names = modes },
	{ "t", FIELD_TIME, FIELD_NULLABLE, AT(t) },
	{ "day", FIELD_DATE, 0, AT(day), HAS(day) },
	{ "span", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(span), .max = 90 * CLOCK_DAY,
		.fallback = "10m" },
	{ "z", FIELD_SIZE, 0, AT(z), HAS(z), .min = 1024, .max = 1 << 30 },
	{ "o", FIELD_OBJ, 0, AT(o), HAS(o), .sub = part_fields },
	{ "parts", FIELD_LIST, FIELD_OMIT_EMPTY, AT(parts), .max = 2, .sub = part_fields,
		.size = sizeof(struct part) },
	{ "names", FIELD_LIST, FIELD_NAME | FIELD_OMIT_EMPTY, AT(names), .max = 3,
		.item = FIELD_STR },
	{ "numbers", FIELD_LIST, FIELD_OMIT_EMPTY, AT(numbers), .item = FIELD_REAL },
	{ "env", FIELD_MAP, FIELD_OMIT_EMPTY, AT(env), .max = 2, .item_max = 4, .key_max = 5 },
	{ "steps", FIELD_DICT, FIELD_NAME | FIELD_OMIT_EMPTY, AT(steps), .max = 2,
		.sub = step_fields, .size = sizeof(struct step) },
	{ "raw", FIELD_RAW, FIELD_OMIT_EMPTY, AT(raw), .max = 20,
		.schema = "{\"type\":[\"integer\",\"string\"]}" },
	{ 0 },
};

static struct err err;

static inline int decode(struct arena *a, struct all *m, const char *text)
{
	return field_decode(all_fields, str_c(text), a, m, &err);
}

/* The member beside a valid name must fail at this pointer with a message that holds `says`. */
static inline void refuse(const char *member, const char *pointer, const char *says)
{
	struct arena *a = arena_new(1 << 20);
	struct str text = arena_printf(a, "{\"name\":\"x\",%s}", member);
	struct all m;
	int rc = field_decode(all_fields, text, a, &m, &err);

	if (rc == 0 || strcmp(err.field, pointer) != 0 || strstr(err.msg, says) == NULL)
		print_message("%s: rc %d, '%s' %s\n", member, rc, rc < 0 ? err.field : "",
			rc < 0 ? err.msg : "");
	assert_int_equal(rc, -1);
	assert_string_equal(err.field, pointer);
	assert_non_null(strstr(err.msg, says));
	assert_int_equal(err.code, ERR_INVALID);
	arena_drop(a);
}

static inline void accept(const char *member)
{
	struct arena *a = arena_new(1 << 20);
	struct all m;

	if (field_decode(all_fields, arena_printf(a, "{\"name\":\"x\",%s}", member), a, &m, &err) <
		0)
		fail_msg("%s: %s %s", member, err.field, err.msg);
	arena_drop(a);
}

#endif
