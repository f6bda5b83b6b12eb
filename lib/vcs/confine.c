#include "lib/vcs/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static void limit(int what, uint64_t n)
{
	struct rlimit now, set = { n, n };

	if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
		now.rlim_max < n)
		set.rlim_cur = set.rlim_max = now.rlim_max;
	(void)setrlimit((__rlimit_resource_t)what, &set);
}

void confine_process(uint64_t max_file_bytes, uint64_t max_seconds)
{
	struct itimerval wall = { .it_value = { .tv_sec = (time_t)max_seconds } };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
	(void)umask(022);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	(void)prctl(PR_SET_DUMPABLE, 0);
	limit(RLIMIT_AS, UINT64_C(2) << 30); /* what the sanitizers cannot live with */
#endif
	limit(RLIMIT_FSIZE, max_file_bytes);
	limit(RLIMIT_CPU, max_seconds);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, 1024);
	(void)setitimer(ITIMER_REAL, &wall, NULL); /* should the parent be gone */
}

static uint64_t writes_of(long version)
{
	uint64_t set = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
		       LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
		       LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
		       LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
		       LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

	if (version >= 2)
		set |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		set |= UINT64_C(1) << 14; /* TRUNCATE, newer than the headers we build with */
	return set;
}

static int allow(int ruleset, const char *path, uint64_t what, struct err *e)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = what };
	long rc;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC | O_DIRECTORY);
	if (rule.parent_fd < 0)
		return err_errno(e, "open the folder", path);
	rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (rc < 0)
		(void)err_errno(e, "confine writing to", path);
	(void)close(rule.parent_fd);
	return rc < 0 ? -1 : 0;
}

int confine_files(const char *const *writable, size_t n, bool *ret_done, struct err *e)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE };
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int ruleset, rc = 0;

	if (version < 1) { /* not built in or not switched on */
		*ret_done = false;
		return 0;
	}
	attr.handled_access_fs |= writes_of(version);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (ruleset < 0)
		return err_errno(e, "make", "the rules for files");
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = allow(ruleset, writable[i], writes_of(version), e);
	if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		rc = err_errno(e, "apply", "the rules for files");
	(void)close(ruleset);
	if (rc == 0)
		*ret_done = true;
	return rc;
}
