/* The small languages of server/core: ${…}, GPUs, images, paths, references and graphs. The first
 * byte chooses one. No input may pass the arena's limit, every refusal has a message, and what is
 * taken keeps the promises of the headers. */
#include "server/core/gpus.h"
#include "server/core/image.h"
#include "server/core/render.h"
#include "server/core/spec_check.h"

enum { OUT_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void refused(const struct err *e)
{
	BUG_ON(e->code != ERR_INVALID || e->msg[0] == '\0');
	BUG_ON(!str_utf8_valid(str_c(e->msg)) || !str_utf8_valid(str_c(e->field)));
}

static void fuzz_render(struct str text, struct arena *a)
{
	const struct str names[] = { STR("inputs.a-b"), STR("window.start"), STR("window.end"),
		STR("steps.a.outputs.b") };
	const struct render_value values[] = { { .kind = RENDER_TEXT, .text = STR("${x}") },
		{ .kind = RENDER_DATE }, { .kind = RENDER_TIME, .us = INT64_MAX / 100000 },
		{ .kind = RENDER_LATER } };
	const struct render_list list = { names, values, 4 };
	const struct render_scope scope = render_list_scope(&list);
	bool later = false;
	struct str out;
	struct err e = { 0 };

	if (render_text(text, &scope, OUT_MAX, a, &out, &later, &e) < 0) {
		refused(&e);
		return;
	}
	BUG_ON(out.n > OUT_MAX);
	BUG_ON(later && !str_eq(out, text));
	BUG_ON(!render_has_reference(text) && !later && out.n > text.n);
}

static void fuzz_gpus(struct str text, struct arena *a)
{
	struct gpus_want w;
	struct err e = { 0 };

	if (gpus_parse(text, a, &w, &e) < 0) {
		refused(&e);
		return;
	}
	BUG_ON(w.count > GPUS_MAX || w.models_n > 1);
	BUG_ON(w.memory_max != 0 && w.memory_min > w.memory_max);
	/* What names a model matches that very name. */
	if (w.models_n == 1)
		BUG_ON(!gpus_match(&w, w.models[0], w.memory_min, w.mig));
}

static void fuzz_names(struct str text)
{
	struct err e = { 0 };

	if (image_check(text, &e) < 0)
		refused(&e);
	else
		BUG_ON(text.n == 0 || str_has_control(text) || text.p[0] == '-');
	e = (struct err){ 0 };
	if (spec_check_path(text, &e) < 0)
		refused(&e);
	else
		BUG_ON(text.p[0] == '/' || str_find(text, STR("/../")) >= 0 ||
			str_starts(text, STR("../")) || str_ends(text, STR("/..")));
	e = (struct err){ 0 };
	if (spec_check_env_name(text, &e) < 0)
		refused(&e);
	else
		BUG_ON(str_starts(text, STR("LD_")) || str_find_char(text, '=') >= 0);
}

/* One step a line: its name, then what it needs, separated by spaces. */
static void fuzz_dag(struct str text, struct arena *a)
{
	struct dag_step steps[64];
	size_t count = 0;
	struct str line, word;
	struct dag d;
	struct err e = { 0 };

	if (!str_utf8_valid(text))
		return;
	while (count < 64 && str_next(&text, '\n', &line)) {
		struct str *needs = arena_array_of(a, struct str, 16);
		struct dag_step *s = &steps[count++];
		(void)str_next(&line, ' ', &word);
		*s = (struct dag_step){ .name = word, .needs = needs };
		while (s->needs_n < 16 && str_next(&line, ' ', &word))
			needs[s->needs_n++] = word;
	}
	if (dag_build(steps, count, a, &d, &e) < 0) {
		refused(&e);
		return;
	}
	bool done[64] = { false };
	for (size_t i = 0; i < d.n; i++) {
		for (uint32_t k = d.need_at[d.order[i]]; k < d.need_at[d.order[i] + 1]; k++)
			BUG_ON(!done[d.need[k]]);
		BUG_ON(done[d.order[i]]);
		done[d.order[i]] = true;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct arena *a = arena_new(1 << 20);
	struct str text = { n > 1 ? (const char *)bytes + 1 : "", n > 1 ? n - 1 : 0 };

	switch (n != 0 ? bytes[0] % 4 : 0) {
	case 0: fuzz_render(text, a); break;
	case 1: fuzz_gpus(text, a); break;
	case 2: fuzz_names(text); break;
	default: fuzz_dag(text, a);
	}
	arena_drop(a);
	return 0;
}
