/* The command: its start in a session of its own, and the end of everything that it left. */
#ifndef WORKER_INIT_CHILD_H
#define WORKER_INIT_CHILD_H
#include "worker/init/options.h"

struct child {
	pid_t pid; /* also its process group */
	int out, err; /* our ends of its pipes, -1 when closed */
};

/* What kept the command from starting. */
struct child_failure {
	int error; /* errno */
	const char *at;
	const char *program; /* the command, when it is what cannot be executed; or NULL */
	bool not_found; /* it is the command that does not exist */
};

/* Starts the command and waits until it has been executed. -1 with ret_failure filled. */
int child_start(const struct options *o, struct child *ret, struct child_failure *ret_failure);
/* SIGKILL to all that is below us, and reaps it: as PID 1 everything, else every descendant. */
void child_kill_all(void);

#endif
