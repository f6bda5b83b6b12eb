/*
 * zstd with ceilings. Output is appended to a struct buf and bounded by it; windows above 8 MiB are
 * refused, so that no input makes us allocate more than that. Blocking (CPU): large inputs belong
 * on a work thread.
 */
#ifndef LIB_ZIP_ZIP_H
#define LIB_ZIP_ZIP_H
#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Working memory that is used again from call to call; one per thread. */
struct zip;

struct zip *zip_new(void);
void zip_free(struct zip *z); /* NULL is fine */

/* One frame with its content size and a checksum. Level 1 to 19. ERR_TOO_LARGE past out's ceiling.
 */
int zip_compress(
	struct zip *z, struct str in, int level, struct buf *out, struct err *e) MUST_CHECK;
/* All frames of `in`. ERR_TOO_LARGE past out's ceiling, ERR_CORRUPT when `in` is damaged, cut or
 * empty; out is then as it was. */
int zip_decompress(struct zip *z, struct str in, struct buf *out, struct err *e) MUST_CHECK;

#endif
