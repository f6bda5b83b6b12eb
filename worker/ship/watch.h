/*
 * Tells when something happens in a control folder: the spool has grown, the status was replaced.
 * On inotify; where the kernel has none left to give, nobody is called, and callers look by
 * themselves now and then, as they must anyway. Loop thread only.
 */
#ifndef WORKER_SHIP_WATCH_H
#define WORKER_SHIP_WATCH_H

struct loop;
struct watch;
struct watch_dir;

struct watch *watch_new(struct loop *loop) __attribute__((returns_nonnull));
void watch_free(struct watch *w); /* after its folders; NULL is fine */

/* The file `name` in the folder was written to or renamed into it. The callback must not remove
 * its own folder. */
typedef void watch_cb(void *arg, const char *name);
/* One watcher for a folder. NULL when it cannot be watched. */
struct watch_dir *watch_add(struct watch *w, const char *dir, watch_cb *fn, void *arg);
void watch_remove(struct watch_dir *d); /* NULL is fine */

#endif
