/*
 * Late steps: filled in with what others have put out when they become ready. The values are read
 * only then, and only those that are named. A run may hold a lot of them, so one look fills in as
 * many steps as there was room to read for and as may be written at once, and leaves the others to
 * the next one; and while the steps that have begun hold much, those that are ready wait for some
 * of them to end.
 */
#include "api/pipeline.h"
#include "lib/base/map.h"
#include "lib/json/field.h"
#include "server/core/spec_check.h"
#include "server/sched/plan_inside.h"
#include "server/sched/spec.h"

enum { SPEC_MAX = 4 << 20, OPEN_BYTES_MAX = 8 << 20, FILLED_BYTES_MAX = 8 << 20 };

/* Where a value comes from: what has chosen one of its combinations in this turn has its own only
 * after the plan is written. */
static struct str source_of(const struct plan *p, struct str name)
{
	ptrdiff_t at = p->takers_n != 0 ? str_find(name, STR(".outputs.")) : -1;

	if (at < 6)
		return name;
	for (size_t k = 0; k < p->takers_n; k++)
		if (str_eq(str_slice(name, 6, (size_t)at - 6), p->joined[k]))
			return arena_printf(p->arena, "steps.%.*s%.*s", STR_ARG(p->chosen[k]),
				STR_ARG(str_slice(name, (size_t)at, name.n)));
	return name;
}

static const struct plan_value *value_of(const struct plan *p, struct str name)
{
	return map_get(p->run->values, source_of(p, name));
}

static bool find_output(void *arg, struct str name, struct str *ret)
{
	const struct plan_value *v = value_of(arg, name);

	if (v == NULL || !v->here)
		return false;
	*ret = v->text;
	return true;
}

static void want(struct plan *p, struct str name)
{
	struct str source = source_of(p, name);

	if (p->wanted == NULL)
		p->wanted = map_new();
	if (map_put(p->wanted, source, p) != NULL)
		return;
	if (p->wants_n == p->wants_room) {
		struct str *more = arena_array_of(p->arena, struct str, 2 * p->wants_n + 64);
		if (p->wants_n != 0)
			memcpy(more, p->wants, p->wants_n * sizeof *more);
		p->wants = more;
		p->wants_room = 2 * p->wants_n + 64;
	}
	p->wants[p->wants_n++] = source;
}

static bool fail(struct plan *p, size_t i, struct str message)
{
	plan_end_step(p, i, STEP_FAILED, REASON_BAD_VALUE, message);
	return false;
}

/* All values are there; else the step is left for later, or too much is named. */
static bool has_values(struct plan *p, size_t i, const struct list *names)
{
	int64_t bytes = 0;
	bool here = true;

	for (size_t k = 0; k < names->n; k++) {
		const struct plan_value *v = value_of(p, *list_at(names, struct str, k));
		here = here && v != NULL && (v->here || v->size < 0);
		bytes += v != NULL && v->size > 0 ? v->size : 0;
	}
	if (bytes > SPEC_ARGV_BYTES_MAX)
		return fail(p, i,
			arena_printf(p->arena,
				"names values of %lld bytes in all: command and variables have at "
				"most %d bytes, filled in",
				(long long)bytes, SPEC_ARGV_BYTES_MAX));
	p->leaves |= !here;
	return here;
}

bool plan_fill_in(struct plan *p, size_t i, struct step_spec *spec)
{
	struct list names;
	struct err e;
	struct buf b;

	if (p->open_bytes > OPEN_BYTES_MAX)
		return false;
	if (p->filled_bytes > FILLED_BYTES_MAX) {
		p->leaves = true;
		return false;
	}
	spec_wanted_outputs(spec, p->arena, &names);
	if (p->run->scope == NULL) {
		p->wants_scope = true;
		for (size_t k = 0; k < names.n; k++)
			want(p, *list_at(&names, struct str, k));
		return false;
	}
	if (!has_values(p, i, &names))
		return false;
	struct spec_scope scope = *p->run->scope;
	scope.matrix = p->run->steps[i].matrix;
	scope.output = find_output;
	scope.output_arg = p;
	if (spec_render_step(spec, &scope, p->arena, &e) < 0)
		return fail(p, i,
			arena_printf(p->arena, "%s: %s", e.field[0] == '/' ? e.field + 1 : e.field,
				e.msg));
	buf_init(&b, SPEC_MAX);
	field_encode(step_spec_fields, spec, &b);
	BUG_ON(buf_failed(&b)); /* commands and variables have a lower limit */
	p->filled_bytes += buf_str(&b).n;
	p->spec_ids[p->specs_n] = p->run->steps[i].id;
	p->specs[p->specs_n++] = buf_keep(&b, p->arena);
	return true;
}

bool plan_wants(const struct plan *p, struct list *ret_names)
{
	*ret_names = (struct list){ p->wants, p->wants_n };
	return p->wants_scope;
}

bool plan_leaves(const struct plan *p)
{
	return p->leaves;
}

size_t plan_spec_bytes(const struct plan *p)
{
	return p->filled_bytes;
}
