#include "worker/agent.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "worker/cache.h"
#include "worker/checkpoint.h"
#include "worker/gpus.h"
#include "worker/job.h"
#include "worker/runtime/control.h"
#include "worker/ship/watch.h"
#include "worker/sync.h"

#include <limits.h>

enum { WARNINGS_MAX = 16, WARNING_BYTES = 400, RENEW_PART = 4 };
enum { EVIDENCE_BUDGET = 3 << 20, ENTRY_BYTES = 1024, DISK_WARN_GIB = 1 };

void agent_clean(char *text)
{
	bool valid = str_utf8_valid(str_c(text));

	for (char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || (!valid && (unsigned char)*p > 0x7f))
			*p = ' ';
}

/* ---- for the jobs --------------------------------------------------------------------------- */

void agent_changed(struct agent *g)
{
	if (g->sync != NULL && !g->closing)
		sync_changed(g->sync);
}

void agent_devices_free(struct agent *g)
{
	for (struct job *j = g->jobs, *next; j != NULL; j = next) {
		next = j->next;
		job_admit(j);
	}
}

void agent_job_gone(struct agent *g, struct job *j)
{
	if (j->prev != NULL)
		j->prev->next = j->next;
	else
		g->jobs = j->next;
	if (j->next != NULL)
		j->next->prev = j->prev;
	g->n_jobs--;
	(void)str_print(g->recent[g->n_recent++ % AGENT_RECENT], ID_MAX, "%s", j->task.attempt.p);
	agent_changed(g);
	if (g->n_jobs == 0)
		mem_trim();
}

static size_t find_kept(const struct agent *g, struct str step)
{
	size_t i = 0;

	while (i < g->n_kept && !str_is(step, g->kept[i]))
		i++;
	return i;
}

void agent_kept(struct agent *g, struct str step, bool here)
{
	size_t i = find_kept(g, step);

	if (here && i == g->n_kept && g->n_kept < CHECKPOINTS_MAX)
		(void)str_print(g->kept[g->n_kept++], ID_MAX, "%.*s", STR_ARG(step));
	else if (!here && i < g->n_kept)
		memmove(g->kept[i], g->kept[--g->n_kept], ID_MAX);
	else
		return;
	agent_changed(g);
}

/* An attempt that is here has moved it to its own folder, or will keep another. */
static bool in_use(const struct agent *g, struct str step)
{
	for (const struct job *j = g->jobs; j != NULL; j = j->next)
		if (str_eq(j->task.step, step) && j->rec.phase < JOB_ENDED)
			return true;
	return false;
}

struct discard {
	struct agent *agent;
	char kept[PATH_MAX], step[ID_MAX];
	struct err err;
	bool failed;
};

static void run_discard(void *arg)
{
	struct discard *d = arg;

	d->failed = checkpoint_discard(d->kept, d->step, &d->err) < 0;
}

static void on_discarded(void *arg)
{
	struct discard *d = arg;

	if (d->failed)
		log_warn("checkpoint not removed", LOG_S("step", d->step), LOG_E(&d->err));
	else if (!in_use(d->agent, str_c(d->step)))
		agent_kept(d->agent, str_c(d->step), false);
	mem_free(d);
}

static void discard(struct agent *g, struct str step)
{
	struct discard *d;
	struct err e;

	if (find_kept(g, step) == g->n_kept || in_use(g, step))
		return;
	d = mem_new_of(struct discard);
	d->agent = g;
	(void)str_print(d->kept, sizeof d->kept, "%s/checkpoints", g->conf.work_dir.p);
	(void)str_print(d->step, sizeof d->step, "%.*s", STR_ARG(step));
	if (work_submit(g->loop, run_discard, on_discarded, d, &e) < 0)
		mem_free(d); /* we are told again */
}

/* ---- what the server wants ------------------------------------------------------------------ */

static struct job *find_job(const struct agent *g, struct str attempt)
{
	struct job *j = g->jobs;

	while (j != NULL && !str_eq(j->task.attempt, attempt))
		j = j->next;
	return j;
}

static bool was_forgotten(const struct agent *g, struct str attempt)
{
	for (size_t i = 0; i < AGENT_RECENT; i++)
		if (str_is(attempt, g->recent[i]))
			return true;
	return false;
}

static struct refused *find_refused(struct agent *g, struct str attempt)
{
	for (size_t i = 0; i < AGENT_REFUSED; i++)
		if (str_is(attempt, g->refused[i].attempt))
			return &g->refused[i];
	return NULL;
}

void agent_refuse(struct agent *g, struct str attempt, int64_t epoch, const struct err *why)
{
	struct refused *r = find_refused(g, attempt);

	if (r == NULL)
		r = find_refused(g, STR(""));
	if (r == NULL || attempt.n == 0 || attempt.n >= sizeof r->attempt || r->epoch == epoch)
		return; /* it is given again later, or has been refused already */
	log_error("assignment cannot be taken", LOG_STR("attempt", attempt), LOG_E(why),
		LOG_S("field", why->field));
	(void)str_print(r->attempt, sizeof r->attempt, "%.*s", STR_ARG(attempt));
	(void)str_print(r->message, sizeof r->message, "%.150s%s%.200s", why->field,
		why->field[0] != '\0' ? ": " : "", why->msg);
	agent_clean(r->message);
	r->epoch = epoch;
	agent_changed(g);
}

static bool take(struct agent *g, const struct assignment *task)
{
	struct job *j = find_job(g, task->attempt);
	struct err e;

	if (j != NULL)
		return j->task.epoch < task->epoch && job_stop(j, REASON_SUPERSEDED);
	if (was_forgotten(g, task->attempt) || g->n_jobs >= AGENT_JOBS_MAX)
		return false;
	j = job_new(g, task, &e);
	if (j == NULL) {
		agent_refuse(g, task->attempt, task->epoch, &e);
		return false;
	}
	j->next = g->jobs;
	if (g->jobs != NULL)
		g->jobs->prev = j;
	g->jobs = j;
	g->n_jobs++;
	log_info("attempt assigned", LOG_STR("attempt", task->attempt),
		LOG_STR("step", task->step_name), LOG_STR("run", task->run));
	agent_changed(g);
	return true;
}

static enum reason cancel_reason(struct str name)
{
	if (str_is(name, reason_names[REASON_SUPERSEDED]))
		return REASON_SUPERSEDED;
	if (str_is(name, reason_names[REASON_TIMEOUT]))
		return REASON_TIMEOUT;
	if (str_is(name, reason_names[REASON_PREEMPTED]))
		return REASON_PREEMPTED;
	if (str_is(name, reason_names[REASON_GANG_STOPPED]))
		return REASON_GANG_STOPPED;
	return REASON_CANCELLED;
}

bool agent_apply(struct agent *g, const struct sync_reply *r)
{
	struct job *j;
	bool news = false;

	for (size_t i = 0; i < r->forget.n; i++) {
		struct str id = *list_at(&r->forget, struct str, i);
		struct refused *refused = find_refused(g, id);
		if (refused != NULL)
			*refused = (struct refused){ .epoch = 0 };
		j = find_job(g, id);
		if (j != NULL && job_forget(j))
			news = true;
	}
	for (size_t i = 0; i < r->cancel.n; i++) {
		const struct sync_cancel *c = list_at(&r->cancel, struct sync_cancel, i);
		j = find_job(g, c->attempt);
		if (j != NULL && j->task.epoch <= c->epoch && job_stop(j, cancel_reason(c->reason)))
			news = true;
	}
	for (size_t i = 0; i < r->release.n; i++) {
		const struct sync_release *x = list_at(&r->release, struct sync_release, i);
		j = find_job(g, x->attempt);
		if (j != NULL && j->task.epoch == x->epoch && job_release(j, &x->ranks))
			news = true;
	}
	for (size_t i = 0; i < r->assign.n; i++)
		if (take(g, list_at(&r->assign, struct assignment, i)))
			news = true;
	for (size_t i = 0; i < r->discard.n; i++)
		discard(g, *list_at(&r->discard, struct str, i));
	if (g->draining != r->drain)
		log_info(r->drain ? "draining: nothing more will be assigned" : "taking work");
	g->draining = r->drain;
	return news;
}

int64_t agent_silence(const struct agent *g)
{
	return g->renewed == 0 ? INT64_MAX : loop_now(g->loop) - g->renewed;
}

void agent_renewed(struct agent *g, int64_t sent_at)
{
	struct err e;

	if (sent_at <= g->renewed)
		return; /* of two exchanges the later one came back first */
	g->renewed = sent_at;
	for (const struct job *j = g->jobs; j != NULL; j = j->next)
		if (j->task.self_stop_after > 0 && j->rec.stop == REASON_NONE &&
			(j->rec.phase == JOB_STARTING || j->rec.phase == JOB_RUNNING) &&
			control_renew(j->ctl, sent_at, &e) < 0 && j->rec.phase == JOB_RUNNING)
			log_warn("attempt not renewed", LOG_STR("attempt", j->task.attempt),
				LOG_E(&e));
}

void agent_reached(struct agent *g, const char *from)
{
	if (from[0] != '\0' && strcmp(from, g->from) != 0)
		(void)str_print(g->from, sizeof g->from, "%s", from);
}

bool agent_storing(const struct agent *g)
{
	for (const struct job *j = g->jobs; j != NULL; j = j->next)
		if (!j->stored)
			return true;
	return false;
}

int64_t agent_renew_every(const struct agent *g)
{
	int64_t least = 0;

	for (const struct job *j = g->jobs; j != NULL; j = j->next) {
		int64_t every = j->task.self_stop_after / RENEW_PART / 1000;
		if (every > 0 && j->rec.phase < JOB_FINISHING && (least == 0 || every < least))
			least = every;
	}
	return least;
}

/* ---- what we have ---------------------------------------------------------------------------- */

struct warnings {
	struct arena *a;
	struct str *p;
	size_t n;
};

static void warn(struct warnings *w, const char *what, const char *text)
{
	char line[WARNING_BYTES];

	if (w->n == WARNINGS_MAX)
		return;
	(void)str_print(line, sizeof line, "%s%s", what, text);
	agent_clean(line);
	w->p[w->n++] = arena_str(w->a, str_c(line));
}

static struct list report_warnings(struct agent *g, struct arena *a, int64_t disk_free)
{
	struct warnings w = { a, arena_array_of(a, struct str, WARNINGS_MAX), 0 };
	const struct agent_runtime *docker = &g->runtimes[RUNTIME_DOCKER];

	for (int i = 0; i < RUNTIME_COUNT; i++) {
		const struct agent_runtime *rt = &g->runtimes[i];
		if (rt->r != NULL && rt->offered && rt->about.note[0] != '\0')
			warn(&w, rt->about.ok ? "" : "not usable: ", rt->about.note);
	}
	if (docker->r != NULL && docker->about.ok && !docker->about.survives_daemon &&
		docker->about.note[0] == '\0')
		warn(&w, "", "docker: live-restore is off, so steps end when the daemon restarts");
	if (docker->r != NULL && docker->about.storage[0] != '\0')
		warn(&w, "", docker->about.storage);
	if (gpus_complaint(g->gpus)[0] != '\0')
		warn(&w, "", gpus_complaint(g->gpus));
	if (disk_free < (int64_t)DISK_WARN_GIB << 30)
		warn(&w, "", "less than 1 GiB is free in the work folder");
	return (struct list){ w.p, w.n };
}

static struct list report_runtimes(const struct agent *g, struct arena *a)
{
	struct str *names = arena_array_of(a, struct str, RUNTIME_COUNT);
	size_t n = 0;

	for (int i = 0; i < RUNTIME_COUNT; i++)
		if (g->runtimes[i].offered && g->runtimes[i].about.ok)
			names[n++] = str_c(runtime_names[i]);
	return (struct list){ names, n };
}

/* What a container of its own network runs, other hosts do not reach. */
static struct list report_isolated(const struct agent *g, struct arena *a)
{
	struct str *names = arena_array_of(a, struct str, 1);
	bool apart = g->runtimes[RUNTIME_DOCKER].offered && !conf_gang_reachable(&g->conf);

	names[0] = str_c(runtime_names[RUNTIME_DOCKER]);
	return (struct list){ names, apart };
}

static size_t report_refused(const struct agent *g, struct sync_attempt *out)
{
	size_t n = 0;

	for (size_t i = 0; i < AGENT_REFUSED; i++) {
		const struct refused *r = &g->refused[i];
		if (r->attempt[0] != '\0')
			out[n++] = (struct sync_attempt){ .id = str_c(r->attempt),
				.epoch = r->epoch,
				.state = ATTEMPT_FAILED,
				.reason = str_c(reason_names[REASON_BAD_ASSIGNMENT]),
				.message = str_c(r->message) };
	}
	return n;
}

/* A request has room for so much evidence; who ended beyond that is told of when others have been
 * forgotten. */
static struct list report_attempts(const struct agent *g, struct arena *a)
{
	struct sync_attempt *all =
		arena_array_of(a, struct sync_attempt, g->n_jobs + AGENT_REFUSED);
	size_t n = report_refused(g, all), used = 0;

	for (const struct job *j = g->jobs; j != NULL; j = j->next) {
		struct sync_attempt *one = &all[n];
		if (j->removing || !j->stored)
			continue;
		job_report(j, one);
		used += one->evidence.n + one->message.n + ENTRY_BYTES;
		if (used > EVIDENCE_BUDGET && one->state > ATTEMPT_FINISHING)
			*one = (struct sync_attempt){ .id = one->id,
				.epoch = one->epoch,
				.state = ATTEMPT_FINISHING,
				.runtime = one->runtime,
				.started_at = one->started_at,
				.cancelling = one->cancelling };
		n++;
	}
	return (struct list){ all, n };
}

void agent_report(struct agent *g, struct arena *a, struct sync_request *out)
{
	int64_t disk_free = host_disk_free(g->conf.work_dir.p);

	struct str *kept = arena_array_of(a, struct str, g->n_kept + 1);
	for (size_t i = 0; i < g->n_kept; i++)
		kept[i] = arena_str(a, str_c(g->kept[i]));
	*out = (struct sync_request){
		.checkpoints = { kept, g->n_kept },
		.boot_id = str_c(g->host.boot_id),
		.release = STR(TIDEMILL_VERSION),
		.runtimes = report_runtimes(g, a),
		.isolated = report_isolated(g, a),
		.cpus = g->conf.cpus > 0 ? g->conf.cpus : g->host.cpus,
		.memory = g->conf.memory > 0 ? g->conf.memory : g->host.memory,
		.disk_free = disk_free,
		.devices = *gpus_list(g->gpus),
		.attempts = report_attempts(g, a),
		.warnings = report_warnings(g, a, disk_free),
	};
}
