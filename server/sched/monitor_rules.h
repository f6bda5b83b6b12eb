/* From a monitor's file to what server/core/policy works with: checks that the field tables cannot
 * make, rules, the stored form of the policy's state, mutes. */
#ifndef SERVER_SCHED_MONITOR_RULES_H
#define SERVER_SCHED_MONITOR_RULES_H
#include "api/monitor.h"
#include "server/core/policy.h"

struct spec_scope;

/* What can be said of a spec without looking anything up. Pointers begin with /spec. */
int monitor_spec_check(const struct monitor_spec *spec, struct err *e) MUST_CHECK;
/* A spec that was stored. */
int monitor_spec_read(
	struct str json, struct arena *a, struct monitor_spec *ret, struct err *e) MUST_CHECK;
/* The inputs of a retraining as a JSON object of texts, for the window of the scope. Pointers begin
 * with /spec/retrain/inputs. */
int monitor_inputs(const struct monitor_spec *spec, const struct spec_scope *scope, struct arena *a,
	struct str *ret, struct err *e) MUST_CHECK;
/* Whether they can be rendered, and whether the pipeline takes them. pipeline_json: its spec,
 * or "" while it is not known. */
int monitor_inputs_check(const struct monitor_spec *spec, struct str pipeline_json, struct arena *a,
	struct err *e) MUST_CHECK;
struct policy_rules monitor_rules(const struct monitor_spec *spec);
enum stats_score monitor_score(const struct monitor_spec *spec);
/* The weight of a feature: 1, or what the spec says. */
double monitor_weight(const struct monitor_spec *spec, struct str feature);

/* "{}" is a fresh state. ERR_CORRUPT when it is none that policy_apply has left. */
int policy_state_read(struct str json, struct policy_state *ret, struct err *e) MUST_CHECK;
struct str policy_state_write(const struct policy_state *s, struct arena *a);

/* Mutes: [{"feature": "", "until": …, "reason": …}]; one for each feature, "" for the monitor. */
bool monitor_muted(struct str mutes_json, struct str feature, int64_t at, struct str *ret_reason,
	struct arena *a);
struct str monitor_mutes_with(struct str mutes_json, const struct mute *m, struct arena *a);

#endif
