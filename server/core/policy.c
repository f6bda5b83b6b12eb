#include "server/core/policy.h"

#include "lib/base/err.h"
#include "server/core/policy_text.h"

#include <math.h>

/*
 * One window, in this order: the cooldown counts down; each cause is scored and its state moves;
 * then what is due is taken or held back, data quality first, since it can block the others. A
 * retraining that one cause starts is "open" for the causes after it.
 */
static const char *const cause_names[POLICY_CAUSES] = { "performance", "drift", "data_quality" };
static const char *const action_names[POLICY_ACTIONS] = { "record", "warn", "alert", "retrain",
	"block", "rollback" };
static const char *const level_names[POLICY_LEVELS] = { "ok", "warn", "alert" };
static const char *const verdict_names[POLICY_VERDICTS] = { "untested", "insufficient", "calm",
	"hot" };
static const char *const stop_names[POLICY_STOPS] = { "", "muted", "data_quality", "open",
	"cooldown", "budget", "no_pipeline" };

static const enum policy_cause order[POLICY_CAUSES] = { POLICY_DATA_QUALITY, POLICY_PERFORMANCE,
	POLICY_DRIFT };

const char *policy_cause_name(enum policy_cause c)
{
	return c < POLICY_CAUSES ? cause_names[c] : "unknown";
}

const char *policy_action_name(enum policy_action a)
{
	return a < POLICY_ACTIONS ? action_names[a] : "unknown";
}

const char *policy_level_name(enum policy_level l)
{
	return l < POLICY_LEVELS ? level_names[l] : "unknown";
}

const char *policy_verdict_name(enum policy_verdict v)
{
	return v < POLICY_VERDICTS ? verdict_names[v] : "unknown";
}

const char *policy_stop_name(enum policy_stop s)
{
	return s < POLICY_STOPS ? stop_names[s] : "unknown";
}

void policy_init(struct policy_state *s)
{
	memset(s, 0, sizeof(*s));
}

static uint32_t history_mask(uint32_t n)
{
	return n >= 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
}

bool policy_state_sound(const struct policy_state *s)
{
	for (int c = 0; c < POLICY_CAUSES; c++) {
		const struct policy_cause_state *m = &s->cause[c];

		if (m->level >= POLICY_LEVELS || m->tested > POLICY_WINDOWS_MAX ||
			(m->history & ~history_mask(m->tested)) != 0)
			return false;
	}
	return s->cooldown <= POLICY_COOLDOWN_MAX && s->refused <= POLICY_COOLDOWN_MAX &&
	       s->n_started <= POLICY_BUDGET_MAX &&
	       (!s->has_guard_level || isfinite(s->guard_level));
}

bool policy_feature_drifted(const struct policy_feature *f)
{
	if (!f->tested || !(f->value >= f->threshold) || f->value < f->critical)
		return false;
	/* Not drift when the same season looked like this before. */
	return isnan(f->seasonal) ||
	       (f->seasonal >= f->threshold && !(f->seasonal < f->seasonal_critical));
}

/* ---- scores ------------------------------------------------------------------------------- */
static void score_performance(
	const struct policy_rules *r, const struct policy_window *w, struct policy_outcome *o)
{
	bool lower = stats_score_lower(r->metric);
	double worse = lower ? w->performance : w->champion;
	double better = lower ? w->champion : w->performance;

	if (!w->has_performance || !(worse >= 0 && better >= 0) || isinf(worse) || isinf(better))
		return;
	if (w->labelled < r->min_samples) {
		o->verdict = POLICY_INSUFFICIENT;
		return;
	}
	o->score = better > 0 ? worse / better : (worse > 0 ? HUGE_VAL : 1);
	o->verdict = o->score > o->limit ? POLICY_HOT : POLICY_CALM;
}

static void score_drift(
	const struct policy_rules *r, const struct policy_window *w, struct policy_outcome *o)
{
	double all = 0, drifted = 0;
	bool decided = false;

	if (w->rows < r->min_samples) {
		o->verdict = POLICY_INSUFFICIENT;
		return;
	}
	for (size_t i = 0; i < w->n_features; i++) {
		const struct policy_feature *f = &w->features[i];

		if (!f->tested)
			continue;
		o->features++;
		all += f->weight;
		if (policy_feature_drifted(f)) {
			o->drifted++;
			drifted += f->weight;
			decided |= f->decides;
		}
	}
	if (!(all > 0))
		return;
	o->score = drifted / all;
	o->verdict = decided || o->score >= o->limit ? POLICY_HOT : POLICY_CALM;
}

static void score_quality(const struct policy_window *w, struct policy_outcome *o)
{
	o->score = (double)w->n_defects;
	o->verdict = w->n_defects > 0 ? POLICY_HOT : POLICY_CALM;
}

/* ---- the state machine of a cause ---------------------------------------------------------- */
static void move_alerted(
	const struct policy_rule *rule, struct policy_cause_state *m, struct policy_outcome *o)
{
	m->calm = o->verdict == POLICY_CALM && o->score < rule->clear ? m->calm + 1 : 0;
	if (m->calm < rule->clear_windows)
		return;
	memset(m, 0, sizeof(*m));
	o->resolved = true;
}

static void move(
	const struct policy_rule *rule, struct policy_cause_state *m, struct policy_outcome *o)
{
	bool hot = o->verdict == POLICY_HOT;

	m->history = ((m->history << 1) | hot) & history_mask(rule->n);
	m->tested = m->tested < rule->n ? m->tested + 1 : rule->n;
	o->hot = (uint32_t)__builtin_popcount(m->history);
	if (m->level == POLICY_ALERTED) {
		move_alerted(rule, m, o);
	} else if (o->hot >= rule->k) {
		m->level = POLICY_ALERTED;
		m->calm = 0;
		m->due = true;
		o->alerted = true;
	} else if (hot) {
		o->warned = m->level == POLICY_FINE;
		m->level = POLICY_WARNED;
	} else if (o->score < rule->clear) {
		m->level = POLICY_FINE;
	}
}

static struct policy_rule rule_of(const struct policy_rules *r, enum policy_cause c)
{
	struct policy_rule rule = r->cause[c];

	if (c == POLICY_DATA_QUALITY) {
		rule.limit = rule.clear = 1;
		rule.k = rule.n = rule.clear_windows = 1;
	}
	BUG_ON(rule.used && (rule.k < 1 || rule.n < rule.k || rule.n > POLICY_WINDOWS_MAX ||
				    rule.clear_windows < 1 || rule.action > POLICY_BLOCK));
	return rule;
}

static void judge(const struct policy_rules *r, struct policy_state *s,
	const struct policy_window *w, enum policy_cause c, struct policy_outcome *o)
{
	struct policy_rule rule = rule_of(r, c);
	struct policy_cause_state *m = &s->cause[c];

	*o = (struct policy_outcome){ .before = m->level,
		.after = m->level,
		.score = (double)NAN,
		.limit = rule.limit,
		.k = rule.k,
		.n = rule.n };
	if (!rule.used)
		return;
	if (c == POLICY_PERFORMANCE)
		score_performance(r, w, o);
	else if (c == POLICY_DRIFT)
		score_drift(r, w, o);
	else
		score_quality(w, o);
	if (o->verdict == POLICY_CALM || o->verdict == POLICY_HOT)
		move(&rule, m, o);
	else
		o->hot = (uint32_t)__builtin_popcount(m->history);
	o->after = m->level;
}

/* ---- what follows ---------------------------------------------------------------------------- */
static bool blocked(const struct policy_rules *r, const struct policy_state *s)
{
	for (int c = 0; c < POLICY_CAUSES; c++)
		if (r->cause[c].used && r->cause[c].action == POLICY_BLOCK &&
			s->cause[c].level == POLICY_ALERTED)
			return true;
	return false;
}

static bool budget_used(
	const struct policy_rules *r, const struct policy_state *s, const struct policy_window *w)
{
	uint32_t runs = r->budget_runs < POLICY_BUDGET_MAX ? r->budget_runs : POLICY_BUDGET_MAX;
	int64_t from;
	uint32_t n = 0;

	if (!r->has_budget)
		return false;
	from = clock_add(w->end, r->budget_per, -1);
	for (uint32_t i = 0; i < s->n_started; i++)
		n += s->started[i] > from;
	return n >= runs;
}

static enum policy_stop mute_stop(const struct policy_state *s, const struct policy_window *w)
{
	return s->muted && w->start < s->muted_until ? POLICY_STOP_MUTED : POLICY_NOT_STOPPED;
}

static enum policy_stop retrain_stop(
	const struct policy_rules *r, const struct policy_state *s, const struct policy_window *w)
{
	if (!r->has_pipeline)
		return POLICY_STOP_NO_PIPELINE;
	if (mute_stop(s, w) != POLICY_NOT_STOPPED)
		return POLICY_STOP_MUTED;
	if (blocked(r, s))
		return POLICY_STOP_DATA_QUALITY;
	if (s->open)
		return POLICY_STOP_OPEN;
	if (s->cooldown > 0)
		return POLICY_STOP_COOLDOWN;
	return budget_used(r, s, w) ? POLICY_STOP_BUDGET : POLICY_NOT_STOPPED;
}

static uint32_t cooldown_of(const struct policy_rules *r, uint32_t refused)
{
	double windows = r->cooldown * pow(fmax(r->backoff, 1), refused);

	return windows < POLICY_COOLDOWN_MAX ? (uint32_t)windows : POLICY_COOLDOWN_MAX;
}

static void start_retraining(
	const struct policy_rules *r, struct policy_state *s, const struct policy_window *w)
{
	if (s->n_started == POLICY_BUDGET_MAX) {
		s->n_started--;
		memmove(s->started, s->started + 1, s->n_started * sizeof(*s->started));
	}
	s->started[s->n_started++] = w->end;
	s->open = true;
	s->cooldown = cooldown_of(r, s->refused);
}

/* After a promotion: hot, and worse than what it replaced was on the gate's rows. */
static bool must_roll_back(const struct policy_rules *r, const struct policy_state *s,
	const struct policy_window *w, const struct policy_outcome *o)
{
	if (s->guard == 0 || !r->guard_rollback || !s->has_guard_level || blocked(r, s) ||
		o->verdict != POLICY_HOT)
		return false;
	return stats_score_lower(r->metric) ? w->performance > s->guard_level
					    : w->performance < s->guard_level;
}

static void take(struct policy_outcome *o, enum policy_action action, enum policy_stop stop)
{
	o->action = action;
	o->stop = stop;
	o->fired = stop == POLICY_NOT_STOPPED;
}

static void act(const struct policy_rules *r, struct policy_state *s, const struct policy_window *w,
	enum policy_cause c, struct policy_outcome *o)
{
	enum policy_action action = r->cause[c].action;
	struct policy_cause_state *m = &s->cause[c];

	if (!r->cause[c].used)
		return;
	if (c == POLICY_PERFORMANCE && must_roll_back(r, s, w, o)) {
		take(o, POLICY_ROLLBACK, mute_stop(s, w));
		return;
	}
	if (o->warned && action >= POLICY_WARN) {
		take(o, POLICY_WARN, mute_stop(s, w));
		return;
	}
	if (!m->due || o->verdict != POLICY_HOT)
		return;
	if (action == POLICY_RETRAIN)
		take(o, action, retrain_stop(r, s, w));
	else if (action == POLICY_BLOCK) /* a mute silences, it does not make broken data good */
		take(o, action, POLICY_NOT_STOPPED);
	else if (action != POLICY_RECORD)
		take(o, action, mute_stop(s, w));
	m->due = action != POLICY_RECORD && !o->fired;
	if (o->fired && action == POLICY_RETRAIN)
		start_retraining(r, s, w);
}

static void sum_up(struct policy_decision *d)
{
	d->by = order[0];
	for (int i = 0; i < POLICY_CAUSES; i++) {
		const struct policy_outcome *o = &d->cause[order[i]];
		bool stronger = o->fired == d->fired ? o->action > d->action : o->fired;

		d->retrain |= o->fired && o->action == POLICY_RETRAIN;
		d->rollback |= o->fired && o->action == POLICY_ROLLBACK;
		if (!stronger)
			continue;
		d->by = order[i];
		d->action = o->action;
		d->fired = o->fired;
		d->stop = o->stop;
	}
}

void policy_apply(const struct policy_rules *r, struct policy_state *s,
	const struct policy_window *w, struct policy_decision *ret)
{
	memset(ret, 0, sizeof(*ret));
	s->cooldown -= s->cooldown > 0;
	for (int i = 0; i < POLICY_CAUSES; i++)
		judge(r, s, w, order[i], &ret->cause[order[i]]);
	for (int i = 0; i < POLICY_CAUSES; i++)
		act(r, s, w, order[i], &ret->cause[order[i]]);
	for (int i = 0; i < POLICY_CAUSES; i++)
		policy_text(r, s, w, order[i], &ret->cause[order[i]]);
	sum_up(ret);
	if (ret->cause[POLICY_PERFORMANCE].verdict >= POLICY_CALM)
		s->guard -= s->guard > 0;
}

/* ---- outcomes ---------------------------------------------------------------------------------
 */
static void start_over(struct policy_state *s)
{
	memset(s->cause, 0, sizeof(s->cause));
	s->open = false;
	s->guard = 0;
	s->has_guard_level = false;
	s->guard_level = 0;
}

void policy_promoted(
	const struct policy_rules *r, struct policy_state *s, bool has_level, double replaced_level)
{
	uint32_t fresh = cooldown_of(r, 0);

	start_over(s);
	s->refused = 0;
	s->guard = r->guard_windows;
	s->has_guard_level = has_level && isfinite(replaced_level);
	s->guard_level = s->has_guard_level ? replaced_level : 0;
	s->cooldown = s->cooldown > fresh ? s->cooldown : fresh;
}

/* The world is as it was: what was due is due again, after the cooldown. */
static void due_again(const struct policy_rules *r, struct policy_state *s)
{
	s->open = false;
	for (int c = 0; c < POLICY_CAUSES; c++)
		if (s->cause[c].level == POLICY_ALERTED && r->cause[c].action == POLICY_RETRAIN)
			s->cause[c].due = true;
}

static void refuse(const struct policy_rules *r, struct policy_state *s)
{
	s->refused += s->refused < POLICY_COOLDOWN_MAX;
	s->cooldown = cooldown_of(r, s->refused);
}

void policy_refused(const struct policy_rules *r, struct policy_state *s)
{
	due_again(r, s);
	refuse(r, s);
}

void policy_failed(const struct policy_rules *r, struct policy_state *s)
{
	due_again(r, s);
}

void policy_rolled_back(const struct policy_rules *r, struct policy_state *s)
{
	start_over(s);
	refuse(r, s);
}

void policy_mute(struct policy_state *s, int64_t until)
{
	s->muted = true;
	s->muted_until = until;
}
