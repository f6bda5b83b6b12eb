/* What a decision rests on, for its row. */
#include "server/core/policy_text.h"
#include "server/sched/judge.h"

#include "lib/json/json_write.h"
#include "server/sched/monitor_rules.h"

#include <math.h>

enum { INPUTS_MAX = 1 << 20, FEATURES_SHOWN = 50 };

static void real_or_null(struct jsn_out *w, const char *key, double v)
{
	jsn_key(w, key);
	if (isnan(v))
		jsn_null(w);
	else
		jsn_real(w, v);
}

static void put_window(struct jsn_out *w, const struct policy_window *x)
{
	jsn_key(w, "window");
	jsn_obj_begin(w);
	jsn_key(w, "start");
	jsn_time(w, x->start);
	jsn_key(w, "end");
	jsn_time(w, x->end);
	jsn_key(w, "rows");
	jsn_int(w, (int64_t)x->rows);
	jsn_key(w, "labelled");
	jsn_int(w, (int64_t)x->labelled);
	jsn_obj_end(w);
}

static void put_outcome(struct jsn_out *w, const struct policy_outcome *o)
{
	jsn_key(w, "verdict");
	jsn_text(w, policy_verdict_name(o->verdict));
	real_or_null(w, "score", o->score);
	real_or_null(w, "limit", o->limit);
	jsn_key(w, "hot");
	jsn_int(w, o->hot);
	jsn_key(w, "k");
	jsn_int(w, o->k);
	jsn_key(w, "n");
	jsn_int(w, o->n);
	jsn_key(w, "before");
	jsn_text(w, policy_level_name(o->before));
	jsn_key(w, "after");
	jsn_text(w, policy_level_name(o->after));
}

static void put_performance(
	struct jsn_out *w, const struct judgement *j, const struct judge_args *args)
{
	jsn_key(w, "metric");
	jsn_text(w, stats_score_name(monitor_score(args->spec)));
	real_or_null(w, "value", j->performance);
	real_or_null(w, "champion", args->has_level ? args->level : (double)NAN);
	jsn_key(w, "min_samples");
	jsn_int(w, args->spec->min_samples);
}

static double excess(const struct policy_feature *f)
{
	return f->threshold > 0 ? f->value / f->threshold : f->value;
}

static void put_feature(struct jsn_out *w, const struct policy_feature *f)
{
	jsn_obj_begin(w);
	jsn_key(w, "name");
	jsn_str(w, f->name);
	real_or_null(w, "value", f->value);
	real_or_null(w, "threshold", f->threshold);
	real_or_null(w, "critical", f->critical);
	if (f->weight < 1 || f->weight > 1)
		real_or_null(w, "weight", f->weight);
	jsn_obj_end(w);
}

/* The drifted ones, those that stand out most first. */
static void put_drift(struct jsn_out *w, const struct judgement *j, const struct policy_outcome *o,
	struct arena *a)
{
	const struct policy_window *x = &j->window;
	bool *said = arena_array_of(a, bool, x->n_features + 1);

	jsn_key(w, "features");
	jsn_int(w, o->features);
	jsn_key(w, "drifted");
	jsn_int(w, o->drifted);
	jsn_key(w, "most");
	jsn_list_begin(w);
	for (size_t n = 0; n < FEATURES_SHOWN; n++) {
		size_t best = x->n_features;
		for (size_t i = 0; i < x->n_features; i++)
			if (!said[i] && policy_feature_drifted(&x->features[i]) &&
				(best == x->n_features ||
					excess(&x->features[i]) > excess(&x->features[best])))
				best = i;
		if (best == x->n_features)
			break;
		said[best] = true;
		put_feature(w, &x->features[best]);
	}
	jsn_list_end(w);
}

static void put_defects(struct jsn_out *w, const struct policy_window *x)
{
	jsn_key(w, "defects");
	jsn_list_begin(w);
	for (size_t i = 0; i < x->n_defects && i < FEATURES_SHOWN; i++) {
		jsn_obj_begin(w);
		jsn_key(w, "what");
		jsn_str(w, x->defects[i].what);
		real_or_null(w, "value", x->defects[i].value);
		real_or_null(w, "limit", x->defects[i].limit);
		jsn_obj_end(w);
	}
	jsn_list_end(w);
}

static void put_state(struct jsn_out *w, const struct policy_state *s)
{
	jsn_key(w, "cooldown");
	jsn_int(w, s->cooldown);
	jsn_key(w, "refused");
	jsn_int(w, s->refused);
	jsn_key(w, "open_retraining");
	jsn_bool(w, s->open);
}

struct str judge_inputs(const struct judgement *j, const struct judge_args *args,
	enum policy_cause cause, struct arena *a)
{
	const struct policy_outcome *o = &j->decision.cause[cause];
	struct buf b;

	buf_init(&b, INPUTS_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	put_window(&w, &j->window);
	jsn_key(&w, "model_version");
	jsn_text(&w, args->model_version);
	put_outcome(&w, o);
	switch (cause) {
	case POLICY_PERFORMANCE: put_performance(&w, j, args); break;
	case POLICY_DRIFT: put_drift(&w, j, o, a); break;
	case POLICY_DATA_QUALITY: put_defects(&w, &j->window); break;
	case POLICY_CAUSES: break;
	}
	put_state(&w, &j->before);
	jsn_obj_end(&w);
	struct str out = buf_failed(&b) ? STR("{}") : arena_str(a, buf_str(&b));
	buf_done(&b);
	return out;
}
