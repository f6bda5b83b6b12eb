#include "server/sched/table_scan.h"

#include "lib/zip/gunzip.h"

struct scan {
	struct records *records;
	struct gunzip *zip;
};

bool table_is_packed(struct str path)
{
	return str_ends(path, STR(".gz"));
}

enum records_format table_format(struct str path)
{
	struct str name = table_is_packed(path) ? str_slice(path, 0, path.n - 3) : path;

	return str_ends(name, STR(".ndjson")) || str_ends(name, STR(".jsonl")) ? RECORDS_NDJSON
									       : RECORDS_CSV;
}

static int on_plain(void *arg, struct str piece, struct err *e)
{
	struct scan *s = arg;

	return records_add(s->records, piece, e);
}

static int on_packed(void *arg, struct str piece, struct err *e)
{
	struct scan *s = arg;

	return gunzip_add(s->zip, piece, on_plain, s, e);
}

int table_scan(struct blobs *b, const struct blob_id *id, struct str path, struct records *r,
	struct err *e)
{
	struct scan s = { .records = r };
	int rc;

	if (!table_is_packed(path)) {
		rc = blob_scan(b, id, on_plain, &s, e);
	} else {
		s.zip = gunzip_new((uint64_t)TABLE_UNPACKED_GB << 30);
		rc = blob_scan(b, id, on_packed, &s, e);
		if (rc == 0)
			rc = gunzip_end(s.zip, e);
		gunzip_free(s.zip);
	}
	return rc == 0 ? records_end(r, e) : rc;
}
