/*
 * The Engine API of Docker or Podman over its unix socket. Paths carry no version: the daemon then
 * speaks its own. What an attempt did is read from its control folder; the daemon is asked only
 * when the init has gone without a last word.
 */
#include "worker/runtime/docker.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/loop/timer.h"
#include "worker/runtime/docker_auth.h"
#include "worker/runtime/docker_gc.h"
#include "worker/runtime/docker_keep.h"

#define SHORT_TIMEOUT  DOCKER_SHORT
#define REMOVE_TIMEOUT (120 * INT64_C(1000000))

enum { LOOK_MS = 50, CONFLICT_MS = 250, NOBODY = 65534, PIDS_MAX = 4096 };

struct listing {
	struct docker_call base;
};

struct ending {
	struct docker_call base;
	struct loop_timer look;
	int64_t begun; /* clock_elapsed */
};

static void docker_probe(struct runtime *r, runtime_about_cb *done, void *arg);
static void probe_on_version(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void probe_on_info(void *arg, const struct fetch_reply *reply, const struct err *failed);

static void docker_stop(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
	runtime_done_cb *done, void *arg);
static void stop_on_sent(void *arg, const struct fetch_reply *reply, const struct err *failed);

static void docker_list(struct runtime *r, runtime_list_cb *done, void *arg);
static void list_on_read(void *arg, const struct fetch_reply *reply, const struct err *failed);

static void docker_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg);
static void remove_on_look(void *arg);
static void remove_on_removed(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void remove_on_cleaned(void *arg);

static struct docker *docker_of(struct runtime *r)
{
	return (struct docker *)(void *)r;
}

/* ---- requests ------------------------------------------------------------------------------- */

void *docker_call_new(
	struct docker *d, size_t size, enum rtcall_kind kind, rtcall_abandon_fn *abandon, void *arg)
{
	struct docker_call *c = rtcall_new(&d->calls, size, kind, abandon, arg);

	c->d = d;
	return c;
}

void docker_call_abandon(struct rtcall *c)
{
	rtjob_abandon(((struct docker_call *)(void *)c)->job);
}

const char *docker_path(char out[DOCKER_PATH_MAX], const char *attempt, const char *rest)
{
	(void)str_print(out, DOCKER_PATH_MAX, "/containers/%s%s", attempt, rest);
	return out;
}

void docker_send(struct docker_call *c, const struct docker_request *q, fetch_done_cb *done)
{
	struct fetch_request r = { .method = q->method,
		.path = q->path,
		.max_body = DOCKER_BODY_MAX,
		.timeout = q->timeout };

	if (q->body.n != 0) {
		r.body = arena_str(c->call.a, q->body);
		r.headers[0] = "Content-Type: application/json";
	}
	c->request = fetch_start(c->d->http, &r, done, c);
}

static enum err_code code_of(int status)
{
	switch (status) {
	case 400: return ERR_INVALID;
	case 404: return ERR_NOT_FOUND;
	case 409: return ERR_CONFLICT;
	default: return ERR_UNAVAILABLE;
	}
}

int docker_reply(const struct docker *d, const struct fetch_reply *reply, const struct err *failed,
	struct err *e)
{
	struct jsn_doc *doc = NULL;
	struct str text = STR_NONE;
	struct err none;

	if (failed->code == ERR_NETWORK)
		return err_set(e, ERR_NETWORK, "the container daemon cannot be reached at %.160s",
			d->socket);
	if (failed->code != ERR_OK) {
		*e = *failed;
		return -1;
	}
	if (reply->status < 400)
		return 0;
	if (jsn_parse(reply->body, &doc, &none) == 0)
		text = jsn_get_str(jsn_get(jsn_root(doc), "message"));
	if (text.n == 0)
		(void)err_set(e, code_of(reply->status), "the container daemon answered %d",
			reply->status);
	else
		(void)err_set(e, code_of(reply->status), "%.*s", STR_ARG(text));
	jsn_doc_free(doc);
	return -1;
}

int docker_answer(struct docker_call *c, const struct fetch_reply *reply, const struct err *failed,
	struct err *e)
{
	c->request = NULL;
	return docker_reply(c->d, reply, failed, e);
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void probe_fail(struct docker_call *c, const struct err *e)
{
	c->call.about.ok = false;
	(void)str_print(c->call.about.note, sizeof c->call.about.note, "%.250s", e->msg);
	rtcall_settle(&c->call, NULL);
}

static void docker_probe(struct runtime *r, runtime_about_cb *done, void *arg)
{
	struct docker_call *c =
		docker_call_new(docker_of(r), sizeof *c, RTCALL_PROBE, docker_call_abandon, arg);

	c->call.fn.about = done;
	docker_send(c, &(struct docker_request){ .path = "/version", .timeout = SHORT_TIMEOUT },
		probe_on_version);
}

static void probe_on_version(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker_call *c = arg;
	struct jsn_doc *doc = NULL;
	struct err e;

	if (docker_answer(c, reply, failed, &e) < 0 || jsn_parse(reply->body, &doc, &e) < 0) {
		probe_fail(c, &e);
		return;
	}
	struct str version = jsn_get_str(jsn_get(jsn_root(doc), "Version"));
	(void)str_print(
		c->call.about.version, sizeof c->call.about.version, "%.*s", STR_ARG(version));
	c->d->podman = false;
	const struct jsn *parts = jsn_get(jsn_root(doc), "Components");
	for (size_t i = 0; i < jsn_count(parts); i++)
		if (str_is(jsn_get_str(jsn_get(jsn_at(parts, i), "Name")), "Podman Engine"))
			c->d->podman = true;
	jsn_doc_free(doc);
	docker_send(c, &(struct docker_request){ .path = "/info", .timeout = SHORT_TIMEOUT },
		probe_on_info);
}

void docker_read_info(struct docker *d, const struct jsn *info)
{
	d->live_restore = d->podman || jsn_get_bool(jsn_get(info, "LiveRestoreEnabled"), false);
}

static void probe_on_info(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker_call *c = arg;
	struct runtime_about *about = &c->call.about;
	struct jsn_doc *doc = NULL;
	struct err e;

	if (docker_answer(c, reply, failed, &e) < 0 || jsn_parse(reply->body, &doc, &e) < 0) {
		probe_fail(c, &e);
		return;
	}
	const struct jsn *info = jsn_root(doc), *options = jsn_get(info, "SecurityOptions");
	c->d->remapped = false;
	docker_read_info(c->d, info);
	for (size_t i = 0; i < jsn_count(options); i++)
		if (str_starts(jsn_get_str(jsn_at(options, i)), STR("name=userns")))
			c->d->remapped = true;
	about->ok = true;
	about->survives_daemon = c->d->live_restore;
	c->d->gpus = c->d->podman ? DOCKER_GPUS_NONE : docker_gpus_how(info, "");
	about->gpus = c->d->gpus != DOCKER_GPUS_NONE;
	bool known = c->d->root[0] != '\0';
	(void)str_print(c->d->root, sizeof c->d->root, "%.*s",
		STR_ARG(jsn_get_str(jsn_get(info, "DockerRootDir"))));
	if (!known)
		docker_gc_soon(c->d);
	about->unsure = clock_elapsed(&clock_real) < c->d->unsure;
	docker_gc_say(c->d, about->storage, sizeof about->storage);
	if (!about->survives_daemon)
		(void)str_print(about->note, sizeof about->note,
			"live-restore is off: a restart of the daemon ends what runs");
	jsn_doc_free(doc);
	rtcall_settle(&c->call, NULL);
}

/* ---- stop ----------------------------------------------------------------------------------- */

static void docker_stop(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
	runtime_done_cb *done, void *arg)
{
	static const char *const rest[] = {
		[RUNTIME_STOP_ASK] = "/kill?signal=SIGTERM",
		[RUNTIME_STOP_KILL] = "/kill?signal=SIGQUIT",
		[RUNTIME_STOP_FORCE] = "/kill?signal=SIGKILL",
	};
	struct docker *d = docker_of(r);
	struct docker_call *c =
		docker_call_new(d, sizeof *c, RTCALL_STOP, docker_call_abandon, arg);
	char path[DOCKER_PATH_MAX];
	struct runtime_status status;
	struct err e;

	c->call.fn.done = done;
	rtcall_set_ref(&c->call, a);
	if (docker_start_cancel(d, a->attempt)) {
		rtcall_settle(&c->call, NULL);
		return;
	}
	if (control_read(a->ctl, &status, NULL, &e) == 0 && status.state == RUNTIME_ENDED &&
		how != RUNTIME_STOP_FORCE) {
		(void)err_set(&e, ERR_NOT_FOUND, "the attempt does not run");
		rtcall_settle(&c->call, &e);
		return;
	}
	docker_send(c,
		&(struct docker_request){ .method = "POST",
			.path = docker_path(path, a->attempt, rest[how]),
			.timeout = SHORT_TIMEOUT },
		stop_on_sent);
}

static void stop_on_sent(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker_call *c = arg;
	struct err e;
	int rc = docker_answer(c, reply, failed, &e);

	if (rc < 0 && e.code == ERR_CONFLICT) /* "is not running" */
		e.code = ERR_NOT_FOUND;
	rtcall_settle(&c->call, rc < 0 ? &e : NULL);
}

/* ---- list ----------------------------------------------------------------------------------- */

static void docker_list(struct runtime *r, runtime_list_cb *done, void *arg)
{
	struct docker *d = docker_of(r);
	struct docker_call *c =
		docker_call_new(d, sizeof *c, RTCALL_LIST, docker_call_abandon, arg);
	char path[DOCKER_PATH_MAX];

	c->call.fn.list = done;
	/* {"label":["tidemill.install=ID"]} */
	(void)str_print(path, sizeof path,
		"/containers/json?all=1&filters=%%7B%%22label%%22%%3A%%5B%%22" DOCKER_LABEL_INSTALL
		"%%3D%s%%22%%5D%%7D",
		d->install);
	docker_send(c, &(struct docker_request){ .path = path, .timeout = SHORT_TIMEOUT },
		list_on_read);
}

static bool read_found(const struct jsn *item, struct runtime_found *f)
{
	const struct jsn *labels = jsn_get(item, "Labels");
	struct str attempt = jsn_get_str(jsn_get(labels, DOCKER_LABEL_ATTEMPT));
	struct str step = jsn_get_str(jsn_get(labels, DOCKER_LABEL_STEP));
	struct str ctl = jsn_get_str(jsn_get(labels, DOCKER_LABEL_CTL));

	return attempt.n != 0 &&
	       str_print(f->attempt, sizeof f->attempt, "%.*s", STR_ARG(attempt)) &&
	       str_print(f->step, sizeof f->step, "%.*s", STR_ARG(step)) &&
	       str_print(f->ctl, sizeof f->ctl, "%.*s", STR_ARG(ctl)) &&
	       num_parse_i64(
		       jsn_get_str(jsn_get(labels, DOCKER_LABEL_EPOCH)), 0, INT64_MAX, &f->epoch);
}

static void list_on_read(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker_call *c = arg;
	struct jsn_doc *doc = NULL;
	struct err e;

	if (docker_answer(c, reply, failed, &e) < 0 || jsn_parse(reply->body, &doc, &e) < 0) {
		rtcall_settle(&c->call, &e);
		return;
	}
	size_t n = jsn_count(jsn_root(doc));
	c->call.found = mem_new(n + 1, sizeof *c->call.found);
	for (size_t i = 0; i < n; i++) {
		const struct jsn *item = jsn_at(jsn_root(doc), i);
		if (read_found(item, &c->call.found[c->call.n_found]))
			c->call.n_found++;
		else
			log_warn("a container has our label, and others that are none of ours",
				LOG_STR("container", jsn_get_str(jsn_get(item, "Id"))));
	}
	jsn_doc_free(doc);
	rtcall_settle(&c->call, NULL);
}

/* ---- remove --------------------------------------------------------------------------------- */

static void remove_abandon(struct rtcall *c)
{
	loop_timer_cancel(&((struct ending *)(void *)c)->look);
	docker_call_abandon(c);
}

static void docker_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg)
{
	struct docker *d = docker_of(r);
	struct ending *x = docker_call_new(d, sizeof *x, RTCALL_REMOVE, remove_abandon, arg);

	x->base.call.fn.done = done;
	rtcall_set_ref(&x->base.call, a);
	x->begun = clock_elapsed(&clock_real);
	loop_timer_init(&x->look, d->calls.loop, remove_on_look, x);
	(void)docker_start_cancel(d, a->attempt);
	docker_forget_end(d, a->attempt);
	loop_timer_set(&x->look, 0);
}

static void remove_on_look(void *arg)
{
	struct ending *x = arg;
	struct docker *d = x->base.d;
	char path[DOCKER_PATH_MAX];

	if (rtcall_find(&d->calls, RTCALL_START, x->base.call.attempt) != NULL) {
		loop_timer_set(&x->look, LOOK_MS);
		return;
	}
	docker_send(&x->base,
		&(struct docker_request){ .method = "DELETE",
			.path = docker_path(path, x->base.call.attempt, "?force=1&v=1"),
			.timeout = REMOVE_TIMEOUT },
		remove_on_removed);
}

static void remove_on_removed(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct ending *x = arg;
	struct err e;
	int rc = docker_answer(&x->base, reply, failed, &e);

	/* An earlier call removes it: it is gone when the daemon does not know it any more. */
	if (rc < 0 && e.code == ERR_CONFLICT &&
		clock_elapsed(&clock_real) - x->begun < REMOVE_TIMEOUT) {
		loop_timer_set(&x->look, CONFLICT_MS);
		return;
	}
	if (rc < 0 && e.code == ERR_NOT_FOUND)
		rc = 0;
	if (rc == 0) {
		docker_keep_drop(x->base.d->keep, x->base.call.attempt);
		docker_gc_soon(x->base.d);
		x->base.job = rtjob_new(&x->base.call);
		x->base.job->secrets_dir = x->base.call.ref.secrets_dir;
		rc = rtjob_submit(x->base.job, rtjob_run_remove, remove_on_cleaned, &e);
	}
	if (rc < 0) {
		x->base.job = NULL;
		rtcall_settle(&x->base.call, &e);
	}
}

static void remove_on_cleaned(void *arg)
{
	struct rtjob *j = arg;

	if (j->call != NULL)
		rtcall_settle(j->call, j->rc < 0 ? &j->err : NULL);
	rtjob_drop(j);
}

/* ---- the runtime itself --------------------------------------------------------------------- */

static const char *docker_dir(
	const struct runtime *r, const struct runtime_spec *s, enum runtime_dir d)
{
	const char *const paths[RUNTIME_DIR_COUNT] = { DOCKER_WORK,
		s->in != NULL ? DOCKER_IN : NULL, DOCKER_OUT, DOCKER_SECRETS };

	(void)r;
	return paths[d];
}

static void docker_close(struct runtime *r)
{
	struct docker *d = docker_of(r);

	d->closing = true;
	docker_gc_close(d);
	fetch_client_free(d->http);
	rtcalls_cancel(&d->calls);
	docker_keep_close(d->keep);
	mem_free(d->keep);
	docker_forget_end(d, NULL);
	map_free(d->ends);
	mem_free(d->init);
	mem_free(d->install);
	mem_free(d->network);
	mem_free(d->socket);
	mem_free(d->auth_file);
	mem_free(d);
}

static const struct runtime_ops ops = {
	.name = "docker",
	.probe = docker_probe,
	.start = docker_start,
	.stop = docker_stop,
	.poll = docker_poll,
	.list = docker_list,
	.remove = docker_remove,
	.path = docker_dir,
	.close = docker_close,
};

/* What is put into a filter and a network mode as it is. */
static bool is_plain(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n < RUNTIME_ID_MAX &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

int runtime_docker_new(
	struct loop *l, const struct runtime_docker_config *c, struct runtime **ret, struct err *e)
{
	const char *network = c->network != NULL ? c->network : "bridge";
	const struct fetch_options http = { .base_url = "http://docker",
		.unix_socket = c->socket != NULL ? c->socket : "/var/run/docker.sock",
		.connect_timeout = 2 * INT64_C(1000000) };
	struct docker *d;

	if (!is_plain(c->install) || !is_plain(network))
		return err_set(e, ERR_INVALID,
			"the installation's id and the network must be 1 to %d of "
			"A-Z, a-z, 0-9, _, . and -",
			RUNTIME_ID_MAX - 1);
	if (c->auth_file != NULL && !c->leftover && docker_auth_check(c->auth_file, e) < 0)
		return -1;
	d = mem_new_of(struct docker);
	d->http = fetch_client_new(l, &http, e);
	if (d->http == NULL) {
		mem_free(d);
		return -1;
	}
	d->head.ops = &ops;
	d->ends = map_new();
	d->calls.loop = l;
	d->init = mem_dup(c->init);
	d->install = mem_dup(c->install);
	d->network = mem_dup(network);
	d->socket = mem_dup(http.unix_socket);
	d->auth_file = c->auth_file != NULL ? mem_dup(c->auth_file) : NULL;
	d->host_gateway = c->host_gateway;
	d->rdma = c->rdma;
	d->tmp_max = c->tmp_max;
	d->keep = mem_new_of(struct docker_keep);
	docker_keep_open(d->keep, l, c->images_file, c->attempts);
	docker_gc_open(d, c);
	d->pids_max = c->pids_max > 0 ? c->pids_max : PIDS_MAX;
	d->uid = c->uid != 0 ? c->uid : NOBODY;
	d->gid = c->gid != 0 ? c->gid : NOBODY;
	*ret = &d->head;
	return 0;
}
