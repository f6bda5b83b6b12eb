/*
 * Special functions of statistics: normal, chi-square, Student and binomial laws, and the limit law
 * of Kolmogorov. Pure; a NaN or an argument outside the domain gives NaN. Relative errors are below
 * 1e-11 in the ranges that the tests cover.
 *
 * Formulas: M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions": 6.5.29 (series of the
 * lower incomplete gamma function), 6.5.31 (continued fraction of the upper one), 26.5.8 (continued
 * fraction of the incomplete beta function), 26.4.17 (Wilson-Hilferty); continued fractions by the
 * method of W. J. Lentz (Applied Optics 15, 1976). Normal quantile: rational start of P. J. Acklam,
 * then Halley steps. Kolmogorov: W. Feller, Annals of Mathematical Statistics 19, 1948.
 */
#ifndef LIB_STATS_SPECIAL_H
#define LIB_STATS_SPECIAL_H

double special_normal_cdf(double x);
double special_normal_two_sided(double z); /* P(|Z| >= |z|) */
double special_normal_quantile(double p); /* p in [0, 1] */

/* Regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P, a > 0, x >= 0. */
double special_gamma_p(double a, double x);
double special_gamma_q(double a, double x);

double special_chi2_cdf(double x, double dof);
double special_chi2_sf(double x, double dof);
double special_chi2_quantile(double p, double dof); /* p in [0, 1) */

/* P(sup |B| >= t) of the Brownian bridge: 2 sum (-1)^(k-1) exp(-2 k^2 t^2). */
double special_kolmogorov(double t);

#endif
