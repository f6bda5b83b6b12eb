/* What is known of a run that comes to its end. */
#include "server/sched/finish_inside.h"

struct str finish_text(struct finishing *f, const struct db_rows *r, size_t i, const char *name)
{
	return arena_str(f->arena, db_str(r, i, db_col(r, name)));
}

static void read_outputs(struct finishing *f, const struct db_rows *r)
{
	f->n_outputs = r->n;
	f->outputs = arena_array_of(f->arena, struct finish_output, r->n + 1);
	for (size_t i = 0; i < r->n; i++) {
		struct finish_output *o = &f->outputs[i];
		struct str digest = db_str(r, i, db_col(r, "digest"));
		o->step_id = finish_text(f, r, i, "step_id");
		o->step = finish_text(f, r, i, "step");
		o->output = finish_text(f, r, i, "output");
		o->path = finish_text(f, r, i, "path");
		o->blob.size = db_int(r, i, db_col(r, "size"));
		BUG_ON(digest.n != HASH_SIZE);
		memcpy(o->blob.digest, digest.p, HASH_SIZE);
	}
}

static void read_steps(struct finishing *f, const struct db_rows *r)
{
	f->n_steps = r->n;
	f->steps = arena_array_of(f->arena, struct finish_step, r->n + 1);
	for (size_t i = 0; i < r->n; i++)
		f->steps[i] = (struct finish_step){ .id = finish_text(f, r, i, "id"),
			.name = finish_text(f, r, i, "name"),
			.tracking_run = finish_text(f, r, i, "tracking_run"),
			.image_digest = finish_text(f, r, i, "image_digest"),
			.metrics = finish_text(f, r, i, "metrics"),
			.state = finish_text(f, r, i, "state"),
			.message = finish_text(f, r, i, "message") };
}

static void read_datasets(struct finishing *f, const struct db_rows *r)
{
	f->n_datasets = r->n;
	f->datasets = arena_array_of(f->arena, struct finish_dataset, r->n + 1);
	for (size_t i = 0; i < r->n; i++)
		f->datasets[i] = (struct finish_dataset){ .name = finish_text(f, r, i, "name"),
			.dataset = finish_text(f, r, i, "dataset"),
			.version_id = finish_text(f, r, i, "version_id"),
			.number = db_int(r, i, db_col(r, "number")) };
}

const struct output_spec *finish_output_spec(
	const struct finishing *f, const struct finish_output *o)
{
	for (size_t i = 0; i < f->spec.steps.n; i++) {
		const struct step_spec *s = list_at(&f->spec.steps, struct step_spec, i);
		for (size_t k = 0; str_eq(s->name, o->step) && k < s->outputs.n; k++)
			if (str_eq(list_at(&s->outputs, struct output_spec, k)->name, o->output))
				return list_at(&s->outputs, struct output_spec, k);
	}
	return NULL;
}

/* STEP.OUTPUT of a step that was skipped, or NULL. */
static const struct finish_step *skipped_step(const struct finishing *f, struct str reference)
{
	for (size_t i = 0; i < f->n_steps; i++) {
		const struct finish_step *s = &f->steps[i];
		struct finish_output o = { .step = s->name };
		if (!str_is(s->state, "skipped") || !str_starts(reference, s->name))
			continue;
		o.output = str_slice(reference, s->name.n + 1, reference.n);
		if (finish_is_output(&o, reference) && finish_output_spec(f, &o) != NULL)
			return s;
	}
	return NULL;
}

/* What was skipped registers nothing. */
static void leave_out_model(struct finishing *f)
{
	const struct model_spec *m = &f->spec.model;
	const struct finish_step *s;

	f->left_out = false;
	if (!f->spec.has_model)
		return;
	s = skipped_step(f, m->from);
	if (s == NULL && m->has_gate)
		s = skipped_step(f, m->gate.predictions);
	if (s == NULL)
		return;
	f->left_out = true;
	f->spec.has_model = false;
	f->note = arena_printf(f->arena,
		"No version of the model %.*s was registered: the step %.*s was skipped. %.*s.",
		STR_ARG(m->name), STR_ARG(s->name), STR_ARG(s->message));
}

int finish_read_run(struct finishing *f, const struct db_rows *rows)
{
	const struct db_rows *r = &rows[0];

	f->project_id = finish_text(f, r, 0, "project_id");
	f->group = finish_text(f, r, 0, "concurrency_group");
	f->decision_id = finish_text(f, r, 0, "decision_id");
	f->repository = finish_text(f, r, 0, "repository");
	f->commit = finish_text(f, r, 0, "commit");
	f->created_by = finish_text(f, r, 0, "created_by");
	f->models = finish_text(f, r, 0, "models");
	f->version = db_int(r, 0, db_col(r, "version"));
	read_outputs(f, &rows[1]);
	read_steps(f, &rows[2]);
	read_datasets(f, &rows[3]);
	if (field_decode_reply(pipeline_spec_fields, finish_text(f, r, 0, "spec"), f->arena,
		    &f->spec, &f->err) < 0)
		return -1;
	leave_out_model(f);
	return 0;
}
