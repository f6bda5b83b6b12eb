#include "api/model.h"

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define R           FIELD_READONLY
#define N           FIELD_NULLABLE
#define E           FIELD_OMIT_EMPTY

#define THIS model
const struct field model_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the model" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Unique in its project" },
	{ "description", FIELD_STR, R | FIELD_TEXT, AT(description), .doc = "For people" },
	{ "latest", FIELD_INT, R, AT(latest),
		.doc = "Number of the newest version; 0 when there is none" },
	{ "aliases", FIELD_RAW, R, AT(aliases),
		.schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
		.doc = "Alias to number of version" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag" },
	{ 0 },
};
#undef THIS

#define THIS model_version
const struct field model_version_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the version" },
	{ "model", FIELD_STR, R, AT(model), .doc = "Name of the model" },
	{ "number", FIELD_INT, R, AT(number), .doc = "Counts from 1; never used again" },
	{ "description", FIELD_STR, R | FIELD_TEXT, AT(description), .doc = "For people" },
	{ "labels", FIELD_RAW, R, AT(labels), .doc = "Labels" },
	{ "aliases", FIELD_LIST, R, AT(aliases), .item = FIELD_STR,
		.doc = "Aliases that it has now" },
	{ "run_id", FIELD_STR, R | E, AT(run_id), .doc = "The run that made it" },
	{ "step_id", FIELD_STR, R | E, AT(step_id), .doc = "The step that made it" },
	{ "tracking_run", FIELD_STR, R | E, AT(tracking_run), .doc = "MLflow run id of that step" },
	{ "repository", FIELD_STR, R | E, AT(repository), .doc = "Git repository of its code" },
	{ "commit", FIELD_STR, R | E, AT(commit), .doc = "The exact commit" },
	{ "image_digest", FIELD_STR, R | E, AT(image_digest),
		.doc = "The image that it was trained in" },
	{ "training_data", FIELD_RAW, R, AT(training_data),
		.doc = "{dataset, dataset_version, column, from, to}" },
	{ "datasets", FIELD_RAW, R, AT(datasets),
		.doc = "Versions of data sets that the run read" },
	{ "metrics", FIELD_RAW, R, AT(metrics), .doc = "Latest metrics of the training step" },
	{ "gate", FIELD_RAW, R, AT(gate), .max = 1 << 20,
		.doc = "What the gate compared: {metric, rows, items}" },
	{ "verdict", FIELD_STR, R, AT(verdict),
		.doc = "none, promoted, refused or needs_approval" },
	{ "verdict_reason", FIELD_STR, R, AT(verdict_reason), .max = 4000,
		.doc = "The verdict in words" },
	{ "metric", FIELD_STR, R | E, AT(metric), .doc = "The gate's metric" },
	{ "level", FIELD_REAL, R | N, AT(level), HAS(has_level),
		.doc = "Its value on the holdout" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was registered" },
	{ 0 },
};
#undef THIS

#define THIS alias_put
const struct field alias_put_fields[] = {
	{ "version", FIELD_INT, FIELD_REQUIRED, AT(version), .min = 1, .max = INT64_MAX,
		.doc = "Number of the version" },
	{ "note", FIELD_STR, FIELD_TEXT, AT(note), .max = 4000, .doc = "Why; kept in the history" },
	{ "force", FIELD_BOOL, 0, AT(force),
		.doc = "Also when the version's gate has refused it; note must say why" },
	{ 0 },
};
#undef THIS
#define THIS alias
const struct field alias_fields[] = {
	{ "alias", FIELD_STR, R, AT(alias), .doc = "The alias" },
	{ "number", FIELD_INT, R, AT(number), .doc = "Number of the version that has it" },
	{ "changed_at", FIELD_TIME, R, AT(changed_at), .doc = "Since when" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag" },
	{ 0 },
};
#undef THIS
#define THIS alias_change
const struct field alias_change_fields[] = {
	{ "id", FIELD_INT, R, AT(id), .doc = "Grows with time" },
	{ "alias", FIELD_STR, R, AT(alias), .doc = "The alias" },
	{ "number", FIELD_INT, R | N, AT(number), HAS(has_number),
		.doc = "The version that got it; null: removed" },
	{ "previous", FIELD_INT, R | N, AT(previous), HAS(has_previous),
		.doc = "The version that had it before" },
	{ "cause", FIELD_STR, R, AT(cause),
		.doc = "api, gate, rollback or override: by hand, against the gate" },
	{ "note", FIELD_STR, R | FIELD_TEXT, AT(note), .max = 4000, .doc = "Why" },
	{ "actor", FIELD_STR, R | E, AT(actor), .doc = "Who" },
	{ "at", FIELD_TIME, R, AT(at), .doc = "When" },
	{ 0 },
};
#undef THIS
#define THIS as_of_query
const struct field as_of_query_fields[] = {
	{ "as_of", FIELD_TIME, 0, AT(as_of), .doc = "Which version had the alias at this time" },
	{ 0 },
};
#undef THIS
