/*
 * Inside worker/runtime: one call of the runtime's interface, from its start to its callback. A
 * flow embeds it as its first member. rtcall_settle() is the one tail of every flow: it defers the
 * callback to the end of the turn and frees the flow after it.
 */
#ifndef WORKER_RUNTIME_RTCALL_H
#define WORKER_RUNTIME_RTCALL_H
#include "lib/base/arena.h"
#include "worker/runtime/runtime.h"

enum rtcall_kind {
	RTCALL_PROBE,
	RTCALL_START,
	RTCALL_STOP,
	RTCALL_POLL,
	RTCALL_LIST,
	RTCALL_REMOVE
};

struct rtcall;
/* Lets go of what the flow has running, so that nothing comes back to it. */
typedef void rtcall_abandon_fn(struct rtcall *c);

struct rtcalls { /* all calls of a runtime that are in flight */
	struct loop *loop;
	struct rtcall *first;
};

struct rtcall {
	struct rtcalls *all;
	struct rtcall *next, *prev;
	enum rtcall_kind kind;
	bool settled, delivered;
	rtcall_abandon_fn *abandon;
	struct arena *a; /* the flow's memory */
	const char *attempt; /* whose it is; "" for probe and list */
	struct runtime_ref ref; /* copied; empty for probe, start and list */
	union {
		runtime_about_cb *about;
		runtime_started_cb *started;
		runtime_status_cb *status;
		runtime_list_cb *list;
		runtime_done_cb *done;
	} fn;
	void *arg;
	struct err err;
	struct runtime_about about; /* results */
	struct runtime_started started;
	struct runtime_status status;
	struct runtime_found *found; /* freed with the call */
	size_t n_found;
};

/* A zeroed flow of `size` bytes; it is freed by its completion. The callback is set by the caller.
 */
void *rtcall_new(struct rtcalls *all, size_t size, enum rtcall_kind kind,
	rtcall_abandon_fn *abandon, void *arg) __attribute__((returns_nonnull));
void rtcall_set_ref(struct rtcall *c, const struct runtime_ref *a);
/* Ends the call with e, or well when e is NULL. Once. */
void rtcall_settle(struct rtcall *c, const struct err *e);
/* The call of this kind and attempt that has not been settled, or NULL. */
struct rtcall *rtcall_find(const struct rtcalls *all, enum rtcall_kind kind, const char *attempt);
/* Completes all with ERR_CANCELLED, at once. */
void rtcalls_cancel(struct rtcalls *all);

/* A deep copy. */
const struct runtime_spec *rtcall_copy_spec(struct arena *a, const struct runtime_spec *s);

#endif
