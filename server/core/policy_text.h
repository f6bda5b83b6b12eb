/* The sentences of a policy's decision, for people who do not read statistics. */
#ifndef SERVER_CORE_POLICY_TEXT_H
#define SERVER_CORE_POLICY_TEXT_H
#include "server/core/policy.h"

/* Fills o->sentence from the rest of the outcome and the state after the window. */
void policy_text(const struct policy_rules *r, const struct policy_state *s,
	const struct policy_window *w, enum policy_cause c, struct policy_outcome *o);

/* Does the feature count as drifted? Against the seasonal baseline too, where there is one. */
bool policy_feature_drifted(const struct policy_feature *f);

#endif
