#include "server/store/blob_store.h"

#include "lib/crypto/hash.h"

#include "gen/sql.h"

void blob_store_put(struct db_unit *u, struct str project_id, struct str digest, int64_t size)
{
	db_stmt(u, SQL_BLOB_PUT, DB_BYTES(digest), DB_INT(size));
	db_stmt(u, SQL_BLOB_PROJECT_PUT, DB_TEXT(project_id), DB_BYTES(digest));
}

void blob_store_head(struct db_unit *u, struct str project_id, struct str digest)
{
	db_stmt(u, SQL_BLOB_HEAD, DB_TEXT(project_id), DB_BYTES(digest));
}

void blob_store_touch(struct db_unit *u, const struct str *digests, size_t n)
{
	db_stmt(u, SQL_BLOB_TOUCH, DB_BLOBS(digests, n));
}

void blob_store_missing(struct db_unit *u, struct str project_id, const struct str *digests,
	const int64_t *sizes, size_t n)
{
	db_stmt(u, SQL_BLOB_MISSING, DB_TEXT(project_id), DB_BLOBS(digests, n), DB_INTS(sizes, n));
}

static void shelf_statement(struct db_unit *u, unsigned id, unsigned shelf, int64_t before_us)
{
	unsigned char low[HASH_SIZE] = { 0 }, high[HASH_SIZE];

	memset(high, 0xff, sizeof high);
	low[0] = high[0] = (unsigned char)shelf;
	db_stmt(u, id, DB_BYTES(((struct str){ (const char *)low, sizeof low })),
		DB_BYTES(((struct str){ (const char *)high, sizeof high })), DB_TIME(before_us));
}

void blob_store_unreferenced(struct db_unit *u, unsigned shelf, int64_t before_us)
{
	shelf_statement(u, SQL_BLOB_UNREFERENCED, shelf, before_us);
}

void blob_store_collect(struct db_unit *u, unsigned shelf, int64_t before_us)
{
	shelf_statement(u, SQL_BLOB_COLLECT, shelf, before_us);
}

void blob_store_known(struct db_unit *u, const struct str *digests, size_t n)
{
	db_stmt(u, SQL_BLOB_KNOWN, DB_BLOBS(digests, n));
}

struct str blob_digest_bytes(struct arena *a, struct str hex)
{
	unsigned char *out = arena_alloc(a, HASH_SIZE);

	BUG_ON(!hash_parse_hex(hex, out));
	return (struct str){ (const char *)out, HASH_SIZE };
}
