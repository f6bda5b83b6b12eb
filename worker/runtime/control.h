/*
 * The worker's side of a control folder (worker/init/ctl.h): makes it, reads what the init wrote,
 * and speaks to the init through it. Functions marked (blocks) belong on a work thread; the others
 * read or write a few hundred bytes and may be called from the loop.
 *
 * Beside the init's files there is `attempt`, the record by which an attempt is found again:
 * runtime=, attempt=, step=, epoch=, install=; and `asked`, once we have asked it to end.
 */
#ifndef WORKER_RUNTIME_CONTROL_H
#define WORKER_RUNTIME_CONTROL_H
#include "worker/runtime/runtime.h"

struct control_make {
	const struct runtime_spec *spec;
	const char *runtime, *install;
	uid_t uid; /* who runs the command, when we are root */
	gid_t gid;
};

/* (blocks) Control folder with its record, secrets, ownership of work and out (files there that
 * have more than one link belong to somebody else as well, and stay as they are). A folder that is
 * there already must be of the same attempt, epoch and installation (else ERR_CONFLICT). */
int control_make(const struct control_make *m, struct err *e) MUST_CHECK;

/* Who the init is, as far as it has said. */
struct control_init {
	pid_t pid, command; /* 0: not known */
	uint64_t start, command_start; /* clock ticks since boot */
	bool same_boot; /* it was started since this host's last boot */
};

/* Reads the status. The state is RUNTIME_GONE when there is no such folder, RUNTIME_PREPARING when
 * there is no status yet, else the init's word; whether the init still lives is control_held. */
int control_read(const char *ctl, struct runtime_status *ret, struct control_init *ret_init,
	struct err *e) MUST_CHECK;
/* True while the init that runs in the folder lives. Disturbs nobody. */
bool control_held(const char *ctl);
/* True for a moment after the folder was made, in which an init that was started by a worker that
 * is gone now may not have spoken yet. */
bool control_fresh(const char *ctl);
/* Makes sure that no init begins in this folder any more; one that has begun goes on. */
void control_seal(const char *ctl);
/* True when the command has started, so that its secret environment is not needed any more. */
bool control_past_start(const struct runtime_status *s);
/* The last word of an init that is not there any more: fills end and message. */
void control_lost(struct runtime_status *s, const char *why);

/* The init's --deadman counts from this moment (clock_elapsed(), microseconds; 0: now): call it at
 * least every quarter of that time, and never with an earlier moment than before. */
int control_renew(const char *ctl, int64_t at, struct err *e) MUST_CHECK;
/* (blocks) Opens the barrier; env: KEY=VALUE, each ended by a NUL, at most CTL_SECRET_ENV_MAX. */
int control_go(const char *ctl, struct str env, struct err *e) MUST_CHECK;
bool control_gone(const char *ctl); /* that was done */
/* (a small file) A line in the step's log, before its command: only as long as no init has been
 * started. What is beyond CTL_PROLOGUE_MAX is left out. */
int control_note(const char *ctl, unsigned rank, const char *text, struct err *e) MUST_CHECK;
int64_t control_noted(
	const char *ctl); /* when the last one was, clock_elapsed(); 0: there is none */
/* Removes the secret environment, once the command has started; the other secrets stay. */
void control_forget_env(const char *secrets_dir);

/* Signals an init on this host, if it still is the process that wrote the status: ERR_NOT_FOUND
 * when it is not. */
int control_signal(const struct control_init *i, int signo, struct err *e) MUST_CHECK;
/* Notes that we ask it to end: whoever else does so has left no such note. */
void control_ask(const char *ctl);
bool control_asked(const char *ctl);
/* SIGKILL to the command's process group and then to the init. */
void control_kill(const struct control_init *i);

/* The record of a control folder; ERR_NOT_FOUND when there is none. `runtime` has room for 16. */
int control_record(const char *ctl, char runtime[16], char install[RUNTIME_ID_MAX],
	struct runtime_found *ret, struct err *e) MUST_CHECK;
/* (blocks) All attempts of this runtime and installation below `attempts`; ret is for mem_free. */
int control_list(const char *attempts, const char *runtime, const char *install,
	struct runtime_found **ret, size_t *ret_n, struct err *e) MUST_CHECK;

#endif
