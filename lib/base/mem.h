/* Allocation that never fails: out of memory ends the process, so every size a user controls is
 * checked against a limit before it gets here. The only place that calls the C allocator. */
#ifndef LIB_BASE_MEM_H
#define LIB_BASE_MEM_H
#include <stddef.h>

/* Zeroed memory for n objects of `size` bytes; the product is checked for overflow. */
void *mem_new(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/* Not zeroed. */
void *mem_raw(size_t n) __attribute__((malloc, returns_nonnull));
#define mem_new_of(type) ((type *)mem_new(1, sizeof(type)))
/* Grows or shrinks; new bytes are not zeroed. */
void *mem_resize(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *mem_dup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_dupn(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void mem_free(void *p);
/* Gives memory that is not used back to the kernel: after a burst, before a long rest. */
void mem_trim(void);
/* Overwrites a secret before it is freed; never optimised away. */
void mem_wipe(void *p, size_t n);

#endif
