/*
 * What tidemill-git does to itself before it touches anything: limits, no new privileges, death
 * with its parent, and, where the kernel has Landlock, no writing outside of the given folders and
 * no execution of anything. Cannot be undone.
 */
#ifndef LIB_VCS_CONFINE_H
#define LIB_VCS_CONFINE_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void confine_process(uint64_t max_file_bytes, uint64_t max_seconds);
/* The folders must exist. *ret_done is false when the kernel has no Landlock. */
int confine_files(const char *const *writable, size_t n, bool *ret_done, struct err *e) MUST_CHECK;

#endif
