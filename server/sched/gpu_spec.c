#include "server/sched/gpu_spec.h"

static int read_object(const struct jsn *v, struct arena *a, struct gpus_want *want, struct err *e)
{
	struct gpu_request g;

	if (jsn_decode(v, gpu_request_fields, FIELD_STRICT, a, &g, e) < 0)
		return -1;
	want->count = (uint32_t)g.count;
	want->models = g.model.items;
	want->models_n = g.model.n;
	for (size_t i = 0; i < g.model.n; i++)
		if (gpus_check_model(want->models[i], e) < 0) {
			err_field_index(e, i);
			err_field_prefix(e, "model");
			return -1;
		}
	if (g.memory.n != 0 &&
		gpus_parse_memory(g.memory, &want->memory_min, &want->memory_max, e) < 0) {
		err_field_prefix(e, "memory");
		return -1;
	}
	if (g.mig.n != 0 && gpus_check_mig(g.mig, e) < 0) {
		err_field_prefix(e, "mig");
		return -1;
	}
	want->mig = g.mig;
	return 0;
}

int gpu_spec_of(const struct jsn *v, struct arena *a, struct gpus_want *ret, struct err *e)
{
	struct gpus_want want = { 0 };
	int rc = 0;

	switch (jsn_type(v)) {
	case JSN_NULL: break;
	case JSN_STR: rc = gpus_parse(jsn_get_str(v), a, &want, e); break;
	case JSN_INT:
		if (jsn_get_int(v, 0) < 0) {
			rc = err_field(e, "", "the number of GPUs must not be negative");
			break;
		}
		rc = gpus_parse(arena_printf(a, "%lld", (long long)jsn_get_int(v, 0)), a, &want, e);
		break;
	case JSN_OBJ: rc = read_object(v, a, &want, e); break;
	default:
		rc = err_field(e, "",
			"must be as 2, \"H100:4\", \"24GB..80GB:2\", \"40GiB..\" or an object");
	}
	if (rc == 0)
		*ret = want;
	return rc;
}

int gpu_spec_read(struct str json, struct arena *a, struct gpus_want *ret, struct err *e)
{
	struct jsn_doc *doc;

	if (json.n == 0) {
		*ret = (struct gpus_want){ 0 };
		return 0;
	}
	if (jsn_parse(json, &doc, e) < 0)
		return -1;
	int rc = gpu_spec_of(jsn_root(doc), a, ret, e);
	jsn_doc_free(doc);
	return rc;
}

int gpu_spec_check(const struct pipeline_spec *spec, struct arena *a, struct err *e)
{
	for (size_t i = 0; i <= spec->steps.n; i++) {
		const struct step_spec *s =
			i > 0 ? list_at(&spec->steps, struct step_spec, i - 1) : NULL;
		const struct resources *r = s != NULL ? &s->resources : &spec->defaults.resources;
		struct gpus_want want;
		if ((s != NULL && !s->has_resources) || gpu_spec_read(r->gpus, a, &want, e) == 0)
			continue;
		err_field_prefix(e, "gpus");
		err_field_prefix(e, "resources");
		err_field_prefix(e, s != NULL ? arena_str(a, s->name).p : "defaults");
		if (s != NULL)
			err_field_prefix(e, "steps");
		return -1;
	}
	return 0;
}
