/*
 * The evaluation gate: is a challenger good enough to take the champion's place? A pure function of
 * the held-out rows that both have scored and the rules of the pipeline's file. Every rule makes
 * one item with its numbers, its verdict and a sentence; without a champion the comparing items are
 * skipped. The challenger is promoted when no item fails.
 *
 * The comparison has two items. `better`: its metric on these rows is better than the champion's (a
 * tie keeps the champion; passed when the champion itself breaks a requirement). `test`: by a
 * paired bootstrap it is not worse than the margin, with confidence 1 - alpha: the lower end of the
 * interval of the improvement lies above -margin.
 */
#ifndef SERVER_CORE_GATE_H
#define SERVER_CORE_GATE_H
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/stats/perf.h"

enum {
	GATE_REQUIREMENTS_MAX = 16,
	GATE_COLUMNS_MAX = 8, /* slice columns */
	GATE_SLICES_MAX = 64, /* values of one column */
	GATE_ITEMS_MAX = 96,
	GATE_SENTENCE_MAX = 320,
	GATE_NAME_MAX = 96,
	GATE_REASON_MAX = 2048,
};

/* In the metric's units, or a share of the champion's value when `relative`. */
struct gate_amount {
	double value;
	bool relative;
};
/* "0.05" or "2%"; not negative. */
bool gate_amount_parse(struct str s, struct gate_amount *ret);

struct gate_requirement {
	enum stats_score metric;
	double min, max; /* NaN: none */
};

struct gate_rules {
	enum stats_score metric;
	struct gate_requirement require[GATE_REQUIREMENTS_MAX];
	size_t n_require;
	bool compare; /* with the champion, when there is one */
	bool test; /* by a paired bootstrap: mae, mse, rmse, accuracy, brier, log_loss */
	uint32_t draws;
	uint64_t seed; /* the same seed and rows give the same numbers */
	struct gate_amount margin;
	double alpha;
	uint64_t min_rows;
	struct gate_amount slice_regression; /* the most that a slice may be worse by */
	uint64_t slice_min_rows; /* smaller slices are skipped */
	uint32_t approvals; /* people who must agree */
};

/* A slice column: each row's value as an index into its values. */
struct gate_column {
	struct str name;
	const struct str *values;
	size_t n_values; /* up to GATE_SLICES_MAX */
	const uint32_t *code; /* of each row */
};

/* The same row of all arrays is the same row of the data. */
struct gate_rows {
	size_t n;
	const double *truth;
	const double *challenger;
	const double *champion; /* NULL: there is none */
	const double *challenger_score, *champion_score; /* chance of class 1; NULL: none */
	uint64_t unpaired; /* rows that only one of the two has scored, not in the arrays */
	const struct gate_column *columns;
	size_t n_columns;
};

enum gate_kind {
	GATE_ROWS, /* enough rows, each scored by both */
	GATE_REQUIRE,
	GATE_BETTER,
	GATE_TESTED,
	GATE_SLICE,
	GATE_APPROVAL,
	GATE_KINDS
};
const char *gate_kind_name(enum gate_kind k); /* "rows", "require", "better", "test", ... */

enum gate_verdict { GATE_PASS, GATE_FAIL, GATE_SKIPPED, GATE_VERDICTS };
const char *gate_verdict_name(enum gate_verdict v); /* "pass", "fail", "skipped" */

enum gate_outcome { GATE_PROMOTED, GATE_REFUSED, GATE_NEEDS_APPROVAL, GATE_OUTCOMES };
const char *gate_outcome_name(enum gate_outcome o); /* "promoted", "refused", "needs_approval" */

struct gate_item {
	enum gate_kind kind;
	enum gate_verdict verdict;
	char name[GATE_NAME_MAX]; /* "mae max", "weekend=1" */
	double value, limit; /* NaN: none */
	double low, high; /* interval of the improvement, of `test` only */
	uint64_t rows;
	char sentence[GATE_SENTENCE_MAX];
};

struct gate_result {
	enum gate_outcome outcome;
	char reason[GATE_REASON_MAX];
	bool has_champion;
	double champion, challenger; /* the metric on all rows; champion NaN when there is none */
	uint64_t rows;
	size_t n_items;
	struct gate_item item[GATE_ITEMS_MAX];
};

/* Bytes of work memory that gate_apply needs, aligned for doubles. */
size_t gate_work_size(size_t rows, uint32_t draws);

/* ERR_INVALID with the pointer of the rule that cannot be applied ("/metric", "/test/draws",
 * "/slices/by/0"). Takes time in proportion to draws x rows: not on the loop. */
MUST_CHECK int gate_apply(const struct gate_rules *g, const struct gate_rows *rows, void *work,
	struct gate_result *ret, struct err *e);

#endif
