#include "server/rest/assignment.h"

#include "api/pipeline.h"
#include "lib/base/buf.h"
#include "server/sched/spec.h"
#include "server/store/credential.h"

enum { OWN_VALUES = 64, FILE_VALUES = 4, STAGED_VALUES = 4, OUTPUT_VALUES = 4 };

static int64_t span_us(const struct field_span *span)
{
	return span->text.n != 0 ? clock_add(0, span->span, 1) : 0;
}

static int fill_outputs(const struct step_spec *spec, struct arena *a, struct assignment *out)
{
	struct assigned_output *list =
		arena_array_of(a, struct assigned_output, spec->outputs.n + 1);

	for (size_t i = 0; i < spec->outputs.n; i++) {
		const struct output_spec *o = list_at(&spec->outputs, struct output_spec, i);
		list[i] = (struct assigned_output){ o->name, o->path, o->kind };
	}
	out->outputs = (struct list){ list, spec->outputs.n };
	return 0;
}

/* The runtime that placement chose goes first. */
static void fill_runtimes(
	const struct step_spec *spec, struct str chosen, struct arena *a, struct assignment *out)
{
	int *list = arena_array_of(a, int, spec->runtimes.n + 1);
	size_t n = 0;

	for (int r = 0; r < RUNTIME_COUNT; r++)
		if (str_is(chosen, runtime_names[r]))
			list[n++] = r;
	for (size_t i = 0; i < spec->runtimes.n; i++)
		if (n == 0 || *list_at(&spec->runtimes, int, i) != list[0])
			list[n++] = *list_at(&spec->runtimes, int, i);
	out->runtimes = (struct list){ list, n };
}

static int decode(struct call *c, const struct db_rows *r, struct assignment *out, struct err *e)
{
	struct step_spec spec;

	if (db_row_decode(r, 0, assignment_fields, c->arena, out, e) < 0 ||
		field_decode_reply(step_spec_fields, db_str(r, 0, db_col(r, "spec")), c->arena,
			&spec, e) < 0 ||
		spec_argv(spec.run, c->arena, &out->argv, e) < 0)
		return -1;
	out->image = spec.image;
	out->env = spec.env;
	out->shm = spec.resources.shm;
	out->time_limit = span_us(&spec.time_limit);
	out->start_timeout = span_us(&spec.timeouts.start);
	out->self_stop_after =
		spec.on_lost.policy == LOST_STOP ? span_us(&spec.on_lost.self_stop_after) : 0;
	out->log_max = spec.logs.max;
	out->token = credential_derive(c->app->pepper, CREDENTIAL_JOB, out->attempt, c->arena).text;
	fill_runtimes(&spec, db_str(r, 0, db_col(r, "runtime")), c->arena, out);
	return fill_outputs(&spec, c->arena, out);
}

static size_t staged_values(const struct list *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += STAGED_VALUES + FILE_VALUES * list_at(all, struct staged, i)->files.n;
	return n;
}

size_t assignment_values(const struct assignment *a)
{
	return OWN_VALUES + a->runtimes.n + a->argv.n + a->env.n + a->devices.n +
	       OUTPUT_VALUES * a->outputs.n + staged_values(&a->datasets) +
	       staged_values(&a->models) + staged_values(&a->inputs);
}

size_t assignment_bytes(const struct assignment *a)
{
	struct buf b;

	buf_init(&b, ASSIGNMENT_BYTES_MAX);
	field_encode(assignment_fields, a, &b);
	size_t n = buf_failed(&b) ? SIZE_MAX : b.n;
	buf_done(&b);
	return n;
}

int assignment_read(
	struct call *c, const struct db_rows *row, struct assignment *ret, struct err *e)
{
	if (decode(c, row, ret, e) < 0)
		return -1;
	if (assignment_values(ret) > ASSIGNMENT_VALUES_MAX)
		return err_set(e, ERR_TOO_LARGE,
			"the files that the step reads make an assignment of %zu values; a worker "
			"takes %d",
			assignment_values(ret), ASSIGNMENT_VALUES_MAX);
	if (assignment_bytes(ret) == SIZE_MAX)
		return err_set(e, ERR_TOO_LARGE, "the assignment is larger than %d MiB",
			ASSIGNMENT_BYTES_MAX >> 20);
	return 0;
}
