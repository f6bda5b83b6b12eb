#include "lib/stats/category.h"

#include "lib/stats/codec.h"

/*
 * A reference is built from sorted, summed names; a heap sort does it in place, since this folder
 * may not allocate and the C library's sort does. The index by hash is rebuilt on decoding.
 */
static uint64_t hash_name(struct str s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	/* FNV-1a, then the finaliser of MurmurHash3 to spread the high bits. */
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (uint8_t)s.p[i]) * UINT64_C(0x100000001b3);
	h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ (h >> 33);
}

/* The name as it is kept: itself, or cut and told apart by its hash. */
static struct str kept_name(struct str s, char room[STATS_NAME_MAX + 1])
{
	enum { MARK = 17 };
	size_t n = STATS_NAME_MAX - MARK;

	if (s.n <= STATS_NAME_MAX)
		return s;
	while (n > 0 && ((uint8_t)s.p[n] & 0xc0) == 0x80)
		n--;
	memcpy(room, s.p, n);
	if (!str_print(room + n, MARK + 1, "~%016llx", (unsigned long long)hash_name(s)))
		BUG_ON(true);
	return (struct str){ room, n + MARK };
}

struct str stats_category_name(const struct stats_categories *c, uint32_t i)
{
	BUG_ON(i >= c->n);
	return (struct str){ c->text + c->item[i].at, c->item[i].n };
}

/* The slot of a name: of the item that has it, or the free one where it would go. */
static uint32_t find_slot(const struct stats_categories *c, struct str name)
{
	uint32_t at = (uint32_t)hash_name(name) % STATS_NAME_SLOTS;

	while (c->slot[at] != 0 && !str_eq(stats_category_name(c, c->slot[at] - 1u), name))
		at = (at + 1) % STATS_NAME_SLOTS;
	return at;
}

/* `name` is at most STATS_NAME_MAX long and there is room for it. */
static void append_name(struct stats_categories *c, struct str name, uint64_t count)
{
	uint32_t slot = find_slot(c, name);

	BUG_ON(c->n >= STATS_NAMES || name.n > STATS_NAME_MAX);
	c->item[c->n] = (struct stats_category){ c->used, (uint16_t)name.n, count };
	if (name.n != 0)
		memcpy(c->text + c->used, name.p, name.n);
	c->used += (uint32_t)name.n;
	c->slot[slot] = (uint16_t)++c->n;
}

static uint32_t names_id(const struct stats_categories *c)
{
	uint32_t crc = codec_crc(0, "names", 5);

	for (uint32_t i = 0; i < c->known; i++) {
		uint8_t n[2] = { (uint8_t)c->item[i].n, (uint8_t)(c->item[i].n >> 8) };

		crc = codec_crc(crc, n, sizeof(n));
		crc = codec_crc(crc, c->text + c->item[i].at, c->item[i].n);
	}
	for (size_t i = 0; i < c->n_seen; i++) {
		uint8_t hash[8];

		for (unsigned b = 0; b < 8; b++)
			hash[b] = (uint8_t)(c->seen[i] >> (8 * b));
		crc = codec_crc(crc, hash, sizeof(hash));
	}
	return crc;
}

typedef int item_order(const struct stats_category_in *a, const struct stats_category_in *b);

static int by_name(const struct stats_category_in *a, const struct stats_category_in *b)
{
	return str_cmp(a->name, b->name);
}

static int by_count(const struct stats_category_in *a, const struct stats_category_in *b)
{
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return by_name(a, b);
}

static void sift(struct stats_category_in *v, size_t root, size_t n, item_order *order)
{
	for (;;) {
		size_t child = 2 * root + 1;
		struct stats_category_in swap = v[root];

		if (child >= n)
			return;
		if (child + 1 < n && order(&v[child], &v[child + 1]) < 0)
			child++;
		if (order(&v[root], &v[child]) >= 0)
			return;
		v[root] = v[child];
		v[child] = swap;
		root = child;
	}
}

static void sort_items(struct stats_category_in *v, size_t n, item_order *order)
{
	for (size_t i = n / 2; i > 0; i--)
		sift(v, i - 1, n, order);
	for (size_t end = n; end > 1; end--) {
		struct stats_category_in swap = v[0];

		v[0] = v[end - 1];
		v[end - 1] = swap;
		sift(v, 0, end - 1, order);
	}
}

static size_t sum_equal(struct stats_category_in *v, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && str_eq(v[kept - 1].name, v[i].name))
			v[kept - 1].count += v[i].count;
		else
			v[kept++] = v[i];
	}
	return kept;
}

static void sort_hashes(uint64_t *v, size_t n)
{
	/* Shell sort with the gaps of M. Ciura: at most 65536 numbers, once per reference. */
	static const size_t gaps[] = { 30000, 13000, 5750, 1750, 701, 301, 132, 57, 23, 10, 4, 1 };

	for (size_t g = 0; g < sizeof(gaps) / sizeof(*gaps); g++)
		for (size_t i = gaps[g]; i < n; i++) {
			uint64_t held = v[i];
			size_t j = i;

			for (; j >= gaps[g] && v[j - gaps[g]] > held; j -= gaps[g])
				v[j] = v[j - gaps[g]];
			v[j] = held;
		}
}

int stats_categories_build(
	const struct stats_categories_args *a, struct stats_categories *ret, struct err *e)
{
	size_t n, top;

	sort_items(a->in, a->n, by_name);
	n = sum_equal(a->in, a->n);
	if (n > STATS_DISTINCT_MAX)
		return err_set(e, ERR_TOO_LARGE,
			"the column has %zu different values; a category column may have %d", n,
			STATS_DISTINCT_MAX);
	top = n < STATS_TOP ? n : STATS_TOP;
	if (n - top > a->seen_room)
		return err_set(e, ERR_TOO_LARGE,
			"%zu categories beyond the top need room; there is room for %zu", n - top,
			a->seen_room);
	sort_items(a->in, n, by_count);
	sort_items(a->in, top, by_name);
	memset(ret, 0, sizeof(*ret));
	ret->rows = ret->nulls = a->nulls;
	for (size_t i = 0; i < n; i++) {
		char room[STATS_NAME_MAX + 1];

		ret->rows += a->in[i].count;
		if (i < top) {
			append_name(ret, kept_name(a->in[i].name, room), a->in[i].count);
		} else {
			ret->other += a->in[i].count;
			a->seen[i - top] = hash_name(a->in[i].name);
		}
	}
	ret->known = ret->n;
	ret->n_seen = n - top;
	ret->seen = ret->n_seen > 0 ? a->seen : NULL;
	if (ret->n_seen > 0)
		sort_hashes(a->seen, ret->n_seen);
	ret->names_id = names_id(ret);
	return 0;
}

void stats_categories_init(struct stats_categories *w, const struct stats_categories *ref)
{
	*w = *ref;
	w->rows = w->nulls = w->other = w->fresh = 0;
	w->seen = NULL;
	w->n_seen = 0;
	for (uint32_t i = 0; i < w->n; i++)
		w->item[i].count = 0;
}

static bool was_seen(const struct stats_categories *ref, uint64_t hash)
{
	size_t low = 0, high = ref->n_seen;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ref->seen[mid] == hash)
			return true;
		if (ref->seen[mid] < hash)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

void stats_categories_add(struct stats_categories *w, const struct stats_categories *ref,
	struct str value, uint64_t rows)
{
	char room[STATS_NAME_MAX + 1];
	struct str name = kept_name(value, room);
	uint32_t slot = find_slot(w, name);

	BUG_ON(w->names_id != ref->names_id);
	w->rows += rows;
	if (w->slot[slot] != 0)
		w->item[w->slot[slot] - 1u].count += rows;
	else if (was_seen(ref, hash_name(value)))
		w->other += rows;
	else if (w->n < w->known + STATS_FRESH_NAMES)
		append_name(w, name, rows);
	else
		w->fresh += rows;
}

void stats_categories_add_nulls(struct stats_categories *w, uint64_t rows)
{
	w->rows += rows;
	w->nulls += rows;
}

int stats_categories_merge(
	struct stats_categories *w, const struct stats_categories *other, struct err *e)
{
	if (w->names_id != other->names_id || w->known != other->known)
		return err_set(e, ERR_CONFLICT,
			"the categories belong to different references and cannot be merged");
	w->rows += other->rows;
	w->nulls += other->nulls;
	w->other += other->other;
	w->fresh += other->fresh;
	for (uint32_t i = 0; i < other->n; i++) {
		struct str name = stats_category_name(other, i);
		uint32_t slot = find_slot(w, name);

		if (w->slot[slot] != 0)
			w->item[w->slot[slot] - 1u].count += other->item[i].count;
		else if (w->n < w->known + STATS_FRESH_NAMES)
			append_name(w, name, other->item[i].count);
		else
			w->fresh += other->item[i].count;
	}
	return 0;
}

uint64_t stats_categories_fresh(const struct stats_categories *w)
{
	uint64_t rows = w->fresh;

	for (uint32_t i = w->known; i < w->n; i++)
		rows += w->item[i].count;
	return rows;
}

size_t stats_categories_cells(const struct stats_categories *ref, const struct stats_categories *w,
	uint64_t ret_ref[STATS_CELLS], uint64_t ret_cur[STATS_CELLS])
{
	size_t k = 0;

	if (ref->names_id != w->names_id || ref->known != w->known)
		return 0;
	for (uint32_t i = 0; i < w->n + 2; i++) {
		uint64_t r = 0, c;

		if (i < w->n) {
			r = i < ref->n ? ref->item[i].count : 0;
			c = w->item[i].count;
		} else if (i == w->n) {
			r = ref->other;
			c = w->other;
		} else {
			c = w->fresh;
		}
		if (r == 0 && c == 0)
			continue;
		ret_ref[k] = r;
		ret_cur[k++] = c;
	}
	return k;
}

size_t stats_categories_bytes(const struct stats_categories *c)
{
	return 8 + 4 * 4 + 4 * 8 + (size_t)c->n * 10 + c->used + c->n_seen * 8 + 4;
}

size_t stats_categories_encode(const struct stats_categories *c, uint8_t *out, size_t room)
{
	struct codec w;

	codec_write(&w, out, room, CODEC_CATEGORIES);
	codec_put_u32(&w, c->names_id);
	codec_put_u32(&w, c->n);
	codec_put_u32(&w, c->known);
	codec_put_u32(&w, (uint32_t)c->n_seen);
	codec_put_u64(&w, c->rows);
	codec_put_u64(&w, c->nulls);
	codec_put_u64(&w, c->other);
	codec_put_u64(&w, c->fresh);
	for (uint32_t i = 0; i < c->n; i++) {
		struct str name = stats_category_name(c, i);

		codec_put_u16(&w, (uint16_t)name.n);
		codec_put_u64(&w, c->item[i].count);
		codec_put_bytes(&w, name.p, name.n);
	}
	for (size_t i = 0; i < c->n_seen; i++)
		codec_put_u64(&w, c->seen[i]);
	return codec_finish(&w);
}

/* Reads the names into ret; false when they are not as building makes them. */
static bool read_names(struct codec *c, uint32_t n, struct stats_categories *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t len = codec_get_u16(c);
		uint64_t count = codec_get_u64(c);
		struct str name = { (const char *)codec_get_bytes(c, len), len };

		if (c->failed || len > STATS_NAME_MAX || ret->slot[find_slot(ret, name)] != 0)
			return false;
		append_name(ret, name, count);
	}
	return true;
}

static bool categories_sound(const struct stats_categories *c)
{
	uint64_t sum = c->nulls;
	bool over = __builtin_add_overflow(sum, c->other, &sum);

	over |= __builtin_add_overflow(sum, c->fresh, &sum);
	for (uint32_t i = 0; i < c->n; i++)
		over |= __builtin_add_overflow(sum, c->item[i].count, &sum);
	for (size_t i = 1; i < c->n_seen; i++)
		if (c->seen[i] < c->seen[i - 1])
			return false;
	return !over && sum == c->rows;
}

int stats_categories_decode(const uint8_t *p, size_t n, struct stats_categories_room room,
	struct stats_categories *ret, struct err *e)
{
	uint32_t names, known, seen, id;
	struct codec c;

	if (!codec_read(&c, p, n, CODEC_CATEGORIES))
		return err_set(
			e, ERR_CORRUPT, "the stored categories are damaged or of another version");
	id = codec_get_u32(&c);
	names = codec_get_u32(&c);
	known = codec_get_u32(&c);
	seen = codec_get_u32(&c);
	if (known > STATS_TOP || names < known || names - known > STATS_FRESH_NAMES ||
		seen > STATS_DISTINCT_MAX)
		return err_set(e, ERR_CORRUPT, "the stored categories have impossible sizes");
	if (seen > room.n)
		return err_set(e, ERR_TOO_LARGE,
			"%u hashes of categories need room; there is room for %zu", seen, room.n);
	memset(ret, 0, sizeof(*ret));
	ret->known = known;
	ret->rows = codec_get_u64(&c);
	ret->nulls = codec_get_u64(&c);
	ret->other = codec_get_u64(&c);
	ret->fresh = codec_get_u64(&c);
	if (!read_names(&c, names, ret))
		return err_set(e, ERR_CORRUPT, "the stored category names are damaged");
	for (uint32_t i = 0; i < seen; i++)
		room.seen[i] = codec_get_u64(&c);
	ret->n_seen = seen;
	ret->seen = seen > 0 ? room.seen : NULL;
	ret->names_id = id;
	if (!codec_ended(&c) || !categories_sound(ret) || (seen > 0 && id != names_id(ret)))
		return err_set(e, ERR_CORRUPT, "the stored categories contradict themselves");
	return 0;
}
