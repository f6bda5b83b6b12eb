#include "lib/stats/distance.h"

#include <math.h>
#include <stdbool.h>

/*
 * Everything works on shares that are computed cell by cell; no cell is ever dropped, so that
 * values of windows of different sizes compare.
 */
struct totals {
	double ref, cur;
	bool any; /* both sides have rows */
};

static struct totals totals_of(struct stats_cells c)
{
	struct totals t = { 0, 0, false };

	for (size_t j = 0; j < c.k; j++) {
		t.ref += (double)c.ref[j];
		t.cur += (double)c.cur[j];
	}
	t.any = t.ref > 0 && t.cur > 0;
	return t;
}

size_t stats_cells_used(struct stats_cells c)
{
	size_t used = 0;

	for (size_t j = 0; j < c.k; j++)
		used += c.ref[j] != 0 || c.cur[j] != 0;
	return used;
}

/* What a side's zero shares become, for the kinds that replace zeros. */
static double zero_share(const uint64_t *v, size_t k, double total, struct stats_fill fill)
{
	double smallest = 1;

	if (fill.kind == STATS_FLOOR)
		return fill.amount;
	for (size_t j = 0; j < k; j++)
		if (v[j] != 0 && (double)v[j] / total < smallest)
			smallest = (double)v[j] / total;
	return smallest <= 1e-4 ? smallest / 1e6 : 1e-4;
}

static double filled(uint64_t count, size_t k, double total, struct stats_fill fill, double zero)
{
	if (fill.kind == STATS_ADDITIVE)
		return ((double)count + fill.amount) / (total + fill.amount * (double)k);
	return count == 0 ? zero : (double)count / total;
}

struct filler {
	struct stats_cells c;
	struct totals t;
	struct stats_fill fill;
	double zero_ref, zero_cur;
};

static struct filler filler_of(struct stats_cells c, struct stats_fill fill)
{
	struct filler f = { .c = c, .t = totals_of(c), .fill = fill };

	if (f.t.any && fill.kind != STATS_ADDITIVE) {
		f.zero_ref = zero_share(c.ref, c.k, f.t.ref, fill);
		f.zero_cur = zero_share(c.cur, c.k, f.t.cur, fill);
	}
	return f;
}

static double filled_ref(const struct filler *f, size_t j)
{
	return filled(f->c.ref[j], f->c.k, f->t.ref, f->fill, f->zero_ref);
}

static double filled_cur(const struct filler *f, size_t j)
{
	return filled(f->c.cur[j], f->c.k, f->t.cur, f->fill, f->zero_cur);
}

double stats_psi(struct stats_cells c, struct stats_fill fill)
{
	struct filler f = filler_of(c, fill);
	double sum = 0;

	if (!f.t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++) {
		double p = filled_ref(&f, j), q = filled_cur(&f, j);

		sum += (q - p) * log(q / p);
	}
	return sum;
}

double stats_kl(struct stats_cells c, struct stats_fill fill)
{
	struct filler f = filler_of(c, fill);
	double sum = 0, all_p = 0, all_q = 0;

	if (!f.t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++) {
		all_p += filled_ref(&f, j);
		all_q += filled_cur(&f, j);
	}
	for (size_t j = 0; j < c.k; j++) {
		double p = filled_ref(&f, j) / all_p, q = filled_cur(&f, j) / all_q;

		sum += p * log(p / q);
	}
	return fmax(sum, 0);
}

double stats_kl_strict(struct stats_cells c)
{
	struct totals t = totals_of(c);
	double sum = 0;

	if (!t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++) {
		double p = (double)c.ref[j] / t.ref, q = (double)c.cur[j] / t.cur;

		if (c.cur[j] == 0)
			continue;
		if (c.ref[j] == 0)
			return HUGE_VAL;
		sum += q * log(q / p);
	}
	return fmax(sum, 0);
}

static double entropy_term(double p)
{
	return p > 0 ? -p * log2(p) : 0;
}

double stats_js(struct stats_cells c)
{
	struct totals t = totals_of(c);
	double sum = 0;

	if (!t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++) {
		double p = (double)c.ref[j] / t.ref, q = (double)c.cur[j] / t.cur;

		/* Equal shares add exactly nothing, so that equal samples are exactly 0 apart. */
		if (p < q || p > q)
			sum += entropy_term((p + q) / 2) - (entropy_term(p) + entropy_term(q)) / 2;
	}
	return sqrt(fmin(fmax(sum, 0), 1));
}

double stats_hellinger(struct stats_cells c)
{
	struct totals t = totals_of(c);
	double sum = 0;

	if (!t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++) {
		double d = sqrt((double)c.ref[j] / t.ref) - sqrt((double)c.cur[j] / t.cur);

		sum += d * d;
	}
	return sqrt(sum / 2);
}

double stats_tvd(struct stats_cells c)
{
	struct totals t = totals_of(c);
	double sum = 0;

	if (!t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++)
		sum += fabs((double)c.ref[j] / t.ref - (double)c.cur[j] / t.cur);
	return sum / 2;
}

double stats_l_infinity(struct stats_cells c)
{
	struct totals t = totals_of(c);
	double most = 0;

	if (!t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++)
		most = fmax(most, fabs((double)c.ref[j] / t.ref - (double)c.cur[j] / t.cur));
	return most;
}

double stats_ks_cells(struct stats_cells c)
{
	struct totals t = totals_of(c);
	double ref = 0, cur = 0, most = 0;

	if (!t.any)
		return (double)NAN;
	for (size_t j = 0; j < c.k; j++) {
		ref += (double)c.ref[j];
		cur += (double)c.cur[j];
		most = fmax(most, fabs(ref * t.cur - cur * t.ref));
	}
	return most / t.ref / t.cur;
}

double stats_rows_z(const double *history, size_t n, double current)
{
	double mean = 0, variance = 0;

	if (n == 0)
		return (double)NAN;
	for (size_t i = 0; i < n; i++)
		mean += history[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		variance += (history[i] - mean) * (history[i] - mean) / (double)n;
	return (current - mean) / sqrt(fmax(fmax(variance, mean), 1));
}

/* Insertion by gaps: F features, each window once. */
static void order_by_p(const double *p, size_t n, size_t *order)
{
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t gap = n / 2; gap > 0; gap /= 2)
		for (size_t i = gap; i < n; i++) {
			size_t held = order[i], j = i;

			for (; j >= gap && p[order[j - gap]] > p[held]; j -= gap)
				order[j] = order[j - gap];
			order[j] = held;
		}
}

void stats_adjust_p(const double *p, size_t n, enum stats_adjust how, size_t *order, double *ret)
{
	double best = how == STATS_BH ? 1 : 0;

	order_by_p(p, n, order);
	for (size_t r = 0; r < n; r++) {
		size_t rank = how == STATS_BH ? n - r : r + 1, i = order[rank - 1];
		double v;

		if (how == STATS_BONFERRONI)
			v = p[i] * (double)n;
		else if (how == STATS_HOLM)
			v = best = fmax(best, p[i] * (double)(n - rank + 1));
		else
			v = best = fmin(best, p[i] * ((double)n / (double)rank));
		ret[i] = fmin(v, 1);
	}
}
