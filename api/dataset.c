#include "api/dataset.h"

#define AT(member) offsetof(struct THIS, member)
#define R          FIELD_READONLY
#define LABELS(flag)                                                                               \
	"labels", FIELD_MAP, FIELD_OMIT_EMPTY | (flag), AT(labels),                                \
		.max = 32, .item_max = 255, .key_max = 63,                                         \
		.doc = "Free words for people and selectors"

#define THIS dataset
const struct field dataset_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the data set" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Unique in its project" },
	{ "description", FIELD_STR, R | FIELD_TEXT, AT(description), .doc = "For people" },
	{ LABELS(R) },
	{ "latest", FIELD_INT, R, AT(latest),
		.doc = "Number of the newest version; 0 when there is none" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag" },
	{ 0 },
};
#undef THIS
#define THIS dataset_new
const struct field dataset_new_fields[] = {
	{ "name", FIELD_STR, FIELD_REQUIRED | FIELD_NAME, AT(name),
		.doc = "Unique in its project" },
	{ "description", FIELD_STR, FIELD_TEXT, AT(description), .max = 4000, .doc = "For people" },
	{ LABELS(0) },
	{ 0 },
};
#undef THIS

#define THIS file
const struct field file_fields[] = {
	{ "path", FIELD_STR, FIELD_REQUIRED, AT(path), .min = 1, .max = PATH_BYTES_MAX,
		.doc = "Relative, with '/', without '.' or '..' segments" },
	{ "digest", FIELD_STR, FIELD_REQUIRED, AT(digest), .min = 64, .max = 64,
		.doc = "SHA-256 in hex" },
	{ "size", FIELD_INT, FIELD_REQUIRED, AT(size), .min = 0, .max = INT64_MAX, .doc = "Bytes" },
	{ "media_type", FIELD_STR, FIELD_OMIT_EMPTY, AT(media_type), .max = 127,
		.doc = "As in Content-Type" },
	{ 0 },
};
#undef THIS

#define THIS dataset_version
const struct field dataset_version_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the version" },
	{ "dataset", FIELD_STR, R, AT(dataset), .doc = "Name of the data set" },
	{ "number", FIELD_INT, R, AT(number), .doc = "Counts from 1" },
	{ "digest", FIELD_STR, R, AT(digest), .doc = "SHA-256 of the canonical manifest" },
	{ "files", FIELD_INT, R, AT(files), .doc = "Number of files" },
	{ "bytes", FIELD_INT, R, AT(bytes), .doc = "Sum of their sizes" },
	{ "description", FIELD_STR, R | FIELD_TEXT, AT(description), .doc = "For people" },
	{ LABELS(R) },
	{ "parent_id", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(parent_id),
		.doc = "The version that was appended to" },
	{ "run_id", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(run_id),
		.doc = "The run that produced it" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ 0 },
};
#undef THIS
#define THIS dataset_version_new
const struct field dataset_version_new_fields[] = {
	{ "files", FIELD_LIST, FIELD_REQUIRED, AT(files), .sub = file_fields,
		.size = sizeof(struct file), .min = 1, .max = FILES_MAX,
		.doc = "Files whose blobs were uploaded before" },
	{ "append_to", FIELD_INT, 0, AT(append_to), .min = 1, .max = INT64_MAX,
		.doc = "Number of the version that these files are added to" },
	{ "latest", FIELD_BOOL, 0, AT(latest), .doc = "Add these files to the newest version" },
	{ "description", FIELD_STR, FIELD_TEXT, AT(description), .max = 4000, .doc = "For people" },
	{ LABELS(0) },
	{ 0 },
};
#undef THIS

#define THIS blob
const struct field blob_fields[] = {
	{ "digest", FIELD_STR, R, AT(digest), .doc = "SHA-256 in hex" },
	{ "size", FIELD_INT, R, AT(size), .doc = "Bytes" },
	{ 0 },
};
#undef THIS
