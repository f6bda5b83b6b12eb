/*
 * Values per second and core of all binned drift metrics together, over 20 columns of 1,000,000
 * float64 (a mix of shapes, 1 % NaN in some), beside one read of the same memory. CPU time of the
 * thread, median of the rounds. Prints JSON lines: {name, value, unit, floor, ratio, goal, ok}.
 */
#include "lib/stats/bootstrap.h"
#include "lib/stats/metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COLUMNS = 20, ROWS = 1000000, ROUNDS = 7 };
static const double goal = 75;

/* Results go here, so that no work can be left out. */
static volatile double keep;

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double *values(size_t n)
{
	double *p = malloc(n * sizeof(*p));

	if (p == NULL)
		exit(2);
	return p;
}

static void fill(double *v, int shape, double scale, struct stats_random *r)
{
	for (size_t i = 0; i < ROWS; i++) {
		double u = 0x1p-53 * (double)(stats_random_next(r) >> 11), w = 0;

		for (int k = 0; k < 4; k++)
			w += 0x1p-53 * (double)(stats_random_next(r) >> 11) - 0.5;
		if (shape == 0) /* bell */
			v[i] = w * scale;
		else if (shape == 1) /* heavy tail */
			v[i] = scale / (1 - u);
		else if (shape == 2) /* many zeros */
			v[i] = u < 0.5 ? 0 : w * scale;
		else /* holes */
			v[i] = u < 0.01 ? (double)NAN : exp(w) * scale;
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double v[ROUNDS])
{
	qsort(v, ROUNDS, sizeof(*v), ascending);
	return v[ROUNDS / 2];
}

static double read_all(const double *v)
{
	double lane[16] = { 0 }, sum = 0;

	for (size_t i = 0; i < (size_t)COLUMNS * ROWS; i += 16)
		for (size_t l = 0; l < 16; l++)
			lane[l] += v[i + l];
	for (size_t l = 0; l < 16; l++)
		sum += lane[l];
	return sum;
}

static double judge_all(const struct stats_profile *p, const double *v)
{
	static struct stats_counts window;
	struct stats_options o = STATS_OPTIONS_DEFAULT;
	struct stats_compare c;
	double sum = 0;

	for (int k = 0; k < COLUMNS; k++) {
		stats_counts_init(&window, &p[k]);
		stats_counts_add(&window, &p[k], v + (size_t)k * ROWS, ROWS);
		stats_compare_numeric(&p[k], &window, &o, &c);
		sum += c.metric[STATS_METRIC_PSI].value + c.metric[STATS_METRIC_KS].value;
	}
	return sum;
}

int main(void)
{
	double *v = values((size_t)COLUMNS * ROWS), *ref = values(ROWS), *work = values(2 * ROWS);
	struct stats_profile *p = calloc(COLUMNS, sizeof(*p));
	double ours[ROUNDS], floor_rate[ROUNDS], rate, most;
	struct stats_random r;
	struct err e;

	if (p == NULL)
		return 2;
	stats_random_seed(&r, 1);
	for (int k = 0; k < COLUMNS; k++) {
		struct stats_profile_args a = { ref, ROWS, 0, 0, work };

		fill(ref, k % 4, 1, &r);
		fill(v + (size_t)k * ROWS, k % 4, 1.1, &r);
		if (stats_profile_build(&a, &p[k], &e) != 0)
			return 2;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double start = cpu_now();

		keep = read_all(v);
		floor_rate[i] = COLUMNS * (double)ROWS / 1e6 / (cpu_now() - start);
		start = cpu_now();
		keep = judge_all(p, v);
		ours[i] = COLUMNS * (double)ROWS / 1e6 / (cpu_now() - start);
	}
	rate = median(ours);
	most = median(floor_rate);
	printf("{\"name\": \"drift.values_m_per_s_core\", \"value\": %.1f, \"unit\": \"M "
	       "values/s\", "
	       "\"floor\": %.1f, \"ratio\": %.3f, \"goal\": %.0f, \"ok\": %s}\n",
		rate, most, rate / most, goal, rate >= goal ? "true" : "false");
	free(v);
	free(ref);
	free(work);
	free(p);
	return 0;
}
