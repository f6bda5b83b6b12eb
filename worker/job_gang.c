/*
 * A rank of a gang. Its init holds the command back until there is a file `go`. Meanwhile the
 * server is told that the rank is ready, with the address and a free port of this host; once all
 * are, the reply to a sync says where each is, and `go` brings that to the command as variables.
 * Nothing of it is kept in memory only: after a restart of this process the rank is ready again, or
 * gone.
 */
#include "api/pipeline.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/loop/work.h"
#include "worker/init/ctl.h"
#include "worker/job.h"
#include "worker/launcher.h"
#include "worker/runtime/control.h"
#include "worker/task.h"

#include <unistd.h>

enum { AGAIN_MS = 2000, HOSTFILE_MAX = 65536, SPEC_ARENA = 8 << 20 };

/* Find where we are → be ready. */
static void gang_run_find(void *arg);
static void gang_on_found(void *arg);
/* Released: write `go`, again until it is there → the command begins, and its status says so. */
static void gang_go(struct job *j);
static void gang_run_go(void *arg);
static void gang_on_gone(void *arg);

/* ---- ready ---------------------------------------------------------------------------------- */

bool job_gang_reachable(const struct job *j, const struct runtime *r)
{
	return j->task.ranks < 2 || strcmp(runtime_name(r), runtime_names[RUNTIME_DOCKER]) != 0 ||
	       conf_gang_reachable(&j->agent->conf);
}

void job_gang_wait(struct job *j)
{
	struct err e;

	if (j->gang.ready || j->gang.released || j->gang.busy || j->rec.stop != REASON_NONE)
		return;
	j->gang.released = control_gone(j->ctl);
	if (j->gang.released)
		return;
	if (j->agent->conf.advertise_address.n == 0 && j->agent->from[0] == '\0')
		return; /* not known before the first word of the server, and of no use either */
	(void)str_print(j->gang.from, sizeof j->gang.from, "%s", j->agent->from);
	if (work_submit(j->agent->loop, gang_run_find, gang_on_found, j, &e) < 0)
		return; /* the next look at its status comes here again */
	j->gang.busy = true;
	j->busy++;
}

static void gang_run_find(void *arg)
{
	struct job *j = arg;

	j->gang.err.code = ERR_OK;
	(void)!rank_find(&j->agent->conf, j->gang.from, &j->gang.here, &j->gang.err);
}

static void gang_on_found(void *arg)
{
	struct job *j = arg;

	j->gang.busy = false;
	if (job_returned(j) || j->rec.phase != JOB_RUNNING)
		return;
	if (j->gang.err.code != ERR_OK) {
		log_warn("rank cannot say where it is", LOG_STR("attempt", j->task.attempt),
			LOG_E(&j->gang.err));
		return;
	}
	log_info("rank is ready", LOG_STR("attempt", j->task.attempt), LOG_I("rank", j->task.rank),
		LOG_I("ranks", j->task.ranks), LOG_S("address", j->gang.here.address),
		LOG_I("port", j->gang.here.port));
	j->gang.ready = true;
	agent_changed(j->agent);
}

/* ---- released ------------------------------------------------------------------------------- */

static bool has_rdma(void)
{
	return access("/dev/infiniband", F_OK) == 0;
}

/* Where the step sees a file of its folder of inputs. */
static const char *inside(const struct job *j, struct arena *a, const char *name)
{
	const struct task_spec_args in = { &j->task, &j->agent->conf, j->runtime, j->dir, j->ctl,
		j->secrets_dir };
	struct runtime_spec spec;

	task_spec(&in, a, &spec);
	return arena_printf(a, "%s/%s", runtime_path(j->runtime, &spec, RUNTIME_DIR_IN), name).p;
}

bool job_release(struct job *j, const struct list *ranks)
{
	struct buf env, hosts;
	struct arena *a;

	if (!j->gang.ready || j->gang.busy || j->rec.phase != JOB_RUNNING ||
		j->rec.stop != REASON_NONE || ranks->n != (size_t)j->task.ranks)
		return false;
	a = arena_new(SPEC_ARENA);
	const struct launcher_args args = { &j->task, ranks, &j->gang.here,
		inside(j, a, "hostfile"), has_rdma() };
	buf_init(&env, CTL_SECRET_ENV_MAX);
	buf_init(&hosts, HOSTFILE_MAX);
	launcher_env(&args, a, &env);
	launcher_hostfile(&j->task, ranks, &hosts);
	j->gang.env = buf_keep(&env, j->a);
	j->gang.hostfile = buf_keep(&hosts, j->a);
	arena_drop(a);
	j->gang.ready = false;
	j->gang.released = true;
	agent_changed(j->agent);
	gang_go(j);
	return true;
}

static void gang_go(struct job *j)
{
	struct err e;

	if (j->rec.phase != JOB_RUNNING || j->rec.stop != REASON_NONE)
		return;
	if (work_submit(j->agent->loop, gang_run_go, gang_on_gone, j, &e) < 0) {
		job_later(j, gang_go, AGAIN_MS);
		return;
	}
	j->gang.busy = true;
	j->busy++;
}

static void gang_run_go(void *arg)
{
	struct job *j = arg;
	char path[512];

	j->gang.err.code = ERR_OK;
	if (!str_print(path, sizeof path, "%s/in/hostfile", j->dir) ||
		fs_write_atomic(path, j->gang.hostfile, 0644, &j->gang.err) < 0)
		return;
	(void)!control_go(j->ctl, j->gang.env, &j->gang.err);
}

static void gang_on_gone(void *arg)
{
	struct job *j = arg;

	j->gang.busy = false;
	if (job_returned(j))
		return;
	if (j->gang.err.code == ERR_OK)
		return; /* the status will say that the command runs */
	log_warn("rank not released yet", LOG_STR("attempt", j->task.attempt), LOG_E(&j->gang.err));
	if (j->rec.phase == JOB_RUNNING && j->rec.stop == REASON_NONE)
		job_later(j, gang_go, AGAIN_MS);
}
