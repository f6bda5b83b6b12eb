/* Registered pipelines. */
#include "api/auth.h"
#include "server/rest/handlers.h"
#include "server/sched/source.h"
#include "server/sched/spec.h"
#include "server/sched/trigger_rules.h"
#include "server/store/pipeline_store.h"
#include "server/store/schedule_store.h"

enum { SPEC_MAX = 4 << 20 };

static void pipeline_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "pipeline");
}

static void pipeline_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	pipeline_store_get(u, c->project_id, call_param(c, "pipeline"));
	call_send(c, u, DB_READ, pipeline_on_row);
}

static void pipeline_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	pipeline_store_list(u, c->project_id, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void put_on_done(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	pipeline_get(c);
}

/* Where the file comes from once the request is served: what is given, else what is there. */
struct put_plan {
	struct str repository, ref, path;
	struct str text; /* as it is stored now */
	struct str commit, source; /* what was read */
	struct pipeline_file *file;
	struct pipeline was; /* id empty: there is none */
};

/* The members of the request that led to the file, the nearest first; "" when it gave none. */
static const char *blame(const struct pipeline_put *in)
{
	if (in->path.n != 0 || in->no_path)
		return "/path";
	if (in->ref.n != 0 || in->no_ref)
		return "/ref";
	return in->repository.n != 0 || in->no_repository ? "/repository" : "";
}

/* The file is not valid. Where it came with the request the pointer goes into it; else the place is
 * in the words, and the pointer at what led there: such a request can be parsed, and is not valid.
 */
static void put_refuse(struct call *c, struct str commit, const struct err *why)
{
	const struct pipeline_put *in = c->in;
	const struct put_plan *p = c->state;
	bool named = why->field[0] != '\0' && str_find(str_c(why->msg), str_c(why->field)) < 0;
	const char *field = named ? why->field : "", *after = named ? ": " : "";
	struct err e = *why;

	if (in->source.n != 0) {
		err_field_prefix(&e, "source");
	} else if (commit.n != 0) {
		(void)err_field(&e, blame(in), "%.100s at commit %.12s: %s%s%s", p->path.p,
			commit.p, field, after, why->msg);
	} else {
		(void)err_field(
			&e, blame(in), "the file as it is stored: %s%s%s", field, after, why->msg);
	}
	call_fail(c, &e);
}

/* The first instant of each schedule among the triggers. */
static const int64_t *first_instants(struct call *c, const struct list *triggers, int64_t now)
{
	int64_t *nexts = arena_array_of(c->arena, int64_t, triggers->n + 1);

	for (size_t i = 0; i < triggers->n; i++) {
		const struct trigger_spec *t = list_at(triggers, struct trigger_spec, i);
		struct schedule s;
		struct err e;
		nexts[i] = INT64_MAX;
		if (t->has_schedule && trigger_schedule(&t->schedule, &s, &e) == 0)
			nexts[i] = cron_next(&s.rule, now);
	}
	return nexts;
}

/* In the order of their instants, as a reader gets them. */
static struct list schedules_of(struct call *c, const struct list *triggers, const int64_t *nexts)
{
	struct pipeline_schedule *all =
		arena_array_of(c->arena, struct pipeline_schedule, triggers->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < triggers->n; i++) {
		const struct trigger_spec *t = list_at(triggers, struct trigger_spec, i);
		size_t at = n;
		if (!t->has_schedule)
			continue;
		for (; at > 0 && all[at - 1].next_at > nexts[i]; at--)
			all[at] = all[at - 1];
		all[at] = (struct pipeline_schedule){ t->schedule.cron, t->schedule.timezone,
			nexts[i] };
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		if (all[i].next_at == INT64_MAX)
			all[i].next_at = 0;
	}
	return (struct list){ all, n };
}

/* The pipeline as it would be; nothing has been written. */
static void put_reply_dry(struct call *c, struct str spec, const int64_t *nexts, int64_t now)
{
	const struct put_plan *p = c->state;
	struct pipeline is = p->was;
	bool same = is.id.n != 0 && str_eq(is.repository, p->repository) &&
		    str_eq(is.ref, p->ref) && str_eq(is.path, p->path) &&
		    str_eq(is.commit, p->commit) && str_eq(is.source, p->source);

	if (!same) {
		is.created_at = is.id.n != 0 ? is.created_at : now;
		is.name = call_param(c, "pipeline");
		is.repository = p->repository;
		is.ref = p->ref;
		is.path = p->path;
		is.commit = p->commit;
		is.source = p->source;
		is.spec = spec;
		is.schedules = schedules_of(c, &p->file->spec.triggers, nexts);
		is.version++;
	}
	call_reply(c, 200, pipeline_fields, &is);
}

static void put_write(struct call *c)
{
	const struct dry_put_query *query = c->query;
	const struct put_plan *p = c->state;
	const struct list *triggers = &p->file->spec.triggers;
	int64_t now = clock_now(c->app->clock);
	struct buf b;
	struct err e;

	buf_init(&b, SPEC_MAX);
	field_encode(pipeline_spec_fields, &p->file->spec, &b);
	if (buf_failed(&b)) {
		buf_done(&b);
		(void)err_field(&e, "/spec", "has more than %d bytes as JSON", SPEC_MAX);
		put_refuse(c, p->commit, &e);
		return;
	}
	if (query->dry_run) {
		put_reply_dry(c, buf_keep(&b, c->arena), first_instants(c, triggers, now), now);
		return;
	}
	struct db_unit *u = call_unit(c);
	pipeline_store_put(u, &(struct pipeline_row){ .id = call_id(c, "pl"),
				      .project_id = c->project_id,
				      .name = call_param(c, "pipeline"),
				      .repository = p->repository,
				      .ref = p->ref,
				      .path = p->path,
				      .commit = p->commit,
				      .spec = buf_str(&b),
				      .source = p->source,
				      .actor = call_actor(c),
				      .triggers = triggers });
	buf_done(&b);
	schedule_store_put(u, c->project_id, call_param(c, "pipeline"), triggers,
		first_instants(c, triggers, now), now);
	call_send(c, u, DB_WRITE, put_on_done);
}

static void put_on_circle(struct call *c, const struct db_rows *rows)
{
	const struct put_plan *p = c->state;
	const struct list *triggers = &p->file->spec.triggers;
	char at[64];
	struct err e;

	if (rows[0].n == 0) {
		put_write(c);
		return;
	}
	for (size_t i = 0; i < triggers->n; i++) {
		const struct trigger_spec *t = list_at(triggers, struct trigger_spec, i);
		if (!t->has_pipeline || !str_eq(t->pipeline.name, db_str(&rows[0], 0, 0)))
			continue;
		(void)str_print(at, sizeof at, "/spec/triggers/%zu/pipeline/name", i);
		(void)err_field(&e, at,
			"runs of %.*s start at the end of this pipeline's, and would start each "
			"other for ever",
			STR_ARG(t->pipeline.name));
		put_refuse(c, p->commit, &e);
		return;
	}
}

/* Pipelines that start each other are refused. */
static void put_check_upstream(struct call *c)
{
	const struct put_plan *p = c->state;
	const struct list *triggers = &p->file->spec.triggers;
	struct str *upstream = arena_array_of(c->arena, struct str, triggers->n + 1);
	struct db_unit *u;
	size_t n = 0;

	for (size_t i = 0; i < triggers->n; i++) {
		const struct trigger_spec *t = list_at(triggers, struct trigger_spec, i);
		if (t->has_pipeline)
			upstream[n++] = t->pipeline.name;
	}
	if (n == 0) {
		put_write(c);
		return;
	}
	u = call_unit(c);
	schedule_store_circle(u, c->project_id, call_param(c, "pipeline"), upstream, n);
	call_send(c, u, DB_READ, put_on_circle);
}

static void put_text(struct call *c, struct str commit, struct str text)
{
	struct put_plan *p = c->state;
	struct pipeline_file *file = arena_new_of(c->arena, struct pipeline_file);
	struct str name = call_param(c, "pipeline");
	struct err e;

	if (spec_read(text, c->arena, file, &e) < 0) {
		put_refuse(c, commit, &e);
		return;
	}
	if (!str_eq(file->metadata.name, name)) {
		(void)err_field(&e, "/metadata/name",
			"the file is of the pipeline %.*s, the path says %.*s",
			STR_ARG(file->metadata.name), STR_ARG(name));
		put_refuse(c, commit, &e);
		return;
	}
	p->commit = commit;
	p->source = text;
	p->file = file;
	put_check_upstream(c);
}

/* A text that came with the request must be the repository's own: runs would never see another. */
static void put_on_source(void *arg, struct str commit, struct str text, const struct err *e)
{
	struct call *c = arg;
	const struct pipeline_put *in = c->in;
	const struct put_plan *p = c->state;
	struct err differs;

	if (e->code != ERR_OK) {
		call_fail(c, e);
	} else if (in->source.n != 0 && !str_eq(in->source, text)) {
		(void)err_set(&differs, ERR_CONFLICT,
			"the pipeline comes from its repository, and source is not %.120s at "
			"commit %.12s there; push it, or give repository null",
			p->path.p, commit.p);
		call_fail(c, &differs);
	} else {
		put_text(c, commit, text);
	}
}

static struct str choose(struct str given, bool null, struct str was, const char *otherwise)
{
	if (given.n != 0)
		return given;
	return !null && was.n != 0 ? was : str_c(otherwise);
}

static void put_on_stored(struct call *c, const struct db_rows *rows)
{
	const struct pipeline_put *in = c->in;
	struct put_plan *p = c->state;
	struct pipeline was = { .id = STR("") };
	struct err e;

	if (rows[0].n != 0 && db_row_decode(&rows[0], 0, pipeline_fields, c->arena, &was, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	bool none = in->no_repository || (in->repository.p != NULL && in->repository.n == 0);
	*p = (struct put_plan){ .repository = choose(in->repository, none, was.repository, ""),
		.ref = STR(""),
		.path = STR(""),
		.text = in->source.n != 0 ? in->source : was.source,
		.was = was };
	if (p->repository.n != 0) {
		p->ref = choose(in->ref, in->no_ref, was.ref, "main");
		p->path = choose(in->path, in->no_path, was.path, "tidemill.yaml");
		source_read(c->app, c->arena, p->repository, p->ref, p->path, put_on_source, c);
	} else if (in->ref.n != 0 || in->path.n != 0) {
		call_invalid(c, in->ref.n != 0 ? "/ref" : "/path",
			"is of a repository, and the pipeline has none");
	} else if (p->text.n == 0) {
		call_invalid(c, "/repository", "give either repository or source");
	} else {
		put_text(c, STR(""), p->text);
	}
}

static void pipeline_put(struct call *c)
{
	const struct pipeline_put *in = c->in;

	if (in->source.n != 0 && in->repository.n != 0) {
		call_invalid(c, "/repository", "give either repository or source");
	} else if (!str_is_name(call_param(c, "pipeline"))) {
		call_invalid(c, "/pipeline",
			"must be of [a-z0-9._-], up to 63, and begin with a letter or digit");
	} else {
		struct db_unit *u = call_unit(c);
		c->state = arena_new_of(c->arena, struct put_plan);
		pipeline_store_get(u, c->project_id, call_param(c, "pipeline"));
		call_send(c, u, DB_READ, put_on_stored);
	}
}

static void set_paused(struct call *c, bool paused)
{
	struct db_unit *u = call_unit(c);

	pipeline_store_pause(u, c->project_id, call_param(c, "pipeline"), paused, call_actor(c));
	call_send(c, u, DB_WRITE, put_on_done);
}

static void pipeline_pause(struct call *c)
{
	set_paused(c, true);
}

static void pipeline_resume(struct call *c)
{
	set_paused(c, false);
}

static void delete_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "pipeline");
	else
		call_reply_empty(c);
}

static void pipeline_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	pipeline_store_delete(u, c->project_id, call_param(c, "pipeline"), call_actor(c));
	call_send(c, u, DB_WRITE, delete_on_row);
}

const struct binding pipeline_bindings[] = {
	{ "pipelines.get", pipeline_get },
	{ "pipelines.list", pipeline_list },
	{ "pipelines.put", pipeline_put },
	{ "pipelines.pause", pipeline_pause },
	{ "pipelines.resume", pipeline_resume },
	{ "pipelines.delete", pipeline_delete },
	{ 0 },
};
