#include "server/sched/spec.h"

#include "lib/base/num.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "lib/json/yaml.h"
#include "server/core/names.h"
#include "server/core/render.h"
#include "server/core/spec_check.h"
#include "server/sched/gpu_spec.h"
#include "server/sched/log_policy.h"
#include "server/sched/secret_rules.h"
#include "server/sched/spec_inside.h"
#include "server/sched/trigger_rules.h"

enum { TEXT_MAX = 1 << 20 };

/* ---- reading ---- */

static struct str or_empty(struct str s)
{
	return s.p != NULL ? s : STR("");
}

bool spec_is_blank(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\n')
			return false;
	return true;
}

static int err_item(struct err *e, size_t i)
{
	char at[32];

	(void)str_print(at, sizeof at, "/run/%zu", i);
	return err_field(e, at, "must be a string");
}

int spec_argv(struct str run_json, struct arena *a, struct list *ret, struct err *e)
{
	struct jsn_doc *doc;
	int rc = 0;

	if (jsn_parse(run_json, &doc, e) < 0)
		return -1;
	const struct jsn *root = jsn_root(doc);
	struct list argv = { .n = 0 };
	if (jsn_type(root) == JSN_STR && spec_is_blank(jsn_get_str(root))) {
		rc = err_field(e, "/run", "must not be empty: it is the command of the step");
	} else if (jsn_type(root) == JSN_STR) {
		argv.items = arena_array_of(a, struct str, 3);
		*list_at(&argv, struct str, 0) = STR("/bin/sh");
		*list_at(&argv, struct str, 1) = STR("-c");
		*list_at(&argv, struct str, 2) = arena_str(a, jsn_get_str(root));
		argv.n = 3;
	} else if (jsn_type(root) == JSN_LIST && jsn_count(root) >= 1 &&
		   jsn_count(root) <= ARGV_MAX) {
		argv.items = arena_array_of(a, struct str, jsn_count(root));
		for (; argv.n < jsn_count(root) && rc == 0; argv.n++) {
			if (jsn_type(jsn_at(root, argv.n)) != JSN_STR)
				rc = err_item(e, argv.n);
			*list_at(&argv, struct str, argv.n) =
				arena_str(a, jsn_get_str(jsn_at(root, argv.n)));
		}
	} else {
		rc = err_field(
			e, "/run", "must be a string, or a list of 1 to %d strings", ARGV_MAX);
	}
	jsn_doc_free(doc);
	if (rc == 0)
		*ret = argv;
	return rc;
}

static bool has_env(const struct list *env, struct str key)
{
	for (size_t i = 0; i < env->n; i++)
		if (str_eq(list_at(env, struct field_pair, i)->key, key))
			return true;
	return false;
}

/* The step's own variables win over the defaults'. */
static void merge_env(struct step_spec *s, const struct list *defaults, struct arena *a)
{
	struct field_pair *all = arena_array_of(a, struct field_pair, s->env.n + defaults->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < defaults->n; i++)
		if (!has_env(&s->env, list_at(defaults, struct field_pair, i)->key))
			all[n++] = *list_at(defaults, struct field_pair, i);
	for (size_t i = 0; i < s->env.n; i++)
		all[n++] = *list_at(&s->env, struct field_pair, i);
	s->env = (struct list){ all, n };
}

static void merge_defaults(struct pipeline_spec *spec, struct arena *a)
{
	static const int both[] = { RUNTIME_DOCKER, RUNTIME_PROCESS };
	const struct step_defaults *d = &spec->defaults;

	for (size_t i = 0; i < spec->steps.n; i++) {
		struct step_spec *s = list_at(&spec->steps, struct step_spec, i);
		if (s->image.n == 0)
			s->image = d->image;
		if (s->runtimes.n == 0)
			s->runtimes = d->runtimes;
		if (s->runtimes.n == 0) {
			s->runtimes.items = arena_array_of(a, int, 2);
			memcpy(s->runtimes.items, both, sizeof both);
			s->runtimes.n = s->image.n != 0 ? 2 : 1;
			if (s->image.n == 0)
				*list_at(&s->runtimes, int, 0) = RUNTIME_PROCESS;
		}
		if (!s->has_resources && d->has_resources) {
			s->resources = d->resources;
			s->has_resources = true; /* it is stored with them */
		}
		if (s->time_limit.text.n == 0)
			s->time_limit = s->timeouts.run;
		merge_env(s, &d->env, a);
	}
}

static bool wants_image(const struct step_spec *s)
{
	for (size_t i = 0; i < s->runtimes.n; i++)
		if (*list_at(&s->runtimes, int, i) != RUNTIME_PROCESS)
			return true;
	return false;
}

static struct spec_variable *check_env(const struct step_spec *s, struct arena *a)
{
	struct spec_variable *out = arena_array_of(a, struct spec_variable, s->env.n + 1);

	for (size_t i = 0; i < s->env.n; i++) {
		const struct field_pair *p = list_at(&s->env, struct field_pair, i);
		out[i] = (struct spec_variable){ p->key, p->value };
	}
	return out;
}

static struct spec_output *check_outputs(const struct step_spec *s, struct arena *a)
{
	struct spec_output *out = arena_array_of(a, struct spec_output, s->outputs.n + 1);

	for (size_t i = 0; i < s->outputs.n; i++) {
		const struct output_spec *o = list_at(&s->outputs, struct output_spec, i);
		out[i] = (struct spec_output){ o->name, o->path, o->kind, or_empty(o->monitor) };
	}
	return out;
}

bool spec_is_shell(struct str run_json)
{
	return run_json.n != 0 && run_json.p[0] == '"';
}

static int check_step(
	const struct step_spec *s, struct arena *a, struct spec_step *ret, struct err *e)
{
	struct list argv, keys = { .n = 0 };

	if (spec_matrix_keys(s, a, &keys, e) < 0 || spec_argv(s->run, a, &argv, e) < 0) {
		char name[64];
		(void)str_print(name, sizeof name, "%.*s", STR_ARG(s->name));
		err_field_prefix(e, name);
		err_field_prefix(e, "steps");
		return -1;
	}
	*ret = (struct spec_step){ .name = s->name,
		.needs = s->needs.items,
		.needs_n = s->needs.n,
		.argv = argv.items,
		.argv_n = argv.n,
		.shell = spec_is_shell(s->run),
		.condition = or_empty(s->condition),
		.matrix = keys.items,
		.matrix_n = keys.n,
		.selects = s->has_matrix && s->matrix.has_select,
		.env = check_env(s, a),
		.env_n = s->env.n,
		.outputs = check_outputs(s, a),
		.outputs_n = s->outputs.n,
		.image = or_empty(s->image),
		.wants_image = wants_image(s) };
	return 0;
}

/* The keys of a list whose items begin with theirs. */
static const struct str *keys_of(const struct list *l, size_t size, struct arena *a)
{
	struct str *out = arena_array_of(a, struct str, l->n + 1);

	for (size_t i = 0; i < l->n; i++)
		memcpy(&out[i], (const char *)l->items + i * size, sizeof out[i]);
	return out;
}

static int check_aliases(const struct pipeline_spec *spec, struct err *e)
{
	const struct gate_spec *g = &spec->model.gate;

	for (size_t i = 0; i < spec->models.n; i++) {
		const struct model_ref *m = list_at(&spec->models, struct model_ref, i);
		if (names_alias_check(m->alias, "/alias", e) == 0)
			continue;
		err_field_prefix(e, m->key.p);
		err_field_prefix(e, "models");
		return -1;
	}
	if (!spec->has_model || !spec->model.has_gate)
		return 0;
	if (g->against.n != 0 && names_alias_check(g->against, "/model/gate/against", e) < 0)
		return -1;
	return g->promote.n != 0 ? names_alias_check(g->promote, "/model/gate/promote", e) : 0;
}

/* One end of the span, filled in; *ret_us stays as it is when the text has still to be. */
static int check_day(struct str text, const char *at, int64_t *ret_us, struct err *e)
{
	if (render_has_reference(text) || clock_parse_date(text, ret_us))
		return 0;
	return err_field(e, at, "must be a date, as 2001-01-31");
}

int spec_check_training(const struct training_data *t, struct err *e)
{
	int64_t from = INT64_MIN, to = INT64_MAX;

	if (check_day(t->from, "/model/training_data/from", &from, e) < 0 ||
		check_day(t->to, "/model/training_data/to", &to, e) < 0)
		return -1;
	if (from > to)
		return err_field(e, "/model/training_data/to",
			"the last day, %.*s, lies before the first, %.*s", STR_ARG(t->to),
			STR_ARG(t->from));
	return 0;
}

static int check_all(const struct pipeline_spec *spec, struct arena *a, struct err *e)
{
	struct spec_step *steps = arena_array_of(a, struct spec_step, spec->steps.n);
	struct spec s = { .steps = steps, .steps_n = spec->steps.n };

	for (size_t i = 0; i < spec->steps.n; i++)
		if (check_step(list_at(&spec->steps, struct step_spec, i), a, &steps[i], e) < 0)
			return -1;
	s.inputs = keys_of(&spec->inputs, sizeof(struct input_spec), a);
	s.inputs_n = spec->inputs.n;
	s.datasets = keys_of(&spec->datasets, sizeof(struct dataset_ref), a);
	s.datasets_n = spec->datasets.n;
	s.models = keys_of(&spec->models, sizeof(struct model_ref), a);
	s.models_n = spec->models.n;
	s.model_from = spec->has_model ? spec->model.from : STR("");
	s.training_dataset = spec->has_model && spec->model.has_training_data
				     ? spec->model.training_data.dataset
				     : STR("");
	s.gate_predictions =
		spec->has_model && spec->model.has_gate ? spec->model.gate.predictions : STR("");
	const struct training_data *t = &spec->model.training_data;
	const struct spec_text span[] = { { "/model/training_data/from", t->from },
		{ "/model/training_data/to", t->to } };
	if (s.training_dataset.n != 0) {
		s.texts = span;
		s.texts_n = 2;
	}
	if (check_aliases(spec, e) < 0 || spec_check(&s, a, NULL, e) < 0 ||
		spec_matrix_check(spec, a, e) < 0)
		return -1;
	return s.texts_n != 0 ? spec_check_training(t, e) : 0;
}

int spec_read(struct str text, struct arena *a, struct pipeline_file *ret, struct err *e)
{
	struct input_rule *rules;

	if (yaml_decode(pipeline_file_fields, text, a, ret, e) < 0)
		return -1;
	if (!str_is(ret->api_version, "tidemill/v1")) {
		(void)err_field(e, "/apiVersion", "must be tidemill/v1");
		yaml_locate(text, e);
		return -1;
	}
	int rc = gpu_spec_check(&ret->spec, a, e);
	if (rc == 0)
		merge_defaults(&ret->spec, a);
	if (rc < 0 || check_all(&ret->spec, a, e) < 0 || log_policy_check(&ret->spec, a, e) < 0 ||
		secret_rules_check(&ret->spec, a, e) < 0 ||
		spec_input_rules(&ret->spec, a, &rules, e) < 0 ||
		trigger_rules_check(&ret->spec.triggers, ret->metadata.name, e) < 0) {
		err_field_prefix(e, "spec");
		yaml_locate(text, e);
		return -1;
	}
	return 0;
}

/* ---- inputs ---- */

static int value_of(const struct jsn *v, struct arena *a, struct input_value *ret)
{
	char text[NUM_DOUBLE_MAX];

	*ret = (struct input_value){ .form = INPUT_FORM_OTHER };
	switch (jsn_type(v)) {
	case JSN_NULL: ret->form = INPUT_FORM_NULL; break;
	case JSN_BOOL:
		*ret = (struct input_value){ INPUT_FORM_BOOLEAN,
			jsn_get_bool(v, false) ? STR("true") : STR("false") };
		break;
	case JSN_INT:
		*ret = (struct input_value){ INPUT_FORM_NUMBER,
			arena_printf(a, "%lld", (long long)jsn_get_int(v, 0)) };
		break;
	case JSN_REAL:
		*ret = (struct input_value){ INPUT_FORM_NUMBER,
			arena_str(a, str_c(num_format_double(text, jsn_get_real(v, 0)))) };
		break;
	case JSN_STR:
		*ret = (struct input_value){ INPUT_FORM_TEXT, arena_str(a, jsn_get_str(v)) };
		break;
	case JSN_LIST:
	case JSN_OBJ: break;
	}
	return 0;
}

int spec_input_rules(
	const struct pipeline_spec *spec, struct arena *a, struct input_rule **ret, struct err *e)
{
	struct input_rule *rules = arena_array_of(a, struct input_rule, spec->inputs.n + 1);

	for (size_t i = 0; i < spec->inputs.n; i++) {
		const struct input_spec *in = list_at(&spec->inputs, struct input_spec, i);
		struct jsn_doc *doc = NULL;
		rules[i] = (struct input_rule){ .name = in->name,
			.want = (enum input_want)in->type,
			.min = in->min,
			.max = in->max,
			.has_min = in->has_min,
			.has_max = in->has_max,
			.choices = in->choices.items,
			.choices_n = in->choices.n };
		if (in->value.n != 0) {
			if (jsn_parse(in->value, &doc, e) < 0 ||
				value_of(jsn_root(doc), a, &rules[i].fallback) < 0)
				return -1;
			jsn_doc_free(doc);
		}
		if (input_check_rule(&rules[i], e) < 0) {
			err_field_prefix(e, "inputs");
			return -1;
		}
	}
	*ret = rules;
	return 0;
}

int spec_fill_inputs(const struct pipeline_spec *spec, struct str inputs_json, bool loose,
	struct arena *a, struct spec_scope *scope, struct err *e)
{
	struct input_rule *rules;
	struct jsn_doc *doc;

	if (spec_input_rules(spec, a, &rules, e) < 0 || jsn_parse(inputs_json, &doc, e) < 0)
		return -1;
	const struct jsn *root = jsn_root(doc);
	size_t n = jsn_type(root) == JSN_OBJ ? jsn_count(root) : 0;
	struct input_given *given = arena_array_of(a, struct input_given, n + 1);
	struct render_value *values = arena_array_of(a, struct render_value, spec->inputs.n + 1);
	for (size_t i = 0; i < n; i++) {
		given[i].name = arena_str(a, jsn_name(jsn_at(root, i)));
		(void)value_of(jsn_at(root, i), a, &given[i].value);
	}
	int rc = jsn_type(root) == JSN_OBJ
			 ? input_fill(rules, spec->inputs.n, given, n, loose, a, values, e)
			 : err_field(e, "", "must be an object");
	jsn_doc_free(doc);
	if (rc < 0) {
		err_field_prefix(e, "inputs");
		return -1;
	}
	scope->rules = rules;
	scope->inputs = values;
	scope->inputs_n = spec->inputs.n;
	return 0;
}

struct str spec_inputs_json(
	const struct pipeline_spec *spec, const struct spec_scope *scope, struct arena *a)
{
	char date[CLOCK_TEXT_MAX];
	struct buf b;

	(void)spec;
	buf_init(&b, TEXT_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	for (size_t i = 0; i < scope->inputs_n; i++) {
		const struct render_value *v = &scope->inputs[i];
		jsn_key_str(&w, scope->rules[i].name);
		if (v->kind == RENDER_DATE)
			jsn_text(&w, clock_format_date(date, v->us));
		else if (v->kind == RENDER_NUMBER || scope->rules[i].want == INPUT_WANT_BOOLEAN)
			jsn_raw(&w, v->text);
		else
			jsn_str(&w, v->text);
	}
	jsn_obj_end(&w);
	return buf_keep(&b, a);
}
