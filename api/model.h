/* The registry: models, immutable versions, aliases with history. */
#ifndef API_MODEL_H
#define API_MODEL_H
#include "api/page.h"
#include "lib/json/field.h"

struct model {
	struct str id, name, description;
	int64_t latest; /* number of the newest version, 0: none */
	struct str aliases; /* JSON object: alias -> number */
	int64_t created_at, version;
};
extern const struct field model_fields[];

struct model_version {
	struct str id, model;
	int64_t number;
	struct str description, labels;
	struct list aliases; /* struct str */
	struct str run_id, step_id, tracking_run, repository, commit, image_digest;
	struct str training_data, datasets, metrics; /* JSON */
	struct str gate; /* JSON: {spec, items: [...]} */
	struct str verdict, verdict_reason, metric;
	double level;
	bool has_level;
	int64_t created_at;
};
extern const struct field model_version_fields[];

struct alias_put {
	int64_t version; /* number */
	struct str note;
	bool force;
};
extern const struct field alias_put_fields[];

struct alias {
	struct str alias;
	int64_t number, changed_at, version;
};
extern const struct field alias_fields[];

struct alias_change {
	int64_t id;
	struct str alias;
	int64_t number, previous;
	bool has_number, has_previous;
	struct str cause, note, actor;
	int64_t at;
};
extern const struct field alias_change_fields[];

/* ?as_of= asks which version had the alias then. */
struct as_of_query {
	int64_t as_of;
};
extern const struct field as_of_query_fields[];

#endif
