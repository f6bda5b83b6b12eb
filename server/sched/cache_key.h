/*
 * What makes two steps the same for the cache: the digest of all that decides what a step puts out,
 * as docs/pipelines.md says. Pure. The image is not in it but beside it, since its digest is only
 * known once a worker has looked it up.
 */
#ifndef SERVER_SCHED_CACHE_KEY_H
#define SERVER_SCHED_CACHE_KEY_H
#include "api/pipeline.h"
#include "lib/base/arena.h"
#include "lib/crypto/hash.h"

/* Beside the step's own spec; each a text of which two are alike when what they say is. */
struct cache_facts {
	struct str matrix; /* values of a combination */
	struct str repository, commit;
	struct str datasets; /* names and digests of what is staged */
	struct str models; /* names and versions */
	struct str inputs; /* names of the steps that it needs, and digests of what they put out */
};

bool cache_counts(const struct step_spec *s, enum cache_part part);
/* name: as the command sees it, of a combination its own. */
void cache_key(const struct step_spec *s, struct str name, const struct cache_facts *f,
	struct arena *a, unsigned char ret[HASH_SIZE]);
/* Which image a step must have run in to be the same, as sha256:…, or "" when that does not matter;
 * resolved: what the run knows the name to stand for, or "". False when that is not known. */
bool cache_image(const struct step_spec *s, struct str resolved, struct str *ret);

#endif
