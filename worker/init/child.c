/*
 * Between fork and exec the child does its work step by step; the first step that fails is reported
 * through a close-on-exec pipe, whose end without a report says that the command runs. The secret
 * environment is read in the child only, so that it never stands in the memory of the init.
 */
#include "worker/init/child.h"

#include "worker/init/ctl.h"
#include "worker/init/file.h"
#include "worker/init/tick.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIPE_SIZE = 256 * 1024 };
enum step { STEP_SETUP, STEP_SECRETS, STEP_WORKDIR, STEP_USER, STEP_EXEC, STEP_COUNT };

static const char *const step_names[STEP_COUNT] = { "setup", "secrets", "workdir", "user",
	"command" };

struct report {
	int error;
	enum step step;
};

static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_setup(int out, int err)
{
	const struct rlimit no_core = { 0, 0 };
	int null = open("/dev/null", O_RDONLY);

	if (null < 0 || setsid() < 0 || dup2(null, STDIN_FILENO) < 0 ||
		dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		return -1;
	if (null > STDERR_FILENO)
		(void)close(null);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)umask(022);
	reset_signals();
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* The whole file with a NUL behind it; NULL with errno set (ENOENT: there is none). */
static char *read_env(const char *dir, const char *name, size_t *ret_n)
{
	char path[4096], *p = NULL;
	size_t n = 0;
	int fd = -1, length = snprintf(path, sizeof path, "%s/%s", dir, name);

	errno = ENAMETOOLONG;
	if (length > 0 && length < (int)sizeof path)
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	p = malloc(CTL_SECRET_ENV_MAX + 1);
	while (p != NULL) {
		ssize_t got = read(fd, p + n, CTL_SECRET_ENV_MAX + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		n += (size_t)got;
		if (n > CTL_SECRET_ENV_MAX) {
			errno = EFBIG;
			return NULL;
		}
		if (got == 0)
			break;
	}
	(void)close(fd);
	if (p != NULL)
		p[n] = '\0';
	*ret_n = n;
	return p;
}

static int child_env(const char *dir, const char *name)
{
	size_t n = 0;
	char *p = dir != NULL ? read_env(dir, name, &n) : NULL;

	if (p == NULL)
		return dir == NULL || errno == ENOENT ? 0 : -1;
	for (char *end = p + n; p < end; p += strlen(p) + 1) {
		char *equals = strchr(p, '=');
		if (*p == '\0')
			continue;
		if (equals == NULL || equals == p) {
			errno = EINVAL;
			return -1;
		}
		if (putenv(p) != 0)
			return -1;
	}
	return 0;
}

static int child_user(const struct options *o)
{
	uid_t r, e, s;

	if (!o->has_user || (getuid() != 0 && getuid() == o->uid && getgid() == o->gid))
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(o->gid, o->gid, o->gid) < 0 ||
		setresuid(o->uid, o->uid, o->uid) < 0)
		return -1;
	if (getresuid(&r, &e, &s) < 0 || r != o->uid || e != o->uid || s != o->uid ||
		(o->uid != 0 && setuid(0) == 0)) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

/* The user is dropped before the folder is entered: it must be one that the user may enter. */
static _Noreturn void child_run(const struct options *o, const int out[2], const int err[2], int to)
{
	struct report r = { 0, STEP_SETUP };

	if (child_setup(out[1], err[1]) < 0)
		goto fail;
	r.step = STEP_SECRETS;
	if (child_env(o->secrets, CTL_SECRET_ENV) < 0 ||
		(o->barrier && child_env(o->ctl, CTL_GO) < 0))
		goto fail;
	r.step = STEP_USER;
	if (child_user(o) < 0)
		goto fail;
	/* Should the init be killed, the command does not go on unseen (dropping the user would
	 * have cleared this). */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		goto fail;
	r.step = STEP_WORKDIR;
	if (o->workdir != NULL && chdir(o->workdir) < 0)
		goto fail;
	r.step = STEP_EXEC;
	(void)execvp(o->argv[0], o->argv);
fail:
	r.error = errno;
	(void)!write(to, &r, sizeof r);
	_exit(CTL_EXIT_NOT_RUN);
}

static void close_pair(const int pair[2])
{
	if (pair[0] >= 0)
		(void)close(pair[0]);
	if (pair[1] >= 0)
		(void)close(pair[1]);
}

/* True when the child came as far as the command. */
static bool started(int from, const char *program, struct child_failure *ret)
{
	struct report r;
	ssize_t got;

	do
		got = read(from, &r, sizeof r);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof r || r.step >= STEP_COUNT)
		return true;
	*ret = (struct child_failure){ .error = r.error,
		.at = step_names[r.step],
		.program = r.step == STEP_EXEC ? program : NULL,
		.not_found = r.step == STEP_EXEC && r.error == ENOENT };
	return false;
}

int child_start(const struct options *o, struct child *ret, struct child_failure *ret_failure)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, told[2] = { -1, -1 };
	struct child_failure failure = { .at = "pipe" };
	pid_t pid = -1;

	if (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
		pipe2(told, O_CLOEXEC) == 0) {
		failure.at = "fork";
		pid = fork();
	}
	if (pid == 0)
		child_run(o, out, err, told[1]);
	if (pid < 0) {
		failure.error = errno;
		close_pair(out);
		close_pair(err);
		close_pair(told);
		*ret_failure = failure;
		return -1;
	}
	(void)close(out[1]);
	(void)close(err[1]);
	(void)close(told[1]);
	(void)fcntl(out[0], F_SETPIPE_SZ, PIPE_SIZE);
	(void)fcntl(err[0], F_SETPIPE_SZ, PIPE_SIZE);
	bool ok = started(told[0], o->argv[0], &failure);
	(void)close(told[0]);
	if (!ok) {
		(void)close(out[0]);
		(void)close(err[0]);
		(void)waitpid(pid, NULL, 0);
		*ret_failure = failure;
		return -1;
	}
	*ret = (struct child){ pid, out[0], err[0] };
	return 0;
}

/* The parent of a process by /proc, or -1. */
static pid_t parent_of(const char *name)
{
	char path[64], line[512];
	long parent = -1;

	(void)snprintf(path, sizeof path, "/proc/%.20s/stat", name);
	file_peek(path, line, sizeof line);
	const char *p = strrchr(line, ')'); /* ") S 123 …" */
	if (p != NULL && strlen(p) > 4 && p[4] >= '0' && p[4] <= '9')
		for (parent = 0, p += 4; *p >= '0' && *p <= '9'; p++)
			parent = parent * 10 + (*p - '0');
	return (pid_t)parent;
}

static int kill_own_children(void)
{
	DIR *d = opendir("/proc");
	int found = 0;

	if (d == NULL)
		return 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		pid_t pid = 0;
		for (const char *p = e->d_name; *p >= '0' && *p <= '9'; p++)
			pid = pid * 10 + (*p - '0');
		if (pid <= 1 || parent_of(e->d_name) != getpid())
			continue;
		found++;
		(void)kill(pid, SIGKILL);
	}
	(void)closedir(d);
	return found;
}

/* A child of a killed process becomes ours (we are its subreaper), so rounds find all. A process
 * that hangs in the kernel is not waited for beyond the deadline. */
void child_kill_all(void)
{
	int64_t end = tick_elapsed() + TICK_SECOND;

	for (;;) {
		int found = getpid() == 1 ? kill(-1, SIGKILL) == 0 : kill_own_children();
		pid_t got;
		while ((got = waitpid(-1, NULL, WNOHANG)) > 0)
			continue;
		if (found == 0 || got < 0 || tick_elapsed() > end)
			return;
		(void)poll(NULL, 0, 1);
	}
}
