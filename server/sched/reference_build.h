/*
 * Makes a reference of a data set version's files: every .csv and .csv.gz, in the order of their
 * paths, with the same columns; of them the rows whose date lies between two days. Reads blobs, so
 * it belongs on a work thread. Memory: eight bytes for each number and each category's text, up to
 * a limit.
 */
#ifndef SERVER_SCHED_REFERENCE_BUILD_H
#define SERVER_SCHED_REFERENCE_BUILD_H
#include "server/blob/blob.h"
#include "server/sched/reference.h"

struct training_file {
	struct str path;
	struct blob_id blob;
};

struct reference_source {
	struct blobs *blobs;
	const struct training_file *files;
	size_t n_files;
	struct str column, from, to; /* dates, the last day included; column empty: all rows */
	const struct monitor_spec *spec;
};

/* Reads the rows as reference_build does, for any monitor, and keeps nothing: whether there is a
 * reference at all. ERR_INVALID names /column, /from or /dataset. `spec` is not looked at. */
int reference_check(const struct reference_source *s, struct arena *a, struct err *e) MUST_CHECK;
/* ERR_INVALID says what is wrong with the training data or the monitor's types. */
int reference_build(const struct reference_source *s, struct arena *a, struct reference *ret,
	struct err *e) MUST_CHECK;

#endif
