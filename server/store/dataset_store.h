/* Data sets, their versions and files. Columns are those of the messages in api/dataset.h. */
#ifndef SERVER_STORE_DATASET_STORE_H
#define SERVER_STORE_DATASET_STORE_H
#include "api/dataset.h"
#include "lib/base/arena.h"
#include "lib/db/row.h"

void dataset_store_add(struct db_unit *u, struct str id, struct str project_id,
	const struct dataset_new *d, struct str created_by);
void dataset_store_get(struct db_unit *u, struct str project_id, struct str name);
void dataset_store_get_id(struct db_unit *u, struct str id);
void dataset_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count);
/* One row: id, how many runs and how many models need it. */
void dataset_store_needed(struct db_unit *u, struct str project_id, struct str name);
/* One row when it was there; a run that needs it is ERR_CONFLICT. */
void dataset_store_delete(struct db_unit *u, struct str id);

/* Number 0 is the newest version. */
void dataset_version_store_get(
	struct db_unit *u, struct str project_id, struct str name, int64_t number);
void dataset_version_store_get_id(struct db_unit *u, struct str id);
void dataset_version_store_list(
	struct db_unit *u, struct str project_id, struct str name, int64_t before, int64_t count);

/* A new version. The number is the one after the newest that was read; when somebody else has taken
 * it meanwhile the unit fails, and dataset_version_taken() says so: read again. The same files as
 * in another version are a conflict too (constraint dataset_version_digest). */
struct dataset_version_row {
	struct str id, dataset_id, digest /* 32 bytes */, parent_id, run_id, description,
		created_by;
	int64_t number, files, bytes;
	const struct list *labels; /* struct field_pair */
	const struct list *added; /* struct file, digests in hex; the parent's come by themselves */
};
void dataset_version_store_add(
	struct db_unit *u, const struct dataset_version_row *v, struct arena *a);
bool dataset_version_taken(const struct db_rows *rows);

void dataset_file_store_list(struct db_unit *u, struct str project_id, struct str name,
	int64_t number, struct str after, int64_t count);
void dataset_file_store_of_version(struct db_unit *u, struct str version_id);
/* One row: path, digest (bytes), size, media_type. */
void dataset_file_store_get(
	struct db_unit *u, struct str project_id, struct str name, int64_t number, struct str path);

#endif
