#include "server/sched/plan_inside.h"

void plan_stop_attempt(struct plan *p, const struct plan_step *s, struct str id,
	struct str worker_id, enum reason why)
{
	struct str reason = str_c(reason_names[why]);

	p->cancel_reasons[p->cancel_n] = reason;
	p->cancel_attempts[p->cancel_n++] = id;
	plan_note(
		p, "attempt.cancel_requested", id, s->id, plan_step_data(p, s, reason, worker_id));
}

/* Those ranks of a gang that go on and may not, and those that may begin. */
void plan_lead_gang(struct plan *p, const struct plan_step *s)
{
	for (size_t i = 0; i < s->gang.ranks.n; i++) {
		const struct gang_rank *r = list_at(&s->gang.ranks, struct gang_rank, i);
		if (gang_rank_ended(r) || r->stopping)
			continue;
		if (p->run->cancelling)
			plan_stop_attempt(p, s, r->id, r->worker_id, REASON_CANCELLED);
		else if (s->verdict.stop)
			plan_stop_attempt(p, s, r->id, r->worker_id, REASON_GANG_STOPPED);
		else if (s->verdict.release) {
			p->release[p->release_n++] = r->id;
			plan_note(p, "attempt.released", r->id, s->id,
				plan_step_data(p, s, STR(""), r->worker_id));
		}
	}
}
