#include "lib/zip/gunzip.h"

#include "lib/base/mem.h"

#include <zlib.h>

enum { PIECE = 65536, GZIP_ONLY = 16 };

struct gunzip {
	z_stream z;
	uint64_t limit, out;
	bool open, any; /* within a member; a member has ended */
	unsigned char piece[PIECE];
};

struct gunzip *gunzip_new(uint64_t limit)
{
	struct gunzip *g = mem_new_of(struct gunzip);

	g->limit = limit;
	BUG_ON(inflateInit2(&g->z, MAX_WBITS + GZIP_ONLY) != Z_OK);
	return g;
}

void gunzip_free(struct gunzip *g)
{
	if (g == NULL)
		return;
	(void)inflateEnd(&g->z);
	mem_free(g);
}

static int give(struct gunzip *g, gunzip_cb *fn, void *arg, struct err *e)
{
	size_t n = PIECE - g->z.avail_out;

	g->out += n;
	if (g->out > g->limit)
		return err_set(e, ERR_TOO_LARGE, "more than %llu bytes come out of gzip",
			(unsigned long long)g->limit);
	return n == 0 ? 0 : fn(arg, (struct str){ (const char *)g->piece, n }, e);
}

int gunzip_add(struct gunzip *g, struct str in, gunzip_cb *fn, void *arg, struct err *e)
{
	while (in.n > 0) {
		size_t take = in.n < PIECE ? in.n : PIECE;
		/* zlib never writes to its input. */
		union {
			const char *from;
			Bytef *to;
		} input = { in.p };

		g->z.next_in = input.to;
		g->z.avail_in = (uInt)take;
		g->open = true;
		while (g->z.avail_in > 0 || g->z.avail_out == 0) {
			g->z.next_out = g->piece;
			g->z.avail_out = PIECE;
			int rc = inflate(&g->z, Z_NO_FLUSH);
			if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
				return err_set(e, ERR_INVALID, "not a whole gzip file");
			if (give(g, fn, arg, e) < 0)
				return -1;
			if (rc == Z_STREAM_END) {
				g->any = true;
				g->open = g->z.avail_in > 0;
				g->z.avail_out = PIECE;
				(void)inflateReset(&g->z);
			}
		}
		in = str_slice(in, take, in.n);
	}
	return 0;
}

int gunzip_end(const struct gunzip *g, struct err *e)
{
	if (!g->any || g->open)
		return err_set(e, ERR_INVALID, "the gzip file is cut");
	return 0;
}
