/* Field tables: any bytes as JSON (in each mode), as YAML and as pairs. What decodes must encode to
 * text that decodes again to the same text, and no input may pass the arena's limit. The first byte
 * chooses the way. */
#include "lib/base/mem.h"
#include "lib/json/yaml.h"

struct part {
	struct str key;
	int64_t x;
	struct list parts;
};
struct all {
	bool b, has_b, has_o;
	int64_t i, t, day, z;
	double r;
	struct str s, text, raw;
	int e;
	struct field_span span;
	struct part o;
	struct list parts, names, reals, env, dict;
};
#define AT(m) offsetof(struct all, m)

static const char *const modes[] = { "min", "max", NULL };
static const struct field leaf_fields[] = {
	{ "x", FIELD_INT, FIELD_REQUIRED, offsetof(struct part, x), .min = -9, .max = 9 },
	{ 0 },
};
static const struct field part_fields[] = {
	{ "x", FIELD_INT, 0, offsetof(struct part, x), .fallback = "1" },
	{ "parts", FIELD_LIST, FIELD_OMIT_EMPTY, offsetof(struct part, parts), .sub = leaf_fields,
		.size = sizeof(struct part) },
	{ 0 },
};
static const struct field fields[] = {
	{ "b", FIELD_BOOL, 0, AT(b), FIELD_HAS(struct all, has_b) },
	{ "i", FIELD_INT, 0, AT(i), .min = -100, .max = 100 },
	{ "r", FIELD_REAL, FIELD_NONFINITE, AT(r) },
	{ "s", FIELD_STR, FIELD_NULLABLE, AT(s), .max = 10 },
	{ "text", FIELD_STR, FIELD_TEXT, AT(text) },
	{ "e", FIELD_ENUM, 0, AT(e), .names = modes },
	{ "t", FIELD_TIME, FIELD_NULLABLE, AT(t) },
	{ "day", FIELD_DATE, 0, AT(day) },
	{ "span", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(span) },
	{ "z", FIELD_SIZE, 0, AT(z) },
	{ "o", FIELD_OBJ, 0, AT(o), FIELD_HAS(struct all, has_o), .sub = part_fields },
	{ "parts", FIELD_LIST, 0, AT(parts), .sub = part_fields, .size = sizeof(struct part) },
	{ "names", FIELD_LIST, FIELD_NAME, AT(names), .item = FIELD_STR },
	{ "reals", FIELD_LIST, 0, AT(reals), .item = FIELD_REAL },
	{ "env", FIELD_MAP, 0, AT(env) },
	{ "dict", FIELD_DICT, 0, AT(dict), .sub = part_fields, .size = sizeof(struct part) },
	{ "raw", FIELD_RAW, FIELD_OMIT_EMPTY, AT(raw) },
	{ 0 },
};
static const struct field scalars[] = {
	{ "b", FIELD_BOOL, 0, AT(b) },
	{ "i", FIELD_INT, 0, AT(i), .min = -100, .max = 100 },
	{ "r", FIELD_REAL, 0, AT(r) },
	{ "s", FIELD_STR, 0, AT(s), .max = 10 },
	{ "t", FIELD_TIME, 0, AT(t) },
	{ "names", FIELD_LIST, FIELD_NAME, AT(names), .item = FIELD_STR },
	{ 0 },
};

static int read_pairs(struct str text, struct arena *a, struct all *m, struct err *e)
{
	struct field_pair pairs[16];
	struct str piece;
	size_t n = 0;

	while (n < 16 && text.n != 0 && str_next(&text, '&', &piece)) {
		pairs[n].value = piece;
		(void)str_next(&pairs[n].value, '=', &pairs[n].key);
		n++;
	}
	return field_decode_pairs(scalars, pairs, n, a, m, e);
}

static int read_any(unsigned way, struct str text, struct arena *a, struct all *m, struct err *e)
{
	switch (way % 5) {
	case 0: return field_decode(fields, text, a, m, e);
	case 1: return field_decode_loose(fields, text, a, m, e);
	case 2: return field_decode_reply(fields, text, a, m, e);
	case 3: return yaml_decode(fields, text, a, m, e);
	default: return read_pairs(text, a, m, e);
	}
}

/* A time before year 0 or after 9999 has no RFC 3339 text; such a value cannot come in either. */
static void round_trip(const struct all *m)
{
	struct arena *a = arena_new(8 << 20);
	struct buf one, two;
	struct all again;
	struct err e;

	buf_init(&one, 8 << 20);
	buf_init(&two, 8 << 20);
	field_encode(fields, m, &one);
	BUG_ON(buf_failed(&one));
	int rc = field_decode_reply(fields, buf_str(&one), a, &again, &e);
	BUG_ON(rc < 0);
	field_encode(fields, &again, &two);
	BUG_ON(!str_eq(buf_str(&one), buf_str(&two)));
	buf_done(&one);
	buf_done(&two);
	arena_drop(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data + 1, size - 1 };
	struct err e = { 0 };
	struct all m;

	if (size == 0)
		return 0;
	struct arena *a = arena_new(1 << 20);
	if (read_any(data[0], text, a, &m, &e) < 0)
		BUG_ON(e.msg[0] == '\0' || e.code == ERR_OK);
	else if (data[0] % 5 != 4)
		round_trip(&m);
	arena_drop(a);
	return 0;
}
