/*
 * Start: make the folders; look the image up, pull it when it is missing; create the container,
 * whose name is the attempt; start it. A name that is taken by the same attempt and epoch is our
 * own earlier try, and the flow goes on with it. A cancelled start removes what it has made.
 */
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/loop/timer.h"
#include "worker/runtime/docker_gc.h"
#include "worker/runtime/docker_images.h"
#include "worker/runtime/docker_keep.h"

#define CREATE_TIMEOUT (120 * INT64_C(1000000))
#define START_TIMEOUT  (300 * INT64_C(1000000))
#define UNSURE_FOR     (600 * CLOCK_SECOND)

enum { PULLS_MAX = 3, ROOM_MS = 200 };
enum { CANCEL_MS = 5000 }; /* for a daemon that does not answer, after a cancel */

struct start {
	struct docker_call base;
	const struct runtime_spec *spec;
	const char *image; /* what is asked for: exactly that one where it is known */
	struct docker_want want;
	bool pulled, cancelled, made;
	struct loop_timer room; /* waits for others to be removed */
	bool roomed;
	int pulls, losses; /* an image may be taken away again before the container is made */
	bool looking; /* the daemon is asked for the image, which makes nothing */
	bool creating;
	struct loop_timer patience;
	runtime_note_cb *note;
	struct err failure; /* what the container is removed for */
};

static void start_on_made(void *arg);
static void start_look_up_image(struct start *s);
static void start_on_image(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void start_pull(struct start *s);
static void start_on_progress(struct docker_want *w, const char *text);
static void start_on_pulled(struct docker_want *w, const struct err *failed);
static void start_on_room(void *arg);
static void start_create(struct start *s);
static void start_on_created(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void start_on_looked(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void start_run(struct start *s);
static void start_on_running(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void start_on_refused(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void start_on_removed(void *arg, const struct fetch_reply *reply, const struct err *failed);

static struct start *start_of(struct docker_want *w)
{
	return (struct start *)(void *)((char *)w - offsetof(struct start, want));
}

static void start_settle(struct start *s, const struct err *e)
{
	loop_timer_cancel(&s->patience);
	rtcall_settle(&s->base.call, e);
}

/* The tail of every failure: removes the container when there is one. */
static void start_fail(struct start *s, enum runtime_blame blame, const struct err *e)
{
	char path[DOCKER_PATH_MAX];

	s->base.call.started.blame = blame;
	if (!s->made || s->base.d->closing) {
		start_settle(s, e);
		return;
	}
	s->failure = *e;
	docker_send(&s->base,
		&(struct docker_request){ .method = "DELETE",
			.path = docker_path(path, s->spec->attempt, "?force=1&v=1"),
			.timeout = CREATE_TIMEOUT },
		start_on_removed);
}

static void start_on_removed(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct start *s = arg;
	struct err e;

	/* One that stays is found by list, and removed with the attempt. */
	if (docker_answer(&s->base, reply, failed, &e) < 0)
		log_debug("container not removed", LOG_S("attempt", s->spec->attempt), LOG_E(&e));
	start_settle(s, &s->failure);
}

/* True when the flow has ended because it was cancelled. */
static bool start_is_over(struct start *s)
{
	struct err e;

	if (!s->cancelled)
		return false;
	(void)err_set(&e, ERR_CANCELLED, "stopped before it began");
	start_fail(s, RUNTIME_BLAME_HOST, &e);
	return true;
}

/* A daemon that cannot be reached is the host's fault, whatever was asked of it. */
static enum runtime_blame blame_of(const struct err *e, enum runtime_blame otherwise)
{
	return e->code == ERR_NETWORK || e->code == ERR_TIMEOUT || e->code == ERR_CANCELLED
		       ? RUNTIME_BLAME_HOST
		       : otherwise;
}

/* The image is not to be had, or the daemon cannot say. */
static void start_image_failed(struct start *s, const struct err *failed)
{
	enum runtime_blame blame = blame_of(failed, RUNTIME_BLAME_IMAGE);
	struct err e;

	if (blame == RUNTIME_BLAME_IMAGE) {
		s->base.call.started.image_fault = docker_image_fault(failed->msg);
		(void)err_set(&e,
			s->base.call.started.image_fault == RUNTIME_IMAGE_NO_SPACE ? ERR_NO_SPACE
										   : failed->code,
			"image %.160s: %.300s", s->image, failed->msg);
		start_on_progress(&s->want, e.msg);
		failed = &e;
	}
	start_fail(s, blame, failed);
}

static void start_abandon(struct rtcall *c)
{
	struct start *s = (struct start *)(void *)c;

	loop_timer_cancel(&s->patience);
	loop_timer_cancel(&s->room);
	docker_unwant_image(&s->want);
	docker_call_abandon(c);
}

/* Whatever has become of the container, a remove ends it: the daemon does one after the other. One
 * that is created only after that never runs, and is found by list. */
static void start_give_up(void *arg)
{
	struct start *s = arg;

	loop_timer_set(&s->patience, CANCEL_MS);
	if (s->base.request == NULL)
		return;
	if (s->creating)
		s->base.d->unsure = clock_elapsed(&clock_real) + UNSURE_FOR;
	fetch_cancel(s->base.request);
}

void docker_start(struct runtime *r, const struct runtime_spec *spec, runtime_note_cb *note,
	runtime_started_cb *done, void *arg)
{
	struct docker *d = (struct docker *)(void *)r;
	struct start *s = docker_call_new(d, sizeof *s, RTCALL_START, start_abandon, arg);
	struct err e;
	int rc;

	s->base.call.fn.started = done;
	s->note = note;
	loop_timer_init(&s->patience, d->calls.loop, start_give_up, s);
	rc = runtime_spec_check(spec, &e);
	if (rc == 0 && (!docker_image_valid(spec->image) ||
			       (spec->image_ref != NULL && !docker_image_valid(spec->image_ref))))
		rc = err_field(&e, "/image", "is not the name of an image");
	if (rc == 0 && spec->image_ref != NULL && !docker_ref_fits(spec->image, spec->image_ref))
		rc = err_field(&e, "/image_ref", "%.200s is no image of %.200s", spec->image_ref,
			spec->image);
	if (rc == 0 && rtcall_find(&d->calls, RTCALL_START, spec->attempt) != NULL)
		rc = err_set(&e, ERR_IN_PROGRESS, "the attempt is being started already");
	if (rc < 0) {
		start_fail(s, RUNTIME_BLAME_SPEC, &e);
		return;
	}
	/* Podman would leave them out, and start it all the same. */
	if (d->podman && spec->gpus != NULL && spec->gpus[0] != NULL) {
		(void)err_set(&e, ERR_UNAVAILABLE, "Podman gives no GPUs by this interface");
		start_fail(s, RUNTIME_BLAME_GPU, &e);
		return;
	}
	s->spec = rtcall_copy_spec(s->base.call.a, spec);
	s->base.call.attempt = s->spec->attempt;
	s->image = s->spec->image_ref != NULL ? s->spec->image_ref : s->spec->image;
	s->want.progress = start_on_progress;
	s->want.done = start_on_pulled;
	loop_timer_init(&s->room, d->calls.loop, start_on_room, s);
	s->base.job = rtjob_new(&s->base.call);
	s->base.job->make = (struct control_make){ s->spec, "docker",
		arena_dup(s->base.call.a, str_c(d->install)), d->uid, d->gid };
	if (rtjob_submit(s->base.job, rtjob_run_make, start_on_made, &e) < 0) {
		s->base.job = NULL;
		start_fail(s, RUNTIME_BLAME_HOST, &e);
	}
}

bool docker_start_cancel(struct docker *d, const char *attempt)
{
	struct rtcall *c = rtcall_find(&d->calls, RTCALL_START, attempt);
	struct start *s = (struct start *)(void *)c;

	if (c == NULL)
		return false;
	if (!s->cancelled)
		loop_timer_set(&s->patience, CANCEL_MS);
	s->cancelled = true;
	if (s->looking && s->base.request != NULL)
		fetch_cancel(s->base.request);
	/* The other requests are short, and what they have made must be known. */
	if (s->want.pull != NULL) {
		docker_unwant_image(&s->want);
		(void)start_is_over(s);
	}
	return true;
}

static void start_on_made(void *arg)
{
	struct rtjob *j = arg;
	struct start *s = (struct start *)(void *)j->call;
	struct err e = j->err;
	int rc = j->rc;

	rtjob_drop(j);
	if (s == NULL)
		return;
	s->base.job = NULL;
	if (start_is_over(s))
		return;
	if (rc < 0)
		start_fail(s, RUNTIME_BLAME_HOST, &e);
	else
		start_look_up_image(s);
}

static void start_look_up_image(struct start *s)
{
	char path[DOCKER_PATH_MAX];

	s->looking = true;
	(void)str_print(path, sizeof path, "/images/%s/json", s->image);
	docker_send(&s->base, &(struct docker_request){ .path = path }, start_on_image);
}

static void start_on_image(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct start *s = arg;
	struct jsn_doc *doc = NULL;
	struct err e;
	int rc = docker_answer(&s->base, reply, failed, &e);

	s->looking = false;
	if (start_is_over(s))
		return;
	if (rc < 0 && e.code == ERR_NOT_FOUND && !s->pulled && s->pulls < PULLS_MAX) {
		start_pull(s);
		return;
	}
	if (rc == 0)
		rc = jsn_parse(reply->body, &doc, &e);
	if (rc < 0) {
		start_image_failed(s, &e);
		return;
	}
	struct runtime_started *started = &s->base.call.started;
	struct str id = jsn_get_str(jsn_get(jsn_root(doc), "Id"));
	(void)str_print(started->image_id, sizeof started->image_id, "%s%.*s",
		str_starts(id, STR("sha256:")) ? "" : "sha256:", STR_ARG(id)); /* Podman: bare */
	docker_image_ref(jsn_root(doc), s->image, started->image_ref);
	started->image_bytes = jsn_get_int(jsn_get(jsn_root(doc), "Size"), 0);
	if (s->pulled)
		docker_keep_pulled(
			s->base.d->keep, started->image_id, s->image, started->image_bytes);
	docker_keep_use(s->base.d->keep, started->image_id, s->spec->attempt);
	jsn_doc_free(doc);
	start_create(s);
}

static void start_pull(struct start *s)
{
	struct err e;

	if (str_starts(str_c(s->image), STR("sha256:"))) {
		s->base.call.started.image_fault = RUNTIME_IMAGE_ELSEWHERE;
		(void)err_set(&e, ERR_NOT_FOUND,
			"image %.120s is known by its id alone, %.24s…, because no registry has "
			"it, and it is not on this host",
			s->spec->image, s->image);
		start_fail(s, RUNTIME_BLAME_IMAGE, &e);
	} else if (docker_want_image(s->base.d, &s->want, s->image, &e) < 0) {
		start_fail(s, RUNTIME_BLAME_HOST, &e);
	}
	s->pulls++;
}

static void start_on_progress(struct docker_want *w, const char *text)
{
	struct start *s = start_of(w);
	struct err e;

	if (text != NULL && control_note(s->spec->ctl, s->spec->rank, text, &e) < 0)
		log_debug("not noted in the log", LOG_S("attempt", s->spec->attempt), LOG_E(&e));
	if (s->note != NULL)
		s->note(s->base.call.arg, text);
}

/* Other images go, once, when there is no space for this one. */
static bool start_makes_room(struct start *s, const struct err *failed)
{
	if (failed->code == ERR_OK || s->roomed ||
		docker_image_fault(failed->msg) != RUNTIME_IMAGE_NO_SPACE ||
		!docker_gc_force(s->base.d))
		return false;
	s->roomed = true;
	start_on_progress(&s->want, "no space for the image: removing others that no step uses");
	loop_timer_set(&s->room, ROOM_MS);
	return true;
}

static void start_on_room(void *arg)
{
	struct start *s = arg;

	if (start_is_over(s))
		return;
	if (docker_gc_busy(s->base.d))
		loop_timer_set(&s->room, ROOM_MS);
	else
		start_look_up_image(s);
}

static void start_on_pulled(struct docker_want *w, const struct err *failed)
{
	struct start *s = start_of(w);

	s->pulled = failed->code == ERR_OK;
	if (start_is_over(s) || start_makes_room(s, failed))
		return;
	if (failed->code != ERR_OK)
		start_image_failed(s, failed);
	else
		start_look_up_image(s);
	docker_gc_soon(s->base.d);
}

static void start_create(struct start *s)
{
	char path[DOCKER_PATH_MAX];
	struct buf body;
	struct err e;

	buf_init(&body, DOCKER_BODY_MAX);
	/* By what was looked up, whatever the name means a moment later. */
	docker_create_body(
		s->base.d, s->spec, s->base.call.started.image_id, s->base.call.a, &body);
	if (buf_failed(&body)) {
		(void)err_set(&e, ERR_TOO_LARGE, "the settings of the container are too large");
		start_fail(s, RUNTIME_BLAME_SPEC, &e);
	} else {
		s->creating = true;
		(void)str_print(path, sizeof path, "/containers/create?name=%s", s->spec->attempt);
		docker_send(&s->base,
			&(struct docker_request){ .method = "POST",
				.path = path,
				.body = buf_str(&body),
				.timeout = CREATE_TIMEOUT },
			start_on_created);
	}
	buf_done(&body);
}

/* Somebody has removed it since it was looked up: we ourselves, to make room, or a person. */
static bool lost_image(const struct start *s, const struct err *e)
{
	return e->code == ERR_NOT_FOUND && strcasestr(e->msg, "image") != NULL &&
	       s->losses < PULLS_MAX && !s->cancelled;
}

static void start_on_created(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct start *s = arg;
	char path[DOCKER_PATH_MAX];
	struct err e;
	int rc = docker_answer(&s->base, reply, failed, &e);

	s->creating = false;
	/* Podman has no code for a name that is taken. */
	if (rc < 0 && (e.code == ERR_CONFLICT || strstr(e.msg, "is already in use") != NULL)) {
		docker_send(&s->base,
			&(struct docker_request){
				.path = docker_path(path, s->spec->attempt, "/json") },
			start_on_looked);
		return;
	}
	if (rc < 0 && lost_image(s, &e)) {
		s->losses++;
		s->pulled = false;
		start_look_up_image(s);
		return;
	}
	if (rc < 0) {
		start_fail(s,
			blame_of(&e, e.code == ERR_NOT_FOUND ? RUNTIME_BLAME_IMAGE
				     : e.code == ERR_INVALID ? RUNTIME_BLAME_SPEC
							     : RUNTIME_BLAME_HOST),
			&e);
		return;
	}
	s->made = true;
	if (!start_is_over(s))
		start_run(s);
}

static bool is_ours(const struct start *s, const struct jsn *v)
{
	const struct jsn *labels = jsn_find(v, "/Config/Labels");
	int64_t epoch;

	return str_is(jsn_get_str(jsn_get(labels, DOCKER_LABEL_INSTALL)), s->base.d->install) &&
	       str_is(jsn_get_str(jsn_get(labels, DOCKER_LABEL_ATTEMPT)), s->spec->attempt) &&
	       num_parse_i64(
		       jsn_get_str(jsn_get(labels, DOCKER_LABEL_EPOCH)), 0, INT64_MAX, &epoch) &&
	       epoch == s->spec->epoch;
}

static void start_on_looked(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct start *s = arg;
	struct jsn_doc *doc = NULL;
	struct err e;
	int rc = docker_answer(&s->base, reply, failed, &e);

	if (rc == 0)
		rc = jsn_parse(reply->body, &doc, &e);
	if (rc == 0 && !is_ours(s, jsn_root(doc)))
		rc = err_set(
			&e, ERR_CONFLICT, "another container has the name %s", s->spec->attempt);
	jsn_doc_free(doc);
	if (rc < 0) {
		start_fail(s, RUNTIME_BLAME_HOST, &e);
		return;
	}
	s->made = true;
	if (!start_is_over(s))
		start_run(s);
}

static void start_run(struct start *s)
{
	char path[DOCKER_PATH_MAX];

	docker_send(&s->base,
		&(struct docker_request){ .method = "POST",
			.path = docker_path(path, s->spec->attempt, "/start"),
			.timeout = START_TIMEOUT },
		start_on_running);
}

/* A container that its limits kept from starting is gone: once more, without them. */
static void start_on_refused(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct start *s = arg;
	struct err e;

	if (docker_answer(&s->base, reply, failed, &e) < 0 && e.code != ERR_NOT_FOUND) {
		start_fail(s, RUNTIME_BLAME_HOST, &e);
		return;
	}
	s->made = false;
	if (!start_is_over(s))
		start_create(s);
}

static void start_on_running(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct start *s = arg;
	char path[DOCKER_PATH_MAX];
	struct err e;
	int rc = docker_answer(&s->base, reply, failed, &e);

	if (rc < 0 && strstr(e.msg, "rlimit") != NULL && !s->base.d->low_limits) {
		/* The daemon has less than we ask for, and may not raise it. */
		log_warn("limits of steps are those of the container daemon", LOG_E(&e));
		s->base.d->low_limits = true;
		docker_send(&s->base,
			&(struct docker_request){ .method = "DELETE",
				.path = docker_path(path, s->spec->attempt, "?force=1&v=1"),
				.timeout = CREATE_TIMEOUT },
			start_on_refused);
		return;
	}
	if (rc < 0) {
		bool gpu = strstr(e.msg, "gpu") != NULL || strstr(e.msg, "nvidia") != NULL;
		/* Without an answer it may run: it stays, for the next start or a remove. */
		s->made = blame_of(&e, RUNTIME_BLAME_GPU) == RUNTIME_BLAME_GPU;
		start_fail(s, blame_of(&e, gpu ? RUNTIME_BLAME_GPU : RUNTIME_BLAME_HOST), &e);
		return;
	}
	if (!start_is_over(s))
		start_settle(s, NULL);
}
