#include "server/core/policy_text.h"

#include "lib/base/num.h"

#include <math.h>

/*
 * A sentence has a head (what was measured, and the limit) and a tail (what follows). A cut at the
 * end of the room is harmless: the numbers stand in the outcome.
 */
struct text {
	char *p;
	size_t room, n;
};

#define SAY(t, ...)                                                                                \
	do {                                                                                       \
		(void)str_print((t)->p + (t)->n, (t)->room - (t)->n, __VA_ARGS__);                 \
		(t)->n += strlen((t)->p + (t)->n);                                                 \
	} while (0)

enum { NAME_SHOWN = 64 };

static int shown(struct str s)
{
	return s.n < NAME_SHOWN ? (int)s.n : NAME_SHOWN;
}

static void say_window(struct text *t, const struct policy_window *w)
{
	char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];

	if (w->start % CLOCK_DAY == 0 && w->end % CLOCK_DAY == 0)
		SAY(t, "window %s to %s", clock_format_date(from, w->start),
			clock_format_date(to, w->end));
	else
		SAY(t, "window %s to %s", clock_format(from, w->start), clock_format(to, w->end));
}

static void head_performance(struct text *t, const struct policy_rules *r,
	const struct policy_window *w, const struct policy_outcome *o)
{
	const char *name = stats_score_name(r->metric);
	bool lower = stats_score_lower(r->metric);

	SAY(t, "The %s%s%s of ", lower ? "error (" : "", name, lower ? ")" : "");
	say_window(t, w);
	SAY(t, " was %.3g, ", w->performance);
	if (lower)
		SAY(t, "%.3g times the champion's %.3g", o->score, w->champion);
	else
		SAY(t, "the champion's is %.3g, %.3g times as much", w->champion, o->score);
	SAY(t, "; the limit is %.3g times", o->limit);
}

static double excess(const struct policy_feature *f)
{
	return f->threshold > 0 ? f->value / f->threshold : f->value;
}

/* The drifted features that stand out most, at most three. */
static void say_features(struct text *t, const struct policy_window *w)
{
	size_t said[3], n = 0;

	for (; n < 3; n++) {
		size_t best = w->n_features;

		for (size_t i = 0; i < w->n_features; i++) {
			bool again = (n > 0 && said[0] == i) || (n > 1 && said[1] == i);

			if (again || !policy_feature_drifted(&w->features[i]))
				continue;
			if (best == w->n_features ||
				excess(&w->features[i]) > excess(&w->features[best]))
				best = i;
		}
		if (best == w->n_features)
			break;
		said[n] = best;
		SAY(t, "%s%.*s %.3g (limit %.3g)", n == 0 ? "; most of all " : ", ",
			shown(w->features[best].name), w->features[best].name.p,
			w->features[best].value, w->features[best].threshold);
	}
}

static void head_drift(
	struct text *t, const struct policy_window *w, const struct policy_outcome *o)
{
	SAY(t, "%u of %u feature%s drifted in ", o->drifted, o->features, num_plural(o->features));
	say_window(t, w);
	SAY(t, ", a weighted share of %.2g; the limit is %.2g", o->score, o->limit);
	say_features(t, w);
}

static void head_quality(struct text *t, const struct policy_window *w)
{
	if (w->n_defects == 0) {
		SAY(t, "No defect was found in the data of ");
		say_window(t, w);
		return;
	}
	SAY(t, "The data of ");
	say_window(t, w);
	SAY(t, " is broken: ");
	for (size_t i = 0; i < w->n_defects && i < 3; i++)
		SAY(t, "%s%.*s is %.3g, the limit is %.3g", i == 0 ? "" : "; ",
			shown(w->defects[i].what), w->defects[i].what.p, w->defects[i].value,
			w->defects[i].limit);
	if (w->n_defects > 3)
		SAY(t, "; and %zu more", w->n_defects - 3);
}

static void say_stop(struct text *t, const struct policy_rules *r, const struct policy_state *s,
	enum policy_stop stop)
{
	char until[CLOCK_TEXT_MAX];

	switch (stop) {
	case POLICY_STOP_MUTED:
		SAY(t, "the monitor is muted until %s", clock_format_date(until, s->muted_until));
		break;
	case POLICY_STOP_DATA_QUALITY:
		SAY(t, "its data is broken, and broken data never trains");
		break;
	case POLICY_STOP_OPEN: SAY(t, "another retraining of this model is running"); break;
	case POLICY_STOP_COOLDOWN:
		SAY(t, "the cooldown lasts %u more window%s", s->cooldown, num_plural(s->cooldown));
		if (s->refused > 0)
			SAY(t, ", after %u refused challenger%s", s->refused,
				num_plural(s->refused));
		break;
	case POLICY_STOP_BUDGET:
		SAY(t, "the budget of %u retraining%s in this period is used up", r->budget_runs,
			num_plural(r->budget_runs));
		break;
	case POLICY_STOP_NO_PIPELINE: SAY(t, "the monitor names no pipeline to run"); break;
	case POLICY_NOT_STOPPED:
	case POLICY_STOPS: break;
	}
}

static const char *const fired_words[POLICY_ACTIONS] = { "recorded", "this is a warning",
	"an alert is raised", "retraining is started", "nothing is trained until it is good again",
	"the version that it replaced is taken back" };
static const char *const due_words[POLICY_ACTIONS] = { "recording", "a warning", "an alert",
	"retraining", "blocking", "a rollback" };

static const char *standing_words(const struct policy_rule *rule, enum policy_level level)
{
	if (rule->action == POLICY_RECORD)
		return "recorded";
	if (level != POLICY_ALERTED)
		return "the warning stands";
	if (rule->action == POLICY_BLOCK)
		return "nothing is trained until it is good again";
	return "the alert stands, and what it calls for has been done";
}

static void tail_hot(struct text *t, const struct policy_rules *r, const struct policy_state *s,
	enum policy_cause c, const struct policy_outcome *o)
{
	const struct policy_rule *rule = &r->cause[c];

	if (c != POLICY_DATA_QUALITY)
		SAY(t, "; hot in %u of the last %u window%s", o->hot, o->n, num_plural(o->n));
	if (o->action == POLICY_ROLLBACK)
		SAY(t, ", and worse than the %.3g of the version that it replaced", s->guard_level);
	SAY(t, ": ");
	if (o->fired) {
		SAY(t, "%s", fired_words[o->action]);
	} else if (o->stop != POLICY_NOT_STOPPED) {
		SAY(t, "%s is due, but ", due_words[o->action]);
		say_stop(t, r, s, o->stop);
	} else {
		SAY(t, "%s", standing_words(rule, o->after));
	}
	if (o->after == POLICY_WARNED && o->k > o->hot && rule->action > POLICY_WARN)
		SAY(t, "; with %u more, %s is due", o->k - o->hot, due_words[rule->action]);
}

static void tail_calm(struct text *t, const struct policy_rules *r, const struct policy_state *s,
	enum policy_cause c, const struct policy_outcome *o)
{
	const struct policy_rule *rule = &r->cause[c];

	if (o->resolved)
		SAY(t, ": the alert is over");
	else if (o->after == POLICY_ALERTED && s->cause[c].calm > 0)
		SAY(t, ": calm in %u of the %u window%s that end%s the alert", s->cause[c].calm,
			rule->clear_windows, num_plural(rule->clear_windows),
			rule->clear_windows == 1 ? "s" : "");
	else if (o->after == POLICY_ALERTED)
		SAY(t, ": the alert stands until it is below %.3g", rule->clear);
	else if (o->after == POLICY_WARNED)
		SAY(t, ": the warning stands until it is below %.3g", rule->clear);
	else
		SAY(t, ": all is well");
}

static void text_untested(struct text *t, const struct policy_rules *r,
	const struct policy_window *w, enum policy_cause c, enum policy_verdict verdict)
{
	bool labels = c == POLICY_PERFORMANCE;
	unsigned long long rows = labels ? w->labelled : w->rows;

	if (!r->cause[c].used) {
		SAY(t, "The monitor has no rule for %s.", policy_cause_name(c));
		return;
	}
	if (verdict == POLICY_INSUFFICIENT) {
		SAY(t, "There %s %llu %srow%s in ", rows == 1 ? "is" : "are", rows,
			labels ? "labelled " : "", num_plural(rows));
		say_window(t, w);
		SAY(t, ", fewer than the %llu that a verdict needs: nothing is decided.",
			(unsigned long long)r->min_samples);
		return;
	}
	SAY(t, "There is nothing to judge %s by in ", policy_cause_name(c));
	say_window(t, w);
	SAY(t, ": %s.",
		labels ? "no labels, or no level of the champion" : "no feature could be tested");
}

void policy_text(const struct policy_rules *r, const struct policy_state *s,
	const struct policy_window *w, enum policy_cause c, struct policy_outcome *o)
{
	struct text t = { o->sentence, sizeof(o->sentence), 0 };

	o->sentence[0] = 0;
	if (o->verdict != POLICY_CALM && o->verdict != POLICY_HOT) {
		text_untested(&t, r, w, c, o->verdict);
		return;
	}
	if (c == POLICY_PERFORMANCE)
		head_performance(&t, r, w, o);
	else if (c == POLICY_DRIFT)
		head_drift(&t, w, o);
	else
		head_quality(&t, w);
	if (o->verdict == POLICY_HOT)
		tail_hot(&t, r, s, c, o);
	else
		tail_calm(&t, r, s, c, o);
	SAY(&t, ".");
}
