/* Matrices of a file: read, checked, and made into the steps of a run. */
#include "lib/base/num.h"
#include "lib/json/json_read.h"
#include "server/core/matrix.h"
#include "server/sched/spec.h"

/* A value as the text that ${matrix.KEY} stands for. */
static int read_value(const struct jsn *v, struct arena *a, struct str *ret, struct err *e)
{
	char text[NUM_DOUBLE_MAX];

	switch (jsn_type(v)) {
	case JSN_BOOL: *ret = jsn_get_bool(v, false) ? STR("true") : STR("false"); return 0;
	case JSN_INT: *ret = arena_printf(a, "%lld", (long long)jsn_get_int(v, 0)); return 0;
	case JSN_REAL:
		*ret = arena_str(a, str_c(num_format_double(text, jsn_get_real(v, 0))));
		return 0;
	case JSN_STR: *ret = arena_str(a, jsn_get_str(v)); return 0;
	case JSN_NULL:
	case JSN_LIST:
	case JSN_OBJ: break;
	}
	return err_field(e, "", "must be a text, a number, true or false");
}

static int read_key(
	const struct jsn *member, struct arena *a, struct matrix_key *ret, struct err *e)
{
	size_t n = jsn_type(member) == JSN_LIST ? jsn_count(member) : 0;
	struct str *values = arena_array_of(a, struct str, n + 1);
	int rc = 0;

	if (jsn_type(member) != JSN_LIST)
		rc = err_field(e, "", "must be a list of values");
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = read_value(jsn_at(member, i), a, &values[i], e);
		if (rc < 0)
			err_field_index(e, i);
	}
	*ret = (struct matrix_key){ arena_str(a, jsn_name(member)), values, n };
	if (rc < 0)
		err_field_prefix(e, ret->name.p);
	return rc;
}

struct matrix {
	struct matrix_key *keys;
	size_t n, count;
};

static int read_matrix(
	const struct step_spec *s, struct arena *a, struct matrix *ret, struct err *e)
{
	struct jsn_doc *doc;
	int rc = 0;

	*ret = (struct matrix){ .n = 0 };
	if (!s->has_matrix)
		return 0;
	if (jsn_parse(s->matrix.values, &doc, e) < 0)
		return -1;
	const struct jsn *root = jsn_root(doc);
	if (jsn_type(root) == JSN_OBJ)
		ret->n = jsn_count(root);
	else
		rc = err_field(e, "", "must be an object: lists of values by key");
	ret->keys = arena_array_of(a, struct matrix_key, ret->n + 1);
	for (size_t i = 0; i < ret->n && rc == 0; i++)
		rc = read_key(jsn_at(root, i), a, &ret->keys[i], e);
	if (rc == 0)
		rc = matrix_check(ret->keys, ret->n, &ret->count, e);
	jsn_doc_free(doc);
	if (rc < 0) {
		err_field_prefix(e, "values");
		err_field_prefix(e, "matrix");
	}
	return rc;
}

int spec_matrix_keys(
	const struct step_spec *s, struct arena *a, struct list *ret_keys, struct err *e)
{
	struct matrix m;

	if (read_matrix(s, a, &m, e) < 0)
		return -1;
	struct str *keys = arena_array_of(a, struct str, m.n + 1);
	for (size_t i = 0; i < m.n; i++)
		keys[i] = m.keys[i].name;
	*ret_keys = (struct list){ keys, m.n };
	return 0;
}

static struct list pairs_of(const struct matrix *m, size_t i, struct arena *a)
{
	struct field_pair *pairs = arena_array_of(a, struct field_pair, m->n);
	struct str values[MATRIX_KEYS_MAX];

	matrix_pick(m->keys, m->n, i, values);
	for (size_t k = 0; k < m->n; k++)
		pairs[k] = (struct field_pair){ m->keys[k].name, values[k] };
	return (struct list){ pairs, m->n };
}

size_t spec_rows_max(const struct pipeline_spec *spec)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->steps.n; i++)
		n += list_at(&spec->steps, struct step_spec, i)->has_matrix ? 1 + MATRIX_MAX : 1;
	return n < STEPS_MAX ? n : STEPS_MAX;
}

int spec_expand(const struct step_spec *s, struct arena *a, struct list *ret, struct err *e)
{
	struct matrix m;

	if (read_matrix(s, a, &m, e) < 0)
		return -1;
	if (ret->n + 1 + m.count > STEPS_MAX)
		return err_field(e, m.n != 0 ? "/matrix/values" : "",
			"a run has at most %d steps, the combinations of matrices counted",
			STEPS_MAX);
	struct spec_row *first = list_at(ret, struct spec_row, ret->n++);
	*first = (struct spec_row){ .spec = *s, .needs = s->needs };
	if (m.n == 0)
		return 0;
	struct str *names = arena_array_of(a, struct str, m.count);
	if (matrix_names(s->name, m.keys, m.n, m.count, a, names, e) < 0)
		return -1;
	first->joins = true;
	first->needs = (struct list){ names, m.count };
	for (size_t i = 0; i < m.count; i++) {
		struct spec_row *r = list_at(ret, struct spec_row, ret->n++);
		*r = (struct spec_row){ .spec = *s,
			.needs = s->needs,
			.matrix = pairs_of(&m, i, a),
			.matrix_of = s->name,
			.metric = s->matrix.has_select ? s->matrix.select.metric : STR(""),
			.slots = s->matrix.max_parallel };
		r->spec.name = names[i];
		r->spec.has_matrix = false;
	}
	return 0;
}

/* The steps of a run fit, and their names differ. */
int spec_matrix_check(const struct pipeline_spec *spec, struct arena *a, struct err *e)
{
	struct list rows = { NULL, 0 };
	struct dag dag;

	if (spec_rows_max(spec) == spec->steps.n)
		return 0;
	rows.items = arena_array_of(a, struct spec_row, spec_rows_max(spec));
	for (size_t i = 0; i < spec->steps.n; i++) {
		const struct step_spec *s = list_at(&spec->steps, struct step_spec, i);
		if (spec_expand(s, a, &rows, e) < 0) {
			err_field_prefix(e, s->name.p);
			err_field_prefix(e, "steps");
			return -1;
		}
	}
	struct dag_step *steps = arena_array_of(a, struct dag_step, rows.n);
	for (size_t i = 0; i < rows.n; i++) {
		const struct spec_row *r = list_at(&rows, struct spec_row, i);
		steps[i] = (struct dag_step){ r->spec.name, r->needs.items, r->needs.n, r->joins };
	}
	if (dag_build(steps, rows.n, a, &dag, e) < 0) {
		err_field_prefix(e, "steps");
		return -1;
	}
	return 0;
}
