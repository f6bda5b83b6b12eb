/*
 * Inside worker/runtime: room on the daemon's disk. When more than `high` percent of it are in use,
 * images go that this worker has pulled (docker_keep.h) and no attempt uses, least recently used
 * first, until no more than `low` percent are. An image is taken by the names that it was pulled
 * by, each only while it still means that image, and never by force: what has another name, or
 * another container, stays. A start that loses its image to this pulls it again (docker_start.c).
 */
#ifndef WORKER_RUNTIME_DOCKER_GC_H
#define WORKER_RUNTIME_DOCKER_GC_H
#include "worker/runtime/docker.h"

void docker_gc_open(struct docker *d, const struct runtime_docker_config *c);
void docker_gc_close(struct docker *d);
/* Looks, now that something may have changed. */
void docker_gc_soon(struct docker *d);
/* A pull has found no space: all images go that were pulled here and nobody uses. False when there
 * are none, or none may go; else over when docker_gc_busy is false. */
bool docker_gc_force(struct docker *d);
bool docker_gc_busy(const struct docker *d);
/* What people should know of it; "" for nothing. */
void docker_gc_say(const struct docker *d, char *out, size_t size);

#endif
