#include "server/core/spec_check.h"

#include "server/core/image.h"
#include "server/core/render.h"

/*
 * The order of the checks is the order in which a reader meets the file: the steps and their graph,
 * then each step's own parts, then what the model and the gate refer to. The first fault is
 * reported.
 */

/* Which steps one of them needs, at once or by others; worked out once for each that is looked at.
 */
struct needed {
	const struct spec_step *step;
	bool *is; /* by position */
	uint32_t *todo;
};

struct check {
	const struct spec *s;
	struct dag dag;
	struct names inputs, steps;
	struct needed *needed;
	const struct spec_step *step; /* whose texts are being looked at */
	struct render_scope scope;
	struct arena *a;
	struct err *e;
	struct err *why; /* of a reference to a step that cannot be: ERR_OK when there is none */
};

static int under(struct err *e, struct str segment)
{
	char text[128];

	(void)str_print(text, sizeof text, "%.*s", STR_ARG(names_shown(segment)));
	err_field_prefix(e, text);
	return -1;
}

static int under_at(struct err *e, size_t i, const char *list)
{
	err_field_index(e, i);
	err_field_prefix(e, list);
	return -1;
}

/* ---- paths and environment --------------------------------------------------------- */

int spec_check_path(struct str path, struct err *e)
{
	struct str rest = path, part;

	if (path.n == 0 || path.n > 1024)
		return err_field(e, "", "must be a path of 1 to 1024 bytes");
	if (path.p[0] == '/')
		return err_field(e, "", "must be relative: it lies below $TIDEMILL_OUTPUT");
	if (!str_utf8_valid(path) || str_has_control(path) || str_find_char(path, '\\') >= 0)
		return err_field(e, "", "must be valid UTF-8 without control characters and '\\'");
	while (str_next(&rest, '/', &part)) {
		if (part.n == 0 || str_is(part, ".") || str_is(part, ".."))
			return err_field(e, "", "must not have empty parts, '.' or '..'");
		if (part.n > 255)
			return err_field(e, "", "must have parts of at most 255 bytes");
	}
	return 0;
}

static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What decides which code runs in the container or what it may reach is ours to set. */
static bool reserved(struct str name)
{
	static const char *const prefixes[] = { "LD_", "NVIDIA_", "TIDEMILL_", "DOCKER_" };
	static const char *const names[] = { "PATH", "BASH_ENV", "ENV", "MLFLOW_RUN_ID",
		"MLFLOW_EXPERIMENT_ID", "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN",
		"TRACEPARENT" };

	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (str_starts(name, str_c(prefixes[i])))
			return true;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

int spec_check_env_name(struct str name, struct err *e)
{
	bool good = name.n != 0 && name.n <= 255 && !digit(name.p[0]);

	for (size_t i = 0; i < name.n && good; i++)
		good = letter(name.p[i]) || digit(name.p[i]) || name.p[i] == '_';
	if (!good)
		return err_field(e, "",
			"must be a variable's name: letters, digits and '_', no digit first");
	if (reserved(name))
		return err_field(e, "", "is set by Tidemill and cannot be set here");
	return 0;
}

static int check_env(const struct spec_step *st, struct err *e)
{
	size_t bytes = 0;

	for (size_t i = 0; i < st->env_n; i++) {
		struct str value = st->env[i].value;
		bytes += st->env[i].name.n + value.n + 2;
		if (spec_check_env_name(st->env[i].name, e) < 0)
			return under(e, st->env[i].name);
		if (value.n != 0 && memchr(value.p, '\0', value.n) != NULL) {
			(void)err_field(e, "", "must not hold NUL");
			return under(e, st->env[i].name);
		}
		for (size_t k = 0; k < i; k++) {
			if (!str_eq(st->env[k].name, st->env[i].name))
				continue;
			(void)err_field(e, "", "is set twice");
			return under(e, st->env[i].name);
		}
	}
	if (bytes > SPEC_ARGV_BYTES_MAX)
		return err_field(e, "", "has more than %d bytes in all", SPEC_ARGV_BYTES_MAX);
	return 0;
}

/* ---- names ------------------------------------------------------------------------- */

/* Names become variables: upper case, '-' and '.' as '_'. Two that become the same would hide each
 * other. */
static struct str variable(struct arena *a, struct str name)
{
	char *out = arena_dup(a, name);

	for (size_t i = 0; i < name.n; i++) {
		if (out[i] >= 'a' && out[i] <= 'z')
			out[i] = (char)(out[i] - 'a' + 'A');
		else if (out[i] == '-' || out[i] == '.')
			out[i] = '_';
	}
	return (struct str){ out, name.n };
}

static int check_names(struct check *c, const struct str *names, size_t n, const char *what)
{
	struct str *variables = arena_array_of(c->a, struct str, n + 1);
	struct names index;
	ptrdiff_t twice;

	for (size_t i = 0; i < n; i++) {
		if (!str_is_name(names[i])) {
			(void)err_field(c->e, "",
				"is no name: 1 to 63 of a-z, 0-9, '.', '_' and '-', not first a "
				"sign");
			(void)under(c->e, names[i]);
			err_field_prefix(c->e, what);
			return -1;
		}
		variables[i] = variable(c->a, names[i]);
	}
	names_index(&index, variables, n, c->a);
	twice = names_duplicate(&index);
	if (twice < 0)
		return 0;
	struct str other = names[names_find(&index, variables[twice])];
	(void)err_field(c->e, "", "would hide '%.*s': both become %.*s in variables",
		STR_ARG(other), STR_ARG(variables[twice]));
	(void)under(c->e, names[twice]);
	err_field_prefix(c->e, what);
	return -1;
}

static int check_step_names(struct check *c)
{
	size_t n = c->s->steps_n;
	struct str *names = arena_array_of(c->a, struct str, n + 1);
	struct dag_step *steps = arena_array_of(c->a, struct dag_step, n + 1);

	for (size_t i = 0; i < n; i++) {
		names[i] = c->s->steps[i].name;
		steps[i] = (struct dag_step){ .name = names[i],
			.needs = c->s->steps[i].needs,
			.needs_n = c->s->steps[i].needs_n };
	}
	if (check_names(c, names, n, "steps") < 0)
		return -1;
	names_index(&c->steps, names, n, c->a);
	c->needed = arena_new_of(c->a, struct needed);
	*c->needed = (struct needed){ .is = arena_array_of(c->a, bool, n + 1),
		.todo = arena_array_of(c->a, uint32_t, n + 1) };
	if (dag_build(steps, n, c->a, &c->dag, c->e) < 0) {
		err_field_prefix(c->e, "steps");
		return -1;
	}
	return 0;
}

/* ---- references -------------------------------------------------------------------- */

static ptrdiff_t find_step(const struct spec *s, struct str name)
{
	for (size_t i = 0; i < s->steps_n; i++)
		if (str_eq(s->steps[i].name, name))
			return (ptrdiff_t)i;
	return -1;
}

static ptrdiff_t find_output(const struct spec_step *st, struct str name)
{
	for (size_t i = 0; i < st->outputs_n; i++)
		if (str_eq(st->outputs[i].name, name))
			return (ptrdiff_t)i;
	return -1;
}

int spec_find_output(
	const struct spec *s, struct str ref, size_t *ret_step, size_t *ret_output, struct err *e)
{
	size_t found = 0, step_at = 0, output_at = 0;
	char text[NEAR_TEXT_MAX];
	struct near near;

	for (size_t i = 1; i + 1 < ref.n; i++) {
		if (ref.p[i] != '.')
			continue;
		ptrdiff_t step = find_step(s, str_slice(ref, 0, i));
		ptrdiff_t output =
			step < 0 ? -1 : find_output(&s->steps[step], str_slice(ref, i + 1, ref.n));
		if (output < 0)
			continue;
		found++;
		step_at = (size_t)step;
		output_at = (size_t)output;
	}
	if (found > 1)
		return err_field(
			e, "", "can be read in %zu ways; rename a step or an output", found);
	if (found == 1) {
		*ret_step = step_at;
		*ret_output = output_at;
		return 0;
	}
	near_init(&near, ref);
	for (size_t i = 0; i < s->steps_n; i++) {
		const struct spec_step *st = &s->steps[i];
		for (size_t k = 0; k < st->outputs_n; k++) {
			char full[160];
			(void)str_print(full, sizeof full, "%.*s.%.*s", STR_ARG(st->name),
				STR_ARG(st->outputs[k].name));
			unsigned before = near.distance;
			near_try(&near, str_c(full));
			if (near.distance < before) /* `full` ends with this turn */
				(void)near_text(text, &near);
		}
	}
	return err_field(
		e, "", "is no STEP.OUTPUT of this pipeline%s", near.best.n != 0 ? text : "");
}

static void find_needed(const struct check *c)
{
	struct needed *f = c->needed;
	size_t n = 0;

	if (f->step == c->step)
		return;
	f->step = c->step;
	memset(f->is, 0, c->s->steps_n * sizeof *f->is);
	for (f->todo[n++] = (uint32_t)(c->step - c->s->steps); n > 0;) {
		size_t at = f->todo[--n];
		for (uint32_t k = c->dag.need_at[at]; k < c->dag.need_at[at + 1]; k++) {
			uint32_t need = c->dag.need[k];
			if (!f->is[need])
				f->todo[n++] = need;
			f->is[need] = true;
		}
	}
}

/* Whether the step that is looked at needs the other one, at once or by others. */
static bool needs_step(const struct check *c, size_t other)
{
	find_needed(c);
	return c->needed->is[other];
}

/* steps.NAME.outputs.KEY: NAME is a step that this one needs, KEY one of its values. */
static bool known_output(const struct check *c, struct str rest)
{
	ptrdiff_t at = str_find(rest, STR(".outputs."));

	if (at <= 0 || c->step == NULL)
		return false;
	struct str name = str_slice(rest, 0, (size_t)at);
	struct str key = str_slice(rest, (size_t)at + 9, rest.n);
	ptrdiff_t step = names_find(&c->steps, name), output;
	if (step < 0 || (output = find_output(&c->s->steps[step], key)) < 0)
		return false;
	name = names_shown(name);
	key = names_shown(key);
	if (c->s->steps[step].outputs[output].kind != SPEC_OUTPUT_VALUE)
		(void)err_field(c->why, "",
			"the output '%.*s' of '%.*s' is not of kind value: only values can be "
			"named here, files are in TIDEMILL_INPUT_<STEP>",
			STR_ARG(key), STR_ARG(name));
	else if (c->s->steps[step].matrix_n != 0 && !c->s->steps[step].selects)
		(void)err_field(c->why, "",
			"'%.*s' has a matrix without select: it is not said which combination's "
			"'%.*s' is meant",
			STR_ARG(name), STR_ARG(key));
	else if (!needs_step(c, (size_t)step))
		(void)err_field(c->why, "",
			"'steps.%.*s.outputs.%.*s' is not there yet: '%.*s' does not need '%.*s'",
			STR_ARG(name), STR_ARG(key), STR_ARG(names_shown(c->step->name)),
			STR_ARG(name));
	return c->why->code == ERR_OK;
}

static bool known_key(const struct check *c, struct str key)
{
	for (size_t i = 0; c->step != NULL && i < c->step->matrix_n; i++)
		if (str_eq(c->step->matrix[i], key))
			return true;
	return false;
}

/* Everything is checked as if its value came later: only existence matters here. */
static bool known_name(const void *arg, struct str name, struct render_value *ret)
{
	const struct check *c = arg;
	struct str rest = str_slice(name, 6, name.n);

	*ret = (struct render_value){ .kind = RENDER_LATER };
	if (str_is(name, "run.id"))
		return true;
	if (str_starts(name, STR("inputs.")))
		return names_find(&c->inputs, str_slice(name, 7, name.n)) >= 0;
	if (str_starts(name, STR("matrix.")))
		return known_key(c, str_slice(name, 7, name.n));
	if (str_starts(name, STR("steps.")))
		return known_output(c, rest);
	return false;
}

/* Suggestions are the same for all steps: inputs and the run. */
static struct render_scope scope_of(struct check *c)
{
	size_t n = c->s->inputs_n + 1, at = 0;
	struct str *names = arena_array_of(c->a, struct str, n);

	for (size_t i = 0; i < c->s->inputs_n; i++)
		names[at++] = arena_printf(c->a, "inputs.%.*s", STR_ARG(c->s->inputs[i]));
	names[at++] = STR("run.id");
	return (struct render_scope){ .find = known_name, .arg = c, .names = names, .names_n = n };
}

/* ---- one step ---------------------------------------------------------------------- */

static int check_text(struct check *c, struct str text)
{
	struct str out;

	if (!render_has_reference(text))
		return 0;
	c->why->code = ERR_OK;
	if (render_text(text, &c->scope, SPEC_ARGV_BYTES_MAX, c->a, &out, NULL, c->e) == 0)
		return 0;
	if (c->why->code != ERR_OK)
		*c->e = *c->why;
	return -1;
}

static int check_condition(struct check *c)
{
	struct str text = c->step->condition;

	if (text.n == 0 || str_is(text, "true") || str_is(text, "false") ||
		(render_has_reference(text) && check_text(c, text) == 0))
		return 0;
	if (!render_has_reference(text))
		(void)err_field(c->e, "", "must be true, false or a ${…} that is one of them");
	err_field_prefix(c->e, "if");
	return -1;
}

static int check_command(struct check *c)
{
	const struct spec_step *st = c->step;
	size_t bytes = 0;

	if (st->argv_n == 0 || st->argv_n > SPEC_ARGV_MAX || str_trim(st->argv[0]).n == 0)
		return err_field(c->e, "/run", "must have 1 to %d words, the first not empty",
			SPEC_ARGV_MAX);
	for (size_t i = 0; i < st->argv_n; i++) {
		struct str word = st->argv[i];
		bytes += word.n + 1;
		if (word.n > SPEC_ARG_BYTES_MAX || bytes > SPEC_ARGV_BYTES_MAX)
			(void)err_field(c->e, "",
				"is too long: a word has at most %d bytes, a command %d",
				SPEC_ARG_BYTES_MAX, SPEC_ARGV_BYTES_MAX);
		else if (word.n != 0 && memchr(word.p, '\0', word.n) != NULL)
			(void)err_field(c->e, "", "must not hold NUL");
		else if (check_text(c, word) == 0)
			continue;
		if (!st->shell)
			return under_at(c->e, i, "run");
		err_field_prefix(c->e, "run");
		return -1;
	}
	return 0;
}

/* One path inside another would be kept twice. */
static bool overlap(struct str a, struct str b)
{
	struct str s = a.n < b.n ? a : b, l = a.n < b.n ? b : a;

	return str_starts(l, s) && (l.n == s.n || l.p[s.n] == '/');
}

static int check_output(const struct spec_step *st, size_t i, struct err *e)
{
	const struct spec_output *o = &st->outputs[i];

	if (!str_is_name(o->name))
		return err_field(e, "", "is no name: 1 to 63 of a-z, 0-9, '.', '_' and '-'");
	if (spec_check_path(o->path, e) < 0) {
		err_field_prefix(e, "path");
		return -1;
	}
	if (o->kind == SPEC_OUTPUT_OBSERVATIONS && o->monitor.n == 0)
		return err_field(e, "/monitor", "observations name the monitor that they feed");
	if (o->kind != SPEC_OUTPUT_OBSERVATIONS && o->monitor.n != 0)
		return err_field(e, "/monitor", "only outputs of kind observations feed a monitor");
	for (size_t k = 0; k < i; k++) {
		if (str_eq(st->outputs[k].name, o->name))
			return err_field(e, "", "is the name of two outputs");
		if (overlap(st->outputs[k].path, o->path))
			return err_field(e, "/path", "overlaps the path of output '%.*s'",
				STR_ARG(st->outputs[k].name));
	}
	return 0;
}

static int check_image(struct check *c)
{
	const struct spec_step *st = c->step;
	int failed;

	if (st->image.n == 0) {
		if (!st->wants_image)
			return 0;
		return err_field(c->e, "/image", "is needed: the step may run in a container");
	}
	if (render_has_reference(st->image))
		failed = check_text(c, st->image);
	else
		failed = image_check(st->image, c->e);
	if (failed == 0)
		return 0;
	err_field_prefix(c->e, "image");
	return -1;
}

static int check_step(struct check *c)
{
	const struct spec_step *st = c->step;

	if (check_condition(c) < 0 || check_command(c) < 0 || check_image(c) < 0)
		return -1;
	if (check_env(st, c->e) < 0) {
		err_field_prefix(c->e, "env");
		return -1;
	}
	for (size_t i = 0; i < st->env_n; i++) {
		if (check_text(c, st->env[i].value) == 0)
			continue;
		(void)under(c->e, st->env[i].name);
		err_field_prefix(c->e, "env");
		return -1;
	}
	for (size_t i = 0; i < st->outputs_n; i++) {
		if (check_output(st, i, c->e) == 0)
			continue;
		(void)under(c->e, st->outputs[i].name);
		err_field_prefix(c->e, "outputs");
		return -1;
	}
	return 0;
}

/* ---- model and gate ---------------------------------------------------------------- */

static int check_kind(struct check *c, struct str ref, enum spec_output_kind want, const char *at)
{
	static const char *const kinds[] = { "files", "model", "predictions", "observations",
		"value" };
	size_t step, output;

	if (spec_find_output(c->s, ref, &step, &output, c->e) == 0) {
		const struct spec_step *st = &c->s->steps[step];
		if (st->outputs[output].kind != (int)want)
			(void)err_field(c->e, "", "must be an output of kind %s", kinds[want]);
		else if (st->matrix_n != 0 && !st->selects)
			(void)err_field(c->e, "",
				"the step '%.*s' has a matrix without select: it is not said which "
				"combination is meant",
				STR_ARG(names_shown(st->name)));
		else
			return 0;
	}
	err_field_prefix(c->e, at);
	return -1;
}

static int check_training(struct check *c)
{
	struct names keys;
	char near[NEAR_TEXT_MAX];

	names_index(&keys, c->s->datasets, c->s->datasets_n, c->a);
	if (names_find(&keys, c->s->training_dataset) >= 0)
		return 0;
	return err_field(c->e, "/training_data/dataset", "is no key of spec.datasets%s",
		names_near(near, &keys, c->s->training_dataset));
}

static int check_model(struct check *c)
{
	const struct spec *s = c->s;

	if (s->model_from.n != 0 && check_kind(c, s->model_from, SPEC_OUTPUT_MODEL, "from") < 0)
		return -1;
	if (s->training_dataset.n != 0 && check_training(c) < 0)
		return -1;
	if (s->gate_predictions.n != 0 &&
		check_kind(c, s->gate_predictions, SPEC_OUTPUT_PREDICTIONS, "predictions") < 0) {
		err_field_prefix(c->e, "gate");
		return -1;
	}
	return 0;
}

static int check_texts(struct check *c)
{
	for (size_t i = 0; i < c->s->texts_n; i++) {
		char msg[sizeof c->e->msg];
		if (check_text(c, c->s->texts[i].text) == 0)
			continue;
		(void)str_print(msg, sizeof msg, "%s", c->e->msg);
		return err_field(c->e, c->s->texts[i].at, "%s", msg);
	}
	return 0;
}

int spec_check(const struct spec *s, struct arena *a, struct dag *ret_dag, struct err *e)
{
	struct err why = { .code = ERR_OK };
	struct check c = { .s = s, .a = a, .e = e, .why = &why };

	if (check_step_names(&c) < 0 ||
		check_names(&c, s->datasets, s->datasets_n, "datasets") < 0 ||
		check_names(&c, s->models, s->models_n, "models") < 0)
		return -1;
	names_index(&c.inputs, s->inputs, s->inputs_n, a);
	c.scope = scope_of(&c);
	for (size_t i = 0; i < s->steps_n; i++) {
		c.step = &s->steps[i];
		if (check_step(&c) == 0)
			continue;
		(void)under(e, c.step->name);
		err_field_prefix(e, "steps");
		return -1;
	}
	c.step = NULL;
	if (check_texts(&c) < 0)
		return -1;
	if (check_model(&c) < 0) {
		err_field_prefix(e, "model");
		return -1;
	}
	if (ret_dag != NULL)
		*ret_dag = c.dag;
	return 0;
}
