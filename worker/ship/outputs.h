/*
 * Brings the declared outputs of an attempt to the server: collects the files on a work thread
 * (never through links, and only what is a plain file), digests them, uploads what the server asks
 * for, and commits the list, by their paths below the folder of the outputs. Uploads that fail are
 * tried again for hours. A checkpoint goes the same way while its command may still write: it is
 * committed when nothing has changed since it was looked at.
 */
#ifndef WORKER_SHIP_OUTPUTS_H
#define WORKER_SHIP_OUTPUTS_H
#include "api/run.h"
#include "api/worker.h"
#include "worker/ship/ship.h"

struct ship_outputs;

/* REASON_NONE: committed. REASON_OUTPUT_MISSING, REASON_OUTPUT_INVALID, REASON_UPLOAD_FAILED,
 * REASON_SUPERSEDED, REASON_CANCELLED: not, and why. Once, never inside a call. */
typedef void ship_outputs_cb(void *arg, enum reason reason, const char *message);

struct ship_outputs_args {
	struct ship_target to;
	const char *root; /* the folder that holds the outputs */
	const struct list *outputs; /* struct assigned_output; borrowed */
	/* Not NULL: this is a checkpoint, and `outputs` is one folder. Called on a work thread
	 * before the commit; false: it has changed, and ends with REASON_OUTPUT_INVALID. */
	bool (*unchanged)(void *arg);
	ship_outputs_cb *done;
	void *arg; /* of both */
};

struct ship_outputs *ship_outputs_start(const struct ship_outputs_args *a)
	__attribute__((returns_nonnull));
void ship_outputs_cancel(struct ship_outputs *o); /* done comes soon; not after it */

#endif
