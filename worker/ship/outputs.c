#include "worker/ship/outputs.h"

#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "worker/ship/collect.h"

#include <fcntl.h>
#include <unistd.h>

enum { ARENA_MAX = 64 << 20, COMMIT_MAX = 4 << 20, REFUSALS_MAX = 8 };
#define IDLE_TIMEOUT (120 * CLOCK_SECOND)

struct ship_outputs {
	struct ship_target to;
	struct collect collect;
	struct arena *a;
	bool (*unchanged)(void *arg);
	ship_outputs_cb *done;
	void *arg;
	bool still; /* the answer of `unchanged` */
	size_t next; /* file to be uploaded */
	int fd;
	struct fetch *request;
	struct buf body;
	struct retry wait;
	struct loop_timer again;
	int refusals;
	bool collecting, cancelled;
};

/* Collect → upload one after the other → (look again →) commit. Uploads and the commit are
 * repeated.
 */
static void outputs_collect(void *arg);
static void outputs_on_collected(void *arg);
static void outputs_upload(struct ship_outputs *o);
static void outputs_on_uploaded(void *arg, const struct fetch_reply *reply, const struct err *e);
static void outputs_look_again(void *arg);
static void outputs_on_looked_again(void *arg);
static void outputs_commit(struct ship_outputs *o);
static void outputs_on_committed(void *arg, const struct fetch_reply *reply, const struct err *e);
static void outputs_end(struct ship_outputs *o, enum reason reason, const char *message);

static void outputs_start_work(void *arg);

struct ship_outputs *ship_outputs_start(const struct ship_outputs_args *a)
{
	struct ship_outputs *o = mem_new_of(struct ship_outputs);

	o->to = a->to;
	o->unchanged = a->unchanged;
	o->done = a->done;
	o->arg = a->arg;
	o->fd = -1;
	o->a = arena_new(ARENA_MAX);
	o->collect.a = o->a;
	o->collect.root = arena_dup(o->a, str_c(a->root));
	o->collect.outputs = a->outputs;
	buf_init(&o->body, COMMIT_MAX);
	loop_timer_init(&o->again, o->to.loop, outputs_start_work, o);
	loop_timer_set(&o->again, 0);
	return o;
}

void ship_outputs_cancel(struct ship_outputs *o)
{
	o->cancelled = true;
	atomic_store(&o->collect.stop, true);
	if (o->request != NULL)
		fetch_cancel(o->request);
	else if (!o->collecting)
		loop_timer_set(&o->again, 0);
}

static void outputs_end(struct ship_outputs *o, enum reason reason, const char *message)
{
	char text[sizeof o->collect.err.msg];

	(void)str_print(text, sizeof text, "%s", message);
	if (o->fd >= 0)
		(void)close(o->fd);
	loop_timer_cancel(&o->again);
	collect_done(&o->collect);
	buf_done(&o->body);
	arena_drop(o->a);
	ship_outputs_cb *done = o->done;
	void *arg = o->arg;
	mem_free(o);
	done(arg, reason, text);
}

/* The timer: whatever was to be done next, or the end. */
static void outputs_start_work(void *arg)
{
	struct ship_outputs *o = arg;
	struct err e;

	if (o->cancelled) {
		outputs_end(o, REASON_CANCELLED, "");
	} else if (o->collect.found != NULL) {
		outputs_upload(o);
	} else if (work_submit(o->to.loop, outputs_collect, outputs_on_collected, o, &e) < 0) {
		loop_timer_set(&o->again, ship_wait(&o->wait, NULL));
	} else {
		o->collecting = true;
	}
}

static void outputs_collect(void *arg)
{
	struct ship_outputs *o = arg;

	collect_run(&o->collect);
}

static void outputs_on_collected(void *arg)
{
	struct ship_outputs *o = arg;

	o->collecting = false;
	if (o->cancelled)
		outputs_end(o, REASON_CANCELLED, "");
	else if (o->collect.reason != REASON_NONE)
		outputs_end(o, o->collect.reason, o->collect.err.msg);
	else
		outputs_upload(o);
}

static void outputs_again(struct ship_outputs *o, const struct fetch_reply *reply)
{
	loop_timer_set(&o->again, ship_wait(&o->wait, reply));
}

static bool was_uploaded(const struct ship_outputs *o, const struct file *f)
{
	/* Neighbours only: a full search would be quadratic, and a second PUT costs little. */
	for (size_t i = o->next; i-- > 0 && o->next - i <= 16;)
		if (str_eq(o->collect.files[i].digest, f->digest))
			return true;
	return false;
}

/* All bytes are there. */
static void outputs_uploaded(struct ship_outputs *o)
{
	struct err e;

	if (o->unchanged == NULL)
		outputs_commit(o);
	else if (work_submit(o->to.loop, outputs_look_again, outputs_on_looked_again, o, &e) < 0)
		loop_timer_set(&o->again, ship_wait(&o->wait, NULL));
	else
		o->collecting = true;
}

static void outputs_look_again(void *arg)
{
	struct ship_outputs *o = arg;

	o->still = o->unchanged(o->arg);
}

static void outputs_on_looked_again(void *arg)
{
	struct ship_outputs *o = arg;

	o->collecting = false;
	if (o->cancelled)
		outputs_end(o, REASON_CANCELLED, "");
	else if (!o->still)
		outputs_end(o, REASON_OUTPUT_INVALID, "it was written to meanwhile");
	else
		outputs_commit(o);
}

static void outputs_upload(struct ship_outputs *o)
{
	char path[SHIP_PATH_MAX];
	struct err e;

	while (o->next < o->collect.n && was_uploaded(o, &o->collect.files[o->next]))
		o->next++;
	if (o->next == o->collect.n) {
		outputs_uploaded(o);
		return;
	}
	const struct file *f = &o->collect.files[o->next];
	int root = open(o->collect.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	o->fd = fs_open_file_beneath(root, f->path.p, &e);
	if (root >= 0)
		(void)close(root);
	if (o->fd < 0) {
		outputs_end(o, REASON_OUTPUT_INVALID, e.msg);
		return;
	}
	(void)str_print(path, sizeof path, "/api/v1/workers/self/attempts/%s/blobs/%s?epoch=%lld",
		o->to.attempt, f->digest.p, (long long)o->to.epoch);
	const struct fetch_request q = { .method = "PUT",
		.path = path,
		.headers = { "Content-Type: application/octet-stream" },
		.has_fd = true,
		.fd = o->fd,
		.length = f->size,
		.timeout = -1,
		.idle_timeout = IDLE_TIMEOUT };
	o->request = fetch_start(o->to.http, &q, outputs_on_uploaded, o);
}

/* True when the request has been answered well; else what follows has been arranged. */
static bool took(struct ship_outputs *o, const struct fetch_reply *reply, const struct err *failed)
{
	struct err e = { .code = ERR_OK };

	o->request = NULL;
	if (o->cancelled) {
		outputs_end(o, REASON_CANCELLED, "");
		return false;
	}
	switch (ship_outcome(reply, failed, &e)) {
	case SHIP_OK: return true;
	case SHIP_SUPERSEDED: outputs_end(o, REASON_SUPERSEDED, e.msg); return false;
	case SHIP_REFUSED:
		if (++o->refusals < REFUSALS_MAX && o->unchanged == NULL)
			break;
		outputs_end(o,
			e.code == ERR_INVALID || e.code == ERR_TOO_LARGE ? REASON_OUTPUT_INVALID
									 : REASON_UPLOAD_FAILED,
			e.msg);
		return false;
	case SHIP_AGAIN: break;
	}
	if (o->wait.tries == 0)
		log_warn("outputs not taken yet", LOG_S("attempt", o->to.attempt), LOG_E(&e));
	outputs_again(o, reply);
	return false;
}

static void outputs_on_uploaded(void *arg, const struct fetch_reply *reply, const struct err *e)
{
	struct ship_outputs *o = arg;

	(void)close(o->fd);
	o->fd = -1;
	if (!took(o, reply, e))
		return;
	o->wait.tries = 0;
	o->next++;
	outputs_upload(o);
}

/* By paths relative to its folder. */
static void encode_checkpoint(struct ship_outputs *o)
{
	size_t skip = list_at(o->collect.outputs, struct assigned_output, 0)->path.n + 1;
	const struct checkpoint_put put = { o->to.epoch, o->collect.found[0].files };

	for (size_t i = 0; i < put.files.n; i++) {
		struct file *f = list_at(&put.files, struct file, i);
		f->path = str_slice(f->path, skip, f->path.n);
	}
	field_encode(checkpoint_put_fields, &put, &o->body);
	for (size_t i = 0; i < put.files.n; i++) { /* the commit may be repeated */
		struct file *f = list_at(&put.files, struct file, i);
		f->path = (struct str){ f->path.p - skip, f->path.n + skip };
	}
}

static void outputs_commit(struct ship_outputs *o)
{
	const struct outputs_put put = { .epoch = o->to.epoch,
		.outputs = { o->collect.found, o->collect.outputs->n } };

	buf_clear(&o->body);
	if (o->unchanged != NULL)
		encode_checkpoint(o);
	else
		field_encode(outputs_put_fields, &put, &o->body);
	if (buf_failed(&o->body)) {
		outputs_end(o, REASON_OUTPUT_INVALID, "the list of the outputs' files is too long");
		return;
	}
	o->request = ship_document(&o->to, "POST", o->unchanged != NULL ? "checkpoint" : "outputs",
		buf_str(&o->body), outputs_on_committed, o);
}

static void outputs_on_committed(void *arg, const struct fetch_reply *reply, const struct err *e)
{
	struct ship_outputs *o = arg;

	if (took(o, reply, e))
		outputs_end(o, REASON_NONE, "");
}
