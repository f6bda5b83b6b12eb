/*
 * Running attempts. A runtime is one way of doing it (docker, process), behind a small table. It
 * puts tidemill-init in front of the command; from then on the control folder of the attempt
 * (worker/init/ctl.h) holds the truth, and survives this process, which keeps no state that `list`
 * and `poll` cannot find again.
 *
 * Every call completes exactly once, from the loop, never inside the call; runtime_free completes
 * what is in flight with ERR_CANCELLED. What a call is given is copied; results are lent for the
 * callback. Loop thread only; what blocks runs on the work pool.
 */
#ifndef WORKER_RUNTIME_RUNTIME_H
#define WORKER_RUNTIME_RUNTIME_H
#include "lib/base/err.h"
#include "lib/base/str.h"

#include <sys/types.h>

struct loop;
struct runtime;

/* The folders that a step sees, and where. With `docker` each has a fixed path in the container;
 * with `process` it is the host's path. */
enum runtime_dir {
	RUNTIME_DIR_WORK, /* the checkout; the command starts here */
	RUNTIME_DIR_IN, /* staged inputs, read-only */
	RUNTIME_DIR_OUT, /* what the step leaves: TIDEMILL_OUTPUT */
	RUNTIME_DIR_SECRETS, /* job token and secret files */
	RUNTIME_DIR_COUNT
};

struct runtime_mount {
	const char *host; /* an existing absolute path */
	const char *inside; /* where a container sees it; `process` uses the host's path */
	bool read_only;
};

struct runtime_secret {
	const char *name; /* of the file in RUNTIME_DIR_SECRETS: [A-Za-z0-9._-], not starting '.' */
	struct str bytes;
};

enum { RUNTIME_ID_MAX = 64, RUNTIME_ARGV_MAX = 256, RUNTIME_ENV_MAX = 256, RUNTIME_GPUS_MAX = 64 };
enum { RUNTIME_MOUNTS_MAX = 64, RUNTIME_SECRETS_MAX = 64, RUNTIME_ARGV_BYTES = 1 << 20 };
enum { RUNTIME_SECRETS_BYTES = 4 << 20 /* of all secret files together */ };

/* Lists of strings end with NULL; a NULL list is empty. */
struct runtime_spec {
	const char *attempt, *step; /* ids: [a-z0-9_-] */
	int64_t epoch;

	const char *const *argv; /* at least one */
	const char *const *env; /* "K=V"; all of it, beside what the image brings */
	const char *const *secret_env; /* "K=V"; never in argv, environ of the init or inspect */
	const struct runtime_secret *secrets;
	size_t n_secrets;

	/* On the host; absolute. `ctl` and `secrets` are made by start, the others must exist and
	 * work and out are given to the step's user. `secrets` should lie on a tmpfs. */
	const char *ctl, *secrets_dir, *work, *in, *out; /* in may be NULL */
	const struct runtime_mount *mounts;
	size_t n_mounts;

	const char *image; /* docker only: as it was written */
	const char *image_ref; /* exactly that image, as runtime_started said it; NULL: not known */
	double cpus; /* 0: no limit */
	int64_t memory, shm; /* bytes; 0: no limit, the runtime's default */
	const char *const *gpus; /* UUIDs of devices or slices */
	bool no_network;
	bool host_network; /* docker: the host's own; so that other hosts reach what it listens on
			    */
	bool read_only_root;

	int64_t deadman_s; /* 0: none; it counts … */
	int64_t renewed_at; /* … from here at first: clock_elapsed(), microseconds; 0: now */
	int64_t grace_s; /* between asking to end and killing */
	int64_t max_log; /* bytes of output that are kept; 0: the init's default */
	int64_t usage_s; /* between two looks at what the command uses (CTL_USAGE); 0: none */
	bool barrier; /* hold the command until control_go() */
	unsigned rank;
};

/* An attempt that was started, now or by an earlier worker process. */
struct runtime_ref {
	const char *attempt;
	const char *ctl; /* its control folder */
	const char *secrets_dir; /* may be NULL */
};

enum runtime_state {
	RUNTIME_GONE, /* nothing of it runs or ran; it can be started */
	/* Made, but the init has not spoken yet. Found so by a worker that has just begun, it is to
	 * be started again, which goes on where the earlier one was. */
	RUNTIME_PREPARING,
	RUNTIME_WAITING, /* at the barrier */
	RUNTIME_RUNNING,
	RUNTIME_ENDED,
	RUNTIME_STATE_COUNT
};

enum runtime_end {
	RUNTIME_END_NONE, /* not ended */
	RUNTIME_END_EXITED, /* code */
	RUNTIME_END_SIGNALED, /* signo */
	RUNTIME_END_OOM, /* killed by the kernel for memory; by evidence, code or signo as seen */
	RUNTIME_END_NOT_STARTED, /* the command could not be executed: message */
	RUNTIME_END_LOST, /* the init ended without a word: killed, or the host restarted */
	RUNTIME_END_COUNT
};

/* Who ended it, when it did not end by itself. */
enum runtime_killer {
	RUNTIME_KILLER_NONE, /* nobody, as far as is known */
	RUNTIME_KILLER_US, /* asked for by runtime_stop, or the deadman */
	RUNTIME_KILLER_KERNEL, /* for want of memory */
	RUNTIME_KILLER_CLIENT, /* somebody else asked the daemon to (docker kill, docker stop) */
	RUNTIME_KILLER_DAEMON, /* the daemon took it along when it ended, or when it came back */
	RUNTIME_KILLER_HOST, /* a process of the host, the daemon knows nothing of it */
	RUNTIME_KILLER_COUNT
};

struct runtime_status {
	enum runtime_state state;
	enum runtime_end end;
	int code, signo; /* -1 and 0: none */
	bool stopped, deadman; /* the init ended it: on our request, because we were silent */
	bool outside; /* the init ended it on the request of somebody else */
	enum runtime_killer killer;
	int killer_signo; /* that a client asked for; 0: not known */
	char message[256]; /* why it was not started or is lost; "" otherwise */
	int64_t started_us, ended_us; /* since 1970; 0: not known */
	int64_t started_elapsed; /* clock_elapsed(); 0: not known, or of an earlier boot */
	int64_t user_us, system_us, max_rss; /* processor time; bytes */
	int64_t spool_bytes, stdout_bytes, stderr_bytes; /* at the end */
	int64_t dropped_bytes, lost_bytes; /* output that is not in the spool */
	bool untold; /* no last word of the init yet: of its output only what it has read is known
		      */
	/* Of the container as a whole, by its cgroup; 0: none, or not known. */
	int64_t oom_kills, memory_peak, memory_limit, read_bytes, written_bytes, throttled_us;
};

/* What a host offers by this runtime. */
struct runtime_about {
	bool ok; /* attempts can be started now */
	char version[64];
	char note[256]; /* why not, or what an operator should know; "" for nothing */
	char storage[256]; /* about the disk of its images; "" for nothing */
	bool survives_daemon; /* attempts go on when the daemon restarts (docker: live-restore) */
	bool gpus; /* GPUs can be given to attempts */
	bool unsure; /* more may be made than anybody waits for: list tells what there is */
};

struct runtime_found {
	char attempt[RUNTIME_ID_MAX], step[RUNTIME_ID_MAX];
	int64_t epoch;
	char ctl[512];
};

/* How a start failed, beside the error: whose fault it is decides about the retry. */
enum runtime_blame {
	RUNTIME_BLAME_SPEC,
	RUNTIME_BLAME_IMAGE,
	RUNTIME_BLAME_GPU,
	RUNTIME_BLAME_HOST
};

/* What was wrong with the image, when it is to blame. */
enum runtime_image_fault {
	RUNTIME_IMAGE_WELL,
	RUNTIME_IMAGE_NOT_FOUND, /* the registry does not have it */
	RUNTIME_IMAGE_DENIED, /* not with these credentials */
	RUNTIME_IMAGE_UNREACHABLE, /* no registry answers, or it wants to be left alone */
	RUNTIME_IMAGE_DAMAGED, /* its bytes are not those of its digest */
	RUNTIME_IMAGE_ELSEWHERE, /* known by an id alone, and not on this host */
	RUNTIME_IMAGE_NO_SPACE,
	RUNTIME_IMAGE_OTHER,
	RUNTIME_IMAGE_FAULT_COUNT
};

enum { RUNTIME_IMAGE_MAX = 400 };

struct runtime_started {
	char image_id[80]; /* docker: "sha256:…" of the image that runs */
	/* Exactly that image: "REPOSITORY@sha256:…", which any host can pull, or, for one that no
	 * registry is known to have, its id. */
	char image_ref[RUNTIME_IMAGE_MAX];
	int64_t image_bytes; /* its size; 0: not known */
	enum runtime_blame blame; /* when it failed */
	enum runtime_image_fault image_fault;
};

enum runtime_stop {
	RUNTIME_STOP_ASK, /* SIGTERM; the init kills after grace_s */
	RUNTIME_STOP_KILL, /* SIGKILL to the command; the init writes down how it ended */
	/* The init too: its last word and unsaved output are lost, and with `process` whatever has
	 * left the command's process group goes on. For an init that does not answer. */
	RUNTIME_STOP_FORCE,
};

typedef void runtime_about_cb(void *arg, const struct runtime_about *about);
/* The start has come further: about once a second at most; now and then with words for people,
 * which stand in the step's log (control_note), else with NULL. */
typedef void runtime_note_cb(void *arg, const char *text);
typedef void runtime_started_cb(void *arg, const struct runtime_started *s, const struct err *e);
typedef void runtime_status_cb(void *arg, const struct runtime_status *s, const struct err *e);
typedef void runtime_list_cb(
	void *arg, const struct runtime_found *found, size_t n, const struct err *e);
typedef void runtime_done_cb(void *arg, const struct err *e);

struct runtime_ops {
	const char *name;
	void (*probe)(struct runtime *r, runtime_about_cb *done, void *arg);
	void (*start)(struct runtime *r, const struct runtime_spec *s, runtime_note_cb *note,
		runtime_started_cb *done, void *arg);
	void (*stop)(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
		runtime_done_cb *done, void *arg);
	void (*poll)(
		struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg);
	void (*list)(struct runtime *r, runtime_list_cb *done, void *arg);
	void (*remove)(
		struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg);
	const char *(*path)(
		const struct runtime *r, const struct runtime_spec *s, enum runtime_dir d);
	void (*close)(struct runtime *r);
};

/* The head of every runtime. */
struct runtime {
	const struct runtime_ops *ops;
};

struct runtime_process_config {
	const char *init; /* path of tidemill-init */
	const char
		*attempts; /* folder with ATTEMPT/ctl for each attempt; what list looks through */
	const char *install; /* id of this worker's installation */
	/* Who runs the steps: a user's name, or NULL for "tidemill-step" where that exists, else
	 * "nobody". Never root. Without meaning when the worker itself is not root: then it is its
	 * own user. */
	const char *user;
	/* Only what runs already is looked after: without such a user there are no starts. */
	bool leftover;
};

struct runtime_docker_config {
	const char *init; /* as the daemon's host sees it, like all paths of a spec */
	const char *install;
	const char *socket; /* NULL: /var/run/docker.sock */
	const char *network; /* NULL: "bridge" */
	const char *auth_file; /* credentials of registries (docker_auth.h); NULL: none */
	bool leftover; /* only what runs already is looked after: they are read when they are needed
			*/
	bool host_gateway; /* the name host.docker.internal leads to the host */
	bool rdma; /* steps with GPUs get the host's RDMA devices, and may pin memory */
	int64_t tmp_max; /* bytes of /tmp, in memory; 0: /tmp is the image's, on the disk */
	int64_t pids_max; /* 0: 4096 */
	const char *images_file; /* of what was pulled (docker_keep.h); NULL: no image is removed */
	const char *attempts; /* with it: the folder of the attempts that are here */
	void (*changed)(void *arg); /* probe has other to say of that disk; may be NULL */
	void *changed_arg;
	int64_t image_keep; /* microseconds since its last use in which an image stays */
	int disk_high, disk_low; /* percent of its disk: images go above, until below; 100: never */
	uid_t uid; /* who runs the steps; 0: 65534 */
	gid_t gid;
};

/* ERR_INVALID when the configuration cannot work (no such user, root, no init, a file of passwords
 * that others may read). */
int runtime_process_new(struct loop *l, const struct runtime_process_config *c,
	struct runtime **ret, struct err *e) MUST_CHECK;
int runtime_docker_new(struct loop *l, const struct runtime_docker_config *c, struct runtime **ret,
	struct err *e) MUST_CHECK;
void runtime_free(struct runtime *r); /* NULL is fine; attempts go on */

void runtime_probe(struct runtime *r, runtime_about_cb *done, void *arg);
/* `note` may be NULL. Done when the init has been started. A stop of the attempt meanwhile ends it
 * with ERR_CANCELLED and leaves nothing. A second start of the same attempt and epoch goes on where
 * the first was. */
void runtime_start(struct runtime *r, const struct runtime_spec *s, runtime_note_cb *note,
	runtime_started_cb *done, void *arg);
/* ERR_NOT_FOUND when nothing of it runs. Done when the signal has been delivered. */
void runtime_stop(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
	runtime_done_cb *done, void *arg);
/* Once the command runs, its secret environment is removed from the disk. Needs no daemon while
 * the init lives or has had its last word. */
void runtime_poll(
	struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg);
void runtime_list(struct runtime *r, runtime_list_cb *done, void *arg);
/* Ends whatever is left of the attempt, and removes its container and its secrets. The control
 * folder stays with the caller, who may still ship from it. Nothing there is fine. */
void runtime_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg);
const char *runtime_name(const struct runtime *r);
/* What the step sees as this folder; "" when the spec has none. */
const char *runtime_path(const struct runtime *r, const struct runtime_spec *s, enum runtime_dir d);

/* ERR_INVALID with the field (a JSON pointer) and the limit. Called by start. */
int runtime_spec_check(const struct runtime_spec *s, struct err *e) MUST_CHECK;
const char *runtime_state_name(enum runtime_state s); /* "gone", "preparing", … */
const char *runtime_end_name(enum runtime_end x); /* "none", "exited", … */
const char *runtime_killer_name(enum runtime_killer k); /* "", "tidemill", "kernel", … */
const char *runtime_image_fault_name(enum runtime_image_fault f); /* "", "not_found", … */

#endif
