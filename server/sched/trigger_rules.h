/* What the field tables cannot check of a pipeline's triggers, and schedules as rules. */
#ifndef SERVER_SCHED_TRIGGER_RULES_H
#define SERVER_SCHED_TRIGGER_RULES_H
#include "api/pipeline.h"
#include "lib/base/err.h"
#include "server/core/schedule.h"

/* Errors begin with /cron or /timezone. Reads the zone's file when it is the first of its name. */
int trigger_schedule(
	const struct schedule_trigger *t, struct schedule *ret, struct err *e) MUST_CHECK;
/* triggers: struct trigger_spec; own: the name of their pipeline. Errors begin with /triggers. */
int trigger_rules_check(const struct list *triggers, struct str own, struct err *e) MUST_CHECK;

#endif
