#include "api/auth.h"

const char *const role_names[] = { "viewer", "ci", "operator", "owner", NULL };
const char *const credential_kind_names[] = { "pat", "ci", "wk", "jb", "bs", "jn", NULL };
static const char *const person_kinds[] = { "pat", "ci", NULL };

#define AT(member) offsetof(struct THIS, member)
#define R          FIELD_READONLY

#define THIS list_query
const struct field list_query_fields[] = { PAGE_FIELDS(struct list_query), { 0 } };
#undef THIS

#define THIS principal
const struct field principal_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the principal" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Unique name" },
	{ "admin", FIELD_BOOL, R, AT(admin), .doc = "Holds the instance's duties" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "disabled_at", FIELD_TIME, R | FIELD_NULLABLE, AT(disabled_at),
		.doc = "When it was shut out" },
	{ 0 },
};
#undef THIS

#define THIS principal_new
const struct field principal_new_fields[] = {
	{ "name", FIELD_STR, FIELD_REQUIRED | FIELD_NAME, AT(name), .doc = "Unique name" },
	{ "admin", FIELD_BOOL, 0, AT(admin), .doc = "May do everything" },
	{ 0 },
};
#undef THIS

#define THIS credential
const struct field credential_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Public part of the token" },
	{ "kind", FIELD_ENUM, R, AT(kind), .names = credential_kind_names, .doc = "Kind of token" },
	{ "name", FIELD_STR, R, AT(name), .doc = "What it is for" },
	{ "principal", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(principal), .doc = "Whose it is" },
	{ "project", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(project),
		.doc = "The only project it opens" },
	{ "role", FIELD_ENUM, R | FIELD_OMIT_EMPTY, AT(role),
		FIELD_HAS(struct credential, has_role), .names = role_names,
		.doc = "The most it may do" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "expires_at", FIELD_TIME, R, AT(expires_at), .doc = "When it ends" },
	{ "last_used_at", FIELD_TIME, R | FIELD_NULLABLE, AT(last_used_at),
		.doc = "Last use, to the minute" },
	{ "revoked_at", FIELD_TIME, R | FIELD_NULLABLE, AT(revoked_at),
		.doc = "When it was revoked" },
	{ "token", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(token),
		.doc = "The token itself; shown once" },
	{ 0 },
};
#undef THIS

#define THIS credential_new
const struct field credential_new_fields[] = {
	{ "name", FIELD_STR, FIELD_REQUIRED, AT(name), .min = 1, .max = 120,
		.doc = "What it is for" },
	{ "kind", FIELD_ENUM, 0, AT(kind), .names = person_kinds, .fallback = "pat",
		.doc = "pat for a person, ci for a system" },
	{ "project", FIELD_STR, FIELD_NAME, AT(project),
		.doc = "The only project it opens; ci tokens need one" },
	{ "role", FIELD_ENUM, 0, AT(role), FIELD_HAS(struct credential_new, has_role),
		.names = role_names, .doc = "The most it may do" },
	{ "expires_in", FIELD_SPAN, 0, AT(expires_in),
		FIELD_HAS(struct credential_new, has_expires_in), .min = CLOCK_MINUTE,
		.max = 365 * CLOCK_DAY, .fallback = "90d",
		.doc = "Life of the token, at most 365d, and no longer than the maker's own, "
		       "unless that is an administrator's that is good for a day or more" },
	{ 0 },
};
#undef THIS

#define THIS self
const struct field self_fields[] = {
	{ "principal", FIELD_STR, R, AT(principal), .doc = "Identity of the caller" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Name of the caller" },
	{ "kind", FIELD_STR, R, AT(kind), .doc = "Kind of credential" },
	{ "project", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(project),
		.doc = "The only project it opens" },
	{ "admin", FIELD_BOOL, R, AT(admin), .doc = "Holds the instance's duties" },
	{ "expires_at", FIELD_TIME, R, AT(expires_at), .doc = "When the credential ends" },
	{ 0 },
};
#undef THIS

#define THIS session_new
const struct field session_new_fields[] = {
	{ "token", FIELD_STR, FIELD_REQUIRED | FIELD_WRITEONLY, AT(token), .min = 1, .max = 128,
		.doc = "A personal token" },
	{ 0 },
};
#undef THIS
#define THIS session
const struct field session_fields[] = {
	{ "csrf", FIELD_STR, R, AT(csrf), .doc = "To be sent as X-CSRF with every unsafe request" },
	{ "expires_at", FIELD_TIME, R, AT(expires_at),
		.doc = "When the session ends at the latest" },
	{ 0 },
};
#undef THIS

#define THIS retention
#define AGE  .min = CLOCK_HOUR
static const struct field retention_fields[] = {
	{ "runs", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(runs), AGE,
		.doc = "Ended runs go after this age, with everything of theirs" },
	{ "logs", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(logs), AGE,
		.doc = "Logs of ended attempts go after this age" },
	{ "artifacts", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(artifacts), AGE,
		.doc = "Artifacts of ended runs go after this age" },
	{ "windows", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(windows), AGE,
		.doc = "Rows of closed windows go after this age; their metrics stay" },
	{ 0 },
};
#undef THIS

#define RETENTION(type)                                                                            \
	"retention", FIELD_OBJ, 0, offsetof(struct type, retention),                               \
		.sub = retention_fields, .doc = "Ages after which things go; absent: kept"
#define THIS project
const struct field project_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the project" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Unique name" },
	{ "description", FIELD_STR, R | FIELD_TEXT, AT(description), .doc = "For people" },
	{ RETENTION(project) },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag" },
	{ 0 },
};
#undef THIS
#define THIS project_new
const struct field project_new_fields[] = {
	{ "name", FIELD_STR, FIELD_REQUIRED | FIELD_NAME, AT(name), .doc = "Unique name" },
	{ "description", FIELD_STR, FIELD_TEXT, AT(description), .max = 4000, .doc = "For people" },
	{ RETENTION(project_new) },
	{ 0 },
};
#undef THIS
#define THIS project_patch
const struct field project_patch_fields[] = {
	{ "description", FIELD_STR, FIELD_TEXT, AT(description),
		FIELD_HAS(struct project_patch, has_description), .max = 4000,
		.doc = "For people" },
	{ RETENTION(project_patch), .has = FIELD_HAS(struct project_patch, has_retention) },
	{ 0 },
};
#undef THIS

#define THIS member
const struct field member_fields[] = {
	{ "principal", FIELD_STR, R, AT(principal), .doc = "Name of the principal" },
	{ "role", FIELD_ENUM, R, AT(role), .names = role_names, .doc = "Its role in the project" },
	{ 0 },
};
#undef THIS
#define THIS member_put
const struct field member_put_fields[] = {
	{ "role", FIELD_ENUM, FIELD_REQUIRED, AT(role), .names = role_names,
		.doc = "Role in the project" },
	{ 0 },
};
#undef THIS

#define THIS retention_report
const struct field retention_report_fields[] = {
	{ "dry_run", FIELD_BOOL, R, AT(dry_run), .doc = "True when nothing was removed" },
	{ "runs", FIELD_INT, R, AT(runs), .doc = "Runs" },
	{ "logs", FIELD_INT, R, AT(logs), .doc = "Logs" },
	{ "artifacts", FIELD_INT, R, AT(artifacts), .doc = "Artifacts" },
	{ "windows", FIELD_INT, R, AT(windows), .doc = "Windows whose rows go" },
	{ "blobs", FIELD_INT, R, AT(blobs), .doc = "Blobs that nothing refers to any more" },
	{ "bytes", FIELD_INT, R, AT(bytes), .doc = "Bytes of these blobs" },
	{ 0 },
};
#undef THIS
#define THIS project_content
const struct field project_content_fields[] = {
	{ "dry_run", FIELD_BOOL, R, AT(dry_run), .doc = "Nothing was removed" },
	{ "runs", FIELD_INT, R, AT(runs), .doc = "Runs, with their steps, logs and outputs" },
	{ "active_runs", FIELD_INT, R, AT(active_runs),
		.doc = "Those of them that have not ended: the project stays while there are any" },
	{ "pipelines", FIELD_INT, R, AT(pipelines), .doc = "Registered pipelines" },
	{ "datasets", FIELD_INT, R, AT(datasets), .doc = "Data sets" },
	{ "dataset_versions", FIELD_INT, R, AT(dataset_versions), .doc = "Their versions" },
	{ "models", FIELD_INT, R, AT(models), .doc = "Models" },
	{ "model_versions", FIELD_INT, R, AT(model_versions), .doc = "Their versions" },
	{ "monitors", FIELD_INT, R, AT(monitors), .doc = "Monitors" },
	{ "windows", FIELD_INT, R, AT(windows), .doc = "Their windows, with rows and decisions" },
	{ "tracking_runs", FIELD_INT, R, AT(tracking_runs), .doc = "Tracking runs" },
	{ "artifacts", FIELD_INT, R, AT(artifacts), .doc = "Their artifacts" },
	{ "members", FIELD_INT, R, AT(members), .doc = "Members, who are shut out of it" },
	{ 0 },
};
#undef THIS
#define THIS dry_run_query
const struct field dry_run_query_fields[] = {
	{ "dry_run", FIELD_BOOL, 0, AT(dry_run), .doc = "Only say what would go" },
	{ 0 },
};
#undef THIS
#define THIS dry_put_query
const struct field dry_put_query_fields[] = {
	{ "dry_run", FIELD_BOOL, 0, AT(dry_run),
		.doc = "Check everything and write nothing; the reply is the object as it would "
		       "be, with an empty id where there is none yet" },
	{ 0 },
};
#undef THIS
