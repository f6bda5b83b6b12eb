/* Replacing ${…}: what is known when a run is made at once, what its steps put out when the step
 * that names it becomes ready. */
#include "lib/base/map.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "server/core/image.h"
#include "server/core/render.h"
#include "server/core/spec_check.h"
#include "server/sched/spec.h"
#include "server/sched/spec_inside.h"

enum { STRINGS_MAX = 131072 };

/* Of commands and variables once they are filled in: a short file may name a long input many times,
 * and a default variable stands in every step. A step's are what a kernel hands to a program. */
enum { STEP_BYTES_MAX = SPEC_ARGV_BYTES_MAX, PIPELINE_BYTES_MAX = 4 << 20 };

/* ---- rendering ---- */

/* "steps.check.outputs.ok"; a line's end at the end of the file is not part of the value. */
static bool find_output(const struct spec_scope *s, struct str name, struct render_value *ret)
{
	struct str v;

	*ret = (struct render_value){ .kind = RENDER_LATER };
	if (s->output == NULL || !s->output(s->output_arg, name, &v))
		return s->later;
	if (v.n > 0 && v.p[v.n - 1] == '\n')
		v.n--;
	*ret = (struct render_value){ .kind = RENDER_TEXT, .text = v };
	return true;
}

static bool find_key(const struct list *matrix, struct str key, struct render_value *ret)
{
	for (size_t i = 0; i < matrix->n; i++) {
		const struct field_pair *p = list_at(matrix, struct field_pair, i);
		if (!str_eq(p->key, key))
			continue;
		*ret = (struct render_value){ .kind = RENDER_TEXT, .text = p->value };
		return true;
	}
	return false;
}

static bool find_name(const void *arg, struct str name, struct render_value *ret)
{
	const struct spec_scope *s = arg;

	if (str_is(name, "run.id")) {
		*ret = (struct render_value){ .kind = RENDER_TEXT, .text = s->run_id };
		return true;
	}
	if (str_is(name, "window.start") || str_is(name, "window.end")) {
		*ret = (struct render_value){ .kind = RENDER_DATE,
			.us = str_is(name, "window.start") ? s->window_start : s->window_end };
		return s->window_end != 0;
	}
	if (str_starts(name, STR("steps.")))
		return find_output(s, name, ret);
	if (str_starts(name, STR("matrix.")))
		return find_key(&s->matrix, str_slice(name, 7, name.n), ret);
	for (size_t i = 0; i < s->inputs_n; i++)
		if (str_starts(name, STR("inputs.")) &&
			str_eq(str_slice(name, 7, name.n), s->rules[i].name)) {
			*ret = s->inputs[i];
			return true;
		}
	return false;
}

/* *later is set when something is not known yet; *ret is then the text as it was. */
static int render(struct str text, const struct spec_scope *scope, struct arena *a, struct str *ret,
	bool *later, struct err *e)
{
	const struct render_scope rs = { .find = find_name, .arg = scope };
	bool now = false;

	if (!render_has_reference(text) && str_find(text, STR("$${")) < 0) {
		*ret = text;
		return 0;
	}
	if (render_text(text, &rs, STRINGS_MAX, a, ret, &now, e) < 0)
		return -1;
	*later |= now;
	return 0;
}

int spec_render_text(struct str text, const struct spec_scope *scope, struct arena *a,
	struct str *ret, struct err *e)
{
	bool later = false;

	return render(text, scope, a, ret, &later, e);
}

/* Bytes that are left for what is filled in. */
struct room {
	size_t step, pipeline;
};

/* One step that is filled in. */
struct filling {
	struct step_spec *s;
	const struct spec_scope *scope;
	struct room *room;
	struct arena *a;
	bool later;
};

static int take_room(struct room *room, size_t n, struct err *e)
{
	if (n > room->step)
		return err_field(e, "", "command and variables have at most %d bytes, filled in",
			STEP_BYTES_MAX);
	if (n > room->pipeline)
		return err_field(e, "",
			"the steps' commands and variables have at most %d bytes together, filled "
			"in",
			PIPELINE_BYTES_MAX);
	room->step -= n;
	room->pipeline -= n;
	return 0;
}

/* The program, and what the shell is to do: without them a step would have nothing to run. */
static int check_command(struct str run_json, size_t i, struct str word, struct err *e)
{
	if (i == (spec_is_shell(run_json) ? 2 : 0) && spec_is_blank(word))
		return err_field(e, "", "must not be empty, filled in: it is the command");
	return 0;
}

/* What a worker takes as a word of a command, or as a variable's value. */
static int check_word(struct str word, struct err *e)
{
	if (word.n > WORD_MAX)
		return err_field(e, "", "must be at most %d bytes, filled in", WORD_MAX);
	if (!str_is_text(word))
		return err_field(e, "", "must not contain control characters");
	return 0;
}

/* `run` stays JSON, and no longer than the file may have it: it is read again by the same table. */
static int render_run(struct filling *f, struct err *e)
{
	struct step_spec *s = f->s;
	struct list argv;
	struct buf b;

	if (spec_argv(s->run, f->a, &argv, e) < 0)
		return -1;
	buf_init(&b, RUN_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_list_begin(&w);
	int rc = 0;
	for (size_t i = 0; i < argv.n && rc == 0 && !buf_failed(&b); i++) {
		struct str word;
		rc = render(*list_at(&argv, struct str, i), f->scope, f->a, &word, &f->later, e);
		if (rc == 0)
			rc = check_word(word, e);
		if (rc == 0)
			rc = check_command(s->run, i, word, e);
		if (rc == 0)
			rc = take_room(f->room, word.n, e);
		if (rc == 0) {
			jsn_str(&w, word);
			continue;
		}
		if (!spec_is_shell(s->run))
			err_field_index(e, i);
		err_field_prefix(e, "run");
	}
	jsn_list_end(&w);
	if (rc == 0 && buf_failed(&b))
		rc = err_field(e, "/run", "has more than %d bytes as JSON, filled in", RUN_MAX);
	if (rc == 0)
		s->run = arena_str(f->a, buf_str(&b));
	buf_done(&b);
	return rc;
}

static int render_env(struct filling *f, struct err *e)
{
	struct step_spec *s = f->s;
	char name[128];

	for (size_t i = 0; i < s->env.n; i++) {
		struct field_pair *p = list_at(&s->env, struct field_pair, i);
		if (render(p->value, f->scope, f->a, &p->value, &f->later, e) < 0 ||
			check_word(p->value, e) < 0 ||
			take_room(f->room, p->key.n + p->value.n, e) < 0) {
			(void)str_print(name, sizeof name, "%.*s", STR_ARG(p->key));
			err_field_prefix(e, name);
			err_field_prefix(e, "env");
			return -1;
		}
	}
	return 0;
}

static int render_condition(struct filling *f, struct err *e)
{
	struct str text = f->s->condition;
	bool later = false;

	if (text.n == 0)
		return 0;
	int rc = render(text, f->scope, f->a, &text, &later, e);
	f->later |= later;
	if (rc == 0 && !later && !str_is(text, "true") && !str_is(text, "false"))
		rc = err_field(e, "", "must be true or false, and %.*s is '%.*s'",
			STR_ARG(names_shown(f->s->condition)), STR_ARG(names_shown(text)));
	if (rc < 0)
		err_field_prefix(e, "if");
	f->s->condition = text;
	return rc;
}

static int render_image(struct filling *f, struct err *e)
{
	bool later = false;

	if (!render_has_reference(f->s->image))
		return 0;
	int rc = render(f->s->image, f->scope, f->a, &f->s->image, &later, e);
	f->later |= later;
	if (rc == 0 && !later)
		rc = image_check(f->s->image, e);
	if (rc < 0)
		err_field_prefix(e, "image");
	return rc;
}

/* All of it, or nothing while a part is not known yet. */
static int render_step(struct step_spec *s, const struct spec_scope *scope, struct room *room,
	struct arena *a, bool *ret_later, struct err *e)
{
	struct filling f = { .s = s, .scope = scope, .room = room, .a = a };
	struct step_spec before = *s;

	s->env.items = arena_array_of(a, struct field_pair, s->env.n + 1);
	for (size_t i = 0; i < s->env.n; i++)
		*list_at(&s->env, struct field_pair, i) =
			*list_at(&before.env, struct field_pair, i);
	room->step = STEP_BYTES_MAX;
	if (render_condition(&f, e) < 0 || render_run(&f, e) < 0 || render_image(&f, e) < 0 ||
		render_env(&f, e) < 0)
		return -1;
	if (f.later)
		*s = before;
	*ret_later = f.later;
	return 0;
}

int spec_render_step(
	struct step_spec *s, const struct spec_scope *scope, struct arena *a, struct err *e)
{
	struct room room = { .pipeline = PIPELINE_BYTES_MAX };
	bool later;

	return render_step(s, scope, &room, a, &later, e);
}

static int render_training(
	struct training_data *t, const struct spec_scope *scope, struct arena *a, struct err *e)
{
	const char *at = "from";

	if (spec_render_text(t->from, scope, a, &t->from, e) == 0) {
		at = "to";
		if (spec_render_text(t->to, scope, a, &t->to, e) == 0)
			return spec_check_training(t, e);
	}
	err_field_prefix(e, at);
	err_field_prefix(e, "training_data");
	err_field_prefix(e, "model");
	return -1;
}

/* A step without a matrix is its own row, and filled in itself; else its combinations are. */
static int render_rows(struct step_spec *s, const struct spec_scope *scope, struct room *room,
	struct arena *a, struct list *rows, struct err *e)
{
	size_t from = rows->n;
	bool late = false;

	if (!s->has_matrix && render_step(s, scope, room, a, &late, e) < 0)
		return -1;
	if (spec_expand(s, a, rows, e) < 0)
		return -1;
	for (size_t i = from; i < rows->n; i++) {
		struct spec_row *r = list_at(rows, struct spec_row, i);
		struct spec_scope own = *scope;
		own.matrix = r->matrix;
		if (!s->has_matrix)
			r->late = late;
		else if (!r->joins && render_step(&r->spec, &own, room, a, &r->late, e) < 0)
			return -1;
	}
	return 0;
}

int spec_render(struct pipeline_spec *spec, const struct spec_scope *scope, struct arena *a,
	struct list *ret_rows, struct err *e)
{
	struct room room = { .pipeline = PIPELINE_BYTES_MAX };

	*ret_rows = (struct list){ arena_array_of(a, struct spec_row, spec_rows_max(spec)), 0 };
	for (size_t i = 0; i < spec->steps.n; i++) {
		struct step_spec *s = list_at(&spec->steps, struct step_spec, i);
		char name[64];
		if (render_rows(s, scope, &room, a, ret_rows, e) == 0)
			continue;
		(void)str_print(name, sizeof name, "%.*s", STR_ARG(s->name));
		err_field_prefix(e, name);
		err_field_prefix(e, "steps");
		err_field_prefix(e, "spec");
		return -1;
	}
	if (!spec->has_model || !spec->model.has_training_data ||
		render_training(&spec->model.training_data, scope, a, e) == 0)
		return 0;
	err_field_prefix(e, "spec");
	return -1;
}

/* ---- what is named ---- */

struct wanted {
	struct map *seen;
	struct str *names;
	size_t n, room;
	struct arena *a;
};

static void note_name(struct wanted *w, struct str name)
{
	if (map_put(w->seen, name, w) != NULL)
		return;
	if (w->n == w->room) {
		struct str *more = arena_array_of(w->a, struct str, 2 * w->room + 8);
		if (w->n != 0)
			memcpy(more, w->names, w->n * sizeof *more);
		w->names = more;
		w->room = 2 * w->room + 8;
	}
	w->names[w->n++] = arena_str(w->a, name);
}

static bool find_nothing(const void *arg, struct str name, struct render_value *ret)
{
	struct wanted *const *w = arg;

	*ret = (struct render_value){ .kind = RENDER_LATER };
	if (str_starts(name, STR("steps.")) && str_find(name, STR(".outputs.")) >= 6)
		note_name(*w, name);
	return true;
}

/* What cannot be read here is refused when the step is filled in. */
static void note_text(struct wanted *w, struct str text)
{
	const struct render_scope rs = { .find = find_nothing, .arg = &w };
	struct str out;
	struct err e;

	if (render_has_reference(text))
		(void)(render_text(text, &rs, SPEC_ARGV_BYTES_MAX, w->a, &out, NULL, &e) < 0);
}

void spec_wanted_outputs(const struct step_spec *s, struct arena *a, struct list *ret)
{
	struct wanted w = { .seen = map_new(), .a = a };
	struct list argv = { .n = 0 };
	struct err e;

	note_text(&w, s->condition);
	if (spec_argv(s->run, a, &argv, &e) == 0)
		for (size_t i = 0; i < argv.n; i++)
			note_text(&w, *list_at(&argv, struct str, i));
	note_text(&w, s->image);
	for (size_t i = 0; i < s->env.n; i++)
		note_text(&w, list_at(&s->env, struct field_pair, i)->value);
	map_free(w.seen);
	*ret = (struct list){ w.names, w.n };
}
