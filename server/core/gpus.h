/*
 * What a step wants of GPUs: how many, of which models, with how much memory. Reads the short forms
 * ("2", "H100:4", "24GB..80GB:2", "40GiB..", "H100", "1g.18gb:1"); the caller fills the struct from
 * the object form, with gpus_parse_memory for its range. Pure.
 */
#ifndef SERVER_CORE_GPUS_H
#define SERVER_CORE_GPUS_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

enum { GPUS_MAX = 64, GPUS_MODELS_MAX = 16, GPUS_MODEL_LENGTH_MAX = 63 };

struct gpus_want {
	uint32_t count; /* 0: none */
	const struct str *models; /* any of these; none: any model */
	size_t models_n;
	uint64_t memory_min, memory_max; /* bytes of one GPU; 0: no bound */
	struct str mig; /* profile of MIG slices, or "any"; "": whole GPUs */
};

/* ERR_INVALID with an empty pointer. Models are copied to the arena. "" and "0" want none. */
int gpus_parse(struct str text, struct arena *a, struct gpus_want *ret, struct err *e) MUST_CHECK;
/* "40GiB..", "..80GB", "24GB..80GB". */
int gpus_parse_memory(
	struct str text, uint64_t *ret_min, uint64_t *ret_max, struct err *e) MUST_CHECK;

/* A model's name; "any", or a profile as 1g.18gb, 2g.10gb+me. */
int gpus_check_model(struct str model, struct err *e) MUST_CHECK;
int gpus_check_mig(struct str profile, struct err *e) MUST_CHECK;

/* A model is matched as whole words, whatever the case: "H100" is "NVIDIA H100 80GB HBM3" and
 * "A100" is "NVIDIA A100-SXM4-40GB", but "L4" is not "NVIDIA L40S". Memory is compared as printed
 * on the box: a bound is met within 8 %, because an "80 GB" GPU reports 79.6 GiB (85.5 GB) and a
 * "24 GB" one 23.99 GiB. `mig`: the profile of a slice, "" for a whole GPU; a program that asks for
 * a GPU gets no slice of one, which may be a seventh of it. */
bool gpus_match(const struct gpus_want *w, struct str model, uint64_t memory, struct str mig);

#endif
