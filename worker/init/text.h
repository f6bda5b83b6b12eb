/* A few lines of key=value, up to CTL_STATUS_MAX bytes: what does not fit is left out as a whole.
 */
#ifndef WORKER_INIT_TEXT_H
#define WORKER_INIT_TEXT_H
#include "worker/init/ctl.h"

#include <stddef.h>
#include <stdint.h>

struct text {
	char p[CTL_STATUS_MAX];
	size_t n;
};

__attribute__((format(printf, 2, 3))) void text_add(struct text *t, const char *fmt, ...);
void text_number(struct text *t, const char *key, int64_t value); /* -1: not known, left out */
int64_t text_digits(
	const char *p); /* the number that begins there; -1 when none does, or too long */
/* From the start of the file. 0, or -1 with errno set. */
int text_write(int fd, const char *p, size_t n);

#endif
