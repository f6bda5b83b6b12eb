/*
 * zstd with ceilings. Output is appended to a struct buf and bounded by it; windows above 8 MiB are
 * refused, so that no input makes us allocate more than that. Streams belong to one thread at a
 * time. Blocking (CPU): large inputs belong on a work thread.
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

/* A stream of one frame: add pieces, flush where a reader must be able to see them all, end. */
struct zip_writer;
struct zip_writer *zip_writer_new(int level);
void zip_writer_free(struct zip_writer *w); /* NULL is fine */
int zip_writer_add(struct zip_writer *w, struct str in, struct buf *out, struct err *e) MUST_CHECK;
int zip_writer_flush(struct zip_writer *w, struct buf *out, struct err *e) MUST_CHECK;
int zip_writer_end(struct zip_writer *w, struct buf *out, struct err *e) MUST_CHECK;

/* Frames in pieces of any size. `limit` bounds the bytes that come out altogether. */
struct zip_reader;
struct zip_reader *zip_reader_new(uint64_t limit);
void zip_reader_free(struct zip_reader *r); /* NULL is fine */
/* Takes from *in what fits below out's ceiling and cuts it off the front: when *in is not empty
 * after success, empty `out` and call again. Full output may also wait inside with *in empty, which
 * the next call gives. ERR_TOO_LARGE past the limit, ERR_CORRUPT. */
int zip_reader_add(struct zip_reader *r, struct str *in, struct buf *out, struct err *e) MUST_CHECK;
/* ERR_CORRUPT when nothing came, the bytes end within a frame, or bytes of output still wait
 * inside. */
int zip_reader_end(const struct zip_reader *r, struct err *e) MUST_CHECK;

#endif
