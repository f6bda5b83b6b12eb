#include "lib/loop/child.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/loop/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The parent is told about a failed exec through a pipe that exec closes. Between fork and exec
 * only system calls are made, since other threads may have held locks. The exit is seen through a
 * pidfd, and the child is reaped only when its pipes are closed: until then its number, and so the
 * number of its group, cannot be used again, and a late kill cannot hit a stranger.
 */

enum { READ_BYTES = 65536 };

struct stream {
	struct loop_child *child;
	struct loop_fd *watch;
	int fd;
	loop_child_out_cb *fn;
};

struct loop_child {
	struct loop *loop;
	pid_t pid;
	int pidfd, stdin_fd;
	struct loop_fd *pid_watch, *stdin_watch;
	struct stream out[2]; /* stdout, stderr */
	struct buf input;
	size_t sent;
	bool keep_stdin, exited, over;
	struct loop_timer deadline;
	struct loop_child_exit x;
	loop_child_done_cb *on_done;
	void *arg;
};

/* Our ends and the child's ends of its three descriptors; -1: none. */
struct ends {
	int ours[3], theirs[3], status[2];
};

static void child_check(struct loop_child *c);

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void ends_close(struct ends *p)
{
	for (int i = 0; i < 3; i++) {
		close_fd(&p->ours[i]);
		close_fd(&p->theirs[i]);
	}
	close_fd(&p->status[0]);
	close_fd(&p->status[1]);
}

/* The child's end is kept above the standard three, so that dup2 never overwrites one of them. */
static int above_standard(int fd)
{
	int high;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return high;
}

/* One of the three: as given, a pipe, or /dev/null. */
static int end_open(struct ends *p, int i, int given, bool piped)
{
	int fd[2] = { -1, -1 };

	if (given > 0) {
		p->theirs[i] = fcntl(given, F_DUPFD_CLOEXEC, 3);
	} else if (!piped) {
		p->theirs[i] = above_standard(open("/dev/null", O_RDWR | O_CLOEXEC));
	} else {
		if (pipe2(fd, O_CLOEXEC) < 0)
			return -1;
		p->ours[i] = i == 0 ? fd[1] : fd[0];
		p->theirs[i] = above_standard(i == 0 ? fd[0] : fd[1]);
		if (fcntl(p->ours[i], F_SETFL, O_NONBLOCK) < 0)
			return -1;
	}
	return p->theirs[i] < 0 ? -1 : 0;
}

static int ends_open(struct ends *p, const struct loop_child_spec *s, struct err *e)
{
	const int given[3] = { 0, s->stdout_fd, s->stderr_fd };
	const bool piped[3] = { s->keep_stdin || s->input.n != 0, s->on_stdout != NULL,
		s->on_stderr != NULL };

	if (pipe2(p->status, O_CLOEXEC) < 0)
		return err_errno(e, "make", "a pipe");
	p->status[1] = above_standard(p->status[1]);
	for (int i = 0; i < 3; i++)
		if (end_open(p, i, given[i], piped[i]) < 0)
			return err_errno(e, "open", "a standard descriptor");
	return 0;
}

static bool limit(int resource, uint64_t max)
{
	struct rlimit r = { .rlim_cur = max, .rlim_max = max };

	return max == 0 || setrlimit((__rlimit_resource_t)resource, &r) == 0;
}

static bool child_become(const struct loop_child_spec *s)
{
	if (s->nice != 0 && setpriority(PRIO_PROCESS, 0, s->nice) < 0)
		return false;
	if (!limit(RLIMIT_CPU, s->max_cpu_s) || !limit(RLIMIT_AS, s->max_memory) ||
		!limit(RLIMIT_FSIZE, s->max_file) || !limit(RLIMIT_NOFILE, s->max_files) ||
		!limit(RLIMIT_NPROC, s->max_procs))
		return false;
	if (s->as_user && (setgroups(0, NULL) < 0 || setresgid(s->gid, s->gid, s->gid) < 0 ||
				  setresuid(s->uid, s->uid, s->uid) < 0))
		return false;
	return s->dir == NULL || chdir(s->dir) == 0;
}

static bool child_prepare(const struct loop_child_spec *s, const struct ends *p)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	setsid();
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < 3; i++)
		if (dup2(p->theirs[i], i) < 0)
			return false;
	/* What we opened is close-on-exec anyway; what a library forgot goes here. */
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	return child_become(s);
}

static _Noreturn void child_main(const struct loop_child_spec *s, const struct ends *p)
{
	static char *const no_env[] = { NULL };
	/* exec does not change what it is given: its prototype only says so for old callers. */
	union {
		const char *const *in;
		char *const *out;
	} argv = { .in = s->argv }, env = { .in = s->env };
	int error;

	if (child_prepare(s, p))
		execve(s->argv[0], argv.out, s->env != NULL ? env.out : no_env);
	error = errno;
	if (write(p->status[1], &error, sizeof error) < 0)
		_exit(126);
	_exit(127);
}

static void on_output(void *arg, int what)
{
	struct stream *o = arg;
	struct loop_child *c = o->child;
	char bytes[READ_BYTES / 8];
	/* The bound gives the others their turn. */
	for (int i = 0; i < 8; i++) {
		ssize_t n = read(o->fd, bytes, sizeof bytes);

		(void)what;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			loop_fd_free(o->watch);
			o->watch = NULL;
			close_fd(&o->fd);
			child_check(c);
			return;
		}
		o->fn(c->arg, (struct str){ bytes, (size_t)n });
		/* Paused or let go of in there. */
		if (c->over || (size_t)n < sizeof bytes)
			return;
	}
}

static void stdin_close(struct loop_child *c)
{
	loop_fd_free(c->stdin_watch);
	c->stdin_watch = NULL;
	close_fd(&c->stdin_fd);
}

static void on_stdin(void *arg, int what)
{
	struct loop_child *c = arg;
	ssize_t n;

	(void)what;
	if (c->sent < c->input.n) {
		n = write(c->stdin_fd, c->input.p + c->sent, c->input.n - c->sent);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			stdin_close(c); /* the child does not want it: not our error */
			return;
		}
		c->sent += n > 0 ? (size_t)n : 0;
	}
	if (c->sent < c->input.n)
		return;
	buf_clear(&c->input);
	c->sent = 0;
	if (c->keep_stdin)
		loop_fd_want(c->stdin_watch, 0);
	else
		stdin_close(c);
}

static void on_exit_seen(void *arg, int what)
{
	struct loop_child *c = arg;

	(void)what;
	c->exited = true;
	loop_fd_free(c->pid_watch);
	c->pid_watch = NULL;
	child_check(c);
}

static void on_deadline(void *arg)
{
	struct loop_child *c = arg;

	if (!c->x.timed_out) {
		c->x.timed_out = true;
		loop_child_kill(c, SIGKILL);
		loop_timer_set(&c->deadline, CHILD_LINGER_MS);
		return;
	}
	/* Someone outside the group holds a pipe: what they write is no longer ours. */
	for (int i = 0; i < 2; i++) {
		loop_fd_free(c->out[i].watch);
		c->out[i].watch = NULL;
		close_fd(&c->out[i].fd);
	}
	child_check(c);
}

static void child_free(void *arg)
{
	struct loop_child *c = arg;

	buf_done(&c->input);
	mem_free(c);
}

static void child_let_go(struct loop_child *c)
{
	c->over = true;
	loop_timer_cancel(&c->deadline);
	stdin_close(c);
	loop_fd_free(c->pid_watch);
	c->pid_watch = NULL;
	for (int i = 0; i < 2; i++) {
		loop_fd_free(c->out[i].watch);
		c->out[i].watch = NULL;
		close_fd(&c->out[i].fd);
	}
	close_fd(&c->pidfd);
	loop_defer(c->loop, child_free, c);
}

static void child_check(struct loop_child *c)
{
	struct rusage used;
	int status = 0;

	if (c->over || !c->exited || c->out[0].fd >= 0 || c->out[1].fd >= 0)
		return;
	if (wait4(c->pid, &status, 0, &used) == c->pid) {
		c->x.cpu_us = ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
			      used.ru_utime.tv_usec + used.ru_stime.tv_usec;
		c->x.max_rss_bytes = (int64_t)used.ru_maxrss * 1024;
	}
	c->x.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	c->x.signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	child_let_go(c);
	c->on_done(c->arg, &c->x);
}

static void child_watch(struct loop_child *c, const struct loop_child_spec *s, struct ends *p)
{
	loop_child_out_cb *const fn[2] = { s->on_stdout, s->on_stderr };

	c->stdin_fd = p->ours[0];
	if (c->stdin_fd >= 0)
		c->stdin_watch = loop_fd_new(c->loop, c->stdin_fd,
			s->input.n != 0 || !s->keep_stdin ? LOOP_WRITE : 0, on_stdin, c);
	for (int i = 0; i < 2; i++) {
		c->out[i] = (struct stream){ .child = c, .fd = p->ours[i + 1], .fn = fn[i] };
		if (c->out[i].fd >= 0)
			c->out[i].watch = loop_fd_new(
				c->loop, c->out[i].fd, LOOP_READ, on_output, &c->out[i]);
	}
	c->pid_watch = loop_fd_new(c->loop, c->pidfd, LOOP_READ, on_exit_seen, c);
	loop_timer_init(&c->deadline, c->loop, on_deadline, c);
	if (s->deadline_ms > 0)
		loop_timer_set(&c->deadline, s->deadline_ms);
	for (int i = 0; i < 3; i++)
		p->ours[i] = -1; /* now the child's */
}

/* Forks with all signals blocked, so that no handler of ours runs in the child. */
static pid_t fork_child(const struct loop_child_spec *s, const struct ends *p)
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0)
		child_main(s, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static int start(struct ends *p, const struct loop_child_spec *s, pid_t *ret_pid, struct err *e)
{
	int error = 0;
	ssize_t n;
	pid_t pid;

	if (ends_open(p, s, e) < 0)
		return -1;
	pid = fork_child(s, p);
	if (pid < 0)
		return err_errno(e, "start", s->argv[0]);
	close_fd(&p->status[1]);
	do
		n = read(p->status[0], &error, sizeof error);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof error) {
		waitpid(pid, NULL, 0);
		errno = error;
		return err_errno(e, "start", s->argv[0]);
	}
	*ret_pid = pid;
	return 0;
}

struct loop_child *loop_child_spawn(struct loop *l, const struct loop_child_spec *s, struct err *e)
{
	struct ends p = { { -1, -1, -1 }, { -1, -1, -1 }, { -1, -1 } };
	struct loop_child *c;
	pid_t pid = 0;
	int pidfd = -1;

	BUG_ON(s->input.n > CHILD_INPUT_MAX || s->on_done == NULL);
	if (start(&p, s, &pid, e) < 0)
		goto fail;
	pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		err_errno(e, "watch", s->argv[0]);
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
		goto fail;
	}
	c = mem_new_of(struct loop_child);
	c->loop = l;
	c->pid = pid;
	c->pidfd = pidfd;
	c->on_done = s->on_done;
	c->arg = s->arg;
	c->keep_stdin = s->keep_stdin;
	buf_init(&c->input, CHILD_INPUT_MAX);
	buf_add(&c->input, s->input);
	child_watch(c, s, &p);
	ends_close(&p);
	return c;
fail:
	ends_close(&p);
	return NULL;
}

pid_t loop_child_pid(const struct loop_child *c)
{
	return c->pid;
}

void loop_child_kill(struct loop_child *c, int signo)
{
	if (!c->over)
		kill(-c->pid, signo);
}

void loop_child_signal(struct loop_child *c, int signo)
{
	if (!c->over)
		kill(c->pid, signo);
}

int loop_child_write(struct loop_child *c, struct str bytes, struct err *e)
{
	if (c->stdin_fd < 0 || !c->keep_stdin)
		return err_set(e, ERR_GONE, "the process does not read any more");
	if (c->sent != 0) {
		buf_drop_front(&c->input, c->sent);
		c->sent = 0;
	}
	if (bytes.n > CHILD_INPUT_MAX - c->input.n)
		return err_set(e, ERR_TOO_LARGE,
			"the process has %zu bytes of input waiting; the limit is %d", c->input.n,
			CHILD_INPUT_MAX);
	buf_add(&c->input, bytes);
	loop_fd_want(c->stdin_watch, LOOP_WRITE);
	return 0;
}

void loop_child_close_stdin(struct loop_child *c)
{
	c->keep_stdin = false;
	if (c->stdin_watch != NULL)
		loop_fd_want(c->stdin_watch, LOOP_WRITE);
}

void loop_child_forget(struct loop_child *c)
{
	if (!c->over)
		child_let_go(c);
}
