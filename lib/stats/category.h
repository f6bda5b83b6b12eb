/*
 * Profile of a categorical column: the reference's most frequent categories by name with exact
 * counts, the rest of the reference as `other`, and, in a window, what the reference has never
 * seen as `fresh`: up to STATS_FRESH_NAMES by name, the rest in one number.
 *
 * Names are bytes and compared as bytes. A name longer than STATS_NAME_MAX is kept as its first
 * bytes (cut between code points), '~', and 16 hex digits of its hash. "Most frequent" breaks ties
 * by bytes. Categories of the reference beyond the top are remembered as sorted 64-bit hashes, so
 * that a window can tell `other` from `fresh` (a false `other` has odds of 2^-48 per value).
 *
 * Pure: no allocation. The structs are plain values of some 50 KB, owned by the caller; the hashes
 * lie in memory that the caller gives and that outlives the reference.
 */
#ifndef LIB_STATS_CATEGORY_H
#define LIB_STATS_CATEGORY_H
#include "lib/base/err.h"
#include "lib/base/str.h"

enum {
	STATS_TOP = 255, /* categories that a reference keeps by name */
	STATS_FRESH_NAMES = 64,
	STATS_NAMES = STATS_TOP + STATS_FRESH_NAMES,
	STATS_NAME_MAX = 120,
	STATS_DISTINCT_MAX = 65536, /* distinct categories of a reference */
	STATS_CELLS = STATS_NAMES + 2, /* names, other, unnamed fresh */
	STATS_NAME_SLOTS = 1024,
};

struct stats_category {
	uint32_t at; /* into text */
	uint16_t n;
	uint64_t count;
};

struct stats_categories {
	uint32_t names_id; /* checksum of the reference's names */
	uint32_t n, known; /* names in all; the reference's, sorted by bytes, come first */
	uint64_t rows, nulls; /* rows in all, of which nulls */
	uint64_t other; /* rows of the reference's categories beyond the top */
	uint64_t fresh; /* rows of unseen categories that have no name here */
	struct stats_category item[STATS_NAMES];
	uint32_t used;
	char text[STATS_NAMES * STATS_NAME_MAX];
	uint16_t slot[STATS_NAME_SLOTS]; /* index of names by hash: item + 1, or 0 */
	const uint64_t *seen; /* hashes of the other categories, sorted; of the reference only */
	size_t n_seen;
};

/* A value with its number of rows; the input of building may name a value many times. */
struct stats_category_in {
	struct str name;
	uint64_t count;
};

struct stats_categories_args {
	struct stats_category_in *in; /* sorted and summed in place */
	size_t n;
	uint64_t nulls;
	uint64_t *seen; /* room for the hashes of categories beyond the top; NULL when room is 0 */
	size_t seen_room;
};

/* ERR_TOO_LARGE beyond STATS_DISTINCT_MAX categories or when seen_room does not suffice. */
MUST_CHECK int stats_categories_build(
	const struct stats_categories_args *a, struct stats_categories *ret, struct err *e);

/* An empty window on the names of ref. */
void stats_categories_init(struct stats_categories *w, const struct stats_categories *ref);
/* Counts `rows` rows of one value in a window of ref (a bug when it is not one). */
void stats_categories_add(struct stats_categories *w, const struct stats_categories *ref,
	struct str value, uint64_t rows);
void stats_categories_add_nulls(struct stats_categories *w, uint64_t rows);
/* ERR_CONFLICT when they belong to different references. */
MUST_CHECK int stats_categories_merge(
	struct stats_categories *w, const struct stats_categories *other, struct err *e);

struct str stats_category_name(const struct stats_categories *c, uint32_t i);
/* Rows of categories that the reference has not seen. */
uint64_t stats_categories_fresh(const struct stats_categories *w);

/* Counts of both side by side: the reference's names, its `other`, each fresh name, unnamed fresh;
 * cells that are empty on both sides are left out. Returns how many; 0 also when w does not belong
 * to ref. */
size_t stats_categories_cells(const struct stats_categories *ref, const struct stats_categories *w,
	uint64_t ret_ref[STATS_CELLS], uint64_t ret_cur[STATS_CELLS]);

/* Stored form, as in profile.h. A reference's hashes are stored with it; decoding copies them to
 * `seen` and fails with ERR_TOO_LARGE when they do not fit. Encoding fails with 0 when `room` is
 * too small: stats_categories_bytes() says how much is needed. After a failed decoding ret is not
 * to be used. */
size_t stats_categories_bytes(const struct stats_categories *c);
size_t stats_categories_encode(const struct stats_categories *c, uint8_t *out, size_t room);
struct stats_categories_room {
	uint64_t *seen;
	size_t n;
};
MUST_CHECK int stats_categories_decode(const uint8_t *p, size_t n,
	struct stats_categories_room room, struct stats_categories *ret, struct err *e);

#endif
