#include "lib/loop/loop.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/inside.h"
#include "lib/loop/signal.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdlib.h>

/*
 * Each turn is one event_base_loop(EVLOOP_ONCE), so that the end of a turn is ours: deferred work
 * runs there, and the time since the first callback is what the watchdog looks at. Timers are our
 * own heap behind a single libevent timer, so that struct loop_timer needs no libevent header.
 */

struct loop_fd {
	struct loop *loop;
	struct event read, write;
	loop_fd_cb *fn;
	void *arg;
	int fd, want;
};

struct loop_signal {
	struct loop *loop;
	struct event ev;
	loop_signal_cb *fn;
	void *arg;
};

static void on_library_log(int severity, const char *msg)
{
	if (severity >= EVENT_LOG_WARN)
		log_warn("libevent", LOG_S("detail", msg));
	else
		log_debug("libevent", LOG_S("detail", msg));
}

static void on_library_fatal(int code)
{
	log_error("libevent gave up", LOG_I("code", code));
	abort();
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;

	(void)fd, (void)what;
	l->tick_us = INT64_MAX;
	loop_enter(l);
}

struct loop *loop_new(void)
{
	struct loop *l = mem_new_of(struct loop);
	struct event_config *cfg;

	event_set_log_callback(on_library_log);
	event_set_fatal_callback(on_library_fatal);
	BUG_ON(signal(SIGPIPE, SIG_IGN) == SIG_ERR);
	cfg = event_config_new();
	BUG_ON(cfg == NULL);
	/* One thread uses the base: its locks would only cost. */
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK);
	l->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	BUG_ON(l->base == NULL);
	l->tick = event_new(l->base, -1, 0, on_tick, l);
	BUG_ON(l->tick == NULL);
	l->tick_us = INT64_MAX;
	return l;
}

static void deferred_run(struct loop *l)
{
	struct loop_deferred *queue = l->queue;
	size_t n = l->queued;

	if (n == 0)
		return;
	loop_enter(l);
	l->queue = NULL;
	l->queued = l->queue_cap = 0;
	for (size_t i = 0; i < n; i++)
		queue[i].fn(queue[i].arg);
	mem_free(queue);
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	work_drain(l);
	while (l->queued != 0)
		deferred_run(l);
	timers_done(l);
	event_free(l->tick);
	event_base_free(l->base);
	mem_free(l->queue);
	mem_free(l);
}

void loop_enter(struct loop *l)
{
	if (l->turn_us == 0)
		l->turn_us = clock_elapsed(&clock_real);
}

int64_t loop_now(const struct loop *l)
{
	return l->turn_us != 0 ? l->turn_us : clock_elapsed(&clock_real);
}

void loop_serves_nobody(struct loop *l)
{
	l->serves_nobody = true;
}

uint64_t loop_slow_turns(const struct loop *l)
{
	return l->slow_turns;
}

void loop_step(struct loop *l, bool wait)
{
	int64_t took;

	timers_arm(l);
	event_base_loop(l->base, wait && l->queued == 0 ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
	timers_run(l);
	deferred_run(l);
	if (l->turn_us == 0)
		return;
	took = clock_elapsed(&clock_real) - l->turn_us;
	l->turn_us = 0;
	if (took > LOOP_SLOW_MS * INT64_C(1000)) {
		l->slow_turns++;
		if (!l->serves_nobody)
			log_warn("the loop was blocked", LOG_I("ms", took / 1000));
	}
}

void loop_run(struct loop *l)
{
	l->stop = false;
	while (!l->stop)
		loop_step(l, true);
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}

void loop_defer(struct loop *l, loop_defer_cb *fn, void *arg)
{
	if (l->queued == l->queue_cap) {
		l->queue_cap = l->queue_cap != 0 ? 2 * l->queue_cap : 16;
		l->queue = mem_resize(l->queue, l->queue_cap, sizeof *l->queue);
	}
	l->queue[l->queued++] = (struct loop_deferred){ fn, arg };
}

static void on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct loop_fd *w = arg;
	int is = 0;

	(void)fd;
	loop_enter(w->loop);
	is |= (what & EV_READ) != 0 ? LOOP_READ : 0;
	is |= (what & EV_WRITE) != 0 ? LOOP_WRITE : 0;
	w->fn(w->arg, is);
}

struct loop_fd *loop_fd_new(struct loop *l, int fd, int want, loop_fd_cb *fn, void *arg)
{
	struct loop_fd *w = mem_new_of(struct loop_fd);

	w->loop = l;
	w->fd = fd;
	w->fn = fn;
	w->arg = arg;
	event_assign(&w->read, l->base, fd, EV_READ | EV_PERSIST, on_fd, w);
	event_assign(&w->write, l->base, fd, EV_WRITE | EV_PERSIST, on_fd, w);
	loop_fd_want(w, want);
	return w;
}

/* Reading and writing are two events, so that switching one leaves the other alone. */
static void interest(struct event *ev, bool on)
{
	if (on)
		event_add(ev, NULL);
	else
		event_del(ev);
}

void loop_fd_want(struct loop_fd *w, int want)
{
	int changed = w->want ^ want;

	if ((changed & LOOP_READ) != 0)
		interest(&w->read, (want & LOOP_READ) != 0);
	if ((changed & LOOP_WRITE) != 0)
		interest(&w->write, (want & LOOP_WRITE) != 0);
	w->want = want;
}

void loop_fd_free(struct loop_fd *w)
{
	if (w == NULL)
		return;
	loop_fd_want(w, 0);
	mem_free(w);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct loop_signal *s = arg;

	(void)what;
	loop_enter(s->loop);
	s->fn(s->arg, (int)fd);
}

struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_signal_cb *fn, void *arg)
{
	struct loop_signal *s = mem_new_of(struct loop_signal);

	s->loop = l;
	s->fn = fn;
	s->arg = arg;
	event_assign(&s->ev, l->base, signo, EV_SIGNAL | EV_PERSIST, on_signal, s);
	event_add(&s->ev, NULL);
	return s;
}

void loop_signal_free(struct loop_signal *s)
{
	if (s == NULL)
		return;
	event_del(&s->ev);
	mem_free(s);
}
