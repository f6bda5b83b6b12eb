#include "lib/stats/metric.h"

#include "lib/stats/sample.h"
#include "lib/stats/special.h"

#include <math.h>

static const char *const status_names[STATS_STATUS_COUNT] = { "ok", "no_data", "insufficient",
	"all_missing", "constant", "type_changed" };

static const char *const metric_names[STATS_METRIC_COUNT] = {
#define X(name, code) code,
	STATS_METRICS(X)
#undef X
};

static const double deviation_floor = 0.001, rate_step = 0.02;

const char *stats_status_name(enum stats_status s)
{
	return s < STATS_STATUS_COUNT ? status_names[s] : "unknown";
}

const char *stats_metric_name(enum stats_metric_kind k)
{
	return k < STATS_METRIC_COUNT ? metric_names[k] : "unknown";
}

static void compare_init(struct stats_compare *c)
{
	struct stats_metric none = { (double)NAN, (double)NAN, (double)NAN };

	memset(c, 0, sizeof(*c));
	c->psi_null = c->ks_bound = c->wasserstein = c->ref_missing_rate = (double)NAN;
	for (int k = 0; k < STATS_METRIC_COUNT; k++)
		c->metric[k] = none;
}

void stats_compare_type_changed(struct stats_compare *ret)
{
	compare_init(ret);
	ret->status = STATS_TYPE_CHANGED;
}

static enum stats_status status_of(
	const struct stats_compare *c, uint64_t missing, const struct stats_options *o)
{
	if (c->rows_cur == 0)
		return STATS_NO_DATA;
	if (missing == c->rows_cur)
		return STATS_ALL_MISSING;
	if (c->n_cur == 0 || c->n_ref == 0 || c->n_cur < o->min_cur || c->n_ref < o->min_ref)
		return STATS_INSUFFICIENT;
	return STATS_OK;
}

/* What the noise of these sample sizes does to sums of squared differences of shares. */
struct noise {
	double scale, dof, level; /* scale (1/n + 1/m), level: chi-square at alpha / tests */
};

static double alpha_of(const struct stats_options *o)
{
	return o->tests > 1 ? o->alpha / o->tests : o->alpha;
}

static struct noise noise_of(
	const struct stats_compare *c, size_t used, const struct stats_options *o)
{
	struct noise z = { 1 / (double)c->n_ref + 1 / (double)c->n_cur, (double)used - 1, 0 };

	if (o->design_effect > 1)
		z.scale *= o->design_effect;
	if (z.dof > 0)
		z.level = special_chi2_quantile(1 - alpha_of(o), z.dof);
	return z;
}

/* A metric whose `square` is factor x scale x chi-square in the limit. */
static double chi2_p(struct noise z, double square, double factor)
{
	return z.dof > 0 ? special_chi2_sf(square / (factor * z.scale), z.dof) : 1;
}

static struct stats_metric plain(double value)
{
	return (struct stats_metric){ value, (double)NAN, (double)NAN };
}

static void compare_cells(
	struct stats_compare *c, struct stats_cells cells, const struct stats_options *o)
{
	struct noise z = noise_of(c, stats_cells_used(cells), o);
	double psi = stats_psi(cells, o->fill), js = stats_js(cells), hellinger;
	double kl = stats_kl(cells, o->fill), eighth = z.level * z.scale / 8;

	hellinger = stats_hellinger(cells);
	c->psi_null = z.dof * z.scale;
	c->metric[STATS_METRIC_PSI] =
		(struct stats_metric){ psi, z.level * z.scale, chi2_p(z, psi, 1) };
	c->metric[STATS_METRIC_KL] =
		(struct stats_metric){ kl, z.level * z.scale / 2, chi2_p(z, kl, 0.5) };
	c->metric[STATS_METRIC_JS] = (struct stats_metric){ js, fmin(sqrt(eighth / M_LN2), 1),
		chi2_p(z, js * js * M_LN2, 0.125) };
	c->metric[STATS_METRIC_HELLINGER] = (struct stats_metric){ hellinger, fmin(sqrt(eighth), 1),
		chi2_p(z, hellinger * hellinger, 0.125) };
	c->metric[STATS_METRIC_TVD] = plain(stats_tvd(cells));
	c->metric[STATS_METRIC_L_INFINITY] = plain(stats_l_infinity(cells));
}

static struct stats_metric rate_metric(struct stats_share ref, struct stats_share cur)
{
	struct stats_test t = stats_two_shares(ref, cur);

	if (cur.rows == 0)
		return plain((double)NAN);
	return (struct stats_metric){ (double)cur.hits / (double)cur.rows, (double)NAN, t.p };
}

double stats_wasserstein(const struct stats_profile *ref, const struct stats_counts *cur)
{
	const struct stats_counts *r = &ref->ref;
	double n = (double)r->finite, m = (double)cur->finite, f = 0, g = 0, sum = 0;

	if (r->finite == 0 || cur->finite == 0 || cur->edges_id != ref->edges_id)
		return (double)NAN;
	/* Sums are taken about the shift, where they are small, and so are the edges. */
	for (uint32_t j = 0; j < ref->bins; j++) {
		double count_f = (double)r->count[j], count_g = (double)cur->count[j];
		double next_f = f + count_f / n, next_g = g + count_g / m, area;
		double sums = (cur->sum[j] - count_g * ref->shift) / m -
			      (r->sum[j] - count_f * ref->shift) / n;

		area = sums;
		if (j + 1 < ref->bins)
			area += (ref->edge[j] - ref->shift) * (next_f - next_g);
		if (j > 0)
			area -= (ref->edge[j - 1] - ref->shift) * (f - g);
		sum += fabs(area);
		f = next_f;
		g = next_g;
	}
	return sum;
}

static void compare_order(struct stats_compare *c, const struct stats_profile *ref,
	const struct stats_counts *cur, const struct stats_options *o)
{
	struct stats_cells fine = { ref->ref.count, cur->count, ref->bins };
	double n = (double)c->n_ref, m = (double)c->n_cur, ks = stats_ks_cells(fine);
	double effect = o->design_effect > 1 ? o->design_effect : 1;
	double part = 0;

	for (uint32_t j = 0; j < ref->bins; j++)
		part = fmax(part, fmin((double)ref->ref.count[j] / n, (double)cur->count[j] / m));
	c->ks_bound = part;
	c->metric[STATS_METRIC_KS] =
		(struct stats_metric){ ks, stats_ks_critical(n / effect, m / effect, alpha_of(o)),
			stats_ks_stephens_p(n / effect, m / effect, ks) };
}

/* Normed distance and mean shift: in units of the reference's deviation. */
static void compare_scale(struct stats_compare *c, const struct stats_profile *ref,
	const struct stats_counts *cur, const struct stats_options *o)
{
	struct stats_moments a = stats_counts_moments(ref, &ref->ref);
	struct stats_moments b = stats_counts_moments(ref, cur);
	double unit = fmax(sqrt(a.variance), deviation_floor), shift = (b.mean - a.mean) / unit;
	double effect = o->design_effect > 1 ? o->design_effect : 1;
	double error =
		sqrt(effect * (a.variance / (double)c->n_ref + b.variance / (double)c->n_cur)) /
		unit;
	double level = special_normal_quantile(1 - alpha_of(o) / 2);

	c->zero_variance = !(a.variance > 0);
	c->wasserstein = stats_wasserstein(ref, cur);
	c->metric[STATS_METRIC_WASSERSTEIN] = plain(c->wasserstein / unit);
	c->metric[STATS_METRIC_MEAN_SHIFT] = (struct stats_metric){ fabs(shift), level * error,
		error > 0 ? special_normal_two_sided(shift / error) : (shift != 0 ? 0 : 1) };
}

void stats_compare_numeric(const struct stats_profile *ref, const struct stats_counts *cur,
	const struct stats_options *o, struct stats_compare *ret)
{
	uint64_t group_ref[STATS_GROUPS], group_cur[STATS_GROUPS];
	struct stats_cells deciles = { group_ref, group_cur, ref->groups };

	compare_init(ret);
	if (cur->edges_id != ref->edges_id) {
		ret->status = STATS_TYPE_CHANGED;
		return;
	}
	ret->n_ref = ref->ref.finite;
	ret->n_cur = cur->finite;
	ret->rows_ref = stats_counts_rows(&ref->ref);
	ret->rows_cur = stats_counts_rows(cur);
	ret->status = status_of(ret, stats_counts_missing(cur), o);
	if (ret->rows_ref > 0)
		ret->ref_missing_rate =
			(double)stats_counts_missing(&ref->ref) / (double)ret->rows_ref;
	ret->metric[STATS_METRIC_MISSING_RATE] =
		rate_metric((struct stats_share){ stats_counts_missing(&ref->ref), ret->rows_ref },
			(struct stats_share){ stats_counts_missing(cur), ret->rows_cur });
	ret->metric[STATS_METRIC_OUT_OF_RANGE_RATE] =
		rate_metric((struct stats_share){ 0, ret->n_ref },
			(struct stats_share){ cur->below + cur->above, ret->n_cur });
	if (ret->n_ref == 0 || ret->n_cur == 0)
		return;
	if (ret->status == STATS_OK && ref->ref.min >= ref->ref.max)
		ret->status = STATS_CONSTANT;
	stats_counts_groups(ref, &ref->ref, group_ref);
	stats_counts_groups(ref, cur, group_cur);
	compare_cells(ret, deciles, o);
	compare_order(ret, ref, cur, o);
	compare_scale(ret, ref, cur, o);
}

void stats_compare_categories(const struct stats_categories *ref,
	const struct stats_categories *cur, const struct stats_options *o,
	struct stats_compare *ret)
{
	uint64_t cell_ref[STATS_CELLS], cell_cur[STATS_CELLS];
	struct stats_cells cells = { cell_ref, cell_cur, 0 };
	struct stats_test chi2;

	compare_init(ret);
	if (cur->names_id != ref->names_id || cur->known != ref->known) {
		ret->status = STATS_TYPE_CHANGED;
		return;
	}
	ret->n_ref = ref->rows - ref->nulls;
	ret->n_cur = cur->rows - cur->nulls;
	ret->rows_ref = ref->rows;
	ret->rows_cur = cur->rows;
	ret->status = status_of(ret, cur->nulls, o);
	if (ref->rows > 0)
		ret->ref_missing_rate = (double)ref->nulls / (double)ref->rows;
	ret->metric[STATS_METRIC_MISSING_RATE] =
		rate_metric((struct stats_share){ ref->nulls, ref->rows },
			(struct stats_share){ cur->nulls, cur->rows });
	ret->metric[STATS_METRIC_NEW_CATEGORY_RATE] =
		rate_metric((struct stats_share){ 0, ret->n_ref },
			(struct stats_share){ stats_categories_fresh(cur), ret->n_cur });
	if (ret->n_ref == 0 || ret->n_cur == 0)
		return;
	if (ret->status == STATS_OK && ref->n == 1)
		ret->status = STATS_CONSTANT;
	cells.k = stats_categories_cells(ref, cur, cell_ref, cell_cur);
	compare_cells(ret, cells, o);
	chi2 = stats_chi2(cells);
	ret->metric[STATS_METRIC_CHI2] = (struct stats_metric){ chi2.statistic,
		chi2.dof > 0 ? special_chi2_quantile(1 - alpha_of(o), chi2.dof) : 0, chi2.p };
}

static bool is_rate(enum stats_metric_kind k)
{
	return k == STATS_METRIC_MISSING_RATE || k == STATS_METRIC_OUT_OF_RANGE_RATE ||
	       k == STATS_METRIC_NEW_CATEGORY_RATE;
}

bool stats_drifted(const struct stats_compare *c, enum stats_metric_kind k, double threshold,
	const struct stats_options *o)
{
	const struct stats_metric *m = &c->metric[k];

	if (is_rate(k)) {
		double base = k == STATS_METRIC_MISSING_RATE ? c->ref_missing_rate : 0;

		return fabs(m->value - base) >= fmax(threshold, rate_step) && m->p < alpha_of(o);
	}
	if (c->status != STATS_OK && c->status != STATS_CONSTANT)
		return false;
	return m->value >= threshold && !(m->value < m->critical);
}
