/* Inside worker/runtime: what a call does on the work pool. Its memory is held by the job, so that
 * the call may be gone when the job comes back (call is NULL then). */
#ifndef WORKER_RUNTIME_RTJOB_H
#define WORKER_RUNTIME_RTJOB_H
#include "lib/loop/work.h"
#include "worker/runtime/control.h"
#include "worker/runtime/rtcall.h"

struct rtjob {
	struct rtcall *call; /* NULL: abandoned */
	struct arena *a;
	struct control_make make;
	const char *attempts, *runtime, *install, *secrets_dir;
	struct runtime_found *found;
	size_t n_found;
	int rc;
	struct err err;
};

struct rtjob *rtjob_new(struct rtcall *c) __attribute__((returns_nonnull));
/* On failure the job is dropped, and the caller must forget it. */
int rtjob_submit(struct rtjob *j, work_run_cb *run, work_done_cb *done, struct err *e) MUST_CHECK;
void rtjob_drop(struct rtjob *j); /* the end of every done callback */
void rtjob_abandon(struct rtjob *j); /* NULL is fine */

/* What they run: arg is the job. */
void rtjob_run_make(void *arg); /* control_make(make) */
void rtjob_run_list(void *arg); /* control_list(attempts, runtime, install) */
void rtjob_run_remove(void *arg); /* removes secrets_dir */

#endif
