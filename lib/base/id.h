/* Identities: opaque, sortable by time of making, safe in URLs and file names. */
#ifndef LIB_BASE_ID_H
#define LIB_BASE_ID_H
#include "lib/base/clock.h"

/* prefix + '_' + ULID (48 bits of milliseconds, 80 random bits; Crockford base 32 in lower case),
 * as "run_01kb9zv1f0m3s8q2x7w4t6y5zr". The prefix is 2 to 5 lower-case letters. Returns out. */
enum { ID_MAX = 40, ID_ULID = 26, ID_HEX = 32 };
const char *id_new(char out[ID_MAX], const char *prefix, const struct clock *c);
/* True when s has the form above with exactly this prefix. */
bool id_is(struct str s, const char *prefix);
/* 32 random hex digits in lower case: the form of MLflow's run ids. Returns out. */
const char *id_hex(char out[ID_HEX + 1]);
/* Random bytes from the kernel; never fails (it aborts when the kernel has none to give). */
void id_random(void *out, size_t n);

#endif
