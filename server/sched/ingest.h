/*
 * Rows of production and late labels on their way into a monitor: read as a stream, staged a few
 * thousand at a time, and put into their windows in one transaction at the end, all or nothing.
 * Memory does not grow with the length. Used by the API and by the outputs of runs.
 *
 *     ingest_new → on_ready → ingest_add … → ingest_end → on_done
 *
 * From the loop. on_done comes exactly once, never inside a call, also instead of on_ready; what is
 * added after it is dropped. On failure nothing of the rows stays.
 */
#ifndef SERVER_SCHED_INGEST_H
#define SERVER_SCHED_INGEST_H
#include "api/monitor.h"
#include "lib/base/arena.h"
#include "server/sched/records.h"

struct app;
struct ingest;

struct ingest_spec {
	struct str project_id, monitor; /* its name */
	bool labels;
	enum records_format format;
	struct str batch; /* the same again does nothing; empty: none */
	void (*on_ready)(void *arg);
	void (*on_room)(void *arg); /* go on after ingest_add() said false */
	void (*on_done)(void *arg, const struct observation_result *result, const struct err *e);
	void *arg;
};
struct ingest *ingest_new(struct app *app, const struct ingest_spec *spec);
/* Takes all of the bytes. False: hold back until on_room. */
bool ingest_add(struct ingest *g, struct str bytes);
void ingest_end(struct ingest *g);
/* At any time; on_done does not come any more. NULL is fine. */
void ingest_free(struct ingest *g);

#endif
