#include "server/sched/assignment.h"

#include "api/pipeline.h"
#include "api/run.h"
#include "lib/base/buf.h"
#include "lib/crypto/hash.h"
#include "server/app.h"
#include "server/sched/log_policy.h"
#include "server/sched/spec.h"
#include "server/store/credential.h"

enum {
	OWN_VALUES = 64,
	FILE_VALUES = 4,
	STAGED_VALUES = 5,
	OUTPUT_VALUES = 4,
	POLICY_VALUES = 4,
	SECRET_VALUES = 3,
	REST_VALUES = 4000
};
/* A spec that is no longer, without files beside it, is not worth counting bytes for: \u0000 is the
 * longest that JSON makes of one. */
enum { SMALL_SPEC = 65536, OWN_BYTES = 65536, ESCAPED = 6 };

static int64_t span_us(const struct field_span *span)
{
	return span->text.n != 0 ? clock_add(0, span->span, 1) : 0;
}

static void fill_outputs(const struct step_spec *spec, struct arena *a, struct assignment *out)
{
	struct assigned_output *list =
		arena_array_of(a, struct assigned_output, spec->outputs.n + 1);

	for (size_t i = 0; i < spec->outputs.n; i++) {
		const struct output_spec *o = list_at(&spec->outputs, struct output_spec, i);
		list[i] = (struct assigned_output){ o->name, o->path, o->kind };
	}
	out->outputs = (struct list){ list, spec->outputs.n };
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

/* Files as objects, as long as any reader takes so many; else they stay a text, behind a file that
 * no worker can place: one that does not know the text must not begin without them. */
static int fill_files(struct list *all, bool few, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < all->n; i++) {
		struct staged *s = list_at(all, struct staged, i);
		if (few) {
			if (staged_files(s, a, &s->files, e) < 0)
				return -1;
			s->listing = STR("");
		} else if (s->listing.n != 0) {
			struct file *none = arena_new_of(a, struct file);
			*none = (struct file){ .path = STR("/"),
				.digest = str_slice(s->listing, 0, HASH_HEX) };
			s->files = (struct list){ none, 1 };
		}
	}
	return 0;
}

static size_t count_files(const struct list *all, bool *few)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		size_t k = staged_count(list_at(all, struct staged, i));
		*few &= k <= FILES_MAX;
		n += k;
	}
	return n;
}

/* Leaves room for the command, its variables and the rest. */
static int fill_staged(struct assignment *out, struct arena *a, struct err *e)
{
	bool few = true;
	size_t n = count_files(&out->datasets, &few) + count_files(&out->models, &few) +
		   count_files(&out->inputs, &few) + out->checkpoint.n;

	few &= FILE_VALUES * n <= ASSIGNMENT_VALUES_MAX - REST_VALUES;
	if (fill_files(&out->datasets, few, a, e) < 0 || fill_files(&out->models, few, a, e) < 0)
		return -1;
	return fill_files(&out->inputs, few, a, e);
}

static int decode(struct app *app, const struct db_rows *r, size_t row, struct arena *a,
	struct assignment *out, struct err *e)
{
	struct step_spec spec;

	if (db_row_decode(r, row, assignment_fields, a, out, e) < 0 ||
		field_decode_reply(
			step_spec_fields, db_str(r, row, db_col(r, "spec")), a, &spec, e) < 0 ||
		spec_argv(spec.run, a, &out->argv, e) < 0)
		return -1;
	int64_t failures = db_int(r, row, db_col(r, "user_failures"));
	out->user_retries = spec.retries.user > failures ? spec.retries.user - failures : 0;
	out->image = spec.image;
	out->env = spec.env;
	out->shm = spec.resources.shm;
	out->time_limit = span_us(&spec.time_limit);
	out->start_timeout = span_us(&spec.timeouts.start);
	out->gpu_idle = span_us(&spec.timeouts.gpu_idle.after);
	out->gpu_idle_stop = spec.timeouts.gpu_idle.action == IDLE_STOP;
	out->self_stop_after =
		spec.on_lost.policy == LOST_STOP ? span_us(&spec.on_lost.self_stop_after) : 0;
	out->log_max = spec.logs.max;
	out->no_system_metrics = spec.metrics.system == SYSTEM_METRICS_OFF;
	out->secrets = spec.secrets;
	out->log_policies = log_policy_all(&spec.logs, a);
	out->launcher = spec.placement.launcher;
	out->checkpoint_max = app->conf.checkpoint_max;
	out->token = credential_derive(app->pepper, CREDENTIAL_JOB, out->attempt, a).text;
	fill_runtimes(&spec, db_str(r, row, db_col(r, "runtime")), a, out);
	if (out->rank == 0) /* it alone leaves outputs */
		fill_outputs(&spec, a, out);
	return fill_staged(out, a, e);
}

static size_t staged_values(const struct list *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += STAGED_VALUES + FILE_VALUES * list_at(all, struct staged, i)->files.n;
	return n;
}

static size_t values_of(const struct assignment *a)
{
	return OWN_VALUES + a->runtimes.n + a->argv.n + a->env.n + a->devices.n +
	       SECRET_VALUES * a->secrets.n + OUTPUT_VALUES * a->outputs.n +
	       POLICY_VALUES * a->log_policies.n + staged_values(&a->datasets) +
	       FILE_VALUES * a->checkpoint.n + staged_values(&a->models) +
	       staged_values(&a->inputs);
}

static size_t bytes_of(const struct assignment *a, struct str spec)
{
	struct buf b;

	if (spec.n <= SMALL_SPEC &&
		a->datasets.n + a->models.n + a->inputs.n + a->checkpoint.n == 0)
		return ESCAPED * spec.n + OWN_BYTES;
	buf_init(&b, ASSIGNMENT_BYTES_MAX);
	field_encode(assignment_fields, a, &b);
	size_t n = buf_failed(&b) ? SIZE_MAX : b.n;
	buf_done(&b);
	return n;
}

int assignment_read(struct app *app, const struct db_rows *r, size_t row, struct arena *a,
	struct assignment *ret, struct assignment_size *ret_size, struct err *e)
{
	struct assignment_size size;

	if (decode(app, r, row, a, ret, e) < 0)
		return -1;
	size.values = values_of(ret);
	if (size.values > ASSIGNMENT_VALUES_MAX)
		return err_set(e, ERR_TOO_LARGE,
			"the files that the step reads make an assignment of %zu values; a worker "
			"takes %d",
			size.values, ASSIGNMENT_VALUES_MAX);
	size.bytes = bytes_of(ret, db_str(r, row, db_col(r, "spec")));
	if (size.bytes > ASSIGNMENT_BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE, "the assignment is larger than %d MiB",
			ASSIGNMENT_BYTES_MAX >> 20);
	*ret_size = size;
	return 0;
}
