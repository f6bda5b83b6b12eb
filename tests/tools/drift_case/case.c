#include "tests/tools/drift_case/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void die(const char *what)
{
	fprintf(stderr, "drift_case: %s\n", what);
	exit(2);
}

void *need(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (p == NULL)
		die("out of memory");
	return p;
}

/* ---- generators -------------------------------------------------------------------------- */
struct lcg {
	uint64_t s;
};

static double next_u(struct lcg *g)
{
	g->s = g->s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(g->s >> 11) * 0x1p-53;
}

double number(const json_t *o, const char *key, double otherwise)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : otherwise;
}

static double generate(struct lcg *g, const char *dist, const json_t *o)
{
	if (strcmp(dist, "ih12") == 0) {
		double sum = 0;

		for (int i = 0; i < 12; i++)
			sum += next_u(g);
		return number(o, "mean", 0) + number(o, "sd", 1) * (sum - 6);
	}
	if (strcmp(dist, "uniform") == 0) {
		double a = number(o, "a", 0), b = number(o, "b", 1);

		return a + (b - a) * next_u(g);
	}
	if (strcmp(dist, "pareto1") == 0)
		return number(o, "scale", 1) / (1 - next_u(g));
	if (strcmp(dist, "int") == 0)
		return floor(next_u(g) * number(o, "k", 1)) + number(o, "offset", 0);
	if (strcmp(dist, "zero_inflated") == 0) {
		double a = next_u(g), b = next_u(g);

		return a < number(o, "p0", 0) ? 0 : b * number(o, "scale", 1);
	}
	if (strcmp(dist, "bernoulli") == 0)
		return next_u(g) < number(o, "p", 0.5) ? 1 : 0;
	die("unknown generator");
	return 0;
}

static void append_generated(struct column *c, const json_t *o)
{
	struct lcg g = { (uint64_t)json_integer_value(json_object_get(o, "seed")) };
	size_t n = (size_t)json_integer_value(json_object_get(o, "n"));
	double *all = need(c->n + n, sizeof(double));

	memcpy(all, c->v, c->n * sizeof(double));
	for (size_t i = 0; i < n; i++)
		all[c->n + i] = generate(&g, json_string_value(json_object_get(o, "dist")), o);
	free(c->v);
	c->v = all;
	c->n += n;
}

static double special_number(const json_t *v)
{
	const char *s = json_string_value(v);

	if (json_is_number(v))
		return json_number_value(v);
	if (s != NULL && strcmp(s, "NaN") == 0)
		return (double)NAN;
	if (s != NULL && strcmp(s, "Infinity") == 0)
		return HUGE_VAL;
	if (s != NULL && strcmp(s, "-Infinity") == 0)
		return -HUGE_VAL;
	die("not a number");
	return 0;
}

struct column column_of(const json_t *o)
{
	struct column c = { need(0, sizeof(double)), 0, 0 };
	const json_t *v;
	size_t i;

	if (json_is_object(o) && json_object_get(o, "concat") != NULL) {
		json_array_foreach (json_object_get(o, "concat"), i, v)
			append_generated(&c, v);
		return c;
	}
	if (json_is_object(o)) {
		append_generated(&c, o);
		return c;
	}
	free(c.v);
	c.v = need(json_array_size(o), sizeof(double));
	json_array_foreach (o, i, v) {
		if (json_is_null(v))
			c.nulls++;
		else
			c.v[c.n++] = special_number(v);
	}
	return c;
}

/* ---- helpers ----------------------------------------------------------------------------- */
json_t *real(double v)
{
	if (isnan(v))
		return json_string("NaN");
	if (isinf(v))
		return json_string(v > 0 ? "Infinity" : "-Infinity");
	return json_real(v);
}

void put(json_t *r, const char *key, double v)
{
	json_object_set_new(r, key, real(v));
}

void put_int(json_t *r, const char *key, uint64_t v)
{
	json_object_set_new(r, key, json_integer((json_int_t)v));
}

void put_counts(json_t *r, const char *key, const uint64_t *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_integer((json_int_t)v[i]));
	json_object_set_new(r, key, a);
}

void put_reals(json_t *r, const char *key, const double *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, real(v[i]));
	json_object_set_new(r, key, a);
}

struct stats_profile *profile_of(const struct column *c, uint32_t bins)
{
	struct stats_profile *p = need(1, sizeof(*p));
	double *work = need(2 * c->n, sizeof(double));
	struct err e;

	if (stats_profile_build(
		    &(struct stats_profile_args){ c->v, c->n, c->nulls, bins, work }, p, &e) != 0)
		die(e.msg);
	free(work);
	return p;
}

struct stats_counts *window_counts(const struct stats_profile *p, const struct column *c)
{
	struct stats_counts *w = need(1, sizeof(*w));

	stats_counts_init(w, p);
	stats_counts_add(w, p, c->v, c->n);
	stats_counts_add_nulls(w, c->nulls);
	return w;
}

struct column sorted_of(const struct column *c)
{
	struct column s = { need(c->n, sizeof(double)), 0, 0 };
	double *work = need(c->n, sizeof(double));

	for (size_t i = 0; i < c->n; i++)
		if (isfinite(c->v[i]))
			s.v[s.n++] = c->v[i];
	stats_sort(s.v, s.n, work);
	free(work);
	return s;
}

struct stats_samples samples_of(const struct column *a, const struct column *b)
{
	return (struct stats_samples){ a->v, a->n, b->v, b->n };
}

struct stats_options options(void)
{
	struct stats_options o = STATS_OPTIONS_DEFAULT;

	o.min_ref = o.min_cur = 1;
	o.alpha = 0.05;
	return o;
}

double exact_p(struct stats_samples s, double d)
{
	double *work = need(s.m + 1, sizeof(double)), p = stats_ks_exact_p(s.n, s.m, d, work);

	free(work);
	return p;
}
