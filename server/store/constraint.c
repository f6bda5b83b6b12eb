#include "server/store/constraint.h"

#include "lib/base/str.h"

static const struct {
	const char *name;
	enum err_code code;
	const char *field, *text;
} table[] = {
	{ "principal_name_key", ERR_CONFLICT, "/name", "a principal of this name exists" },
	{ "project_name_key", ERR_CONFLICT, "/name", "a project of this name exists" },
	{ "dataset_project_id_name_key", ERR_CONFLICT, "/name", "a data set of this name exists" },
	{ "dataset_version_digest", ERR_CONFLICT, "/files",
		"the data set has a version with exactly these files" },
	{ "dataset_file_digest_fkey", ERR_INVALID, "/files",
		"a file's bytes have not been uploaded" },
	{ "step_output_digest_fkey", ERR_INVALID, "/outputs",
		"a file's bytes have not been uploaded" },
	{ "checkpoint_file_digest_fkey", ERR_INVALID, "/files",
		"a file's bytes have not been uploaded" },
	{ "artifact_digest_fkey", ERR_INVALID, "/digest", "the bytes have not been uploaded" },
	{ "run_dataset_version_id_fkey", ERR_CONFLICT, "", "a run needs this version" },
	{ "pipeline_project_id_name_key", ERR_CONFLICT, "/name", "a pipeline of this name exists" },
	{ "model_project_id_name_key", ERR_CONFLICT, "/name", "a model of this name exists" },
	{ "model_alias_version_id_fkey", ERR_CONFLICT, "", "an alias points to this version" },
	{ "monitor_model_id_fkey", ERR_CONFLICT, "", "a monitor watches this model" },
	{ "monitor_project_id_name_key", ERR_CONFLICT, "/name", "a monitor of this name exists" },
	{ "worker_name_key", ERR_CONFLICT, "/name", "a worker of this name exists" },
	{ "experiment_project_id_name_key", ERR_CONFLICT, "/name",
		"an experiment of this name exists" },
	{ "run_trigger", ERR_CONFLICT, "", "this trigger has started its run already" },
	{ "attempt_fence", ERR_SUPERSEDED, "",
		"the attempt has ended or a newer one has taken over" },
	{ "retraining_pkey", ERR_CONFLICT, "", "a retraining of this model is open" },
};

void constraint_explain(const struct db_rows *rows, struct err *e)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (db_violated(rows, table[i].name)) {
			(void)err_set(e, table[i].code, "%s", table[i].text);
			(void)str_print(e->field, sizeof e->field, "%s", table[i].field);
			return;
		}
}
