#include "server/sched/trigger_rules.h"

int trigger_schedule(const struct schedule_trigger *t, struct schedule *ret, struct err *e)
{
	char zone[ZONE_NAME_MAX + 1];

	*ret = (struct schedule){ .rule.skip = t->dst == DST_SKIP,
		.missed = (enum schedule_missed)t->missed,
		.max = (int)t->max };
	if (cron_parse(t->cron, &ret->rule.cron, e) < 0) {
		err_field_prefix(e, "cron");
		return -1;
	}
	if (str_print(zone, sizeof zone, "%.*s", STR_ARG(t->timezone)))
		ret->rule.zone = zone_find(zone);
	if (ret->rule.zone == NULL)
		return err_field(e, "/timezone",
			"there is no time zone '%.*s'; it must be a name of the IANA data base, as "
			"Europe/Berlin",
			STR_ARG(t->timezone));
	return 0;
}

static int check_one(const struct trigger_spec *t, struct str own, struct err *e)
{
	struct schedule s;
	int given = t->has_dataset + t->has_schedule + t->has_pipeline;

	if (given != 1)
		return err_field(e, "", "give one of dataset, schedule and pipeline");
	if (t->has_schedule && trigger_schedule(&t->schedule, &s, e) < 0) {
		err_field_prefix(e, "schedule");
		return -1;
	}
	if (t->has_pipeline && str_eq(t->pipeline.name, own))
		return err_field(
			e, "/pipeline/name", "a pipeline cannot start at the end of its own runs");
	return 0;
}

static bool same_time(const struct trigger_spec *a, const struct trigger_spec *b)
{
	return a->has_schedule && b->has_schedule && str_eq(a->schedule.cron, b->schedule.cron) &&
	       str_eq(a->schedule.timezone, b->schedule.timezone);
}

static bool same_upstream(const struct trigger_spec *a, const struct trigger_spec *b)
{
	return a->has_pipeline && b->has_pipeline && str_eq(a->pipeline.name, b->pipeline.name);
}

int trigger_rules_check(const struct list *triggers, struct str own, struct err *e)
{
	for (size_t i = 0; i < triggers->n; i++) {
		const struct trigger_spec *t = list_at(triggers, struct trigger_spec, i);
		int rc = check_one(t, own, e);
		for (size_t j = 0; rc == 0 && j < i; j++) {
			const struct trigger_spec *o = list_at(triggers, struct trigger_spec, j);
			if (same_time(o, t) || same_upstream(o, t))
				rc = err_field(e, same_time(o, t) ? "/schedule" : "/pipeline",
					"is given twice, in items %zu and %zu", j, i);
		}
		if (rc == 0)
			continue;
		err_field_index(e, i);
		err_field_prefix(e, "triggers");
		return -1;
	}
	return 0;
}
