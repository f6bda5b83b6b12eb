/*
 * The beginning and the end of the worker. In between, at the start: the folder's lock, our copy of
 * the init, the attempts of an earlier process, the first look at runtimes and GPUs; only then the
 * server is spoken to, so that no device is given away that an old attempt still has.
 */
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "worker/agent.h"
#include "worker/cache.h"
#include "worker/gpus.h"
#include "worker/holds.h"
#include "worker/job.h"
#include "worker/ship/watch.h"
#include "worker/sync.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADOPT_TRIES = 5 };
enum {
	INIT_MAX = 16 << 20,
	CONNECTIONS = 32,
	PROBE_MS = 30000,
	PROBE_SOON_MS = 1000,
	THREADS = 3,
	QUEUE_MAX = 4096
};

/* Open → first probes and GPUs → resume what was adopted → speak with the server. */
static void on_about(void *arg, const struct runtime_about *about);
static void on_list(void *arg, const struct runtime_found *found, size_t n, const struct err *e);
static void on_probe(void *arg);
static void on_ready(void *arg);

static const char *path_in(const struct agent *g, const char *name, char out[PATH_MAX])
{
	(void)str_print(out, PATH_MAX, "%s/%s", g->conf.work_dir.p, name);
	return out;
}

/* ---- folders -------------------------------------------------------------------------------- */

static int make_dir(const struct agent *g, const char *name, mode_t mode, struct err *e)
{
	char path[PATH_MAX];

	if (fs_mkdirs(path_in(g, name, path), mode, e) < 0)
		return -1;
	return chmod(path, mode) < 0 ? err_errno(e, "set the mode of", path) : 0;
}

static int take_lock(struct agent *g, struct err *e)
{
	char path[PATH_MAX];

	g->lock = open(path_in(g, "lock", path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (g->lock < 0)
		return err_errno(e, "open", path);
	if (flock(g->lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? err_set(e, ERR_CONFLICT,
						      "another worker runs with work-dir %.200s",
						      g->conf.work_dir.p)
					    : err_errno(e, "lock", path);
	return 0;
}

static bool look_for_init(const struct agent *g, char out[PATH_MAX])
{
	static const char *const places[] = { "tidemill-init",
		"../libexec/tidemill/tidemill-init" };
	char self[PATH_MAX];
	ssize_t n;

	if (g->conf.init_program.n != 0)
		return str_print(out, PATH_MAX, "%s", g->conf.init_program.p);
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0)
		return false;
	while (n > 0 && self[n - 1] != '/')
		n--;
	for (size_t i = 0; i < 2; i++)
		if (str_print(out, PATH_MAX, "%.*s%s", (int)n, self, places[i]) &&
			access(out, X_OK) == 0)
			return true;
	return false;
}

int agent_find_init(struct agent *g, struct err *e)
{
	char path[PATH_MAX];

	if (!look_for_init(g, path) || !str_print(g->init, sizeof g->init, "%s", path))
		return err_set(e, ERR_NOT_FOUND,
			"tidemill-init is not beside this program; say where with init-program");
	return 0;
}

/* Containers mount the init from a path of the host. The work folder is there, even when this
 * program itself lives in a container. */
static int copy_init(struct agent *g, struct err *e)
{
	char to[PATH_MAX];
	struct buf ours, theirs;
	struct err none;
	int rc;

	if (agent_find_init(g, e) < 0)
		return -1;
	buf_init(&ours, INIT_MAX);
	buf_init(&theirs, INIT_MAX);
	rc = fs_read(g->init, &theirs, e);
	if (rc == 0 && (fs_read(path_in(g, "bin/tidemill-init", to), &ours, &none) < 0 ||
			       !str_eq(buf_str(&ours), buf_str(&theirs))))
		rc = fs_write_atomic(to, buf_str(&theirs), 0755, e);
	if (rc == 0 && chmod(to, 0755) < 0)
		rc = err_errno(e, "set the mode of", to);
	if (rc == 0 && !str_print(g->init, sizeof g->init, "%s", to))
		rc = err_set(e, ERR_INVALID, "work-dir is too long");
	buf_done(&ours);
	buf_done(&theirs);
	return rc;
}

static int open_folders(struct agent *g, struct err *e)
{
	if (fs_mkdirs(g->conf.work_dir.p, 0711, e) < 0 || take_lock(g, e) < 0)
		return -1;
	if (make_dir(g, "attempts", 0711, e) < 0 || make_dir(g, "cache", 0700, e) < 0 ||
		make_dir(g, "checkpoints", 0700, e) < 0 || make_dir(g, "git", 0700, e) < 0 ||
		make_dir(g, "bin", 0755, e) < 0)
		return -1;
	if (g->conf.secrets_dir.n != 0 && fs_mkdirs(g->conf.secrets_dir.p, 0711, e) < 0)
		return -1;
	return copy_init(g, e);
}

/* ---- runtimes ------------------------------------------------------------------------------- */

static bool allowed(const struct agent *g, const char *name)
{
	for (size_t i = 0; i < g->conf.runtimes.n; i++)
		if (str_is(*list_at(&g->conf.runtimes, struct str, i), name))
			return true;
	return false;
}

static int open_process(struct agent *g, const char *install, struct err *e)
{
	char attempts[PATH_MAX];
	const struct worker_conf *c = &g->conf;
	const struct runtime_process_config process = {
		.init = g->init,
		.attempts = path_in(g, "attempts", attempts),
		.install = install,
		.user = c->step_user.n != 0 ? c->step_user.p : NULL,
		.leftover = !g->runtimes[RUNTIME_PROCESS].offered,
	};

	return runtime_process_new(g->loop, &process, &g->runtimes[RUNTIME_PROCESS].r, e);
}

/* The next probe brings it. */
static void on_storage(void *arg)
{
	struct agent *g = arg;

	if (!g->closing)
		loop_timer_set(&g->probe, 0);
}

static int open_docker(struct agent *g, const char *install, struct err *e)
{
	char attempts[PATH_MAX], images[PATH_MAX];
	const struct worker_conf *c = &g->conf;
	bool working = g->lock > 0; /* and not only looking what there is */
	const struct runtime_docker_config docker = {
		.init = g->init,
		.install = install,
		.socket = c->docker_socket.p,
		.network = c->docker_network.p,
		.auth_file = c->registry_auth_file.n != 0 ? c->registry_auth_file.p : NULL,
		.leftover = !g->runtimes[RUNTIME_DOCKER].offered,
		.host_gateway = c->docker_host_gateway,
		.rdma = c->docker_rdma,
		.tmp_max = c->docker_tmp,
		.images_file = working ? path_in(g, "images.json", images) : NULL,
		.attempts = path_in(g, "attempts", attempts),
		.changed = on_storage,
		.changed_arg = g,
		.disk_high = (int)c->disk_high,
		.disk_low = (int)c->disk_low,
		.image_keep = c->image_keep,
	};

	return runtime_docker_new(g->loop, &docker, &g->runtimes[RUNTIME_DOCKER].r, e);
}

static int open_runtime(struct agent *g, int kind, struct err *e)
{
	const char *install = g->credential.worker_id.n != 0 ? g->credential.worker_id.p : "check";

	g->runtimes[kind].agent = g;
	return kind == RUNTIME_DOCKER ? open_docker(g, install, e) : open_process(g, install, e);
}

int agent_open_runtimes(struct agent *g, struct err *e)
{
	loop_timer_init(&g->probe, g->loop, on_probe, g);
	for (int i = 0; i < RUNTIME_COUNT; i++) {
		if (!allowed(g, runtime_names[i]))
			continue;
		g->runtimes[i].offered = true;
		if (open_runtime(g, i, e) < 0)
			return -1;
	}
	return 0;
}

/* What it runs holds devices until it is over, whatever the settings say of new work. */
struct runtime *agent_runtime_again(struct agent *g, struct str name)
{
	struct err e;
	int kind = 0;

	while (kind < RUNTIME_COUNT && !str_is(name, runtime_names[kind]))
		kind++;
	if (kind == RUNTIME_COUNT)
		return NULL;
	if (g->runtimes[kind].r == NULL && open_runtime(g, kind, &e) < 0)
		log_error("attempts of a runtime cannot be looked after",
			LOG_S("runtime", runtime_names[kind]), LOG_E(&e));
	return g->runtimes[kind].r;
}

bool agent_offers(const struct agent *g, const struct runtime *r)
{
	for (int i = 0; i < RUNTIME_COUNT; i++)
		if (g->runtimes[i].r == r)
			return g->runtimes[i].offered;
	return false;
}

void agent_left_over(struct agent *g, const struct runtime *r)
{
	for (int i = 0; i < RUNTIME_COUNT; i++)
		if (g->runtimes[i].r == r)
			g->runtimes[i].listed = false;
}

void agent_probe(struct agent *g)
{
	for (int i = 0; i < RUNTIME_COUNT; i++) {
		if (g->runtimes[i].r == NULL)
			continue;
		g->waiting++;
		runtime_probe(g->runtimes[i].r, on_about, &g->runtimes[i]);
	}
}

/* Of the file system of our own folders. Any thread: the settings stay as they are. */
static int64_t disk_excess(void *arg, bool begun)
{
	const struct agent *g = arg;
	int64_t size = 0, available = 0, high = g->conf.disk_high, low = g->conf.disk_low;

	if (high >= 100 || !host_disk(g->conf.work_dir.p, &size, &available) ||
		size - available <= size / 100 * (begun ? low : high))
		return 0;
	return size - available - size / 100 * low;
}

/* Staged data that no attempt uses goes; the cache is walked for that, so not at every probe. */
static void make_room(struct agent *g)
{
	int64_t now = loop_now(g->loop);

	if (g->cache == NULL ||
		(g->relieved != 0 && now - g->relieved < PROBE_MS * INT64_C(1000)) ||
		disk_excess(g, false) == 0)
		return;
	g->relieved = now;
	cache_relieve(g->cache);
}

static void on_probe(void *arg)
{
	struct agent *g = arg;

	bool idle = g->waiting == 0;

	if (idle)
		agent_probe(g);
	make_room(g);
	loop_timer_set(&g->probe, idle ? PROBE_MS : PROBE_SOON_MS);
}

static void on_about(void *arg, const struct runtime_about *about)
{
	struct agent_runtime *rt = arg;
	struct agent *g = rt->agent;
	bool was = rt->about.ok, first = !rt->probed;
	bool news = strcmp(rt->about.storage, about->storage) != 0;

	g->waiting--;
	if (g->closing)
		return;
	rt->about = *about;
	rt->probed = true;
	if (!about->ok && rt->offered) /* it may come back at any moment, and attempts wait for it
					*/
		loop_timer_set(&g->probe, PROBE_SOON_MS);
	if (first || was != about->ok) {
		log_info(about->ok ? "runtime usable" : "runtime not usable",
			LOG_S("runtime", runtime_name(rt->r)), LOG_S("version", about->version),
			LOG_S("note", about->note));
		agent_changed(g);
	} else if (news) {
		agent_changed(g);
	}
	if (about->unsure)
		rt->listed = false;
	if (about->ok && !rt->listed && g->adopted) {
		g->waiting++;
		runtime_list(rt->r, on_list, rt);
	}
}

static void on_orphan_removed(void *arg, const struct err *e)
{
	struct agent_runtime *rt = arg;

	rt->agent->waiting--;
	if (e->code == ERR_OK || rt->agent->closing)
		return;
	log_warn("remains of an attempt not removed yet", LOG_E(e));
	rt->listed = false; /* with the next probe */
}

/* What runs by our name without a folder of ours belongs to nobody. */
static void on_list(void *arg, const struct runtime_found *found, size_t n, const struct err *e)
{
	struct agent_runtime *rt = arg;
	struct agent *g = rt->agent;

	g->waiting--;
	if (g->closing || e->code != ERR_OK)
		return;
	rt->listed = true;
	for (size_t i = 0; i < n; i++) {
		const struct job *j = g->jobs;
		while (j != NULL && !str_is(j->task.attempt, found[i].attempt))
			j = j->next;
		if (j != NULL)
			continue;
		const struct runtime_ref ref = { found[i].attempt, found[i].ctl, NULL };
		log_warn("removing the remains of an attempt", LOG_S("attempt", found[i].attempt));
		g->waiting++;
		runtime_remove(rt->r, &ref, on_orphan_removed, rt);
	}
}

/* ---- adoption ------------------------------------------------------------------------------- */

/* What may run must not be lost sight of: a record that is there and cannot be read is tried again,
 * and then keeps the worker from starting. */
static int adopt_one(struct agent *g, const char *dir, struct err *ret)
{
	struct err e = { .code = ERR_IO };
	struct job *j = NULL;

	for (int tries = 0; j == NULL && e.code == ERR_IO && tries < ADOPT_TRIES; tries++)
		j = job_adopt(g, dir, &e);
	if (j == NULL && e.code == ERR_IO) {
		*ret = e;
		return -1;
	}
	if (j != NULL) {
		j->next = g->jobs;
		if (g->jobs != NULL)
			g->jobs->prev = j;
		g->jobs = j;
		g->n_jobs++;
		return 0;
	}
	/* Without a record nothing of it was started; the server will send it again. */
	log_warn("folder of an attempt without a record", LOG_S("folder", dir), LOG_E(&e));
	if (e.code == ERR_NOT_FOUND && fs_remove_tree(dir, &e) < 0)
		log_warn("folder not removed", LOG_S("folder", dir), LOG_E(&e));
	return 0;
}

static int adopt_all(struct agent *g, struct err *e)
{
	char path[PATH_MAX], dir[PATH_MAX];
	DIR *d = opendir(path_in(g, "attempts", path));

	if (d == NULL)
		return err_errno(e, "list", path);
	int rc = 0;
	for (struct dirent *entry; rc == 0 && (entry = readdir(d)) != NULL;)
		if (entry->d_name[0] != '.' &&
			str_print(dir, sizeof dir, "%s/%s", path, entry->d_name))
			rc = adopt_one(g, dir, e);
	(void)closedir(d);
	g->adopted = rc == 0;
	return rc;
}

static int find_kept(struct agent *g, struct err *e)
{
	char path[PATH_MAX];
	DIR *d = opendir(path_in(g, "checkpoints", path));

	if (d == NULL)
		return err_errno(e, "list", path);
	g->kept = mem_new(CHECKPOINTS_MAX, sizeof *g->kept);
	for (struct dirent *entry; (entry = readdir(d)) != NULL;)
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < ID_MAX)
			agent_kept(g, str_c(entry->d_name), true);
	(void)closedir(d);
	return 0;
}

static void on_gpus(void *arg)
{
	agent_changed(arg);
}

static bool all_probed(const struct agent *g)
{
	for (int i = 0; i < RUNTIME_COUNT; i++)
		if (g->runtimes[i].r != NULL && !g->runtimes[i].probed)
			return false;
	return gpus_ready(g->gpus);
}

static void on_ready(void *arg)
{
	struct agent *g = arg;

	if (!all_probed(g)) {
		loop_timer_set(&g->ready, 10);
		return;
	}
	for (struct job *j = g->jobs, *next; j != NULL; j = next) {
		next = j->next;
		job_resume(j);
	}
	g->sync = sync_new(g);
	log_info("serving", LOG_STR("server", g->conf.server), LOG_STR("name", g->conf.name),
		LOG_STR("worker", g->credential.worker_id), LOG_I("attempts", g->n_jobs),
		LOG_I("gpus", gpus_list(g->gpus)->n));
}

/* ---- open and close ------------------------------------------------------------------------- */

static int open_client(struct agent *g, struct err *e)
{
	const struct fetch_options o = { .base_url = g->conf.server.p,
		.token = g->credential.token.p,
		.ca_file = g->conf.ca_file.n != 0 ? g->conf.ca_file.p : NULL,
		.max_connections = CONNECTIONS };
	char dir[PATH_MAX];

	g->http = fetch_client_new(g->loop, &o, e);
	if (g->http == NULL)
		return -1;
	const struct cache_args cache = { g->loop, g->http, path_in(g, "cache", dir),
		g->conf.cache_max, disk_excess, g };
	g->cache = cache_new(&cache, e);
	if (g->cache == NULL)
		return -1;
	g->holds = holds_new(g->conf.work_dir.p, g->cache);
	return 0;
}

int agent_open(struct agent *g, struct err *e)
{
	work_setup(g->loop, THREADS, QUEUE_MAX);
	loop_timer_init(&g->ready, g->loop, on_ready, g);
	if (host_read(&g->host, e) < 0 || open_folders(g, e) < 0 || open_client(g, e) < 0)
		return -1;
	g->watch = watch_new(g->loop);
	g->gpus = gpus_new(
		g->loop, g->conf.nvml_library.n != 0 ? g->conf.nvml_library.p : NULL, on_gpus, g);
	if (agent_open_runtimes(g, e) < 0 || adopt_all(g, e) < 0 || find_kept(g, e) < 0)
		return -1;
	on_probe(g);
	loop_timer_set(&g->ready, 0);
	return 0;
}

static bool is_busy(const struct agent *g)
{
	if (work_pending(g->loop) != 0 || (g->cache != NULL && cache_busy(g->cache)) ||
		(g->gpus != NULL && gpus_busy(g->gpus)))
		return true;
	for (const struct job *j = g->jobs; j != NULL; j = j->next)
		if (j->busy != 0)
			return true;
	return false;
}

void agent_close(struct agent *g)
{
	g->closing = true;
	loop_timer_cancel(&g->probe);
	loop_timer_cancel(&g->ready);
	if (g->sync != NULL)
		sync_stop(g->sync);
	if (g->gpus != NULL)
		gpus_stop(g->gpus);
	for (struct job *j = g->jobs; j != NULL; j = j->next)
		job_close(j);
	for (int i = 0; i < RUNTIME_COUNT; i++)
		runtime_free(g->runtimes[i].r);
	fetch_client_free(g->http);
	while (is_busy(g))
		loop_step(g->loop, true);
	while (g->jobs != NULL) {
		struct job *j = g->jobs;
		g->jobs = j->next;
		job_free(j);
	}
	loop_step(g->loop, false); /* what is deferred */
	loop_step(g->loop, false);
	sync_free(g->sync);
	gpus_free(g->gpus);
	watch_free(g->watch);
	holds_free(g->holds);
	cache_free(g->cache);
	mem_free(g->kept);
	if (g->lock > 0)
		(void)close(g->lock);
}
