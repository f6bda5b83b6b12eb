#include "lib/loop/work.h"

#include "lib/base/mem.h"
#include "lib/loop/inside.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * Two lists under one lock: what waits for a thread, and what is finished. A finished job wakes the
 * loop through an eventfd; the loop takes the whole list and calls done() without the lock.
 */

struct job {
	struct job *next;
	work_run_cb *run;
	work_done_cb *done;
	void *arg;
};

struct job_list {
	struct job *first, **end;
};

struct work_pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct job_list waiting, finished; /* lock */
	bool quit; /* lock */
	size_t queued, pending; /* of the loop's thread; `queued` under the lock */
	size_t threads, queue_max, running;
	pthread_t *ids;
	int wake_fd;
	struct loop_fd *wake;
};

static void list_add(struct job_list *q, struct job *j)
{
	j->next = NULL;
	*q->end = j;
	q->end = &j->next;
}

static void list_init(struct job_list *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static void *thread_main(void *arg)
{
	struct work_pool *w = arg;
	uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct job *j = w->waiting.first;

		if (j == NULL) {
			if (w->quit)
				break;
			pthread_cond_wait(&w->more, &w->lock);
			continue;
		}
		w->waiting.first = j->next;
		if (j->next == NULL)
			w->waiting.end = &w->waiting.first;
		w->queued--;
		pthread_mutex_unlock(&w->lock);
		j->run(j->arg);
		pthread_mutex_lock(&w->lock);
		list_add(&w->finished, j);
		/* Full (2^64 - 2 wake-ups unread) cannot happen, and the loop is awake then. */
		if (write(w->wake_fd, &one, sizeof one) < 0)
			continue;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void finish(struct work_pool *w)
{
	struct job *j, *next;

	pthread_mutex_lock(&w->lock);
	j = w->finished.first;
	list_init(&w->finished);
	pthread_mutex_unlock(&w->lock);
	for (; j != NULL; j = next) {
		next = j->next;
		w->pending--;
		j->done(j->arg);
		mem_free(j);
	}
}

static void on_wake(void *arg, int what)
{
	struct work_pool *w = arg;
	uint64_t n;

	(void)what;
	if (read(w->wake_fd, &n, sizeof n) == (ssize_t)sizeof n)
		finish(w);
}

void work_setup(struct loop *l, size_t threads, size_t queue_max)
{
	struct work_pool *w = mem_new_of(struct work_pool);

	BUG_ON(l->work != NULL || threads == 0);
	w->threads = threads;
	w->queue_max = queue_max;
	w->ids = mem_new(threads, sizeof *w->ids);
	list_init(&w->waiting);
	list_init(&w->finished);
	BUG_ON(pthread_mutex_init(&w->lock, NULL) != 0 || pthread_cond_init(&w->more, NULL) != 0);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	BUG_ON(w->wake_fd < 0);
	w->wake = loop_fd_new(l, w->wake_fd, LOOP_READ, on_wake, w);
	l->work = w;
}

/* Threads begin when there is work for them. They take no signals: those are the loop's. */
static bool thread_start(struct work_pool *w)
{
	sigset_t all, old;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = pthread_create(&w->ids[w->running], NULL, thread_main, w) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->running += ok ? 1 : 0;
	return ok;
}

int work_submit(struct loop *l, work_run_cb *run, work_done_cb *done, void *arg, struct err *e)
{
	struct work_pool *w;
	struct job *j;
	bool full;

	if (l->work == NULL)
		work_setup(l, WORK_THREADS, WORK_QUEUE_MAX);
	w = l->work;
	if (w->running < w->threads && w->pending >= w->running && !thread_start(w) &&
		w->running == 0)
		return err_set(e, ERR_UNAVAILABLE, "no thread can be started");
	j = mem_new_of(struct job);
	*j = (struct job){ .run = run, .done = done, .arg = arg };
	pthread_mutex_lock(&w->lock);
	full = w->queued >= w->queue_max;
	if (!full) {
		list_add(&w->waiting, j);
		w->queued++;
		pthread_cond_signal(&w->more);
	}
	pthread_mutex_unlock(&w->lock);
	if (full) {
		mem_free(j);
		return err_set(e, ERR_UNAVAILABLE, "%zu jobs are waiting for a thread already",
			w->queue_max);
	}
	w->pending++;
	return 0;
}

size_t work_pending(const struct loop *l)
{
	return l->work != NULL ? l->work->pending : 0;
}

void work_drain(struct loop *l)
{
	struct work_pool *w = l->work;

	if (w == NULL)
		return;
	/* done() may submit again: threads end only when nothing is left. */
	while (w->pending != 0)
		loop_step(l, true);
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->running; i++)
		pthread_join(w->ids[i], NULL);
	loop_fd_free(w->wake);
	close(w->wake_fd);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
	mem_free(w->ids);
	mem_free(w);
	l->work = NULL;
}
