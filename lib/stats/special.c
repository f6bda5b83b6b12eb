#include "lib/stats/special.h"

#include <math.h>
#include <stdbool.h>

/*
 * Each tail is computed directly, never as one minus the other when it is the smaller one; the
 * quantiles are roots of those functions, found by Newton steps that a bracket keeps safe.
 */
enum { TERMS_MAX = 20000 };

static const double tiny = 1e-300, precision = 1e-16;

double special_normal_cdf(double x)
{
	return 0.5 * erfc(-x / M_SQRT2);
}

double special_normal_two_sided(double z)
{
	return erfc(fabs(z) / M_SQRT2);
}

static double normal_start(double p)
{
	static const double a[] = { -3.969683028665376e+01, 2.209460984245205e+02,
		-2.759285104469687e+02, 1.383577518672690e+02, -3.066479806614716e+01,
		2.506628277459239e+00 };
	static const double b[] = { -5.447609879822406e+01, 1.615858368580409e+02,
		-1.556989798598866e+02, 6.680131188771972e+01, -1.328068155288572e+01 };
	static const double c[] = { -7.784894002430293e-03, -3.223964580411365e-01,
		-2.400758277161838e+00, -2.549732539343734e+00, 4.374664141464968e+00,
		2.938163982698783e+00 };
	static const double d[] = { 7.784695709041462e-03, 3.224671290700398e-01,
		2.445134137142996e+00, 3.754408661907416e+00 };
	double q, r;

	if (p < 0.02425) {
		q = sqrt(-2 * log(p));
		return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
		       ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
	}
	q = p - 0.5;
	r = q * q;
	return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
	       (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

double special_normal_quantile(double p)
{
	double x;

	if (!(p >= 0 && p <= 1))
		return (double)NAN;
	if (p <= 0)
		return -HUGE_VAL;
	if (p >= 1)
		return HUGE_VAL;
	if (p > 0.5)
		return -special_normal_quantile(1 - p);
	x = normal_start(p);
	for (int i = 0; i < 2; i++) {
		double u = (special_normal_cdf(x) - p) * sqrt(2 * M_PI) * exp(x * x / 2);

		x -= u / (1 + x * u / 2);
	}
	return x;
}

static double log_gamma(double a)
{
	int sign;

	return lgamma_r(a, &sign);
}

/* x^a e^-x / Gamma(a) */
static double gamma_front(double a, double x)
{
	return exp(a * log(x) - x - log_gamma(a));
}

static double gamma_series(double a, double x)
{
	double term = 1 / a, sum = term;

	for (int n = 1; n < TERMS_MAX && term > sum * precision; n++) {
		term *= x / (a + n);
		sum += term;
	}
	return sum * gamma_front(a, x);
}

static double gamma_fraction(double a, double x)
{
	double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;

	for (int i = 1; i < TERMS_MAX; i++) {
		double an = -i * (i - a), step;

		b += 2;
		d = an * d + b;
		c = b + an / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < precision * 4)
			break;
	}
	return h * gamma_front(a, x);
}

static bool gamma_domain(double a, double x)
{
	return a > 0 && x >= 0 && isfinite(a);
}

double special_gamma_p(double a, double x)
{
	if (!gamma_domain(a, x))
		return (double)NAN;
	if (x <= 0)
		return 0;
	if (isinf(x))
		return 1;
	return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}

double special_gamma_q(double a, double x)
{
	if (!gamma_domain(a, x))
		return (double)NAN;
	if (x <= 0)
		return 1;
	if (isinf(x))
		return 0;
	return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

double special_chi2_cdf(double x, double dof)
{
	return special_gamma_p(dof / 2, x / 2);
}

double special_chi2_sf(double x, double dof)
{
	return special_gamma_q(dof / 2, x / 2);
}

double special_chi2_quantile(double p, double dof)
{
	double low = 0, high = HUGE_VAL, x, h, z;

	if (!(p >= 0 && p < 1) || !(dof > 0) || isinf(dof))
		return (double)NAN;
	if (p <= 0)
		return 0;
	h = 2 / (9 * dof);
	z = 1 - h + special_normal_quantile(p) * sqrt(h);
	x = z > 0.05 ? dof * z * z * z
		     : 2 * exp((log(p) + log(dof / 2) + log_gamma(dof / 2)) * 2 / dof);
	for (int i = 0; i < 200; i++) {
		double miss =
			p < 0.5 ? special_chi2_cdf(x, dof) - p : (1 - p) - special_chi2_sf(x, dof);
		double slope = gamma_front(dof / 2, x / 2) / x, next;

		if (miss > 0)
			high = x;
		else
			low = x;
		next = slope > 0 ? x - miss / slope : low;
		if (!(next > low && next < high))
			next = isinf(high) ? 2 * x + 1 : (low + high) / 2;
		if (fabs(next - x) <= 4e-16 * x)
			return next;
		x = next;
	}
	return x;
}

double special_kolmogorov(double t)
{
	double sum = 0;

	if (isnan(t))
		return (double)NAN;
	if (t <= 0.02)
		return 1;
	if (t < 1.18) {
		double y = exp(-M_PI * M_PI / (8 * t * t));

		for (int k = 1; k <= 9; k += 2)
			sum += pow(y, k * k);
		return 1 - sqrt(2 * M_PI) / t * sum;
	}
	for (int k = 1; k <= 20; k++)
		sum += (k % 2 == 1 ? 1 : -1) * exp(-2.0 * k * k * t * t);
	return 2 * sum;
}
