/*
 * Profile of a numeric column: frozen bins, exact counts, sums and moments. A reference fixes the
 * edges (at most 240 bins of equal mass); every later window is counted on the same edges, so that
 * windows merge by plain addition and nothing depends on how the rows were split or ordered, save
 * the last bits of sums.
 *
 * A value is exactly one of null, NaN, +Inf, -Inf, finite. Infinities are counted apart and enter
 * no bin, no sum, no moment; missing is null or NaN.
 *
 * Edges: the type-7 quantile (R. Hyndman, Y. Fan, "Sample Quantiles in Statistical Packages",
 * The American Statistician 50, 1996) of the sorted finite reference s at k of B: position
 * (n-1)k = i B + f in integers, s[i] + f/B (s[i+1] - s[i]). Equal neighbours collapse. A value that
 * is the quantile for two or more k (an atom) gets its own bin by the edges nextafter(v, -Inf) and
 * v. Bin j holds edge[j-1] < x <= edge[j]; the first and the last bin are open. Flush-to-zero and
 * -ffast-math would break atoms at zero.
 *
 * Pure: no allocation, no I/O. Structs are plain values of some kilobytes, owned by the caller.
 */
#ifndef LIB_STATS_PROFILE_H
#define LIB_STATS_PROFILE_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STATS_BINS = 240,
	STATS_GROUPS = 10, /* deciles, for PSI and its kin */
	STATS_SEARCH = 256, /* edges padded with +Inf, for the search */
};

/* Rows of one sample on the edges of one profile. */
struct stats_counts {
	uint32_t edges_id; /* of the profile that it belongs to */
	uint32_t bins;
	uint64_t nulls, nans, pos_inf, neg_inf;
	uint64_t finite;
	uint64_t below, above; /* finite values outside the reference's range */
	double min, max; /* of the finite values; +Inf and -Inf when there are none */
	double moment[4]; /* sums of (x - shift)^1..4 */
	uint64_t count[STATS_BINS];
	double sum[STATS_BINS];
};

struct stats_profile {
	uint32_t edges_id; /* checksum of the edges: counts of other edges are refused */
	uint32_t bins, groups;
	double edge[STATS_SEARCH]; /* bins - 1 of them, then +Inf */
	uint8_t group[STATS_BINS]; /* decile that a bin belongs to */
	double shift; /* the reference's mean */
	struct stats_counts ref;
};

struct stats_profile_args {
	const double *values; /* NaN and infinities allowed */
	size_t n; /* below 2^32 */
	uint64_t nulls; /* rows without a value, not in `values` */
	uint32_t bins; /* a multiple of 10 up to STATS_BINS; 0 is STATS_BINS */
	double *work; /* 2 n values, for the caller to free */
};

/* Interior edges of `bins` bins by the rule above, ascending and distinct: at most bins - 1.
 * `sorted` is finite and ascending. Returns how many. */
size_t stats_edges(const double *sorted, size_t n, uint32_t bins, double ret_edge[STATS_BINS]);

/* Sorts n finite values (radix, linear) with a work array of n. -0.0 becomes 0.0. */
void stats_sort(double *values, size_t n, double *work);

/* Fails with ERR_INVALID when bins is not allowed or n is too large. A column without finite
 * values is no error: it has one bin. */
MUST_CHECK int stats_profile_build(
	const struct stats_profile_args *a, struct stats_profile *ret, struct err *e);

/* An empty window on the edges of p. */
void stats_counts_init(struct stats_counts *c, const struct stats_profile *p);
/* Counts n values; c must belong to p (a bug otherwise). */
void stats_counts_add(
	struct stats_counts *c, const struct stats_profile *p, const double *values, size_t n);
void stats_counts_add_nulls(struct stats_counts *c, uint64_t n);
/* Adds `other` to c. ERR_CONFLICT when their edges differ. */
MUST_CHECK int stats_counts_merge(
	struct stats_counts *c, const struct stats_counts *other, struct err *e);

uint64_t stats_counts_rows(const struct stats_counts *c);
uint64_t stats_counts_missing(const struct stats_counts *c);
/* Counts by decile group; returns the number of groups. */
uint32_t stats_counts_groups(const struct stats_profile *p, const struct stats_counts *c,
	uint64_t ret_group[STATS_GROUPS]);

/* Population moments; NaN where they do not exist (no values; no variance; overflow). */
struct stats_moments {
	double mean, variance, skewness, kurtosis; /* kurtosis of the normal law is 3 */
};
struct stats_moments stats_counts_moments(
	const struct stats_profile *p, const struct stats_counts *c);
/* Type-7-like quantile, interpolated inside its bin; for display only. NaN without values. */
double stats_counts_quantile(const struct stats_profile *p, const struct stats_counts *c, double q);

/*
 * Stored form: little-endian, versioned, ended by a CRC-32C; the same value always gives the same
 * bytes. Decoding refuses (ERR_CORRUPT) every other length, version, checksum and any content that
 * building could not have made, and leaves ret untouched then.
 */
enum { STATS_PROFILE_BYTES_MAX = 6400, STATS_COUNTS_BYTES_MAX = 4000 };
/* Bytes written into out, which has room for the MAX. */
size_t stats_profile_encode(const struct stats_profile *p, uint8_t out[STATS_PROFILE_BYTES_MAX]);
MUST_CHECK int stats_profile_decode(
	const uint8_t *p, size_t n, struct stats_profile *ret, struct err *e);
size_t stats_counts_encode(const struct stats_counts *c, uint8_t out[STATS_COUNTS_BYTES_MAX]);
MUST_CHECK int stats_counts_decode(
	const uint8_t *p, size_t n, struct stats_counts *ret, struct err *e);

#endif
