#include "worker/ship/watch.h"

#include "lib/base/mem.h"
#include "lib/loop/loop.h"

#include <stdalign.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { EVENTS_BYTES = 8192 };

struct watch_dir {
	struct watch *w;
	struct watch_dir *next, *prev;
	int wd;
	watch_cb *fn;
	void *arg;
};

struct watch {
	int fd; /* -1: there is no inotify */
	struct loop_fd *ready;
	struct watch_dir *first;
};

static struct watch_dir *find(const struct watch *w, int wd)
{
	struct watch_dir *d = w->first;

	while (d != NULL && d->wd != wd)
		d = d->next;
	return d;
}

static void on_ready(void *arg, int what)
{
	struct watch *w = arg;
	alignas(struct inotify_event) char bytes[EVENTS_BYTES];
	ssize_t n = read(w->fd, bytes, sizeof bytes);

	(void)what;
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const void *)(bytes + at);
		const struct watch_dir *d = find(w, ev->wd);
		if (d != NULL && ev->len != 0)
			d->fn(d->arg, ev->name);
		at += (ssize_t)(sizeof *ev + ev->len);
	}
}

struct watch *watch_new(struct loop *loop)
{
	struct watch *w = mem_new_of(struct watch);

	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd >= 0)
		w->ready = loop_fd_new(loop, w->fd, LOOP_READ, on_ready, w);
	return w;
}

void watch_free(struct watch *w)
{
	if (w == NULL)
		return;
	while (w->first != NULL)
		watch_remove(w->first);
	loop_fd_free(w->ready);
	if (w->fd >= 0)
		(void)close(w->fd);
	mem_free(w);
}

struct watch_dir *watch_add(struct watch *w, const char *dir, watch_cb *fn, void *arg)
{
	int wd = w->fd >= 0 ? inotify_add_watch(w->fd, dir, IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR)
			    : -1;
	struct watch_dir *d;

	if (wd < 0 || find(w, wd) != NULL)
		return NULL;
	d = mem_new_of(struct watch_dir);
	*d = (struct watch_dir){ w, w->first, NULL, wd, fn, arg };
	if (w->first != NULL)
		w->first->prev = d;
	w->first = d;
	return d;
}

void watch_remove(struct watch_dir *d)
{
	if (d == NULL)
		return;
	(void)inotify_rm_watch(d->w->fd, d->wd);
	if (d->prev != NULL)
		d->prev->next = d->next;
	else
		d->w->first = d->next;
	if (d->next != NULL)
		d->next->prev = d->prev;
	mem_free(d);
}
