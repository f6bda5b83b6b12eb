/* Inside worker/runtime: pulling an image once for all attempts that want it, and naming exactly
 * what was pulled. */
#ifndef WORKER_RUNTIME_DOCKER_IMAGES_H
#define WORKER_RUNTIME_DOCKER_IMAGES_H
#include "worker/runtime/docker.h"

/* Embedded in whoever waits; zeroed before the first use. */
struct docker_want {
	struct docker_want *next;
	struct docker_image_pull *pull; /* NULL: it waits for nothing */
	/* Layers have moved, once a second at most; with a line for people now and then, else
	 * NULL. */
	void (*progress)(struct docker_want *w, const char *text);
	/* ERR_OK: the daemon says that it has it. Not called after docker_unwant_image. */
	void (*done)(struct docker_want *w, const struct err *e);
};

/* Joins the pull of the image, or begins one. -1 when the credentials cannot be read. */
int docker_want_image(
	struct docker *d, struct docker_want *w, const char *image, struct err *e) MUST_CHECK;
/* Waits no longer; a pull that nobody waits for is ended. Fine when it waits for nothing. */
void docker_unwant_image(struct docker_want *w);

/* From the daemon's description of an image: "REPOSITORY@sha256:…" as its registry has it, or the
 * image's own id, "sha256:…", for one that no registry is known to have. */
/* Whether `ref` may stand for the image that a step names: a digest of the same repository, or the
 * id of an image that no registry has. */
bool docker_ref_fits(const char *image, const char *ref);
void docker_image_ref(const struct jsn *inspected, const char *image, char out[RUNTIME_IMAGE_MAX]);

#endif
