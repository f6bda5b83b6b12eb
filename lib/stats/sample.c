#include "lib/stats/sample.h"

#include "lib/stats/special.h"

#include <math.h>
#include <stdint.h>

double stats_ks(struct stats_samples s)
{
	size_t i = 0, j = 0;
	double most = 0;

	if (s.n == 0 || s.m == 0)
		return (double)NAN;
	while (i < s.n && j < s.m) {
		double v = s.ref[i] < s.cur[j] ? s.ref[i] : s.cur[j], gap;

		while (i < s.n && s.ref[i] <= v)
			i++;
		while (j < s.m && s.cur[j] <= v)
			j++;
		gap = fabs((double)i * (double)s.m - (double)j * (double)s.n);
		most = gap > most ? gap : most;
	}
	return most / ((double)s.n * (double)s.m);
}

/*
 * work[j] holds, for the node (i, j), the share of the paths from (0, 0) to it that have touched
 * the border |i m - j n| >= h: 1 on and beyond the border, and inside it the mean of the two nodes
 * that lead here, weighted by how many of the binomial(i + j, i) paths come from each. No large
 * number appears, and a tiny p is not the difference of two large ones.
 */
double stats_ks_exact_p(size_t n, size_t m, double d, double *work)
{
	double h = nearbyint(d * (double)n * (double)m);

	if (n == 0 || m == 0 || isnan(d) || (double)n * (double)m > STATS_KS_EXACT_MAX)
		return (double)NAN;
	if (h <= 0)
		return 1;
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = 0; j <= m; j++) {
			double at = (double)i * (double)m - (double)j * (double)n, up, left;

			up = i > 0 ? work[j] * (double)i : 0;
			left = j > 0 ? work[j - 1] * (double)j : 0;
			if (fabs(at) >= h)
				work[j] = 1;
			else
				work[j] = i + j == 0 ? 0 : (up + left) / (double)(i + j);
		}
	}
	return work[m];
}

static double stephens_scale(double n, double m)
{
	double root = sqrt(n * m / (n + m));

	return root + 0.12 + 0.11 / root;
}

double stats_ks_limit_p(double n, double m, double d)
{
	return special_kolmogorov(sqrt(n * m / (n + m)) * d);
}

double stats_ks_stephens_p(double n, double m, double d)
{
	return special_kolmogorov(stephens_scale(n, m) * d);
}

double stats_ks_critical(double n, double m, double alpha)
{
	double low = 0, high = 10;

	if (!(n > 0 && m > 0 && alpha > 0 && alpha < 1))
		return (double)NAN;
	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		if (special_kolmogorov(mid) > alpha)
			low = mid;
		else
			high = mid;
	}
	return fmin(high / stephens_scale(n, m), 1);
}

struct stats_transport stats_transport(struct stats_samples s)
{
	struct stats_transport r = { (double)NAN, (double)NAN };
	size_t i = 0, j = 0;
	double area = 0, square = 0;

	if (s.n == 0 || s.m == 0)
		return r;
	while (i < s.n || j < s.m) {
		double v = j >= s.m || (i < s.n && s.ref[i] < s.cur[j]) ? s.ref[i] : s.cur[j];
		double next, gap;

		while (i < s.n && s.ref[i] <= v)
			i++;
		while (j < s.m && s.cur[j] <= v)
			j++;
		if (i >= s.n && j >= s.m)
			break;
		next = j >= s.m || (i < s.n && s.ref[i] < s.cur[j]) ? s.ref[i] : s.cur[j];
		gap = (double)i / (double)s.n - (double)j / (double)s.m;
		area += fabs(gap) * (next - v);
		square += gap * gap * (next - v);
	}
	r.wasserstein = area;
	r.energy = sqrt(2 * square);
	return r;
}

double stats_auc(struct stats_samples s)
{
	size_t below = 0, upto = 0;
	double pairs = 0;

	if (s.n == 0 || s.m == 0)
		return (double)NAN;
	for (size_t j = 0; j < s.m; j++) {
		while (below < s.n && s.ref[below] < s.cur[j])
			below++;
		while (upto < s.n && s.ref[upto] <= s.cur[j])
			upto++;
		pairs += (double)below + (double)(upto - below) / 2;
	}
	return pairs / ((double)s.n * (double)s.m);
}

double stats_mean(const double *v, size_t n)
{
	double sum = 0, mean;

	if (n == 0)
		return (double)NAN;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	mean = sum / (double)n;
	sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i] - mean;
	return mean + sum / (double)n;
}

double stats_deviation(const double *v, size_t n)
{
	double mean = stats_mean(v, n), sum = 0;

	if (n == 0)
		return (double)NAN;
	for (size_t i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return sqrt(sum / (double)n);
}
