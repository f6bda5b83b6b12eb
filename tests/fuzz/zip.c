/* zstd: any bytes as frames give bytes below the limit or an error; and any bytes come back from
 * compression. */
#include "lib/zip/zip.h"
#include "lib/base/mem.h"

enum { LIMIT = 1 << 16 };

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
	struct str in = { (const char *)data, size };
	struct zip *z = zip_new();
	struct buf whole;
	struct err e;

	buf_init(&whole, LIMIT);
	if (zip_decompress(z, in, &whole, &e) < 0)
		BUG_ON(whole.n != 0);
	there_and_back(z, in);
	buf_done(&whole);
	zip_free(z);
	return 0;
}
