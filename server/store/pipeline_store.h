/* Registered pipelines and their triggers. */
#ifndef SERVER_STORE_PIPELINE_STORE_H
#define SERVER_STORE_PIPELINE_STORE_H
#include "api/pipeline.h"
#include "lib/db/row.h"

struct pipeline_row {
	struct str id, project_id, name, repository, ref, path, commit, spec, source, actor;
	const struct list *triggers; /* struct trigger_spec */
};
/* Makes the pipeline or replaces it, with its triggers. */
void pipeline_store_put(struct db_unit *u, const struct pipeline_row *p);
void pipeline_store_get(struct db_unit *u, struct str project_id, struct str name);
void pipeline_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count);
/* Leaves one that is so already, or is not there, alone. */
void pipeline_store_pause(
	struct db_unit *u, struct str project_id, struct str name, bool paused, struct str actor);
void pipeline_store_delete(
	struct db_unit *u, struct str project_id, struct str name, struct str actor);

#endif
