/*
 * tidemill-init: PID 1 of a container, or the process in front of a `process` step. It starts one
 * command, keeps all that the command writes, and writes down how it ended. It needs neither the
 * worker nor dockerd for that, and both find what they need in the control folder (ctl.h).
 *
 * One poll loop over the signals and the two pipes; no threads. It ends when the command has ended
 * and both pipes are at their end, or DRAIN after the command, when it kills whatever still holds
 * them.
 */
#include "worker/init/child.h"
#include "worker/init/ctl.h"
#include "worker/init/deadman.h"
#include "worker/init/file.h"
#include "worker/init/spool.h"
#include "worker/init/status.h"
#include "worker/init/taken.h"
#include "worker/init/tick.h"
#include "worker/init/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAIN        (2 * TICK_SECOND)
#define BARRIER_LOOK (20 * INT64_C(1000))

enum { STATUS_TRIES = 30, USAGE_PART = 50 /* one of so many */ };

struct init {
	struct options opt;
	int ctl, lock, signals;
	struct deadman deadman;
	struct child child;
	struct status status;
	struct taken taken, *told; /* told: as others find it (taken.h) */
	bool ended; /* the command has been reaped */
	int64_t kill_at; /* when what was asked to end is killed; 0: never */
	int64_t usage_at; /* when to look at what the command uses; 0: never */
	int64_t drain_until; /* when the pipes are given up; 0: the command runs */
};

static struct spool spool;

static bool complain(const char *what)
{
	(void)dprintf(STDERR_FILENO, "tidemill-init: %s: %s\n", what, strerror(errno));
	return false;
}

static void catch_signals(struct init *i)
{
	static const int caught[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGCHLD };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t n = 0; n < sizeof caught / sizeof caught[0]; n++)
		(void)sigaddset(&set, caught[n]);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	i->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* stdin, stdout and stderr of our own. */
static bool move_in(struct init *i)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log = file_make(i->ctl, CTL_LOG, O_APPEND);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
		dup2(log >= 0 ? log : null, STDERR_FILENO) < 0)
		return complain("/dev/null");
	(void)close(null);
	if (log >= 0)
		(void)close(log);
	return true;
}

/* Held by the open file, so that a reader can ask about it without taking it (F_OFD_GETLK). */
static bool take_lock(struct init *i)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	i->lock = file_make(i->ctl, CTL_LOCK, 0);
	return i->lock >= 0 && fcntl(i->lock, F_OFD_SETLK, &whole) == 0;
}

static bool settle(struct init *i)
{
	(void)close_range(3, ~0U, 0);
	(void)setsid();
	(void)umask(027);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return complain("become subreaper");
	i->ctl = open(i->opt.ctl, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (i->ctl < 0)
		return complain(i->opt.ctl);
	if (!take_lock(i))
		return complain(CTL_LOCK);
	catch_signals(i);
	if (i->signals < 0)
		return complain("signalfd");
	if (spool_open(&spool, i->ctl, i->opt.rank, i->opt.max_log) < 0)
		return complain(CTL_SPOOL);
	i->told = taken_open(i->ctl);
	deadman_init(&i->deadman, i->ctl, i->opt.deadman_us);
	return move_in(i);
}

/* The next signal that waits, or 0. */
static int next_signal(const struct init *i)
{
	struct signalfd_siginfo info;

	return read(i->signals, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

static void ask_to_end(struct init *i, const char *reason)
{
	i->status.reason = i->status.reason != NULL ? i->status.reason : reason;
	(void)kill(-i->child.pid, SIGTERM);
	(void)kill(-i->child.pid, SIGCONT);
	if (i->kill_at == 0)
		i->kill_at = tick_elapsed() + i->opt.grace_us;
}

/* The calendar may be set meanwhile: the command took what has elapsed. */
static int64_t calendar_now(const struct init *i)
{
	if (i->status.started_us == 0)
		return tick_real();
	return i->status.started_us + tick_elapsed() - i->status.started_elapsed;
}

static void reap(struct init *i)
{
	int st;
	pid_t pid;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
		if (pid != i->child.pid || i->ended)
			continue;
		i->ended = true;
		i->drain_until = tick_elapsed() + DRAIN;
		i->status.ended_us = calendar_now(i);
		i->status.state = WIFEXITED(st) ? STATUS_EXITED : STATUS_SIGNALED;
		i->status.code = WIFEXITED(st) ? WEXITSTATUS(st) : WTERMSIG(st);
	}
}

static void on_signal(struct init *i, int sig)
{
	reap(i); /* a command that has ended before it was asked to is not one that was stopped */
	if (i->ended) {
		if (sig == SIGTERM || sig == SIGQUIT)
			i->drain_until = tick_elapsed();
		return;
	}
	if (sig == SIGTERM) {
		ask_to_end(i, "stopped");
	} else if (sig == SIGQUIT) {
		i->status.reason = i->status.reason != NULL ? i->status.reason : "stopped";
		(void)kill(-i->child.pid, SIGKILL);
	} else {
		(void)kill(-i->child.pid, sig);
	}
}

/* One piece of one pipe. */
static void take_output(struct init *i, int *fd, enum frame_stream stream)
{
	ssize_t got = spool_read(&spool, *fd, stream);

	if (got > 0) {
		*(stream == FRAME_STDOUT ? &i->taken.out : &i->taken.err) += (uint64_t)got;
		*i->told = i->taken;
	}
	if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
		(void)close(*fd);
		*fd = -1;
	}
}

/* Milliseconds until the earliest of the times that are not 0; -1 when there is none. */
static int until(const int64_t *due, size_t n)
{
	int64_t first = 0, left;

	for (size_t k = 0; k < n; k++)
		if (due[k] != 0 && (first == 0 || due[k] < first))
			first = due[k];
	if (first == 0)
		return -1;
	left = (first - tick_elapsed() + 999) / 1000;
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Without a cgroup every process of the host is looked at: USAGE_PART of a processor at most. */
static void look_at_usage(struct init *i)
{
	int64_t before = tick_of(CLOCK_PROCESS_CPUTIME_ID), rest;

	usage_write(i->ctl, calendar_now(i), false);
	rest = (tick_of(CLOCK_PROCESS_CPUTIME_ID) - before) * USAGE_PART;
	i->usage_at = tick_elapsed() + (rest > i->opt.usage_us ? rest : i->opt.usage_us);
}

static void on_time(struct init *i)
{
	int64_t now = tick_elapsed();

	if (spool.due != 0 && now >= spool.due)
		spool_flush(&spool);
	if (i->usage_at != 0 && now >= i->usage_at && !i->ended)
		look_at_usage(i);
	if (i->ended) {
		if (now < i->drain_until)
			return;
		child_kill_all();
		/* What is left in the pipes is taken; a holder that cannot be killed is not
		 * waited for. */
		if (now >= i->drain_until + TICK_SECOND) {
			(void)close(i->child.out);
			(void)close(i->child.err);
			i->child.out = i->child.err = -1;
		}
		return;
	}
	if (i->kill_at != 0 && now >= i->kill_at) {
		(void)kill(-i->child.pid, SIGKILL);
		i->kill_at = now + TICK_SECOND;
	}
	if (i->status.reason == NULL && deadman_expired(&i->deadman))
		ask_to_end(i, "deadman");
}

static void turn(struct init *i)
{
	struct pollfd p[3] = {
		{ .fd = i->signals, .events = POLLIN },
		{ .fd = i->child.out, .events = POLLIN },
		{ .fd = i->child.err, .events = POLLIN },
	};
	/* After the drain time every turn looks again, in steps of a moment. */
	int64_t now = tick_elapsed();
	int64_t drain =
		i->drain_until != 0 && now >= i->drain_until ? now + BARRIER_LOOK : i->drain_until;
	const int64_t due[] = { spool.due, drain, i->ended ? 0 : i->kill_at,
		i->ended ? 0 : i->usage_at,
		i->ended || i->status.reason != NULL ? 0 : deadman_due(&i->deadman) };

	if (poll(p, 3, until(due, sizeof due / sizeof due[0])) < 0 && errno != EINTR)
		(void)complain("poll");
	if (p[1].revents != 0)
		take_output(i, &i->child.out, FRAME_STDOUT);
	if (p[2].revents != 0)
		take_output(i, &i->child.err, FRAME_STDERR);
	for (int sig; (sig = next_signal(i)) != 0;)
		if (sig == SIGCHLD)
			reap(i);
		else
			on_signal(i, sig);
	on_time(i);
}

/* Waits for the worker's word. False when the command is not to be started. */
static bool pass_barrier(struct init *i)
{
	i->status.state = STATUS_WAITING;
	if (status_write(i->ctl, &i->status, false) < 0)
		(void)complain(CTL_STATUS);
	while (faccessat(i->ctl, CTL_GO, F_OK, 0) < 0) {
		struct pollfd p = { .fd = i->signals, .events = POLLIN };

		(void)poll(&p, 1, (int)(BARRIER_LOOK / 1000));
		for (int sig; (sig = next_signal(i)) != 0;)
			if (sig == SIGTERM || sig == SIGINT || sig == SIGQUIT)
				i->status.reason = "stopped";
		if (i->status.reason == NULL && deadman_expired(&i->deadman))
			i->status.reason = "deadman";
		if (i->status.reason != NULL)
			return false;
	}
	return true;
}

/* Between the worker's decision to start us and this moment much time may have passed. */
static bool is_wanted(struct init *i)
{
	if (deadman_expired(&i->deadman))
		i->status.reason = "deadman";
	return i->status.reason == NULL;
}

/* Starts the command; the exit code when it does not run, else -1. */
static int start(struct init *i)
{
	struct child_failure failure;

	if (i->opt.barrier ? !pass_barrier(i) : !is_wanted(i)) {
		i->status.state = STATUS_NOT_STARTED;
		return 128 + SIGTERM;
	}
	if (child_start(&i->opt, &i->child, &failure) < 0) {
		i->status.state = STATUS_NOT_STARTED;
		i->status.error = failure.error;
		i->status.error_at = failure.at;
		i->status.program = failure.program;
		return failure.not_found ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_RUN;
	}
	i->status.state = STATUS_RUNNING;
	i->status.pid = i->child.pid;
	i->status.started_us = tick_real();
	i->status.started_elapsed = tick_elapsed();
	if (i->opt.usage_us != 0) /* something of a short one, too */
		i->usage_at = tick_elapsed() + TICK_SECOND;
	if (status_write(i->ctl, &i->status, false) < 0)
		(void)complain(CTL_STATUS);
	return -1;
}

static void write_last_status(struct init *i)
{
	if (i->status.ended_us == 0)
		i->status.ended_us = calendar_now(i);
	spool_close(&spool);
	(void)getrusage(RUSAGE_CHILDREN, &i->status.usage);
	i->status.spool_bytes = spool.length;
	i->status.dropped_bytes = spool.dropped;
	i->status.lost_bytes = spool.lost;
	i->status.stdout_bytes = i->taken.out;
	i->status.stderr_bytes = i->taken.err;
	if (i->usage_at != 0)
		usage_write(i->ctl, calendar_now(i), true);
	for (int tries = 0; status_write(i->ctl, &i->status, true) < 0; tries++) {
		(void)complain(CTL_STATUS);
		if (tries == STATUS_TRIES)
			break;
		(void)poll(NULL, 0, 1000);
	}
}

int main(int argc, char **argv)
{
	static struct init i = { .child = { 0, -1, -1 } };
	int code;

	if (!options_parse(&i.opt, argc, argv) || !settle(&i))
		return CTL_EXIT_INIT;
	code = start(&i);
	if (code < 0) {
		while (!i.ended || i.child.out >= 0 || i.child.err >= 0)
			turn(&i);
		child_kill_all();
		code = i.status.state == STATUS_EXITED ? i.status.code : 128 + i.status.code;
	}
	write_last_status(&i);
	return code;
}
