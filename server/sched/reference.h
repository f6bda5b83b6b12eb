/*
 * A reference: the profiles of a model version's training data under one monitor's features, and
 * the form in which rows are kept beside it.
 *
 * Stored form: "TMRF", version, number of features, rows; then for each feature its name, its type
 * and the stored form of its profile (lib/stats), little-endian, each with its length.
 *
 * Cells of a row, in the order of a reference's features: a numeric one is eight bytes, a double,
 * NaN when it is missing; a category is two bytes of length and its bytes, CELL_MISSING for none.
 * Numbers that are categories are written in one way ("1" for 1.0 and 01), so that they meet.
 */
#ifndef SERVER_SCHED_REFERENCE_H
#define SERVER_SCHED_REFERENCE_H
#include "api/monitor.h"
#include "lib/base/arena.h"
#include "lib/stats/category.h"
#include "lib/stats/profile.h"

enum { FEATURES_LIMIT = 512, CELL_MAX = 4096, CELL_MISSING = 0xffff };

struct feature {
	struct str name;
	int type; /* enum feature_type */
	const struct stats_profile *profile; /* numeric */
	const struct stats_categories *categories; /* category */
};

struct reference {
	const struct feature *features; /* by name */
	size_t n;
	uint64_t rows;
};

enum { REFERENCE_BYTES_MAX = 64 << 20 };
void reference_encode(const struct reference *r, struct buf *out);
/* ERR_CORRUPT when the bytes are not a reference. Everything lies in the arena. */
int reference_decode(
	struct str bytes, struct arena *a, struct reference *ret, struct err *e) MUST_CHECK;
/* The same without profiles: names and types, which are all that reading cells takes. A window may
 * hold rows of many references. */
int reference_decode_shape(
	struct str bytes, struct arena *a, struct reference *ret, struct err *e) MUST_CHECK;

/* Is the column a feature by the monitor's globs? Columns of the monitor's own never are. */
bool feature_wanted(const struct monitor_spec *spec, struct str column);
/* The type that the spec says, or -1. */
int feature_type_said(const struct monitor_spec *spec, struct str column);

/* A category's text in its one form. room: NUM_DOUBLE_MAX bytes. */
struct str category_text(struct str cell, char *room);
/* Appends a cell; false when it does not fit the type. cell.p NULL: missing. */
bool cell_put(struct buf *b, int type, struct str cell);
/* Cuts the next cell off *cells; false when the bytes are too short. */
struct cell {
	double number;
	struct str text; /* p NULL: missing */
};
bool cell_take(struct str *cells, int type, struct cell *ret);

#endif
