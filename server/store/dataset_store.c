#include "server/store/dataset_store.h"

#include "server/store/blob_store.h"
#include "server/store/pairs.h"

#include "gen/sql.h"

static struct db_arg text_or_empty(struct str s)
{
	return DB_TEXT(s.p != NULL ? s : STR(""));
}

void dataset_store_add(struct db_unit *u, struct str id, struct str project_id,
	const struct dataset_new *d, struct str created_by)
{
	struct buf b;

	db_stmt(u, SQL_DATASET_INSERT, DB_TEXT(id), DB_TEXT(project_id), DB_TEXT(d->name),
		text_or_empty(d->description), pairs_json(&d->labels, &b), DB_TEXT(created_by));
	buf_done(&b);
}

void dataset_store_get(struct db_unit *u, struct str project_id, struct str name)
{
	db_stmt(u, SQL_DATASET_GET, DB_TEXT(project_id), DB_TEXT(name));
}

void dataset_store_get_id(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_DATASET_GET_ID, DB_TEXT(id));
}

void dataset_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_DATASET_LIST, DB_TEXT(project_id), DB_TEXT(after), DB_INT(count));
}

void dataset_store_needed(struct db_unit *u, struct str project_id, struct str name)
{
	db_stmt(u, SQL_DATASET_NEEDED, DB_TEXT(project_id), DB_TEXT(name));
}

void dataset_store_delete(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_DATASET_DELETE, DB_TEXT(id));
}

void dataset_version_store_get(
	struct db_unit *u, struct str project_id, struct str name, int64_t number)
{
	db_stmt(u, SQL_DATASET_VERSION_GET, DB_TEXT(project_id), DB_TEXT(name), DB_INT(number));
}

void dataset_version_store_get_id(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_DATASET_VERSION_GET_ID, DB_TEXT(id));
}

void dataset_version_store_list(
	struct db_unit *u, struct str project_id, struct str name, int64_t before, int64_t count)
{
	db_stmt(u, SQL_DATASET_VERSION_LIST, DB_TEXT(project_id), DB_TEXT(name), DB_INT(before),
		DB_INT(count));
}

static void add_files(
	struct db_unit *u, struct str version_id, const struct list *files, struct arena *a)
{
	struct str *paths = arena_array_of(a, struct str, files->n + 1);
	struct str *digests = arena_array_of(a, struct str, files->n + 1);
	struct str *types = arena_array_of(a, struct str, files->n + 1);
	int64_t *sizes = arena_array_of(a, int64_t, files->n + 1);

	for (size_t i = 0; i < files->n; i++) {
		const struct file *f = list_at(files, struct file, i);
		paths[i] = f->path;
		sizes[i] = f->size;
		digests[i] = blob_digest_bytes(a, f->digest);
		types[i] = f->media_type.n != 0 ? f->media_type : STR("application/octet-stream");
	}
	blob_store_touch(u, digests, files->n);
	db_stmt(u, SQL_DATASET_FILE_INSERT, DB_TEXT(version_id), DB_TEXTS(paths, files->n),
		DB_INTS(sizes, files->n), DB_BLOBS(digests, files->n), DB_TEXTS(types, files->n));
}

void dataset_version_store_add(
	struct db_unit *u, const struct dataset_version_row *v, struct arena *a)
{
	struct buf b;

	db_stmt(u, SQL_DATASET_TAKE_NUMBER, DB_TEXT(v->dataset_id), DB_INT(v->number));
	db_stmt(u, SQL_DATASET_VERSION_INSERT, DB_TEXT(v->id), DB_TEXT(v->dataset_id),
		DB_INT(v->number), DB_BYTES(v->digest), DB_INT(v->files), DB_INT(v->bytes),
		text_or_empty(v->description), pairs_json(v->labels, &b),
		db_opt(v->parent_id.n != 0, DB_TEXT(v->parent_id)),
		db_opt(v->run_id.n != 0, DB_TEXT(v->run_id)),
		db_opt(v->created_by.n != 0, DB_TEXT(v->created_by)));
	buf_done(&b);
	if (v->parent_id.n != 0)
		db_stmt(u, SQL_DATASET_FILE_INHERIT, DB_TEXT(v->id), DB_TEXT(v->parent_id));
	add_files(u, v->id, v->added, a);
}

bool dataset_version_taken(const struct db_rows *rows)
{
	return db_violated(rows, "dataset_version_dataset_id_number_key");
}

void dataset_file_store_list(struct db_unit *u, struct str project_id, struct str name,
	int64_t number, struct str after, int64_t count)
{
	db_stmt(u, SQL_DATASET_FILE_LIST, DB_TEXT(project_id), DB_TEXT(name), DB_INT(number),
		DB_TEXT(after), DB_INT(count));
}

void dataset_file_store_of_version(struct db_unit *u, struct str version_id)
{
	db_stmt(u, SQL_DATASET_FILE_OF_VERSION, DB_TEXT(version_id));
}

void dataset_file_store_get(
	struct db_unit *u, struct str project_id, struct str name, int64_t number, struct str path)
{
	db_stmt(u, SQL_DATASET_FILE_GET, DB_TEXT(project_id), DB_TEXT(name), DB_INT(number),
		DB_TEXT(path));
}
