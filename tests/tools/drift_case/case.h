/* What the cases share: samples as a case gives them, and results as it wants them. */
#ifndef TESTS_TOOLS_DRIFT_CASE_CASE_H
#define TESTS_TOOLS_DRIFT_CASE_CASE_H
#include "lib/stats/metric.h"
#include "lib/stats/sample.h"

#include <jansson.h>

struct column {
	double *v; /* without nulls */
	size_t n, nulls;
};

struct test_case {
	const json_t *params, *ref, *cur;
	json_t *r;
};

/* Ends the program. */
void die(const char *what);
void *need(size_t n, size_t size);

double number(const json_t *o, const char *key, double otherwise);
struct column column_of(const json_t *o);

json_t *real(double v);
void put(json_t *r, const char *key, double v);
void put_int(json_t *r, const char *key, uint64_t v);
void put_counts(json_t *r, const char *key, const uint64_t *v, size_t n);
void put_reals(json_t *r, const char *key, const double *v, size_t n);

struct stats_profile *profile_of(const struct column *c, uint32_t bins);
struct stats_counts *window_counts(const struct stats_profile *p, const struct column *c);
/* The finite values, sorted. */
struct column sorted_of(const struct column *c);
struct stats_samples samples_of(const struct column *a, const struct column *b);
struct stats_options options(void);
double exact_p(struct stats_samples s, double d);

/* Each computes one case; the return value says why it was skipped, or is NULL. */
const char *psi_numeric(struct test_case *t);
const char *psi_counts(struct test_case *t);
const char *psi_evidently(struct test_case *t);
const char *categorical_distances(struct test_case *t);
const char *ks_2samp(struct test_case *t);
const char *wasserstein(struct test_case *t);
const char *wasserstein_binned(struct test_case *t);
const char *chi2_categorical(struct test_case *t);
const char *two_by_two(struct test_case *t);
const char *type_rules(struct test_case *t);
const char *domain_auc(struct test_case *t);
const char *quality(struct test_case *t);
const char *constant_columns(struct test_case *t);
const char *status_rules(struct test_case *t);
const char *multiple_testing(struct test_case *t);
const char *trigger_policy(struct test_case *t);

#endif
