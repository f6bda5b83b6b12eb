/* Numbers as other tools give them, for people who move over from them; never a verdict here. */
#ifndef LIB_STATS_COMPAT_H
#define LIB_STATS_COMPAT_H
#include "lib/stats/sample.h"

enum { COMPAT_BINS_MAX = 64 };

/* PSI of Evidently 0.7 for a numeric column: equal-width bins over the pooled sample, as many as
 * Sturges' rule of numpy gives, and its fill of empty shares. Both samples sorted. NaN when a side
 * is empty. */
struct compat_psi {
	double statistic, first_edge, last_edge;
	size_t bins;
};
struct compat_psi compat_psi_evidently(struct stats_samples s);

#endif
