/* Data sets: a version is an immutable manifest of files; bytes are blobs, uploaded once. */
#ifndef API_DATASET_H
#define API_DATASET_H
#include "api/page.h"
#include "lib/json/field.h"

enum { FILES_MAX = 10000, PATH_BYTES_MAX = 1024 };

struct dataset {
	struct str id, name, description;
	struct list labels;
	int64_t latest; /* number of the newest version, 0: none */
	int64_t created_at, version;
};
extern const struct field dataset_fields[];
struct dataset_new {
	struct str name, description;
	struct list labels;
};
extern const struct field dataset_new_fields[];

/* A file of a manifest, an artifact, a model or an output. */
struct file {
	struct str path, digest; /* digest: sha256 in 64 hex digits */
	int64_t size;
	struct str media_type;
};
extern const struct field file_fields[];

struct dataset_version {
	struct str id, dataset;
	int64_t number;
	struct str digest;
	int64_t files, bytes;
	struct str description;
	struct list labels;
	struct str parent_id, run_id;
	int64_t created_at;
};
extern const struct field dataset_version_fields[];
/* files are blobs that were uploaded before; with `append_to` they are added to that version's. */
struct dataset_version_new {
	struct list files; /* struct file */
	int64_t append_to; /* a version number; 0: the files are all there is */
	bool latest; /* append to whatever is newest */
	struct str description;
	struct list labels;
};
extern const struct field dataset_version_new_fields[];

struct blob {
	struct str digest;
	int64_t size;
};
extern const struct field blob_fields[];

#endif
