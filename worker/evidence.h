/* What the end of an attempt rests on, as a JSON object that the server stores. Pure. */
#ifndef WORKER_EVIDENCE_H
#define WORKER_EVIDENCE_H
#include "lib/base/arena.h"
#include "worker/runtime/runtime.h"

enum { EVIDENCE_MAX = 12288, EVIDENCE_LINES = 50 };

struct evidence {
	const struct runtime_status *status;
	struct str image, image_id, image_ref, image_fault; /* see record.h; image: as written */
	struct str log_tail; /* any bytes */
	bool resumed; /* it began with the checkpoint of an earlier attempt */
	const char *checkpoint; /* why its own did not reach the server; NULL or "": it did */
};

/* What an attempt that runs says of its image; "" without one. In the arena. */
struct str evidence_image(const struct evidence *v, struct arena *a);
/* At most EVIDENCE_MAX bytes, in the arena; as many of the last EVIDENCE_LINES as fit. */
struct str evidence_make(const struct evidence *v, struct arena *a);

#endif
