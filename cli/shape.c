#include "cli/shape.h"

#include "cli/cell.h"
#include "lib/base/num.h"

enum { STEPS_SHOWN = 1000 };

/* ---- parts of lines -------------------------------------------------------------------------- */

static struct str text_of(const struct jsn *object, const char *member)
{
	return jsn_get_str(jsn_get(object, member));
}

static void name_of(const struct jsn *member, struct buf *out)
{
	cell_add_text(jsn_name(member), out);
	buf_addc(out, '\t');
}

/* "before" and the member's value, when it is there. */
static void add_member(
	const struct jsn *object, const char *member, const char *before, struct buf *out)
{
	const struct jsn *v = jsn_get(object, member);

	if (jsn_type(v) == JSN_NULL || (jsn_type(v) == JSN_STR && jsn_get_str(v).n == 0))
		return;
	buf_adds(out, before);
	if (jsn_type(v) == JSN_REAL)
		buf_addf(out, "%.15g", jsn_get_real(v, 0));
	else
		cell_add(CELL_FIELD, COLUMN_TEXT, v, out);
}

/* Words as one would type them; of a script its first line. */
static void add_command(const struct jsn *run, struct buf *out)
{
	struct str rest = jsn_get_str(run), line;

	for (size_t i = 0; i < jsn_count(run); i++) {
		struct str word = jsn_get_str(jsn_at(run, i));
		bool plain = word.n != 0 && str_find_char(word, ' ') < 0 &&
			     str_find_char(word, '\n') < 0 && str_find_char(word, '\'') < 0;
		buf_adds(out, i > 0 ? " " : "");
		buf_adds(out, plain ? "" : "'");
		cell_add_text(word, out);
		buf_adds(out, plain ? "" : "'");
	}
	if (jsn_type(run) == JSN_STR && str_next(&rest, '\n', &line)) {
		cell_add_text(line, out);
		buf_adds(out, str_trim(rest).n != 0 ? " …" : "");
	}
}

void shape_command(const struct jsn *v, struct buf *out)
{
	add_command(v, out);
	buf_addc(out, '\n');
}

/* ---- of pipelines ---------------------------------------------------------------------------- */

void shape_inputs(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *rule = jsn_at(v, i);
		name_of(rule, out);
		cell_add_text(text_of(rule, "type"), out);
		if (jsn_get(rule, "default") == NULL)
			buf_adds(out, ", required");
		add_member(rule, "default", ", default ", out);
		add_member(rule, "min", ", at least ", out);
		add_member(rule, "max", ", at most ", out);
		add_member(rule, "choices", ", one of ", out);
		add_member(rule, "description", ": ", out);
		buf_addc(out, '\n');
	}
}

/* Whether all that the step needs has been shown. */
static bool is_ready(const struct jsn *steps, const bool *shown, const struct jsn *step)
{
	const struct jsn *needs = jsn_get(step, "needs");

	for (size_t k = 0; k < jsn_count(needs); k++) {
		for (size_t i = 0; i < jsn_count(steps) && i < STEPS_SHOWN; i++) {
			bool same =
				str_eq(jsn_name(jsn_at(steps, i)), jsn_get_str(jsn_at(needs, k)));
			if (same && !shown[i])
				return false;
		}
	}
	return true;
}

static void add_step(const struct jsn *step, struct buf *out)
{
	name_of(step, out);
	add_command(jsn_get(step, "run"), out);
	if (jsn_count(jsn_get(step, "needs")) > 0)
		add_member(step, "needs", "  (needs ", out);
	buf_adds(out, jsn_count(jsn_get(step, "needs")) > 0 ? ")\n" : "\n");
}

void shape_steps(const struct jsn *v, struct buf *out)
{
	bool shown[STEPS_SHOWN] = { false }, more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < jsn_count(v) && i < STEPS_SHOWN; i++) {
			if (shown[i] || !is_ready(v, shown, jsn_at(v, i)))
				continue;
			add_step(jsn_at(v, i), out);
			shown[i] = more = true;
		}
	}
}

void shape_dataset_refs(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		name_of(jsn_at(v, i), out);
		cell_add_text(text_of(jsn_at(v, i), "name"), out);
		add_member(jsn_at(v, i), "version", ", version ", out);
		buf_addc(out, '\n');
	}
}

void shape_model_refs(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *m = jsn_at(v, i);
		name_of(m, out);
		cell_add_text(text_of(m, "name"), out);
		add_member(m, "alias", ", alias ", out);
		buf_adds(out, jsn_get_bool(jsn_get(m, "optional"), false) ? ", optional\n" : "\n");
	}
}

void shape_triggers(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *t = jsn_at(v, i), *clock = jsn_get(t, "schedule");
		const struct jsn *after = jsn_get(t, "pipeline");
		if (clock != NULL) {
			cell_add_text(text_of(clock, "cron"), out);
			add_member(clock, "timezone", " in ", out);
		} else if (after != NULL) {
			buf_adds(out, "each run of pipeline ");
			cell_add_text(text_of(after, "name"), out);
			add_member(after, "state", " that has ", out);
		} else {
			buf_adds(out, "each new version of data set ");
			cell_add_text(jsn_get_str(jsn_find(t, "/dataset/name")), out);
		}
		buf_addc(out, '\n');
	}
}

void shape_schedules(const struct jsn *v, struct buf *out)
{
	const struct jsn *all = jsn_get(v, "schedules");
	bool paused = jsn_get_bool(jsn_get(v, "paused"), false);

	for (size_t i = 0; i < jsn_count(all); i++) {
		const struct jsn *s = jsn_at(all, i);
		cell_add_text(text_of(s, "cron"), out);
		buf_addc(out, '\t');
		if (paused)
			buf_adds(out, "none while the pipeline is paused");
		else if (jsn_get_str(jsn_get(s, "next_at")).n != 0)
			cell_add(CELL_FIELD, COLUMN_TIME, jsn_get(s, "next_at"), out);
		else
			buf_adds(out, "never again");
		buf_addc(out, '\n');
	}
}

void shape_owed(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *o = jsn_at(v, i);
		cell_add_text(text_of(o, "key"), out);
		buf_addc(out, '\t');
		if (text_of(o, "error").n != 0)
			cell_add_text(text_of(o, "error"), out);
		else
			buf_adds(out, "about to start");
		buf_addc(out, '\n');
	}
}

void shape_model(const struct jsn *v, struct buf *out)
{
	const struct jsn *gate = jsn_get(v, "gate");

	cell_add_text(text_of(v, "name"), out);
	add_member(v, "from", ", from ", out);
	if (gate != NULL) {
		add_member(gate, "metric", ", gate by ", out);
		add_member(gate, "against", " against ", out);
		add_member(gate, "promote", ", promotes to ", out);
	}
	buf_addc(out, '\n');
}

/* ---- of runs and versions -------------------------------------------------------------------- */

void shape_datasets(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		cell_add_text(text_of(jsn_at(v, i), "name"), out);
		buf_addc(out, '\t');
		cell_add_text(text_of(jsn_at(v, i), "dataset"), out);
		add_member(jsn_at(v, i), "number", ", version ", out);
		buf_addc(out, '\n');
	}
}

void shape_training_data(const struct jsn *v, struct buf *out)
{
	cell_add_text(text_of(v, "dataset"), out);
	add_member(v, "dataset_version", ", version ", out);
	add_member(v, "column", ", ", out);
	add_member(v, "from", " from ", out);
	add_member(v, "to", " to ", out);
	buf_addc(out, '\n');
}

void shape_checks(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		cell_add_text(text_of(jsn_at(v, i), "verdict"), out);
		buf_addc(out, '\t');
		cell_add_text(text_of(jsn_at(v, i), "sentence"), out);
		buf_addc(out, '\n');
	}
}

void shape_outputs(const struct jsn *v, struct buf *out)
{
	char size[NUM_SIZE_MAX];

	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *o = jsn_at(v, i);
		int64_t files = jsn_get_int(jsn_get(o, "files"), 0);
		int64_t bytes = jsn_get_int(jsn_get(o, "bytes"), 0);
		name_of(o, out);
		cell_add_text(text_of(o, "kind"), out);
		buf_addf(out, ", %lld file%s, %s\n", (long long)files, num_plural((uint64_t)files),
			num_format_size(size, bytes > 0 ? (uint64_t)bytes : 0));
	}
}

void shape_usage(const struct jsn *v, struct buf *out)
{
	int64_t user = jsn_get_int(jsn_get(v, "user_us"), 0);
	int64_t system = jsn_get_int(jsn_get(v, "system_us"), 0);

	if (user + system > 0)
		buf_addf(out, "%.2f s, and %.2f s in the kernel\n", (double)user / 1e6,
			(double)system / 1e6);
}

void shape_matches(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *m = jsn_at(v, i);
		int64_t count = jsn_get_int(jsn_get(m, "count"), 0);
		cell_add_text(text_of(m, text_of(m, "label").n != 0 ? "label" : "match"), out);
		buf_addf(out, "\t%lld line%s, first line %lld: ", (long long)count,
			num_plural((uint64_t)count), (long long)jsn_get_int(jsn_get(m, "line"), 0));
		cell_add_text(text_of(m, "text"), out);
		buf_addc(out, '\n');
	}
}

void shape_lines(const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		cell_add_text(jsn_get_str(jsn_at(v, i)), out);
		buf_addc(out, '\n');
	}
}

/* ", node 0, NVLink to 2 of 7": of the others in the list. */
static void add_near(const struct jsn *all, const struct jsn *d, struct buf *out)
{
	size_t links = jsn_count(jsn_get(d, "links"));

	if (jsn_get(d, "numa") != NULL)
		buf_addf(out, ", node %lld", (long long)jsn_get_int(jsn_get(d, "numa"), 0));
	if (links != 0)
		buf_addf(out, ", NVLink to %zu of %zu", links, jsn_count(all) - 1);
}

void shape_devices(const struct jsn *v, struct buf *out)
{
	char size[NUM_SIZE_MAX];

	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *d = jsn_at(v, i);
		int64_t memory = jsn_get_int(jsn_get(d, "memory"), 0);
		cell_add_text(text_of(d, "uuid"), out);
		buf_addc(out, '\t');
		cell_add_text(text_of(d, "model"), out);
		add_member(d, "mig", " ", out);
		buf_addf(out, ", %s", num_format_size(size, memory > 0 ? (uint64_t)memory : 0));
		add_near(v, d, out);
		add_member(d, "health", ", unwell: ", out);
		buf_addc(out, '\n');
	}
}

/* "12 images, 96 GiB": how many of a kind, and how large. */
static void add_holds(const struct jsn *v, const char *kind, const char *words, struct buf *out)
{
	char size[NUM_SIZE_MAX];
	uint64_t n = 0, bytes = 0;

	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *h = jsn_at(v, i);
		int64_t more = jsn_get_int(jsn_get(h, "bytes"), 0);
		if (!str_is(text_of(h, "kind"), kind))
			continue;
		n++;
		bytes += more > 0 ? (uint64_t)more : 0;
	}
	if (n != 0)
		buf_addf(out, "%llu %s%s, %s\n", (unsigned long long)n, words, num_plural(n),
			num_format_size(size, bytes));
}

void shape_holds(const struct jsn *v, struct buf *out)
{
	add_holds(v, "image", "image", out);
	add_holds(v, "dataset", "data set", out);
}
