#include "server/store/pipeline_store.h"

#include "gen/sql.h"
#include "lib/base/buf.h"

static const char *kind_of(const struct trigger_spec *t)
{
	return t->has_dataset ? "dataset" : t->has_schedule ? "schedule" : "pipeline";
}

static struct str subject_of(const struct trigger_spec *t)
{
	return t->has_dataset ? t->dataset.name : t->has_pipeline ? t->pipeline.name : STR("");
}

void pipeline_store_put(struct db_unit *u, const struct pipeline_row *p)
{
	struct buf b;

	db_stmt(u, SQL_PIPELINE_PUT, DB_TEXT(p->id), DB_TEXT(p->project_id), DB_TEXT(p->name),
		DB_TEXT(p->repository), DB_TEXT(p->ref), DB_TEXT(p->path), DB_TEXT(p->commit),
		DB_JSON(p->spec), DB_TEXT(p->source), DB_TEXT(p->actor));
	db_stmt(u, SQL_PIPELINE_TRIGGERS_CLEAR, DB_TEXT(p->project_id), DB_TEXT(p->name));
	for (size_t i = 0; i < p->triggers->n; i++) {
		const struct trigger_spec *t = list_at(p->triggers, struct trigger_spec, i);
		buf_init(&b, 4096);
		field_encode(trigger_spec_fields, t, &b);
		db_stmt(u, SQL_PIPELINE_TRIGGER_ADD, DB_TEXT(p->project_id), DB_TEXT(p->name),
			DB_INT(i), DB_TEXTZ(kind_of(t)), DB_TEXT(subject_of(t)), DB_JSON_OF(&b));
		buf_done(&b);
	}
}

void pipeline_store_get(struct db_unit *u, struct str project_id, struct str name)
{
	db_stmt(u, SQL_PIPELINE_GET, DB_TEXT(project_id), DB_TEXT(name));
}

void pipeline_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_PIPELINE_LIST, DB_TEXT(project_id), DB_TEXT(after), DB_INT(count));
}

void pipeline_store_pause(
	struct db_unit *u, struct str project_id, struct str name, bool paused, struct str actor)
{
	db_stmt(u, SQL_PIPELINE_PAUSE, DB_TEXT(project_id), DB_TEXT(name), DB_BOOL(paused),
		DB_TEXT(actor));
}

void pipeline_store_delete(
	struct db_unit *u, struct str project_id, struct str name, struct str actor)
{
	db_stmt(u, SQL_PIPELINE_DELETE, DB_TEXT(project_id), DB_TEXT(name), DB_TEXT(actor));
}
