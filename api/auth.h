/* Who: principals, tokens, projects and members. */
#ifndef API_AUTH_H
#define API_AUTH_H
#include "api/page.h"
#include "lib/json/field.h"

enum role { ROLE_VIEWER, ROLE_CI, ROLE_OPERATOR, ROLE_OWNER, ROLE_COUNT };
extern const char *const role_names[];

enum credential_kind {
	CREDENTIAL_PAT,
	CREDENTIAL_CI,
	CREDENTIAL_WORKER,
	CREDENTIAL_JOB,
	CREDENTIAL_BOOTSTRAP,
	CREDENTIAL_JOIN,
	CREDENTIAL_KIND_COUNT
};
extern const char *const credential_kind_names[]; /* pat ci wk jb bs jn */

struct principal {
	struct str id, name;
	bool admin;
	int64_t created_at;
	int64_t disabled_at;
};
extern const struct field principal_fields[];

struct principal_new {
	struct str name;
	bool admin;
};
extern const struct field principal_new_fields[];

struct credential {
	struct str id;
	int kind; /* enum credential_kind */
	struct str name, principal, project;
	int role; /* enum role */
	bool has_role;
	int64_t created_at, expires_at, last_used_at, revoked_at;
	struct str token; /* the secret, in the reply to its creation only */
};
extern const struct field credential_fields[];

struct credential_new {
	struct str name, project;
	int kind; /* pat or ci */
	int role;
	bool has_role, has_expires_in;
	struct field_span expires_in;
};
extern const struct field credential_new_fields[];

/* The reply of auth.self. */
struct self {
	struct str principal, name, kind, project;
	bool admin;
	int64_t expires_at;
};
extern const struct field self_fields[];

struct session_new {
	struct str token;
};
extern const struct field session_new_fields[];
struct session {
	struct str csrf;
	int64_t expires_at;
};
extern const struct field session_fields[];

struct retention {
	struct field_span runs, logs, artifacts, windows;
};

struct project {
	struct str id, name, description;
	struct retention retention;
	int64_t created_at, version;
};
extern const struct field project_fields[];
struct project_new {
	struct str name, description;
	struct retention retention;
};
extern const struct field project_new_fields[];
struct project_patch {
	struct str description;
	bool has_description;
	struct retention retention;
	bool has_retention;
};
extern const struct field project_patch_fields[];

struct member {
	struct str principal; /* its name */
	int role;
};
extern const struct field member_fields[];
struct member_put {
	int role;
};
extern const struct field member_put_fields[];

/* What retention would remove, or has removed. */
struct retention_report {
	bool dry_run;
	int64_t runs, logs, artifacts, windows, blobs, bytes;
};
extern const struct field retention_report_fields[];
/* What goes with a project. */
struct project_content {
	bool dry_run;
	int64_t runs, active_runs, pipelines, datasets, dataset_versions, models, model_versions;
	int64_t monitors, windows, tracking_runs, artifacts, members;
};
extern const struct field project_content_fields[];
struct dry_run_query {
	bool dry_run;
};
extern const struct field dry_run_query_fields[];
struct dry_put_query { /* of a PUT that makes or changes something */
	bool dry_run;
};
extern const struct field dry_put_query_fields[];

#endif
