#include "lib/zip/zip.h"

#include "lib/base/mem.h"

#include <zstd.h>

enum { WINDOW_LOG = 23, ROOM = 65536 };

struct zip {
	ZSTD_CCtx *c;
	ZSTD_DCtx *d;
};

static int too_large(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the bytes pass the limit");
}

static int damaged(struct err *e)
{
	return err_set(e, ERR_CORRUPT, "the compressed bytes are damaged");
}

static void set(ZSTD_CCtx *c, ZSTD_cParameter p, int value)
{
	size_t rc = ZSTD_CCtx_setParameter(c, p, value);

	BUG_ON(ZSTD_isError(rc));
}

static ZSTD_CCtx *compressor(int level)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();

	BUG_ON(c == NULL || level < 1 || level > 19);
	set(c, ZSTD_c_compressionLevel, level);
	set(c, ZSTD_c_checksumFlag, 1);
	return c;
}

static ZSTD_DCtx *decompressor(void)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();

	BUG_ON(d == NULL ||
		ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG)));
	return d;
}

struct zip *zip_new(void)
{
	return mem_new_of(struct zip);
}

void zip_free(struct zip *z)
{
	if (z == NULL)
		return;
	(void)ZSTD_freeCCtx(z->c);
	(void)ZSTD_freeDCtx(z->d);
	mem_free(z);
}

static void cut(struct buf *b, size_t n)
{
	b->n = n;
	if (b->p != NULL)
		b->p[n] = '\0';
}

/* Room for the rest of what may come out, `want` at most; 0 when the ceiling is reached. */
static size_t open_room(struct buf *out, size_t want, char **ret)
{
	size_t left = out->failed ? 0 : out->max - out->n;

	if (left > want)
		left = want;
	*ret = left != 0 ? buf_room(out, left) : NULL;
	return left;
}

/* Runs the compressor until it has taken and given all. */
static int run_compressor(ZSTD_CCtx *c, struct str in, struct buf *out, struct err *e)
{
	ZSTD_inBuffer src = { in.p, in.n, 0 };

	for (;;) {
		char *p;
		size_t room = open_room(out, ROOM, &p);

		if (room == 0)
			return too_large(e);
		ZSTD_outBuffer dst = { p, room, 0 };
		size_t rc = ZSTD_compressStream2(c, &dst, &src, ZSTD_e_end);
		BUG_ON(ZSTD_isError(rc));
		buf_grew(out, dst.pos);
		if (rc == 0)
			return 0;
	}
}

int zip_compress(struct zip *z, struct str in, int level, struct buf *out, struct err *e)
{
	size_t before = out->n;

	if (z->c == NULL)
		z->c = compressor(level);
	(void)ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only);
	set(z->c, ZSTD_c_compressionLevel, level);
	BUG_ON(level < 1 || level > 19);
	size_t rc = ZSTD_CCtx_setPledgedSrcSize(z->c, in.n);
	BUG_ON(ZSTD_isError(rc));
	if (run_compressor(z->c, in, out, e) == 0)
		return 0;
	cut(out, before);
	return -1;
}

/* Decompresses from *src until it is used up or `out` is full. */
static int run_decompressor(
	ZSTD_DCtx *d, ZSTD_inBuffer *src, struct buf *out, size_t *ret_hint, struct err *e)
{
	size_t from;

	do {
		char *p;
		size_t room = open_room(out, ROOM, &p);
		char one;
		ZSTD_outBuffer dst = { room != 0 ? p : &one, room, 0 };

		from = src->pos;
		size_t rc = ZSTD_decompressStream(d, &dst, src);
		if (ZSTD_isError(rc))
			return damaged(e);
		if (room != 0)
			buf_grew(out, dst.pos);
		*ret_hint = rc;
		if (dst.pos != 0)
			from = SIZE_MAX; /* output is progress too */
	} while (src->pos != from && (src->pos < src->size || out->n < out->max) &&
		 !(src->pos == src->size && *ret_hint == 0));
	return 0;
}

int zip_decompress(struct zip *z, struct str in, struct buf *out, struct err *e)
{
	ZSTD_inBuffer src = { in.p, in.n, 0 };
	size_t before = out->n, hint = 1;

	if (z->d == NULL)
		z->d = decompressor();
	(void)ZSTD_DCtx_reset(z->d, ZSTD_reset_session_only);
	int rc = in.n == 0 ? damaged(e) : run_decompressor(z->d, &src, out, &hint, e);
	if (rc == 0 && (src.pos < src.size || hint != 0))
		rc = out->n == out->max ? too_large(e) : damaged(e);
	if (rc < 0)
		cut(out, before);
	return rc;
}
