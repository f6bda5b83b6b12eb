#include "server/sched/reference.h"

#include "lib/base/num.h"
#include "server/sched/records.h"

#include <math.h>

enum { VERSION = 1 };
static const char magic[4] = { 'T', 'M', 'R', 'F' };

static void put_number(struct buf *b, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_addc(b, (char)(unsigned char)(v >> (8 * i)));
}

static bool take_number(struct str *s, unsigned bytes, uint64_t *ret)
{
	uint64_t v = 0;

	if (s->n < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)(unsigned char)s->p[i] << (8 * i);
	*s = str_slice(*s, bytes, s->n);
	*ret = v;
	return true;
}

static bool take_bytes(struct str *s, uint64_t n, struct str *ret)
{
	if (s->n < n)
		return false;
	*ret = str_slice(*s, 0, (size_t)n);
	*s = str_slice(*s, (size_t)n, s->n);
	return true;
}

static void put_profile(struct buf *out, const struct feature *f)
{
	size_t room = f->type == FEATURE_NUMERIC ? STATS_PROFILE_BYTES_MAX
						 : stats_categories_bytes(f->categories);
	struct buf b;

	buf_init(&b, room + 1);
	uint8_t *at = (uint8_t *)buf_room(&b, room);
	if (at == NULL) {
		out->failed = true;
		return;
	}
	buf_grew(&b, f->type == FEATURE_NUMERIC ? stats_profile_encode(f->profile, at)
						: stats_categories_encode(f->categories, at, room));
	put_number(out, b.n, 4);
	buf_add(out, buf_str(&b));
	buf_done(&b);
}

void reference_encode(const struct reference *r, struct buf *out)
{
	buf_add(out, (struct str){ magic, sizeof magic });
	put_number(out, VERSION, 1);
	put_number(out, r->n, 4);
	put_number(out, r->rows, 8);
	for (size_t i = 0; i < r->n; i++) {
		const struct feature *f = &r->features[i];
		put_number(out, f->name.n, 2);
		buf_add(out, f->name);
		put_number(out, (uint64_t)f->type, 1);
		put_profile(out, f);
	}
}

static int decode_profile(struct str profile, struct arena *a, struct feature *ret, struct err *e)
{
	if (ret->type == FEATURE_NUMERIC) {
		struct stats_profile *p = arena_new_of(a, struct stats_profile);
		ret->profile = p;
		return stats_profile_decode((const uint8_t *)profile.p, profile.n, p, e);
	}
	struct stats_categories *c = arena_new_of(a, struct stats_categories);
	struct stats_categories_room room = { arena_array_of(a, uint64_t, profile.n / 8 + 1),
		profile.n / 8 + 1 };
	ret->categories = c;
	return stats_categories_decode((const uint8_t *)profile.p, profile.n, room, c, e);
}

static int decode_feature(
	struct str *s, bool whole, struct arena *a, struct feature *ret, struct err *e)
{
	uint64_t n, type;
	struct str name, profile;

	if (!take_number(s, 2, &n) || !take_bytes(s, n, &name) || !take_number(s, 1, &type) ||
		type >= FEATURE_TYPE_COUNT || !take_number(s, 4, &n) || !take_bytes(s, n, &profile))
		return err_set(e, ERR_CORRUPT, "a stored reference is damaged");
	ret->name = arena_str(a, name);
	ret->type = (int)type;
	return whole ? decode_profile(profile, a, ret, e) : 0;
}

static int decode(
	struct str bytes, bool whole, struct arena *a, struct reference *ret, struct err *e)
{
	uint64_t version, n, rows;
	struct str head;

	if (!take_bytes(&bytes, sizeof magic, &head) || memcmp(head.p, magic, sizeof magic) != 0 ||
		!take_number(&bytes, 1, &version) || version != VERSION ||
		!take_number(&bytes, 4, &n) || n > FEATURES_LIMIT || !take_number(&bytes, 8, &rows))
		return err_set(e, ERR_CORRUPT, "a stored reference is damaged");
	struct feature *features = arena_array_of(a, struct feature, (size_t)n + 1);
	for (size_t i = 0; i < n; i++)
		if (decode_feature(&bytes, whole, a, &features[i], e) < 0)
			return -1;
	if (bytes.n != 0)
		return err_set(e, ERR_CORRUPT, "a stored reference is damaged");
	*ret = (struct reference){ .features = features, .n = (size_t)n, .rows = rows };
	return 0;
}

int reference_decode(struct str bytes, struct arena *a, struct reference *ret, struct err *e)
{
	return decode(bytes, true, a, ret, e);
}

int reference_decode_shape(struct str bytes, struct arena *a, struct reference *ret, struct err *e)
{
	return decode(bytes, false, a, ret, e);
}

/* ---- which columns ---- */

static bool any_glob(const struct list *globs, struct str name)
{
	for (size_t i = 0; i < globs->n; i++)
		if (str_glob(*list_at(globs, struct str, i), name))
			return true;
	return false;
}

bool feature_wanted(const struct monitor_spec *spec, struct str column)
{
	const struct columns_spec *c = &spec->columns;

	if (str_eq(column, c->id) || str_eq(column, c->time) || str_eq(column, c->prediction) ||
		str_eq(column, c->label))
		return false;
	return (spec->features.include.n == 0 || any_glob(&spec->features.include, column)) &&
	       !any_glob(&spec->features.exclude, column);
}

int feature_type_said(const struct monitor_spec *spec, struct str column)
{
	const struct list *types = &spec->features.types;

	for (size_t i = 0; i < types->n; i++) {
		const struct field_pair *p = list_at(types, struct field_pair, i);
		if (!str_glob(p->key, column))
			continue;
		for (int t = 0; t < FEATURE_TYPE_COUNT; t++)
			if (str_is(p->value, feature_type_names[t]))
				return t;
	}
	return -1;
}

/* ---- cells ---- */

struct str category_text(struct str cell, char *room)
{
	double v;

	/* Text that is no number, and numbers that a double does not hold exactly, stay as they
	 * are. */
	if (cell.n == 0 || cell.n > 24 || !records_number(cell, &v) || !isfinite(v) ||
		fabs(v) > 1e15)
		return cell;
	if (v == floor(v))
		(void)str_print(room, NUM_DOUBLE_MAX, "%lld", (long long)v);
	else
		(void)num_format_double(room, v);
	return str_c(room);
}

bool cell_put(struct buf *b, int type, struct str cell)
{
	char room[NUM_DOUBLE_MAX];
	uint64_t bits;
	double v;

	if (type == FEATURE_NUMERIC) {
		if (!records_number(cell, &v))
			return false;
		memcpy(&bits, &v, sizeof bits);
		put_number(b, bits, 8);
		return true;
	}
	if (cell.p == NULL) {
		put_number(b, CELL_MISSING, 2);
		return true;
	}
	if (cell.n > CELL_MAX)
		return false;
	struct str text = category_text(cell, room);
	put_number(b, text.n, 2);
	buf_add(b, text);
	return true;
}

bool cell_take(struct str *cells, int type, struct cell *ret)
{
	uint64_t v;

	*ret = (struct cell){ .number = (double)NAN };
	if (type == FEATURE_NUMERIC) {
		if (!take_number(cells, 8, &v))
			return false;
		memcpy(&ret->number, &v, sizeof v);
		return true;
	}
	if (!take_number(cells, 2, &v))
		return false;
	return v == CELL_MISSING || take_bytes(cells, v, &ret->text);
}
