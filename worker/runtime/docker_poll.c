/*
 * Poll: what has become of a container. The init's word is enough, and the daemon is not asked,
 * unless somebody else may have had a hand in the end: the init is gone without a last word, it
 * was told to end and not by us, or SIGKILL was involved. Then the daemon tells what it knows: of
 * the kernel's killing for memory, of its own restart, of others who asked it to kill. Its times
 * are compared with its own only, and how long we wait is counted on a clock that nobody sets.
 */
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "worker/runtime/docker.h"

#include <signal.h>

/* A daemon waits so long for its containers: their StopTimeout and 5 s, and a little. */
#define DAEMON_ENDING (35 * CLOCK_SECOND)
#define NOTED_AFTER   (2 * CLOCK_SECOND)

struct poll {
	struct docker_call base;
	bool had_ended; /* by the init's word, before the daemon was asked */
	int64_t finished, now; /* by the daemon's clock; 0: not known */
	char id[80];
};

static void poll_on_inspected(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void poll_on_info(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void poll_on_network(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void poll_ask_events(struct poll *p);
static void poll_on_events(void *arg, const struct fetch_reply *reply, const struct err *failed);

/* An end that could be the kernel's doing; the init may not see the evidence. */
static bool may_be_oom(const struct runtime_status *s)
{
	return s->end != RUNTIME_END_OOM && !s->stopped && !s->deadman &&
	       (s->signo == SIGKILL || s->code == 128 + SIGKILL);
}

/* An end that needs no explanation. */
static bool is_plain(const struct runtime_status *s)
{
	return !s->outside && !may_be_oom(s);
}

void docker_poll(struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg)
{
	struct docker *d = (struct docker *)(void *)r;
	struct poll *p = docker_call_new(d, sizeof *p, RTCALL_POLL, docker_call_abandon, arg);
	struct runtime_status *s = &p->base.call.status;
	char path[DOCKER_PATH_MAX];
	struct err e;

	p->base.call.fn.status = done;
	rtcall_set_ref(&p->base.call, a);
	/* Held first: an init that ends in between has written its last word by then. */
	bool alive =
		control_held(a->ctl) || rtcall_find(&d->calls, RTCALL_START, a->attempt) != NULL;
	if (control_read(a->ctl, s, NULL, &e) < 0) {
		rtcall_settle(&p->base.call, &e);
		return;
	}
	if (control_past_start(s))
		control_forget_env(a->secrets_dir);
	if (s->state == RUNTIME_ENDED ? is_plain(s) : alive || s->state == RUNTIME_GONE) {
		rtcall_settle(&p->base.call, NULL);
		return;
	}
	docker_send(&p->base,
		&(struct docker_request){
			.path = docker_path(path, a->attempt, "/json"), .timeout = DOCKER_SHORT },
		poll_on_inspected);
}

/* What the daemon says of a container whose init has not had its last word. */
static void judge(struct runtime_status *s, const struct jsn *state)
{
	struct str word = jsn_get_str(jsn_get(state, "Status"));
	int64_t code = jsn_get_int(jsn_get(state, "ExitCode"), -1);
	struct str error = jsn_get_str(jsn_get(state, "Error"));
	char why[256];

	if (str_is(word, "created") || str_is(word, "running") || str_is(word, "paused") ||
		str_is(word, "configured") || str_is(word, "initialized")) {
		s->state = s->state == RUNTIME_GONE ? RUNTIME_PREPARING : s->state;
		return;
	}
	(void)str_print(why, sizeof why, "the container ended with %lld without a last word%s%.*s",
		(long long)code, error.n != 0 ? ": " : "", STR_ARG(error));
	control_lost(s, why);
}

static void lost_container(struct poll *p)
{
	struct runtime_status *s = &p->base.call.status;
	bool ours = control_asked(p->base.call.ref.ctl);

	control_lost(s, ours ? "its container is gone"
			     : "its container is gone: somebody else has removed it");
	s->killer = ours ? RUNTIME_KILLER_US : RUNTIME_KILLER_CLIENT;
}

static void poll_failed(struct poll *p, const struct err *e)
{
	struct runtime_status *s = &p->base.call.status;

	if (p->had_ended && (!s->outside || e->code == ERR_NETWORK)) {
		/* The init's word is enough; the daemon only knew more about it. One that is away
		 * when its containers are asked to end, and not by us, is ending itself. */
		if (s->outside)
			s->killer = RUNTIME_KILLER_DAEMON;
		rtcall_settle(&p->base.call, NULL);
	} else if (e->code == ERR_NOT_FOUND) {
		if (s->state == RUNTIME_PREPARING)
			s->state = RUNTIME_GONE; /* it was never made */
		else
			lost_container(p);
		rtcall_settle(&p->base.call, NULL);
	} else {
		rtcall_settle(&p->base.call, e);
	}
}

static int64_t time_of(const struct jsn *v)
{
	int64_t us;

	return clock_parse(jsn_get_str(v), &us) && us > 0 ? us : 0;
}

/* True when it is clear what has happened; else the daemon's history is to be looked at. */
static bool weigh(struct poll *p, const struct jsn *state)
{
	struct runtime_status *s = &p->base.call.status;

	if (s->state != RUNTIME_ENDED)
		judge(s, state);
	if (s->state != RUNTIME_ENDED)
		return true;
	if (jsn_get_bool(jsn_get(state, "Running"), false)) {
		/* Its init has just had its last word: the daemon hears of the end, and of what the
		 * kernel did, a moment later. */
		s->state = RUNTIME_RUNNING;
		s->end = RUNTIME_END_NONE;
		return true;
	}
	if (jsn_get_bool(jsn_get(state, "OOMKilled"), false) &&
		(s->end == RUNTIME_END_LOST || may_be_oom(s))) {
		s->end = RUNTIME_END_OOM;
		s->killer = RUNTIME_KILLER_KERNEL;
		return true;
	}
	if (s->end == RUNTIME_END_LOST && control_asked(p->base.call.ref.ctl)) {
		s->killer = RUNTIME_KILLER_US;
		return true;
	}
	return s->end != RUNTIME_END_LOST && !s->outside;
}

static void poll_on_inspected(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct poll *p = arg;
	struct runtime_status *s = &p->base.call.status;
	struct jsn_doc *doc = NULL;
	struct err e;
	int rc = docker_answer(&p->base, reply, failed, &e);

	p->had_ended = s->state == RUNTIME_ENDED;
	if (rc == 0)
		rc = jsn_parse(reply->body, &doc, &e);
	if (rc < 0) {
		poll_failed(p, &e);
		return;
	}
	const struct jsn *state = jsn_get(jsn_root(doc), "State");
	/* Between the first look and the daemon's answer it may have ended in good order. */
	if (!p->had_ended && control_read(p->base.call.ref.ctl, s, NULL, &e) < 0) {
		jsn_doc_free(doc);
		rtcall_settle(&p->base.call, &e);
		return;
	}
	bool clear = weigh(p, state);
	p->finished = time_of(jsn_get(state, "FinishedAt"));
	(void)str_print(
		p->id, sizeof p->id, "%.*s", STR_ARG(jsn_get_str(jsn_get(jsn_root(doc), "Id"))));
	jsn_doc_free(doc);
	if (clear)
		rtcall_settle(&p->base.call, NULL);
	else
		docker_send(&p->base,
			&(struct docker_request){ .path = "/info", .timeout = DOCKER_SHORT },
			poll_on_info);
}

/* ---- the daemon's restart ------------------------------------------------------------------- */

/* The default network is made anew when a daemon begins; nothing else says since when it serves. */
static void poll_on_info(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct poll *p = arg;
	struct jsn_doc *doc = NULL;
	struct err e;

	if (docker_answer(&p->base, reply, failed, &e) < 0 ||
		jsn_parse(reply->body, &doc, &e) < 0) {
		poll_failed(p, &e);
		return;
	}
	docker_read_info(p->base.d, jsn_root(doc));
	p->now = time_of(jsn_get(jsn_root(doc), "SystemTime"));
	jsn_doc_free(doc);
	if (p->base.d->live_restore)
		poll_ask_events(p);
	else
		docker_send(&p->base,
			&(struct docker_request){
				.path = "/networks/bridge", .timeout = DOCKER_SHORT },
			poll_on_network);
}

static void poll_on_network(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct poll *p = arg;
	struct runtime_status *s = &p->base.call.status;
	struct jsn_doc *doc = NULL;
	int64_t serving = 0;
	struct err e;
	int rc = docker_answer(&p->base, reply, failed, &e);

	if (rc < 0 && e.code != ERR_NOT_FOUND) { /* Podman has no such network, and no daemon */
		poll_failed(p, &e);
		return;
	}
	if (rc == 0 && jsn_parse(reply->body, &doc, &e) == 0) {
		serving = time_of(jsn_get(jsn_root(doc), "Created"));
		jsn_doc_free(doc);
	}
	if (serving != 0 && p->finished != 0 && p->finished <= serving) {
		s->killer = RUNTIME_KILLER_DAEMON;
		rtcall_settle(&p->base.call, NULL);
		return;
	}
	poll_ask_events(p);
}

/* ---- who asked the daemon ------------------------------------------------------------------- */

void docker_forget_end(struct docker *d, const char *attempt)
{
	struct str key;
	void *seen;

	if (attempt != NULL) {
		mem_free(map_remove(d->ends, str_c(attempt)));
		return;
	}
	for (size_t at = 0; map_next(d->ends, &at, &key, &seen);)
		mem_free(seen);
}

/* How long we have known of this end. */
static int64_t known_for(const struct poll *p)
{
	struct str attempt = str_c(p->base.call.attempt);
	int64_t now = clock_elapsed(&clock_real), *seen = map_get(p->base.d->ends, attempt);

	if (seen == NULL) {
		seen = mem_new_of(int64_t);
		*seen = now;
		(void)map_put(p->base.d->ends, attempt, seen);
	}
	return now - *seen;
}

/* Not yet: it is looked at again. */
static void poll_again(struct poll *p)
{
	p->base.call.status.state = RUNTIME_RUNNING;
	p->base.call.status.end = RUNTIME_END_NONE;
	rtcall_settle(&p->base.call, NULL);
}

/* Not by us, and nobody can say any more by whom. */
static void poll_unexplained(struct poll *p)
{
	docker_forget_end(p->base.d, p->base.call.attempt);
	p->base.call.status.outside = true;
	rtcall_settle(&p->base.call, NULL);
}

static void poll_ask_events(struct poll *p)
{
	int64_t now = p->now != 0 ? p->now : clock_now(&clock_real);
	char path[DOCKER_PATH_MAX];

	/* Podman has no word of who asked for what; and a daemon whose clock was set back since
	 * then shows what it has noted only when that time has come again. */
	if (p->base.d->podman || p->finished > now + NOTED_AFTER) {
		poll_unexplained(p);
		return;
	}
	/* {"container":["ID"]} */
	(void)str_print(path, sizeof path,
		"/events?since=1&until=%lld.%06lld&filters=%%7B%%22container%%22%%3A%%5B%%22%s"
		"%%22%%5D%%7D",
		(long long)(now / CLOCK_SECOND), (long long)(now % CLOCK_SECOND), p->id);
	docker_send(&p->base, &(struct docker_request){ .path = path, .timeout = DOCKER_SHORT },
		poll_on_events);
}

struct history {
	int64_t signo; /* what the daemon was asked to send, the last one; 0: nothing */
	bool polite; /* it began with TERM, as docker stop does, and the daemon itself when it ends
		      */
	bool whole; /* up to the end of the container: a daemon keeps its last 256 events only */
};

static struct history read_history(struct str events)
{
	struct history h = { 0 };
	struct str line;

	while (str_next(&events, '\n', &line)) {
		struct jsn_doc *doc;
		struct err e;
		if (jsn_parse(str_trim(line), &doc, &e) < 0)
			continue;
		struct str action = jsn_get_str(jsn_get(jsn_root(doc), "Action"));
		struct str text = jsn_get_str(jsn_find(jsn_root(doc), "/Actor/Attributes/signal"));
		if (str_is(action, "kill") && !num_parse_i64(text, 1, 64, &h.signo))
			h.signo = SIGKILL;
		h.polite = h.polite || h.signo == SIGTERM;
		h.whole = h.whole || str_is(action, "die");
		jsn_doc_free(doc);
	}
	return h;
}

/* A daemon that is ending still answers while its containers end;
 * whether it was that is known when it is gone, or still there after the time that it takes. And
 * what it was asked to do it notes a moment after it has done it. */
static bool is_early(const struct poll *p, const struct history *h)
{
	int64_t since = known_for(p);

	return (h->polite && !p->base.d->live_restore && since < DAEMON_ENDING) ||
	       (h->signo == 0 && since < NOTED_AFTER);
}

static void poll_on_events(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct poll *p = arg;
	struct runtime_status *s = &p->base.call.status;
	struct err e;

	if (docker_answer(&p->base, reply, failed, &e) < 0) {
		poll_failed(p, &e);
		return;
	}
	const struct history h = read_history(reply->body);
	if (is_early(p, &h)) {
		poll_again(p);
	} else if (h.signo == 0 && !h.whole) {
		poll_unexplained(p);
	} else {
		docker_forget_end(p->base.d, p->base.call.attempt);
		s->killer_signo = (int)h.signo;
		s->killer = h.signo != 0 ? RUNTIME_KILLER_CLIENT : RUNTIME_KILLER_HOST;
		rtcall_settle(&p->base.call, NULL);
	}
}
