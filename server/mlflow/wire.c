#include "server/mlflow/wire.h"

static struct str col(const struct db_rows *r, size_t row, const char *name)
{
	return db_str(r, row, db_col(r, name));
}

static void put_text(struct jsn_out *w, const char *key, struct str s)
{
	jsn_key(w, key);
	jsn_str(w, s);
}

static void put_int(struct jsn_out *w, const char *key, int64_t v)
{
	jsn_key(w, key);
	jsn_int(w, v);
}

void wire_pairs(struct jsn_out *w, const char *name, const struct db_rows *rows)
{
	if (rows->n == 0)
		return;
	jsn_key(w, name);
	jsn_list_begin(w);
	for (size_t i = 0; i < rows->n; i++) {
		jsn_obj_begin(w);
		put_text(w, "key", col(rows, i, "key"));
		put_text(w, "value", col(rows, i, "value"));
		jsn_obj_end(w);
	}
	jsn_list_end(w);
}

void wire_metric(struct jsn_out *w, struct str key, double value, int64_t time, int64_t step)
{
	jsn_obj_begin(w);
	put_text(w, "key", key);
	jsn_key(w, "value");
	jsn_real(w, value);
	put_int(w, "timestamp", time);
	put_int(w, "step", step);
	jsn_obj_end(w);
}

static void put_metrics(struct jsn_out *w, const struct db_rows *m)
{
	if (m->n == 0)
		return;
	jsn_key(w, "metrics");
	jsn_list_begin(w);
	for (size_t i = 0; i < m->n; i++)
		wire_metric(w, col(m, i, "key"), db_real(m, i, db_col(m, "value")),
			db_int(m, i, db_col(m, "time")), db_int(m, i, db_col(m, "step")));
	jsn_list_end(w);
}

void wire_run_info(struct jsn_out *w, const struct db_rows *r)
{
	static const struct {
		const char *key, *column;
	} texts[] = { { "run_id", "run_id" }, { "run_uuid", "run_id" }, { "run_name", "name" },
		{ "experiment_id", "experiment_id" }, { "user_id", "user_name" },
		{ "status", "status" }, { "artifact_uri", "artifact_uri" },
		{ "lifecycle_stage", "lifecycle" } };

	jsn_obj_begin(w);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		put_text(w, texts[i].key, col(r, 0, texts[i].column));
	if (!db_is_null(r, 0, db_col(r, "start_time")))
		put_int(w, "start_time", db_int(r, 0, db_col(r, "start_time")));
	if (!db_is_null(r, 0, db_col(r, "end_time")))
		put_int(w, "end_time", db_int(r, 0, db_col(r, "end_time")));
	jsn_obj_end(w);
}

void wire_run(struct jsn_out *w, const struct db_rows rows[4])
{
	jsn_obj_begin(w);
	jsn_key(w, "info");
	wire_run_info(w, &rows[0]);
	jsn_key(w, "data");
	jsn_obj_begin(w);
	put_metrics(w, &rows[3]);
	wire_pairs(w, "params", &rows[1]);
	wire_pairs(w, "tags", &rows[2]);
	jsn_obj_end(w);
	jsn_obj_end(w);
}

void wire_experiment(struct jsn_out *w, const struct db_rows *r, const struct db_rows *tags)
{
	char id[24];

	(void)str_print(id, sizeof id, "%lld", (long long)db_int(r, 0, db_col(r, "id")));
	jsn_obj_begin(w);
	put_text(w, "experiment_id", str_c(id));
	put_text(w, "name", col(r, 0, "name"));
	put_text(w, "artifact_location", col(r, 0, "artifact_location"));
	put_text(w, "lifecycle_stage", col(r, 0, "lifecycle"));
	put_int(w, "creation_time", db_time(r, 0, db_col(r, "created_at")) / 1000);
	put_int(w, "last_update_time", db_time(r, 0, db_col(r, "updated_at")) / 1000);
	wire_pairs(w, "tags", tags);
	jsn_obj_end(w);
}
