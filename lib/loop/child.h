/*
 * Child processes: an argv array (never a shell), an environment of its own, its own session, and
 * no descriptor but the standard three. A child is finished when it has exited, and its stdout and
 * stderr have been read to the end: on_done is called once, and the handle is gone after it. Past
 * the deadline the whole process group is killed; a grandchild that left the group and still holds
 * a pipe is given CHILD_LINGER_MS after that. Limits are per process (setrlimit).
 */
#ifndef LIB_LOOP_CHILD_H
#define LIB_LOOP_CHILD_H
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/loop/loop.h"

#include <sys/types.h>

enum { CHILD_LINGER_MS = 1000, CHILD_INPUT_MAX = 16 << 20 };

struct loop_child;

struct loop_child_exit {
	int code; /* exit status, or -1 when a signal ended it */
	int signo; /* that signal, or 0 */
	bool timed_out; /* the deadline passed and the group was killed */
	int64_t cpu_us, max_rss_bytes;
};

/* Bytes of stdout or stderr; lent for the call. */
typedef void loop_child_out_cb(void *arg, struct str bytes);
typedef void loop_child_done_cb(void *arg, const struct loop_child_exit *x);

/* Read during loop_child_spawn() only, and need not live longer. */
struct loop_child_spec {
	const char *const *argv; /* argv[0] is the path of the program; ends with NULL */
	const char *const *env; /* the whole environment, "K=V"; NULL: empty */
	const char *dir; /* working directory; NULL: as ours */
	struct str input; /* what stdin gives before its end, at most CHILD_INPUT_MAX; copied */
	bool keep_stdin; /* leave stdin open for loop_child_write() */
	int stdout_fd,
		stderr_fd; /* > 0: used as they are (ours stay open), else pipes or /dev/null */
	loop_child_out_cb *on_stdout, *on_stderr; /* NULL: /dev/null */
	loop_child_done_cb *on_done;
	void *arg;
	int64_t deadline_ms; /* 0: none */
	bool as_user; /* become uid and gid, without supplementary groups */
	uid_t uid;
	gid_t gid;
	uint64_t max_cpu_s, max_memory, max_file, max_files, max_procs; /* 0: as ours; bytes */
	int nice;
};

/* NULL when the program cannot be started; the message names it and the reason. */
struct loop_child *loop_child_spawn(
	struct loop *l, const struct loop_child_spec *s, struct err *e) MUST_CHECK;
pid_t loop_child_pid(const struct loop_child *c); /* also the number of its group */
void loop_child_kill(struct loop_child *c, int signo); /* the whole group */
void loop_child_signal(struct loop_child *c, int signo); /* that process alone */
/* Appends to stdin of a child with keep_stdin; ERR_TOO_LARGE when CHILD_INPUT_MAX bytes wait. */
int loop_child_write(struct loop_child *c, struct str bytes, struct err *e) MUST_CHECK;
void loop_child_close_stdin(struct loop_child *c); /* after what was written has gone out */
/* Lets go without a word to the process and without on_done, for our own end: the process lives on,
 * and whoever becomes its parent then reaps it. */
void loop_child_forget(struct loop_child *c);

#endif
