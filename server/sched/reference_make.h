/* The reference of a model version under a monitor: read from the store, or made of the version's
 * training data on the work pool and stored, once. */
#ifndef SERVER_SCHED_REFERENCE_MAKE_H
#define SERVER_SCHED_REFERENCE_MAKE_H
#include "server/sched/reference.h"

struct app;
struct db_rows;
struct training_file;

enum { REFERENCE_ARENA = 512 << 20 };

struct reference_want {
	struct str monitor_id, model_version_id;
	int64_t spec_version;
	struct str training_data; /* JSON of the model version */
	const struct monitor_spec *spec;
};

struct reference_made {
	struct str id;
	int64_t layout;
	struct reference reference;
};

/* Once, from the loop, never inside the call. What *made leads to lies in the arena, which has room
 * for REFERENCE_ARENA. What *w leads to must live until then. */
typedef void reference_made_cb(void *arg, const struct reference_made *made, const struct err *e);
void reference_make(struct app *app, struct arena *a, const struct reference_want *w,
	reference_made_cb *cb, void *arg);

/* The rows of reference_store_files(), in the arena. */
const struct training_file *reference_files(
	const struct db_rows *rows, struct arena *a, size_t *ret_n);

#endif
