/*
 * close_decide makes the decisions' rows of the judgement, then either writes the closing as one
 * unit (close_write → close_on_written), or, when a retraining is to be started, hands the same
 * statements to the launch, so that run, decision and the mark of an open retraining are one
 * transaction (close_launch → close_on_launched). A launch that cannot be made is a decision too:
 * it is held back, with the reason, and stays due.
 */
#include "server/sched/window_inside.h"

#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "server/app.h"
#include "server/sched/monitor_rules.h"
#include "server/sched/spec.h"
#include "server/store/event_store.h"
#include "server/store/model_store.h"

#include <math.h>

enum { DATA_MAX = 1024 };

static void close_write(struct closing *c);
static void close_on_written(void *arg, const struct db_rows *rows, const struct err *e);
static void close_launch(struct closing *c);
static void close_on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e);

static struct str new_id(struct closing *c, const char *prefix)
{
	char id[ID_MAX];

	return arena_str(c->arena, str_c(id_new(id, prefix, c->app->clock)));
}

/* ---- the decisions ---- */

/* Things that are started belong to the newest window, once. */
static void hold_back(struct closing *c, enum policy_cause cause, struct decision_row *d)
{
	const struct policy_outcome *o = &c->judgement.decision.cause[cause];

	if (!o->fired || (o->action != POLICY_RETRAIN && o->action != POLICY_ROLLBACK))
		return;
	if (c->earlier_run[cause].n != 0) { /* it was started when the window was closed before */
		d->run_id = c->earlier_run[cause];
		return;
	}
	if (o->action == POLICY_ROLLBACK && c->moves && c->previous_id.n != 0 &&
		c->current_id.n != 0)
		return;
	if (o->action == POLICY_RETRAIN && c->moves) {
		c->decision_id = d->id;
		return;
	}
	d->fired = false;
	d->suppressed_by = STR("closed_again");
	d->reason = arena_printf(c->arena,
		"%s Nothing is started: the window was closed again, or there is no version to go "
		"back to.",
		o->sentence);
}

/* What the performance rests on, when it does not rest on all labels. */
static struct str said(struct closing *c, enum policy_cause cause, struct str sentence)
{
	unsigned long long n = c->judgement.left_out;

	if (cause != POLICY_PERFORMANCE || n == 0)
		return sentence;
	return arena_printf(c->arena,
		"%.*s %llu row%s with a label %s left out: the label or its distance from the "
		"prediction is greater than %g.",
		STR_ARG(sentence), n, num_plural(n), n == 1 ? "was" : "were", STATS_VALUE_MAX);
}

static void add_decision(struct closing *c, enum policy_cause cause)
{
	const struct policy_outcome *o = &c->judgement.decision.cause[cause];
	struct decision_row *d = &c->decisions[c->n_decisions++];

	*d = (struct decision_row){ .id = new_id(c, "dec"),
		.monitor_id = c->monitor_id,
		.window_id = c->window_id,
		.revision = c->revision,
		.spec_version = c->spec_version,
		.cause = policy_cause_name(cause),
		.action = policy_action_name(o->action),
		.fired = o->fired,
		.suppressed_by = str_c(policy_stop_name(o->stop)),
		.reason = said(c, cause, str_c(o->sentence)),
		.inputs = judge_inputs(&c->judgement, &c->args, cause, c->arena),
		.supersedes = c->earlier_id[cause] };
	hold_back(c, cause, d);
}

static void make_decisions(struct closing *c)
{
	struct policy_rules rules = monitor_rules(&c->spec);

	c->n_decisions = 0;
	c->decision_id = STR_NONE;
	for (enum policy_cause cause = POLICY_PERFORMANCE; cause < POLICY_CAUSES; cause++)
		if (rules.cause[cause].used)
			add_decision(c, cause);
	c->done = (struct window_closed_now){ .closed = true, .n = c->n_decisions };
	for (size_t i = 0; i < c->n_decisions; i++)
		c->done.decisions[i] = c->decisions[i].id;
}

void close_decide(struct closing *c)
{
	make_decisions(c);
	if (c->decision_id.n != 0)
		close_launch(c);
	else
		close_write(c);
}

/* ---- the statements of a closing ---- */

static void add_metrics(struct closing *c, struct db_unit *u)
{
	size_t n = c->judgement.n_metrics;
	struct drift_rows r = { .features = arena_array_of(c->arena, struct str, n + 1),
		.metrics = arena_array_of(c->arena, struct str, n + 1),
		.statuses = arena_array_of(c->arena, struct str, n + 1),
		.values = arena_array_of(c->arena, double, n + 1),
		.criticals = arena_array_of(c->arena, double, n + 1),
		.ps = arena_array_of(c->arena, double, n + 1),
		.thresholds = arena_array_of(c->arena, double, n + 1),
		.drifted = arena_array_of(c->arena, bool, n + 1),
		.n = n };

	for (size_t i = 0; i < n; i++) {
		const struct judge_metric *m = &c->judgement.metrics[i];
		r.features[i] = m->feature;
		r.metrics[i] = m->metric;
		r.statuses[i] = m->status;
		r.values[i] = m->value;
		r.criticals[i] = m->critical;
		r.ps[i] = m->p;
		r.thresholds[i] = m->threshold;
		r.drifted[i] = m->drifted;
	}
	drift_store_add(u, c->made, c->window_id, c->revision, &r);
}

static void add_window(struct closing *c, struct db_unit *u)
{
	const struct window_closed w = { .id = c->window_id,
		.reference_id = c->reference_id,
		.model_version_id = c->model_version_id,
		.policy_before = c->first_before,
		.revision = c->revision,
		.performance = c->judgement.performance,
		.level = c->has_level ? c->level : (double)NAN,
		.drift_share = c->judgement.drift_share,
		.severity = c->judgement.severity,
		.left_out = (int64_t)c->judgement.left_out };

	window_store_closed(u, &w);
}

static void add_rollback(struct closing *c, struct db_unit *u, const struct decision_row *d)
{
	alias_store_move(u, c->model_id,
		&(struct alias_move){ .alias = c->alias,
			.target = c->previous_id,
			.expected = c->current_id,
			.cause = "rollback",
			.note = d->reason });
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "model.alias_moved",
				   .subject = c->model_id });
}

static struct str decision_data(struct closing *c, const struct decision_row *d)
{
	struct buf b;

	buf_init(&b, DATA_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "window");
	jsn_str(&w, d->window_id);
	jsn_key(&w, "cause");
	jsn_text(&w, d->cause);
	jsn_key(&w, "action");
	jsn_text(&w, d->action);
	jsn_key(&w, "fired");
	jsn_bool(&w, d->fired);
	jsn_obj_end(&w);
	return buf_keep(&b, c->arena);
}

static void add_decisions(struct closing *c, struct db_unit *u, struct str run_id)
{
	for (size_t i = 0; i < c->n_decisions; i++) {
		struct decision_row *d = &c->decisions[i];
		if (c->decision_id.n != 0 && str_eq(d->id, c->decision_id))
			d->run_id = run_id;
		decision_store_add(u, d);
		event_store_add(u, &(struct event_new){ .project_id = c->project_id,
					   .type = "decision.made",
					   .subject = d->id,
					   .parent = c->monitor_id,
					   .data = decision_data(c, d) });
		if (d->fired && strcmp(d->action, "rollback") == 0)
			add_rollback(c, u, d);
	}
}

static void add_state(struct closing *c, struct db_unit *u)
{
	struct policy_rules rules = monitor_rules(&c->spec);

	if (!c->moves)
		return;
	if (c->judgement.decision.rollback && c->previous_id.n != 0 && c->current_id.n != 0)
		policy_rolled_back(&rules, &c->judgement.after);
	monitor_store_set_policy(
		u, c->monitor_id, policy_state_write(&c->judgement.after, c->arena));
}

static void add_closing(void *arg, struct db_unit *u, struct str run_id)
{
	struct closing *c = arg;

	monitor_store_advance(u, c->monitor_id, c->version); /* first, as all that lock both */
	window_store_advance(u, c->window_id, c->window_version);
	add_window(c, u);
	add_metrics(c, u);
	add_state(c, u);
	add_decisions(c, u, run_id);
	if (run_id.n != 0)
		retraining_store_add(u, c->model_id, c->decision_id, run_id);
	decision_store_outcome(u, c->window_id);
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "window.closed",
				   .subject = c->window_id,
				   .parent = c->monitor_id });
}

/* ---- without a launch ---- */

static void close_write(struct closing *c)
{
	struct db_unit *u = db_unit(c->app->db, c->arena);

	add_closing(c, u, STR_NONE);
	db_send(u, DB_WRITE, close_on_written, c);
}

/* Must everything be read again? */
static bool has_changed(const struct db_rows *rows)
{
	return store_changed(rows) || db_outcome_unknown(rows) ||
	       db_violated(rows, "retraining_pkey");
}

static void close_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct closing *c = arg;

	c->err = *e;
	if (e->code == ERR_OK) {
		app_changed(c->app);
		close_done(c);
	} else if (has_changed(rows)) {
		close_again(c);
	} else {
		close_fail(c);
	}
}

/* ---- with a launch ---- */

/* The same decision, had there been no way to train: the action stays due. */
static void cannot_launch(struct closing *c, const struct err *why)
{
	static const char words[] = "the monitor names no pipeline to run";
	struct policy_rules rules = monitor_rules(&c->spec);
	struct judgement *j = &c->judgement;

	log_warn(
		"a retraining could not be started", LOG_STR("monitor", c->monitor_id), LOG_E(why));
	rules.has_pipeline = false;
	j->after = j->before;
	policy_apply(&rules, &j->after, &j->window, &j->decision);
	make_decisions(c);
	for (size_t i = 0; i < c->n_decisions; i++) {
		struct decision_row *d = &c->decisions[i];
		ptrdiff_t at = str_find(d->reason, str_c(words));
		if (!str_is(d->suppressed_by, policy_stop_name(POLICY_STOP_NO_PIPELINE)))
			continue;
		d->suppressed_by = STR("launch_failed");
		if (at >= 0)
			d->reason = arena_printf(c->arena, "%.*sit could not be started: %s%s%s.",
				(int)at, d->reason.p, why->field, why->field[0] != '\0' ? ": " : "",
				why->msg);
	}
	close_write(c);
}

static void close_launch(struct closing *c)
{
	const struct spec_scope scope = { .window_start = c->start, .window_end = c->end };
	struct str inputs;
	struct err e;

	if (monitor_inputs(&c->spec, &scope, c->arena, &inputs, &e) < 0) {
		cannot_launch(c, &e);
		return;
	}
	c->launch = (struct launch){ .project_id = c->project_id,
		.pipeline = c->spec.retrain.pipeline,
		.inputs = inputs,
		.loose_inputs = true,
		.trigger = "decision",
		.trigger_key = c->decision_id,
		.decision_id = c->decision_id,
		.window_start = c->start,
		.window_end = c->end,
		.add = add_closing,
		.add_arg = c };
	launch_start(c->app, c->arena, &c->launch, close_on_launched, c);
}

static void close_on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e)
{
	struct closing *c = arg;

	(void)made;
	c->err = *e;
	if (e->code == ERR_OK)
		close_done(c);
	else if (rows != NULL && has_changed(rows))
		close_again(c);
	else if (e->code == ERR_DATABASE || e->code == ERR_CANCELLED || e->code == ERR_UNAVAILABLE)
		close_fail(c); /* nothing was written; the next look tries again */
	else
		cannot_launch(c, e);
}
