#include "worker/runtime/rtjob.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"

struct rtjob *rtjob_new(struct rtcall *c)
{
	struct rtjob *j = arena_new_of(c->a, struct rtjob);

	j->call = c;
	j->a = c->a;
	arena_hold(j->a);
	return j;
}

int rtjob_submit(struct rtjob *j, work_run_cb *run, work_done_cb *done, struct err *e)
{
	int rc = work_submit(j->call->all->loop, run, done, j, e);

	if (rc < 0)
		rtjob_drop(j);
	return rc;
}

void rtjob_drop(struct rtjob *j)
{
	mem_free(j->found);
	arena_drop(j->a);
}

void rtjob_abandon(struct rtjob *j)
{
	if (j != NULL)
		j->call = NULL;
}

void rtjob_run_make(void *arg)
{
	struct rtjob *j = arg;

	j->rc = control_make(&j->make, &j->err);
}

void rtjob_run_list(void *arg)
{
	struct rtjob *j = arg;

	j->rc = control_list(j->attempts, j->runtime, j->install, &j->found, &j->n_found, &j->err);
}

void rtjob_run_remove(void *arg)
{
	struct rtjob *j = arg;

	j->rc = j->secrets_dir != NULL ? fs_remove_tree(j->secrets_dir, &j->err) : 0;
}
