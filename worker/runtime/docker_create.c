/*
 * The container's settings, constructed field by field. Nothing a user writes becomes a key here,
 * and no value of theirs becomes a path, a mode or a capability.
 *
 * The init is root in the container with three capabilities: to become the step's user (SETUID,
 * SETGID) and to signal it (KILL). The step has none, and no_new_privileges keeps it so. A worker
 * that is not root runs everything as its own user, since it could not read the results otherwise.
 */
#include "lib/base/fs.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "worker/runtime/docker.h"
#include "worker/runtime/launch.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHM_DEFAULT INT64_C(2147483648)

#define TMP_READ_ONLY INT64_C(1073741824)
#define RDMA_DIR      "/dev/infiniband"

enum { OOM_SCORE = 500, STOP_MARGIN = 15, FILES_OPEN = 65536, PROCESSES = 32768, SMALL_FILE = 64 };

static void put_list(struct jsn_out *w, const char *name, const char *const *list)
{
	jsn_key(w, name);
	jsn_list_begin(w);
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		jsn_text(w, list[i]);
	jsn_list_end(w);
}

static void put_text(struct jsn_out *w, const char *name, const char *value)
{
	jsn_key(w, name);
	jsn_text(w, value);
}

static void put_int(struct jsn_out *w, const char *name, int64_t value)
{
	jsn_key(w, name);
	jsn_int(w, value);
}

static void put_bool(struct jsn_out *w, const char *name, bool value)
{
	jsn_key(w, name);
	jsn_bool(w, value);
}

static void put_labels(
	struct jsn_out *w, const struct docker *d, const struct runtime_spec *s, struct arena *a)
{
	jsn_key(w, "Labels");
	jsn_obj_begin(w);
	put_text(w, DOCKER_LABEL_INSTALL, d->install);
	put_text(w, DOCKER_LABEL_ATTEMPT, s->attempt);
	put_text(w, DOCKER_LABEL_STEP, s->step);
	put_text(w, DOCKER_LABEL_EPOCH, arena_printf(a, "%lld", (long long)s->epoch).p);
	put_text(w, DOCKER_LABEL_CTL, s->ctl);
	jsn_obj_end(w);
}

static void put_mount(struct jsn_out *w, const char *host, const char *inside, bool read_only)
{
	jsn_obj_begin(w);
	put_text(w, "Type", "bind");
	put_text(w, "Source", host);
	put_text(w, "Target", inside);
	put_bool(w, "ReadOnly", read_only);
	jsn_obj_end(w);
}

static void put_mounts(struct jsn_out *w, const struct docker *d, const struct runtime_spec *s)
{
	jsn_key(w, "Mounts");
	jsn_list_begin(w);
	put_mount(w, d->init, DOCKER_INIT, true);
	put_mount(w, s->ctl, DOCKER_CTL, false);
	put_mount(w, s->secrets_dir, DOCKER_SECRETS, true);
	put_mount(w, s->work, DOCKER_WORK, false);
	put_mount(w, s->out, DOCKER_OUT, false);
	if (s->in != NULL)
		put_mount(w, s->in, DOCKER_IN, true);
	for (size_t i = 0; i < s->n_mounts; i++)
		put_mount(w, s->mounts[i].host, s->mounts[i].inside, s->mounts[i].read_only);
	jsn_list_end(w);
}

static void put_limit(struct jsn_out *w, const char *name, int64_t value)
{
	jsn_obj_begin(w);
	put_text(w, "Name", name);
	put_int(w, "Soft", value);
	put_int(w, "Hard", value);
	jsn_obj_end(w);
}

/* A daemon can seldom raise what it has itself, which is seldom less than what we have. */
static int64_t own_limit(__rlimit_resource_t which, int64_t most)
{
	struct rlimit l;

	return getrlimit(which, &l) == 0 && l.rlim_max < (rlim_t)most ? (int64_t)l.rlim_max : most;
}

/* The kernel's own bound, which is also what Podman sets for itself. */
static int64_t processes(void)
{
	int64_t n = PROCESSES;
	struct buf text;
	struct err e;

	buf_init(&text, SMALL_FILE);
	if (fs_read("/proc/sys/kernel/pid_max", &text, &e) == 0)
		(void)num_parse_i64(
			str_slice(buf_str(&text), 0, strcspn(text.p, "\n")), 1, INT64_MAX, &n);
	buf_done(&text);
	return n;
}

/* Only steps with GPUs: nothing else gains by it, and it is a way around the network's rules. */
static bool wants_rdma(const struct docker *d, const struct runtime_spec *s)
{
	return d->rdma && s->gpus != NULL && s->gpus[0] != NULL;
}

static void put_resources(struct jsn_out *w, const struct docker *d, const struct runtime_spec *s)
{
	if (s->cpus > 0)
		put_int(w, "NanoCpus", (int64_t)(s->cpus * 1e9));
	if (s->memory > 0) {
		put_int(w, "Memory", s->memory);
		put_int(w, "MemorySwap", s->memory); /* no swap */
	}
	if (s->shm > 0)
		put_int(w, "ShmSize", s->shm);
	else
		put_int(w, "ShmSize", s->memory > 0 ? s->memory / 2 : SHM_DEFAULT);
	put_int(w, "PidsLimit", d->pids_max);
	put_int(w, "OomScoreAdj", OOM_SCORE);
	jsn_key(w, "Ulimits");
	jsn_list_begin(w);
	put_limit(w, "core", 0);
	if (!d->low_limits || d->podman)
		put_limit(w, "nofile", own_limit(RLIMIT_NOFILE, FILES_OPEN));
	if (d->podman) /* left to itself it asks for more than it may have */
		put_limit(w, "nproc", own_limit(RLIMIT_NPROC, processes()));
	if (!d->low_limits && wants_rdma(d, s))
		put_limit(w, "memlock", -1); /* what the cards read is pinned */
	jsn_list_end(w);
}

/* All of the host's: which of them leads where is the library's to find out. */
static void put_rdma(struct jsn_out *w)
{
	char path[300];
	DIR *dir = opendir(RDMA_DIR);

	jsn_key(w, "Devices");
	jsn_list_begin(w);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		if (entry->d_type != DT_CHR ||
			!str_print(path, sizeof path, RDMA_DIR "/%s", entry->d_name))
			continue;
		jsn_obj_begin(w);
		put_text(w, "PathOnHost", path);
		put_text(w, "PathInContainer", path);
		put_text(w, "CgroupPermissions", "rw");
		jsn_obj_end(w);
	}
	jsn_list_end(w);
	if (dir != NULL)
		(void)closedir(dir);
}

/* What is written there is memory of the step: never more than half of what it has. */
static void put_tmp(struct jsn_out *w, const struct docker *d, const struct runtime_spec *s)
{
	int64_t size = d->tmp_max > 0 ? d->tmp_max : TMP_READ_ONLY;
	char options[80];

	if (d->tmp_max == 0 && !s->read_only_root)
		return;
	if (s->memory > 0 && size > s->memory / 2)
		size = s->memory / 2;
	(void)str_print(options, sizeof options, "rw,exec,nosuid,nodev,mode=1777,size=%lld",
		(long long)size);
	jsn_key(w, "Tmpfs");
	jsn_obj_begin(w);
	put_text(w, "/tmp", options);
	jsn_obj_end(w);
}

static void put_network(struct jsn_out *w, const struct docker *d, const struct runtime_spec *s)
{
	static const char *const gateway[] = { "host.docker.internal:host-gateway", NULL };
	static const char *const here[] = { "host.docker.internal:127.0.0.1", NULL };
	const char *mode = s->no_network ? "none" : s->host_network ? "host" : d->network;
	bool own = strcmp(mode, "none") != 0 && strcmp(mode, "host") != 0;

	put_text(w, "NetworkMode", mode);
	if (own && d->host_gateway)
		put_list(w, "ExtraHosts", gateway);
	else if (s->host_network && d->host_gateway)
		put_list(w, "ExtraHosts", here);
}

static void put_privileges(struct jsn_out *w, const struct docker *d)
{
	static const char *const all[] = { "ALL", NULL };
	static const char *const init[] = { "SETUID", "SETGID", "KILL", NULL };
	static const char *const none[] = { NULL };
	static const char *const options[] = { "no-new-privileges", NULL };

	put_bool(w, "Privileged", false);
	put_list(w, "CapDrop", all);
	put_list(w, "CapAdd", geteuid() == 0 ? init : none);
	put_list(w, "SecurityOpt", options);
	put_text(w, "IpcMode", "private");
	put_text(w, "CgroupnsMode", "private");
	/* What the init writes must be ours outside, too. */
	if (d->remapped)
		put_text(w, "UsernsMode", "host");
}

static void put_host_config(struct jsn_out *w, const struct docker *d, const struct runtime_spec *s)
{
	jsn_key(w, "HostConfig");
	jsn_obj_begin(w);
	put_privileges(w, d);
	put_bool(w, "AutoRemove", false);
	put_bool(w, "Init", false); /* ours is there */
	put_bool(w, "ReadonlyRootfs", s->read_only_root);
	jsn_key(w, "RestartPolicy");
	jsn_obj_begin(w);
	put_text(w, "Name", "no");
	jsn_obj_end(w);
	jsn_key(w, "LogConfig"); /* the spool has it */
	jsn_obj_begin(w);
	put_text(w, "Type", "none");
	jsn_obj_end(w);
	put_tmp(w, d, s);
	put_network(w, d, s);
	put_resources(w, d, s);
	docker_gpus_put(w, d->gpus, s->gpus);
	if (wants_rdma(d, s))
		put_rdma(w);
	put_mounts(w, d, s);
	jsn_obj_end(w);
}

void docker_create_body(struct docker *d, const struct runtime_spec *s, const char *image,
	struct arena *a, struct buf *b)
{
	static const char *const entry[] = { DOCKER_INIT, NULL };
	bool root = geteuid() == 0;
	const struct launch how = { .init = DOCKER_INIT,
		.ctl = DOCKER_CTL,
		.secrets = DOCKER_SECRETS,
		.workdir = DOCKER_WORK,
		.spec = s,
		.as_user = root,
		.uid = d->uid,
		.gid = d->gid };
	const char *user =
		root ? "0:0" : arena_printf(a, "%u:%u", (unsigned)geteuid(), (unsigned)getegid()).p;
	struct jsn_out w = jsn_out(b);
	struct runtime_spec seen = *s;

	/* By CDI they are there; NVIDIA's hook, should it be there too, is to leave it alone. */
	if (d->gpus == DOCKER_GPUS_CDI)
		seen.gpus = NULL;
	jsn_obj_begin(&w);
	put_text(&w, "Image", image);
	put_list(&w, "Entrypoint", entry);
	put_list(&w, "Cmd", launch_argv(a, &how) + 1);
	put_list(&w, "Env", launch_env(a, &seen, "tidemill", DOCKER_WORK, false));
	put_text(&w, "WorkingDir", "/");
	put_text(&w, "User", user);
	put_text(&w, "StopSignal", "SIGTERM");
	put_int(&w, "StopTimeout", s->grace_s + STOP_MARGIN);
	put_bool(&w, "Tty", false);
	put_bool(&w, "OpenStdin", false);
	put_labels(&w, d, s, a);
	put_host_config(&w, d, s);
	jsn_obj_end(&w);
}
