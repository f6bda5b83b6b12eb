/* CSV from strangers: however the bytes are cut, the rows and the verdict are the same. */
#include "lib/base/csv.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint64_t hash;
	size_t rows, cells;
};

static int on_row(void *arg, const struct csv_row *row, struct err *e)
{
	struct seen *s = arg;

	(void)e;
	s->rows++;
	s->cells += row->n;
	s->hash = s->hash * 31 + row->line;
	for (size_t i = 0; i < row->n; i++)
		s->hash = str_hash(row->cells[i], s->hash) + row->cells[i].n;
	return 0;
}

static int read_pieces(struct str text, size_t piece, struct seen *ret)
{
	struct csv c;
	struct err e;
	int rc = 0;

	*ret = (struct seen){ 0 };
	csv_init(&c);
	for (size_t at = 0; at < text.n && rc == 0; at += piece)
		rc = csv_add(&c, str_slice(text, at, piece), on_row, ret, &e);
	if (rc == 0)
		rc = csv_end(&c, on_row, ret, &e);
	csv_done(&c);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { size > 0 ? (const char *)data : "", size };
	struct seen whole, cut;
	int rc = read_pieces(text, size + 1, &whole);

	for (size_t piece = 1; piece <= 7; piece += 2) {
		int again = read_pieces(text, piece, &cut);
		BUG_ON(again != rc || cut.rows != whole.rows || cut.cells != whole.cells ||
			cut.hash != whole.hash);
	}
	return 0;
}
