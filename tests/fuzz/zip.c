/* zstd: any bytes as frames, at once and in pieces of a size that the first byte chooses, must give
 * the same bytes or fail both ways; and any bytes come back from compression. */
#include "lib/zip/zip.h"
#include "lib/base/mem.h"

enum { LIMIT = 1 << 16 };

static int in_pieces(struct str in, size_t piece, struct buf *out, struct err *e)
{
	struct zip_reader *r = zip_reader_new(LIMIT);
	struct buf window;
	int rc = 0;

	buf_init(&window, 1000);
	for (bool more = true; more && rc == 0;) {
		struct str next = str_slice(in, 0, piece);
		size_t given = next.n;

		rc = zip_reader_add(r, &next, &window, e);
		in = str_slice(in, given - next.n, in.n);
		more = in.n != 0 || window.n != 0;
		buf_add(out, buf_str(&window));
		buf_clear(&window);
	}
	if (rc == 0)
		rc = zip_reader_end(r, e);
	zip_reader_free(r);
	buf_done(&window);
	return rc;
}

static void there_and_back(struct zip *z, struct str in)
{
	struct buf packed, back;
	struct err e;

	buf_init(&packed, in.n + 4096);
	buf_init(&back, in.n);
	BUG_ON(zip_compress(z, in, 1, &packed, &e) < 0);
	BUG_ON(zip_decompress(z, buf_str(&packed), &back, &e) < 0);
	BUG_ON(!str_eq(buf_str(&back), in));
	buf_done(&packed);
	buf_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, pieces;
	struct err e;

	if (size < 2)
		return 0;
	struct str in = { (const char *)data + 1, size - 1 };
	struct zip *z = zip_new();
	buf_init(&whole, LIMIT);
	buf_init(&pieces, LIMIT);
	int one = zip_decompress(z, in, &whole, &e);
	int two = in_pieces(in, (size_t)data[0] + 1, &pieces, &e);
	BUG_ON(one != two || (one == 0 && !str_eq(buf_str(&whole), buf_str(&pieces))));
	there_and_back(z, in);
	buf_done(&whole);
	buf_done(&pieces);
	zip_free(z);
	return 0;
}
