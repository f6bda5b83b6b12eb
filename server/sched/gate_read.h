/*
 * The gate on a run's predictions: a CSV (or NDJSON) file with row_id, model (challenger or
 * champion), y_true, y_pred, optionally y_score, and the slice columns. The rows of the two models
 * are paired by row_id. Reads a blob: belongs on a work thread. Memory: some 150 bytes a row, up to
 * GATE_ROWS_MAX.
 */
#ifndef SERVER_SCHED_GATE_READ_H
#define SERVER_SCHED_GATE_READ_H
#include "api/pipeline.h"
#include "lib/base/arena.h"
#include "server/blob/blob.h"
#include "server/core/gate.h"

enum { GATE_ROWS_MAX = 2000000 };

struct gate_source {
	struct blobs *blobs;
	struct str path; /* its ending says the format: .csv, .ndjson, .jsonl, each with .gz */
	struct blob_id blob;
	const struct gate_spec *spec;
	uint64_t seed;
	bool has_champion; /* the alias that is compared with has a version */
};

struct gate_verdict_made {
	struct gate_result result;
	bool champion_rows; /* the file has rows of the champion */
	double levels[GATE_METRIC_COUNT]; /* of the challenger; NaN: does not apply */
};
/* ERR_INVALID: the file or a rule is wrong, and the message says what. */
int gate_read(const struct gate_source *s, struct arena *a, struct gate_verdict_made *ret,
	struct err *e) MUST_CHECK;
/* {"metric": …, "rows": …, "levels": {…}, "items": […]} for the model version's row. */
struct str gate_json(const struct gate_spec *spec, const struct gate_verdict_made *g,
	struct str against, struct arena *a);

#endif
