#include "worker/init/status.h"

#include "worker/init/cgroup.h"
#include "worker/init/ctl.h"
#include "worker/init/file.h"
#include "worker/init/text.h"
#include "worker/init/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const state_names[] = { "waiting", "running", "exited", "signaled",
	"not_started" };

enum { PROGRAM_SHOWN = 120 };

/* Field 22 of /proc/PID/stat, counted from behind the name, which may hold anything. */
static void add_start(struct text *t, const char *key, pid_t pid)
{
	char path[64], line[1024], *p;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file_peek(path, line, sizeof line);
	p = strrchr(line, ')');
	for (int field = 2; p != NULL && field < 22; field++) {
		p = strchr(p, ' ');
		p = p != NULL ? p + 1 : NULL;
	}
	if (p != NULL)
		text_add(t, "%s=%.*s\n", key, (int)strspn(p, "0123456789"), p);
}

static void add_cgroup(struct text *t)
{
	struct cgroup c;

	cgroup_read(&c);
	const struct {
		const char *key;
		int64_t value;
	} all[] = { { "oom_kills", c.oom_kills }, { "memory_peak", c.memory_peak },
		{ "memory_limit", c.memory_limit }, { "read_bytes", c.read_bytes },
		{ "written_bytes", c.written_bytes }, { "throttled_us", c.throttled_us } };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		text_number(t, all[i].key, all[i].value);
}

/* A line: a program's name may hold anything. */
static void add_error(struct text *t, const struct status *s)
{
	bool in_path = s->program != NULL && s->error == ENOENT && strchr(s->program, '/') == NULL;
	char name[PROGRAM_SHOWN + 1] = "";

	for (size_t i = 0; s->program != NULL && i < PROGRAM_SHOWN && s->program[i] != '\0'; i++)
		name[i] = (unsigned char)s->program[i] < ' ' ? '?' : s->program[i];
	text_add(t, "errno=%d\nerror=", s->error);
	if (s->program != NULL)
		text_add(t, "cannot run %s: %s%s\n", name, strerror(s->error),
			in_path ? " in PATH" : "");
	else
		text_add(t, "%s: %s\n", s->error_at, strerror(s->error));
}

static void add_outcome(struct text *t, const struct status *s)
{
	if (s->state == STATUS_EXITED)
		text_add(t, "code=%d\n", s->code);
	if (s->state == STATUS_SIGNALED)
		text_add(t, "signal=%d\n", s->code);
	if (s->error != 0)
		add_error(t, s);
	if (s->ended_us == 0)
		return;
	text_add(t, "ended_us=%" PRId64 "\n", s->ended_us);
	text_add(t, "max_rss_kb=%ld\nuser_us=%" PRId64 "\nsystem_us=%" PRId64 "\n",
		s->usage.ru_maxrss,
		(int64_t)s->usage.ru_utime.tv_sec * TICK_SECOND + s->usage.ru_utime.tv_usec,
		(int64_t)s->usage.ru_stime.tv_sec * TICK_SECOND + s->usage.ru_stime.tv_usec);
	text_add(t, "spool_bytes=%" PRIu64 "\nstdout_bytes=%" PRIu64 "\nstderr_bytes=%" PRIu64 "\n",
		s->spool_bytes, s->stdout_bytes, s->stderr_bytes);
	text_add(t, "dropped_bytes=%" PRIu64 "\nlost_bytes=%" PRIu64 "\n", s->dropped_bytes,
		s->lost_bytes);
	if (getpid() == 1)
		add_cgroup(t);
}

static void compose(struct text *t, const struct status *s)
{
	char boot[64];

	file_peek("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
	text_add(t, "state=%s\n", state_names[s->state]);
	if (s->reason != NULL)
		text_add(t, "reason=%s\n", s->reason);
	text_add(t, "init_pid=%d\n", (int)getpid());
	add_start(t, "init_start", getpid());
	text_add(t, "boot_id=%.*s\n", (int)strcspn(boot, "\n"), boot);
	if (s->pid != 0)
		text_add(t, "pid=%d\n", (int)s->pid);
	if (s->state == STATUS_RUNNING)
		add_start(t, "pid_start", s->pid);
	if (s->started_us != 0)
		text_add(t, "started_us=%" PRId64 "\nstarted_elapsed=%" PRId64 "\n", s->started_us,
			s->started_elapsed);
	add_outcome(t, s);
}

/* Takes the disk space of the next status now. */
static void keep_spare(int dirfd)
{
	static char blank[CTL_STATUS_MAX];
	int fd = file_make(dirfd, CTL_STATUS_TMP, 0);

	memset(blank, '\n', sizeof blank);
	if (fd < 0)
		return;
	(void)text_write(fd, blank, sizeof blank);
	(void)close(fd);
}

int status_write(int dirfd, const struct status *s, bool last)
{
	struct text t = { .n = 0 };
	int fd = file_make(dirfd, CTL_STATUS_TMP, 0), rc;

	if (fd < 0)
		return -1;
	compose(&t, s);
	rc = text_write(fd, t.p, t.n);
	if (rc == 0)
		rc = ftruncate(fd, (off_t)t.n);
	if (rc == 0)
		rc = fsync(fd);
	if (close(fd) < 0 && rc == 0)
		rc = -1;
	if (rc == 0)
		rc = renameat(dirfd, CTL_STATUS_TMP, dirfd, CTL_STATUS);
	if (rc == 0)
		rc = fsync(dirfd);
	if (!last && rc == 0)
		keep_spare(dirfd);
	return rc;
}
