/*
 * Inside worker/runtime: what the files of the `docker` runtime share. A flow embeds struct
 * docker_call as its first member and has at most one request in flight.
 */
#ifndef WORKER_RUNTIME_DOCKER_H
#define WORKER_RUNTIME_DOCKER_H
#include "lib/fetch/fetch.h"
#include "lib/json/json_read.h"
#include "lib/loop/timer.h"
#include "worker/runtime/docker_gpus.h"
#include "worker/runtime/rtjob.h"

#define DOCKER_LABEL_INSTALL "tidemill.install"
#define DOCKER_LABEL_ATTEMPT "tidemill.attempt"
#define DOCKER_LABEL_STEP    "tidemill.step"
#define DOCKER_LABEL_EPOCH   "tidemill.epoch"
#define DOCKER_LABEL_CTL     "tidemill.ctl"

/* Where a container sees what is its own. */
#define DOCKER_INIT    "/tidemill/init"
#define DOCKER_CTL     "/tidemill/ctl"
#define DOCKER_WORK    "/tidemill/work"
#define DOCKER_IN      "/tidemill/in"
#define DOCKER_OUT     "/tidemill/out"
#define DOCKER_SECRETS "/run/tidemill"

#define DOCKER_SHORT (30 * INT64_C(1000000)) /* for requests that are answered at once */

enum { DOCKER_PATH_MAX = 1024, DOCKER_BODY_MAX = 4 << 20, DOCKER_IMAGE_MAX = 300 };

struct docker_image_pull;
struct docker_keep;

/* Making room on the daemon's disk: docker_gc.c. */
struct docker_gc {
	int high, low; /* percent of the disk */
	int64_t spare; /* microseconds since the last use */
	struct loop_timer look;
	struct fetch *request; /* a round is under way */
	char id[80], name[DOCKER_IMAGE_MAX]; /* of the image that it is about */
	int64_t used_at; /* of that, when it was chosen */
	bool soon; /* the next look is near */
	bool wanted; /* a pull has found no space: all goes that is not used */
	bool forced; /* the round under way is one for that */
	double used, began; /* percent: now, when the round began */
	int64_t removed, bytes, ended;
	void (*changed)(void *arg);
	void *changed_arg;
	bool short_of; /* above the high mark, and nothing is left to be removed */
	char said[200];
	char trouble[300]; /* what could not be removed lately, and why; "" */
};

struct docker {
	struct runtime head;
	struct rtcalls calls;
	struct fetch_client *http;
	char *init, *install, *network, *socket;
	char *auth_file; /* credentials of registries, or NULL */
	struct docker_image_pull *pulls; /* in progress */
	struct docker_keep *keep; /* images that were pulled */
	struct docker_gc gc;
	char root[512]; /* the daemon's folder, as a probe has told; "" */
	struct map *ends; /* attempts whose end is not explained yet: docker_poll.c */
	bool host_gateway, closing;
	int64_t unsure; /* clock_elapsed until which containers may appear that nobody waits for */
	/* As far as a probe has told: */
	bool remapped; /* the daemon maps user ids */
	bool podman; /* containers belong to nobody but their monitors */
	bool live_restore; /* containers outlive it */
	bool low_limits; /* it may not set limits of resources above its own */
	enum docker_gpus gpus;
	bool rdma; /* steps with GPUs get what stands in /dev/infiniband */
	int64_t pids_max;
	int64_t tmp_max; /* bytes of /tmp in memory; 0: /tmp is on the disk */
	uid_t uid;
	gid_t gid;
};

struct docker_call {
	struct rtcall call;
	struct docker *d;
	struct fetch *request; /* in flight, or NULL */
	struct rtjob *job; /* likewise */
};

/* A flow; abandoning it lets go of its job. Requests end with the client, before that. */
void *docker_call_new(struct docker *d, size_t size, enum rtcall_kind kind,
	rtcall_abandon_fn *abandon, void *arg) __attribute__((returns_nonnull));
void docker_call_abandon(struct rtcall *c);

struct docker_request {
	const char *method, *path;
	struct str body; /* JSON; copied */
	int64_t timeout; /* 0: the client's, -1: none */
};
/* `done` gets the flow as its arg and must begin with docker_answer(). */
void docker_send(struct docker_call *c, const struct docker_request *q, fetch_done_cb *done);
/* 0 for a status below 400. Else -1: ERR_NOT_FOUND, ERR_CONFLICT, ERR_INVALID, ERR_UNAVAILABLE
 * with the daemon's own words, or why there was no reply. */
int docker_answer(struct docker_call *c, const struct fetch_reply *reply, const struct err *failed,
	struct err *e) MUST_CHECK;
/* What /info tells of how containers live. */
void docker_read_info(struct docker *d, const struct jsn *info);
/* The same for a request that is no flow's. */
int docker_reply(const struct docker *d, const struct fetch_reply *reply, const struct err *failed,
	struct err *e) MUST_CHECK;
/* The value of a container's path: /containers/ATTEMPT/…, cut never: attempts are short. */
const char *docker_path(char out[DOCKER_PATH_MAX], const char *attempt, const char *rest);

/* docker_create.c: the body of POST /containers/create. The caller frees b. */
void docker_create_body(struct docker *d, const struct runtime_spec *s, const char *image,
	struct arena *a, struct buf *b);

/* docker_start.c */
void docker_start(struct runtime *r, const struct runtime_spec *s, runtime_note_cb *note,
	runtime_started_cb *done, void *arg);
/* True when a start of the attempt was in flight: it will end with ERR_CANCELLED. */
bool docker_start_cancel(struct docker *d, const char *attempt);

/* docker_poll.c */
void docker_poll(
	struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg);
void docker_forget_end(struct docker *d, const char *attempt); /* NULL: of all */

/* docker_pull.c: reads the stream of POST /images/create line by line. */
struct docker_layer;
struct docker_pull {
	struct buf line;
	struct docker_layer *layers;
	size_t n_layers;
	int64_t moved; /* clock_elapsed when a layer last came further; 0: none has */
	char error[512]; /* how it failed, in the daemon's words; "" */
};
void docker_pull_init(struct docker_pull *p);
void docker_pull_done(struct docker_pull *p);
int docker_pull_push(struct docker_pull *p, struct str bytes, struct err *e) MUST_CHECK;
/* "3 of 7 layers, 1.2 GiB of 3.4 GiB" */
void docker_pull_say(const struct docker_pull *p, char *out, size_t size);
/* What a failure is about, by the words that are known. */
enum runtime_image_fault docker_image_fault(const char *words);
/* "/images/create?fromImage=…&tag=…" */
const char *docker_pull_path(char out[DOCKER_PATH_MAX], const char *image);
/* True for what may stand in such a path as it is, and names an image. */
bool docker_image_valid(const char *image);

#endif
