/* The status file (ctl.h): replaced as a whole and synced, so that a reader sees an old one or a
 * new one. Space for the next one is kept on disk, so that a full disk cannot hide how the command
 * ended. */
#ifndef WORKER_INIT_STATUS_H
#define WORKER_INIT_STATUS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum status_state {
	STATUS_WAITING,
	STATUS_RUNNING,
	STATUS_EXITED,
	STATUS_SIGNALED,
	STATUS_NOT_STARTED,
};

struct status {
	enum status_state state;
	const char *reason; /* "deadman", "stopped" or NULL */
	pid_t pid; /* of the command; 0: none */
	int code; /* exit code, or the signal's number */
	int error; /* errno, when it was not started */
	const char *error_at; /* what failed */
	const char *program; /* that could not be executed, or NULL */
	int64_t started_us, ended_us; /* 0: not yet */
	int64_t started_elapsed; /* likewise, on the elapsed clock */
	struct rusage usage;
	uint64_t spool_bytes, stdout_bytes, stderr_bytes, dropped_bytes, lost_bytes;
};

/* 0, or -1 with errno set. After the last one no spare file is left behind. */
int status_write(int dirfd, const struct status *s, bool last);

#endif
