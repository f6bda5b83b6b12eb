/* The statements of a run's end. */
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "server/app.h"
#include "server/sched/finish_inside.h"
#include "server/sched/monitor_rules.h"
#include "server/store/event_store.h"
#include "server/store/monitor_store.h"

#include <math.h>

enum { JSON_MAX = 1 << 20 };

bool finish_is_output(const struct finish_output *o, struct str reference)
{
	return reference.n == o->step.n + 1 + o->output.n && str_starts(reference, o->step) &&
	       reference.p[o->step.n] == '.' && str_ends(reference, o->output);
}

/* ---- the verdict ---- */

/* The version that the run staged as the champion, or "". */
static struct str staged_champion(const struct finishing *f, bool *ret_asked)
{
	struct jsn_doc *doc;
	struct str id = STR("");
	struct err e;

	*ret_asked = false;
	if (jsn_parse(f->models, &doc, &e) < 0)
		return id;
	for (size_t i = 0; i < f->spec.models.n; i++) {
		const struct model_ref *m = list_at(&f->spec.models, struct model_ref, i);
		if (!str_eq(m->name, f->spec.model.name) ||
			!str_eq(m->alias, f->spec.model.gate.against))
			continue;
		*ret_asked = true;
		id = arena_str(f->arena, jsn_get_str(jsn_get(jsn_root(doc), m->key.p)));
	}
	jsn_doc_free(doc);
	return id;
}

void finish_judge(struct finishing *f)
{
	const struct gate_spec *g = &f->spec.model.gate;
	bool asked;

	f->verdict = "none";
	f->verdict_reason = STR("The pipeline has no gate.");
	if (f->gate == NULL)
		return;
	f->verdict = gate_outcome_name(f->gate->result.outcome);
	f->verdict_reason = str_c(f->gate->result.reason);
	struct str staged = staged_champion(f, &asked);
	if (g->against.n == 0 || f->against_id.n == 0)
		return;
	if (asked && !str_eq(staged, f->against_id)) {
		f->verdict = gate_outcome_name(GATE_REFUSED);
		f->verdict_reason =
			STR("The champion has changed since the run read it: what it was "
			    "compared with is not the champion any more.");
	} else if (!f->gate->champion_rows) {
		f->verdict = gate_outcome_name(GATE_REFUSED);
		f->verdict_reason =
			STR("There is a champion, but the predictions have no rows of it "
			    "to compare with.");
	}
}

/* ---- the model version ---- */

static struct str training_json(const struct finishing *f)
{
	const struct training_data *t = &f->spec.model.training_data;
	const struct finish_dataset *d = NULL;
	struct buf b;

	if (!f->spec.model.has_training_data)
		return STR("{}");
	for (size_t i = 0; i < f->n_datasets; i++)
		if (str_eq(f->datasets[i].name, t->dataset))
			d = &f->datasets[i];
	if (d == NULL)
		return STR("{}");
	buf_init(&b, JSON_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "dataset");
	jsn_str(&w, d->dataset);
	jsn_key(&w, "dataset_version");
	jsn_int(&w, d->number);
	jsn_key(&w, "dataset_version_id");
	jsn_str(&w, d->version_id);
	jsn_key(&w, "column");
	jsn_str(&w, t->column);
	jsn_key(&w, "from");
	jsn_str(&w, t->from);
	jsn_key(&w, "to");
	jsn_str(&w, t->to);
	jsn_obj_end(&w);
	return buf_keep(&b, f->arena);
}

static struct str datasets_json(const struct finishing *f)
{
	struct buf b;

	buf_init(&b, JSON_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_list_begin(&w);
	for (size_t i = 0; i < f->n_datasets; i++) {
		jsn_obj_begin(&w);
		jsn_key(&w, "name");
		jsn_str(&w, f->datasets[i].name);
		jsn_key(&w, "dataset");
		jsn_str(&w, f->datasets[i].dataset);
		jsn_key(&w, "number");
		jsn_int(&w, f->datasets[i].number);
		jsn_key(&w, "version_id");
		jsn_str(&w, f->datasets[i].version_id);
		jsn_obj_end(&w);
	}
	jsn_list_end(&w);
	return buf_keep(&b, f->arena);
}

static struct str new_id(struct finishing *f, const char *prefix)
{
	char id[ID_MAX];

	return arena_str(f->arena, str_c(id_new(id, prefix, f->app->clock)));
}

static const struct finish_output *model_output(const struct finishing *f)
{
	for (size_t i = 0; i < f->n_outputs; i++)
		if (finish_is_output(&f->outputs[i], f->spec.model.from))
			return &f->outputs[i];
	return NULL;
}

static void add_version(struct finishing *f, struct db_unit *u, struct str version_id)
{
	const struct model_spec *m = &f->spec.model;
	const struct finish_output *from = model_output(f);
	struct model_version_new v = { .id = version_id,
		.run_id = f->run_id,
		.step_id = from->step_id,
		.output = from->output,
		.repository = f->repository,
		.commit = f->commit,
		.training_data = training_json(f),
		.datasets = datasets_json(f),
		.metrics = STR("{}"),
		.gate = STR("{}"),
		.verdict = str_c(f->verdict),
		.verdict_reason = f->verdict_reason,
		.created_by = f->created_by,
		.new_model_id = new_id(f, "mdl") };

	for (size_t i = 0; i < f->n_steps; i++)
		if (str_eq(f->steps[i].id, from->step_id)) {
			v.tracking_run = f->steps[i].tracking_run;
			v.image_digest = f->steps[i].image_digest;
			v.metrics = f->steps[i].metrics;
		}
	if (f->gate != NULL) {
		v.gate = gate_json(&m->gate, f->gate, m->gate.against, f->arena);
		v.metric = str_c(gate_metric_names[m->gate.metric]);
		v.level = f->gate->result.challenger;
		v.has_level = isfinite(v.level);
	}
	model_version_store_add(u, (struct model_key){ f->project_id, m->name }, &v);
}

static void add_event(struct finishing *f, struct db_unit *u, const char *type, struct str subject,
	struct str data)
{
	event_store_add(u, &(struct event_new){ .project_id = f->project_id,
				   .type = type,
				   .subject = subject,
				   .parent = str_eq(subject, f->run_id) ? STR_NONE : f->run_id,
				   .data = data });
}

static bool is_promoted(const struct finishing *f)
{
	return strcmp(f->verdict, gate_outcome_name(GATE_PROMOTED)) == 0 &&
	       f->spec.model.gate.promote.n != 0;
}

static void add_model(struct finishing *f, struct db_unit *u)
{
	struct model_key key = { f->project_id, f->spec.model.name };
	struct str id = new_id(f, "mv");

	add_version(f, u, id);
	add_event(f, u, "model_version.created", id,
		arena_printf(f->arena, "{\"verdict\":\"%s\"}", f->verdict));
	if (!is_promoted(f))
		return;
	alias_store_promote(u, key,
		&(struct alias_move){ .alias = f->spec.model.gate.promote,
			.target = id,
			.expected = f->promote_id,
			.cause = "gate",
			.note = f->verdict_reason });
	add_event(f, u, "model.alias_moved", id, STR_NONE);
}

/* ---- the monitors ---- */

static void move_state(const struct finishing *f, struct finish_monitor *m)
{
	const struct gate_result *g = f->gate != NULL ? &f->gate->result : NULL;

	if (is_promoted(f))
		policy_promoted(&m->rules, &m->state, g->has_champion, g->champion);
	else if (strcmp(f->verdict, gate_outcome_name(GATE_REFUSED)) == 0)
		policy_refused(&m->rules, &m->state);
	else
		policy_failed(&m->rules, &m->state);
}

static void add_monitors(struct finishing *f, struct db_unit *u, bool failed)
{
	for (size_t i = 0; i < f->n_monitors; i++) {
		struct finish_monitor *m = &f->monitors[i];
		if (!m->asked && (failed || !is_promoted(f)))
			continue;
		if (failed)
			policy_failed(&m->rules, &m->state);
		else
			move_state(f, m);
		monitor_store_advance(u, m->id, m->version);
		finish_store_monitor_state(u, m->id, policy_state_write(&m->state, f->arena));
		add_event(f, u, "monitor.updated", m->id, STR_NONE);
	}
}

/* ---- the run ---- */

void finish_add_success(struct finishing *f, struct db_unit *u)
{
	finish_store_advance(u, f->run_id, f->version);
	if (f->spec.has_model) {
		/* Monitors first, as all that lock both monitors and aliases. */
		add_monitors(f, u, false);
		add_model(f, u);
	} else if (f->left_out) {
		add_monitors(f, u, true);
	}
	retraining_store_close(u, f->run_id);
	finish_store_state(u, f->run_id, "succeeded", STR(""), f->note);
	add_event(f, u, "run.succeeded", f->run_id, STR_NONE);
}

void finish_add_failure(struct finishing *f, struct db_unit *u, const char *reason)
{
	finish_store_advance(u, f->run_id, f->version);
	add_monitors(f, u, true);
	retraining_store_close(u, f->run_id);
	finish_store_state(u, f->run_id, "failed", str_c(reason), str_c(f->err.msg));
	add_event(f, u, "run.failed", f->run_id, STR_NONE);
}
