/* A stored table, row by row: the blob's bytes, unpacked when its name ends in .gz, read by the
 * format that its name says (.ndjson and .jsonl, else CSV). For work threads. */
#ifndef SERVER_SCHED_TABLE_SCAN_H
#define SERVER_SCHED_TABLE_SCAN_H
#include "server/blob/blob.h"
#include "server/sched/records.h"

enum { TABLE_UNPACKED_GB = 64 };

enum records_format table_format(struct str path);
bool table_is_packed(struct str path);
int table_scan(struct blobs *b, const struct blob_id *id, struct str path, struct records *r,
	struct err *e) MUST_CHECK;

#endif
