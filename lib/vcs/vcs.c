#include "lib/vcs/vcs.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/json/field.h"
#include "lib/loop/child.h"
#include "lib/loop/defer.h"
#include "lib/vcs/url.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/*
 * An operation: build the argument list, start the child, collect its output, and at its end turn
 * that into a result (op->parse) and call back. The results live in an arena of their own, since
 * they may be larger than what the caller's arena may hold; it goes when the caller's goes.
 */

enum { OUTPUT_MAX = 65 << 20, COMPLAINT_MAX = 65536, MEMORY_MAX = 256 << 20, MAX_ARGS = 128 };

typedef int parse_fn(struct vcs_op *op, struct err *e);

struct vcs_op {
	struct loop *loop;
	struct arena *a, *mem;
	struct loop_child *child;
	struct buf out, complaint;
	struct err e;
	int64_t timeout;
	bool cancelled;
	const char *argv[MAX_ARGS];
	size_t argc;
	parse_fn *parse;
	union {
		vcs_resolve_cb *resolve;
		vcs_show_cb *show;
		vcs_checkout_cb *checkout;
		vcs_changed_cb *changed;
	} cb;
	void *arg;
	/* results */
	char commit[VCS_COMMIT_HEX + 1];
	struct vcs_tree tree;
	struct vcs_file *files;
	size_t n_files;
	struct list paths;
	bool complete;
};

static void on_start_failed(void *arg);
static void on_output(void *arg, struct str bytes);
static void on_complaint(void *arg, struct str bytes);
static void on_exit_of_child(void *arg, const struct loop_child_exit *x);
static void finish(struct vcs_op *op);

/* ---- building -------------------------------------------------------------------------------- */

static void drop_memory(void *arg)
{
	arena_drop(arg);
}

static void add(struct vcs_op *op, const char *arg)
{
	BUG_ON(op->argc >= MAX_ARGS - 1);
	op->argv[op->argc++] = arg;
}

static void add_number(struct vcs_op *op, const char *name, uint64_t n)
{
	if (n == 0)
		return;
	add(op, name);
	add(op, arena_printf(op->mem, "%llu", (unsigned long long)n).p);
}

static const char *default_helper(struct arena *a)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	struct str beside;
	char *slash;

	if (n <= 0)
		return "tidemill-git";
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		*slash = '\0';
	beside = arena_printf(a, "%s/tidemill-git", self);
	if (access(beside.p, X_OK) == 0)
		return beside.p;
	return arena_printf(a, "%s/../libexec/tidemill/tidemill-git", self).p;
}

/* Options only; the caller adds more of them, then the verb and what follows it. */
static struct vcs_op *op_new(struct loop *loop, struct arena *a, const struct vcs_source *s)
{
	struct arena *mem = arena_new(MEMORY_MAX);
	struct vcs_op *op = arena_new_of(mem, struct vcs_op);

	op->loop = loop;
	op->a = a;
	op->mem = mem;
	op->timeout = s->timeout > 0 ? s->timeout : 10 * CLOCK_MINUTE;
	buf_init(&op->out, OUTPUT_MAX);
	buf_init(&op->complaint, COMPLAINT_MAX);
	arena_hold(a);
	arena_defer(a, drop_memory, mem);
	add(op, s->helper != NULL ? s->helper : default_helper(mem));
	if (s->cache != NULL) {
		add(op, "--cache");
		add(op, s->cache);
	}
	if (s->ca_file != NULL) {
		add(op, "--ca-file");
		add(op, s->ca_file);
	}
	if (s->allow & VCS_ALLOW_LOCAL)
		add(op, "--allow-local");
	if (s->allow & VCS_ALLOW_HTTP)
		add(op, "--allow-http");
	if (s->guard)
		add(op, "--guard");
	for (size_t i = 0; s->allow_nets != NULL && s->allow_nets[i] != NULL && i < 32; i++) {
		add(op, "--allow-net");
		add(op, s->allow_nets[i]);
	}
	if (s->credentials.n != 0)
		add(op, "--credentials");
	add_number(op, "--max-fetch", s->max_fetch);
	/* The child's own clock is a second line, should this process be gone. */
	add_number(op, "--time", (uint64_t)(op->timeout / CLOCK_SECOND + 5));
	return op;
}

static struct vcs_op *op_start(struct vcs_op *op, const struct vcs_source *s, void *arg)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/nonexistent",
		"LANG=C.UTF-8", NULL };
	struct loop_child_spec spec = {
		.argv = op->argv,
		.env = env,
		.dir = "/",
		.input = s->credentials,
		.on_stdout = on_output,
		.on_stderr = on_complaint,
		.on_done = on_exit_of_child,
		.arg = op,
		.as_user = s->as_user,
		.uid = s->uid,
		.gid = s->gid,
		.deadline_ms = op->timeout / 1000 > 0 ? op->timeout / 1000 : 1,
	};

	op->arg = arg;
	op->child = loop_child_spawn(op->loop, &spec, &op->e);
	if (op->child == NULL)
		loop_defer(op->loop, on_start_failed, op);
	return op;
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_start_failed(void *arg)
{
	struct vcs_op *op = arg;

	if (op->cancelled)
		err_set(&op->e, ERR_CANCELLED, "cancelled");
	finish(op);
}

static void on_output(void *arg, struct str bytes)
{
	struct vcs_op *op = arg;

	buf_add(&op->out, bytes);
	if (buf_failed(&op->out) && op->child != NULL)
		loop_child_kill(op->child, SIGKILL);
}

static void on_complaint(void *arg, struct str bytes)
{
	struct vcs_op *op = arg;

	buf_add(&op->complaint, bytes);
}

struct complaint {
	struct str code, message, field;
};
static const struct field complaint_fields[] = {
	{ "code", FIELD_STR, FIELD_REQUIRED, offsetof(struct complaint, code) },
	{ "message", FIELD_STR, FIELD_REQUIRED, offsetof(struct complaint, message) },
	{ "field", FIELD_STR, 0, offsetof(struct complaint, field) },
	{ 0 },
};

/* The error that the child printed, on the last line of its stderr. */
static int read_complaint(struct vcs_op *op, struct err *e)
{
	struct str text = buf_str(&op->complaint), line, last = STR_NONE;
	struct complaint c;
	struct err ignored;

	while (text.p != NULL && str_next(&text, '\n', &line)) {
		if (line.n != 0 && line.p[0] == '{')
			last = line;
	}
	if (last.n != 0 && field_decode_reply(complaint_fields, last, op->mem, &c, &ignored) == 0) {
		for (int i = 1; i < ERR_COUNT; i++) {
			if (!str_is(c.code, err_name((enum err_code)i)))
				continue;
			(void)err_set(e, (enum err_code)i, "%s", c.message.p);
			(void)str_print(e->field, sizeof e->field, "%.*s", STR_ARG(c.field));
			return -1;
		}
	}
	return err_set(e, ERR_INTERNAL, "tidemill-git failed without saying why");
}

static int judge(struct vcs_op *op, const struct loop_child_exit *x, struct err *e)
{
	if (op->cancelled)
		return err_set(e, ERR_CANCELLED, "cancelled");
	if (x->timed_out || x->signo == SIGALRM || x->signo == SIGXCPU)
		return err_set(e, ERR_TIMEOUT, "the repository did not answer within %lld s",
			(long long)(op->timeout / CLOCK_SECOND));
	if (buf_failed(&op->out))
		return err_set(e, ERR_TOO_LARGE, "the answer has more than %d bytes", OUTPUT_MAX);
	if (x->signo != 0)
		return err_set(e, ERR_INTERNAL, "tidemill-git was ended by signal %d", x->signo);
	if (x->code != 0)
		return read_complaint(op, e);
	return op->parse(op, e);
}

static void on_exit_of_child(void *arg, const struct loop_child_exit *x)
{
	struct vcs_op *op = arg;

	op->child = NULL;
	if (judge(op, x, &op->e) == 0)
		op->e.code = ERR_OK;
	finish(op);
}

static void done_resolve(struct vcs_op *op);
static void done_show(struct vcs_op *op);
static void done_checkout(struct vcs_op *op);
static void done_changed(struct vcs_op *op);
static parse_fn parse_resolve, parse_show, parse_checkout, parse_changed;

static void finish(struct vcs_op *op)
{
	struct arena *a = op->a;

	if (op->parse == parse_resolve)
		done_resolve(op);
	else if (op->parse == parse_show)
		done_show(op);
	else if (op->parse == parse_checkout)
		done_checkout(op);
	else
		done_changed(op);
	buf_done(&op->out);
	buf_done(&op->complaint);
	arena_drop(a);
}

void vcs_cancel(struct vcs_op *op)
{
	op->cancelled = true;
	if (op->child != NULL)
		loop_child_kill(op->child, SIGKILL);
}

/* ---- resolve --------------------------------------------------------------------------------- */

struct resolved {
	struct str commit;
};
static const struct field resolved_fields[] = {
	{ "commit", FIELD_STR, FIELD_REQUIRED, offsetof(struct resolved, commit) },
	{ 0 },
};

struct vcs_op *vcs_resolve(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const char *ref, vcs_resolve_cb *cb, void *arg)
{
	struct vcs_op *op = op_new(loop, a, s);

	op->parse = parse_resolve;
	op->cb.resolve = cb;
	add(op, "resolve");
	add(op, s->url);
	add(op, ref);
	return op_start(op, s, arg);
}

static int parse_resolve(struct vcs_op *op, struct err *e)
{
	struct resolved r;

	if (field_decode_reply(resolved_fields, buf_str(&op->out), op->mem, &r, e) < 0)
		return -1;
	if (!vcs_is_commit(r.commit))
		return err_set(e, ERR_INTERNAL, "tidemill-git named no commit");
	memcpy(op->commit, r.commit.p, VCS_COMMIT_HEX);
	return 0;
}

static void done_resolve(struct vcs_op *op)
{
	op->cb.resolve(op->arg, op->e.code == ERR_OK ? op->commit : NULL, &op->e);
}

/* ---- show ------------------------------------------------------------------------------------ */

struct shown {
	struct str path;
	int64_t size;
};
static const struct field shown_fields[] = {
	{ "path", FIELD_STR, FIELD_REQUIRED, offsetof(struct shown, path), .max = VCS_PATH_MAX },
	{ "size", FIELD_INT, FIELD_REQUIRED, offsetof(struct shown, size), .min = -1,
		.max = OUTPUT_MAX },
	{ 0 },
};

struct vcs_op *vcs_show(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const struct vcs_show_args *args, vcs_show_cb *cb, void *arg)
{
	struct vcs_op *op;

	BUG_ON(args->n == 0 || args->n > VCS_MAX_SHOW);
	op = op_new(loop, a, s);
	op->parse = parse_show;
	op->cb.show = cb;
	op->n_files = args->n;
	op->files = arena_array_of(op->mem, struct vcs_file, args->n);
	add_number(op, "--max-bytes", args->max_bytes != 0 ? args->max_bytes : 1 << 20);
	add(op, "show");
	add(op, s->url);
	add(op, args->commit);
	for (size_t i = 0; i < args->n; i++)
		add(op, args->paths[i]);
	return op_start(op, s, arg);
}

static int parse_show(struct vcs_op *op, struct err *e)
{
	struct str rest = arena_str(op->mem, buf_str(&op->out)), line;
	struct shown one;

	for (size_t i = 0; i < op->n_files; i++) {
		ptrdiff_t end = str_find_char(rest, '\n');
		line = str_slice(rest, 0, end < 0 ? 0 : (size_t)end);
		if (field_decode_reply(shown_fields, line, op->mem, &one, e) < 0)
			return -1;
		rest = str_slice(rest, (size_t)end + 1, rest.n);
		op->files[i].path = one.path;
		op->files[i].found = one.size >= 0;
		if (one.size < 0)
			continue;
		if ((uint64_t)one.size > rest.n)
			return err_set(e, ERR_INTERNAL, "the answer of tidemill-git is cut");
		op->files[i].bytes = str_slice(rest, 0, (size_t)one.size);
		rest = str_slice(rest, (size_t)one.size, rest.n);
	}
	return 0;
}

static void done_show(struct vcs_op *op)
{
	bool ok = op->e.code == ERR_OK;

	op->cb.show(op->arg, ok ? op->files : NULL, ok ? op->n_files : 0, &op->e);
}

/* ---- checkout -------------------------------------------------------------------------------- */

struct checked_out {
	struct str commit, first_lfs;
	int64_t files, bytes, links, submodules, lfs;
};
static const struct field checked_out_fields[] = {
	{ "commit", FIELD_STR, FIELD_REQUIRED, offsetof(struct checked_out, commit) },
	{ "files", FIELD_INT, FIELD_REQUIRED, offsetof(struct checked_out, files) },
	{ "bytes", FIELD_INT, FIELD_REQUIRED, offsetof(struct checked_out, bytes) },
	{ "links", FIELD_INT, FIELD_REQUIRED, offsetof(struct checked_out, links) },
	{ "submodules", FIELD_INT, FIELD_REQUIRED, offsetof(struct checked_out, submodules) },
	{ "lfs", FIELD_INT, FIELD_REQUIRED, offsetof(struct checked_out, lfs) },
	{ "first_lfs", FIELD_STR, 0, offsetof(struct checked_out, first_lfs), .max = VCS_PATH_MAX },
	{ 0 },
};

struct vcs_op *vcs_checkout(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const struct vcs_checkout_args *args, vcs_checkout_cb *cb, void *arg)
{
	struct vcs_op *op = op_new(loop, a, s);

	op->parse = parse_checkout;
	op->cb.checkout = cb;
	add_number(op, "--max-files", args->max_files);
	add_number(op, "--max-bytes", args->max_bytes);
	add(op, "checkout");
	add(op, s->url);
	add(op, args->commit);
	add(op, args->dir);
	return op_start(op, s, arg);
}

static int parse_checkout(struct vcs_op *op, struct err *e)
{
	struct checked_out c;

	if (field_decode_reply(checked_out_fields, buf_str(&op->out), op->mem, &c, e) < 0)
		return -1;
	(void)str_print(op->tree.commit, sizeof op->tree.commit, "%s", c.commit.p);
	op->tree.files = (uint64_t)c.files;
	op->tree.bytes = (uint64_t)c.bytes;
	op->tree.links = (uint64_t)c.links;
	op->tree.submodules = (uint64_t)c.submodules;
	op->tree.lfs = (uint64_t)c.lfs;
	op->tree.first_lfs = c.first_lfs.p != NULL ? c.first_lfs : STR("");
	return 0;
}

static void done_checkout(struct vcs_op *op)
{
	op->cb.checkout(op->arg, op->e.code == ERR_OK ? &op->tree : NULL, &op->e);
}

/* ---- changed --------------------------------------------------------------------------------- */

struct changes {
	struct list paths;
	bool complete;
};
static const struct field changes_fields[] = {
	{ "paths", FIELD_LIST, FIELD_REQUIRED, offsetof(struct changes, paths), .item = FIELD_STR,
		.item_max = VCS_PATH_MAX, .max = 10000 },
	{ "complete", FIELD_BOOL, FIELD_REQUIRED, offsetof(struct changes, complete) },
	{ 0 },
};

struct vcs_op *vcs_changed(struct loop *loop, struct arena *a, const struct vcs_source *s,
	const char *const commits[2], vcs_changed_cb *cb, void *arg)
{
	struct vcs_op *op = op_new(loop, a, s);

	op->parse = parse_changed;
	op->cb.changed = cb;
	add(op, "changed");
	add(op, s->url);
	add(op, commits[0]);
	add(op, commits[1]);
	return op_start(op, s, arg);
}

static int parse_changed(struct vcs_op *op, struct err *e)
{
	struct changes c;

	if (field_decode_reply(changes_fields, buf_str(&op->out), op->mem, &c, e) < 0)
		return -1;
	op->paths = c.paths;
	op->complete = c.complete;
	return 0;
}

static void done_changed(struct vcs_op *op)
{
	bool ok = op->e.code == ERR_OK;

	op->cb.changed(
		op->arg, ok ? op->paths.items : NULL, ok ? op->paths.n : 0, op->complete, &op->e);
}
