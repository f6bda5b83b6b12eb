/*
 * A process is named by its number and its start, since numbers are used again. The number is
 * pinned by a pidfd before the start is compared, so that the signal cannot reach a successor.
 */
#include "lib/base/num.h"
#include "worker/runtime/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* Field 22 of /proc/PID/stat, in clock ticks since boot; 0 when there is no such process. */
static uint64_t start_of(pid_t pid)
{
	char path[64], line[1024];
	uint64_t start = 0;
	struct str rest, field;
	int fd;

	(void)str_print(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	const char *name_end = strrchr(line, ')');
	rest = str_c(name_end != NULL ? name_end : "");
	for (int i = 2; str_next(&rest, ' ', &field) && i < 22; i++)
		continue;
	return num_parse_u64(field, 1, UINT64_MAX, &start) ? start : 0;
}

static int signal_process(pid_t pid, uint64_t start, int signo)
{
	int fd = pid > 1 && start != 0 ? pidfd_open(pid, 0) : -1;
	int rc = -1;

	if (fd >= 0 && start_of(pid) == start)
		rc = pidfd_send_signal(fd, signo, NULL, 0);
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

int control_signal(const struct control_init *i, int signo, struct err *e)
{
	if (!i->same_boot || signal_process(i->pid, i->start, signo) < 0)
		return err_set(e, ERR_NOT_FOUND, "the attempt does not run any more");
	return 0;
}

void control_kill(const struct control_init *i)
{
	if (!i->same_boot)
		return;
	/* It must not see the end of the command and take it for one that came by itself. */
	(void)signal_process(i->pid, i->start, SIGSTOP);
	if (i->command > 1 && i->command_start != 0 && start_of(i->command) == i->command_start)
		(void)kill(-i->command, SIGKILL);
	(void)signal_process(i->pid, i->start, SIGKILL);
}
