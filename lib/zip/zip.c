#include "lib/zip/zip.h"

#include "lib/base/mem.h"

#include <zstd.h>

enum { WINDOW_LOG = 23, ROOM = 65536 };

struct zip {
	ZSTD_CCtx *c;
	ZSTD_DCtx *d;
};

struct zip_writer {
	ZSTD_CCtx *c;
};

struct zip_reader {
	ZSTD_DCtx *d;
	uint64_t left; /* of the limit */
	size_t hint; /* 0 when a frame is complete */
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

/* Runs the compressor until it has taken all and, for flush and end, given all. What a plain add
 * leaves inside comes out with the next call. */
static int run_compressor(
	ZSTD_CCtx *c, struct str in, ZSTD_EndDirective how, struct buf *out, struct err *e)
{
	ZSTD_inBuffer src = { in.p, in.n, 0 };

	for (;;) {
		char *p;
		size_t room = open_room(out, ROOM, &p);

		if (room == 0)
			return too_large(e);
		ZSTD_outBuffer dst = { p, room, 0 };
		size_t rc = ZSTD_compressStream2(c, &dst, &src, how);
		BUG_ON(ZSTD_isError(rc));
		buf_grew(out, dst.pos);
		if (how == ZSTD_e_continue ? src.pos == src.size : rc == 0)
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
	if (run_compressor(z->c, in, ZSTD_e_end, out, e) == 0)
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

struct zip_writer *zip_writer_new(int level)
{
	struct zip_writer *w = mem_new_of(struct zip_writer);

	w->c = compressor(level);
	return w;
}

void zip_writer_free(struct zip_writer *w)
{
	if (w == NULL)
		return;
	(void)ZSTD_freeCCtx(w->c);
	mem_free(w);
}

int zip_writer_add(struct zip_writer *w, struct str in, struct buf *out, struct err *e)
{
	return run_compressor(w->c, in, ZSTD_e_continue, out, e);
}

int zip_writer_flush(struct zip_writer *w, struct buf *out, struct err *e)
{
	return run_compressor(w->c, STR_NONE, ZSTD_e_flush, out, e);
}

int zip_writer_end(struct zip_writer *w, struct buf *out, struct err *e)
{
	return run_compressor(w->c, STR_NONE, ZSTD_e_end, out, e);
}

struct zip_reader *zip_reader_new(uint64_t limit)
{
	struct zip_reader *r = mem_new_of(struct zip_reader);

	r->d = decompressor();
	r->left = limit;
	r->hint = 1;
	return r;
}

void zip_reader_free(struct zip_reader *r)
{
	if (r == NULL)
		return;
	(void)ZSTD_freeDCtx(r->d);
	mem_free(r);
}

int zip_reader_add(struct zip_reader *r, struct str *in, struct buf *out, struct err *e)
{
	ZSTD_inBuffer src = { in->p, in->n, 0 };
	size_t before = out->n;

	if (in->n == 0 && r->hint == 0)
		return 0; /* between frames: asking would start the next one */
	if (run_decompressor(r->d, &src, out, &r->hint, e) < 0)
		return -1;
	if (out->n - before > r->left)
		return too_large(e);
	r->left -= out->n - before;
	*in = str_slice(*in, src.pos, in->n);
	return 0;
}

int zip_reader_end(const struct zip_reader *r, struct err *e)
{
	if (r->hint != 0)
		return err_set(e, ERR_CORRUPT, "the compressed bytes end too early");
	return 0;
}
