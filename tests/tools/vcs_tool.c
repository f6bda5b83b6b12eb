/* Drives lib/vcs for the tests: one operation, printed as one JSON line. */
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "lib/vcs/url.h"
#include "lib/vcs/vcs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct loop *loop;
static struct vcs_op *op;
static struct buf line;
static unsigned calls;

static struct jsn_out begin(const struct err *e)
{
	struct jsn_out w = jsn_out(&line);

	calls++;
	jsn_obj_begin(&w);
	jsn_key(&w, "error");
	jsn_text(&w, err_name(e->code));
	jsn_key(&w, "message");
	jsn_text(&w, e->code == ERR_OK ? "" : e->msg);
	return w;
}

static void end(struct jsn_out *w)
{
	jsn_obj_end(w);
	buf_addc(&line, '\n');
	loop_stop(loop);
}

static void on_resolved(void *arg, const char *commit, const struct err *e)
{
	struct jsn_out w = begin(e);

	(void)arg;
	jsn_key(&w, "commit");
	jsn_text(&w, commit);
	end(&w);
}

static void on_shown(void *arg, const struct vcs_file *files, size_t n, const struct err *e)
{
	struct jsn_out w = begin(e);

	(void)arg;
	jsn_key(&w, "files");
	jsn_list_begin(&w);
	for (size_t i = 0; i < n; i++) {
		jsn_list_begin(&w);
		jsn_str(&w, files[i].path);
		if (files[i].found)
			jsn_str(&w, files[i].bytes);
		else
			jsn_null(&w);
		jsn_list_end(&w);
	}
	jsn_list_end(&w);
	end(&w);
}

static void on_checked_out(void *arg, const struct vcs_tree *tree, const struct err *e)
{
	struct jsn_out w = begin(e);

	(void)arg;
	if (tree != NULL) {
		const uint64_t n[] = { tree->files, tree->bytes, tree->links, tree->submodules,
			tree->lfs };
		static const char *const keys[] = { "files", "bytes", "links", "submodules",
			"lfs" };
		for (size_t i = 0; i < 5; i++) {
			jsn_key(&w, keys[i]);
			jsn_int(&w, (int64_t)n[i]);
		}
		jsn_key(&w, "commit");
		jsn_text(&w, tree->commit);
		jsn_key(&w, "first_lfs");
		jsn_str(&w, tree->first_lfs);
	}
	end(&w);
}

static void on_changed(
	void *arg, const struct str *paths, size_t n, bool complete, const struct err *e)
{
	struct jsn_out w = begin(e);

	(void)arg;
	jsn_key(&w, "paths");
	jsn_list_begin(&w);
	for (size_t i = 0; i < n; i++)
		jsn_str(&w, paths[i]);
	jsn_list_end(&w);
	jsn_key(&w, "complete");
	jsn_bool(&w, complete);
	end(&w);
}

static void on_cancel(void *arg)
{
	(void)arg;
	vcs_cancel(op);
}

static uint64_t number(const char *text)
{
	uint64_t n = 0;

	if (!num_parse_u64(str_c(text), 0, UINT64_MAX, &n))
		exit(2);
	return n;
}

static const struct option options[] = { { "helper", 1, NULL, 'h' }, { "cache", 1, NULL, 'c' },
	{ "allow-local", 0, NULL, 'l' }, { "allow-http", 0, NULL, 'p' }, { "guard", 0, NULL, 'g' },
	{ "allow-net", 1, NULL, 'n' }, { "timeout-ms", 1, NULL, 't' },
	{ "cancel-ms", 1, NULL, 'x' }, { "max-files", 1, NULL, 'f' }, { "max-bytes", 1, NULL, 'b' },
	{ "max-fetch", 1, NULL, 'F' }, { "credentials", 1, NULL, 'C' }, { "ca-file", 1, NULL, 'A' },
	{ "as-user", 1, NULL, 'u' }, { NULL, 0, NULL, 0 } };

static struct vcs_source source;
static const char *nets[8];
static size_t n_nets;
static uint64_t cancel_ms, max_files, max_bytes;

static void set_option(int c)
{
	switch (c) {
	case 'h': source.helper = optarg; break;
	case 'c': source.cache = optarg; break;
	case 'l': source.allow |= VCS_ALLOW_LOCAL; break;
	case 'p': source.allow |= VCS_ALLOW_HTTP; break;
	case 'g': source.guard = true; break;
	case 'n': nets[n_nets++] = optarg; break;
	case 't': source.timeout = (int64_t)number(optarg) * 1000; break;
	case 'x': cancel_ms = number(optarg); break;
	case 'f': max_files = number(optarg); break;
	case 'b': max_bytes = number(optarg); break;
	case 'F': source.max_fetch = number(optarg); break;
	case 'A': source.ca_file = optarg; break;
	case 'u':
		source.as_user = true;
		source.uid = (uid_t)number(optarg);
		source.gid = (gid_t)number(optarg);
		break;
	case 'C': source.credentials = str_c(optarg); break;
	default: exit(2);
	}
}

static void start(struct arena *a, int n, char **argv)
{
	const char *verb = argv[0];

	source.url = argv[1];
	if (strcmp(verb, "resolve") == 0) {
		op = vcs_resolve(loop, a, &source, argv[2], on_resolved, NULL);
	} else if (strcmp(verb, "show") == 0) {
		struct vcs_show_args args = { argv[2], (const char *const *)(void *)(argv + 3),
			(size_t)n - 3, max_bytes };
		op = vcs_show(loop, a, &source, &args, on_shown, NULL);
	} else if (strcmp(verb, "checkout") == 0) {
		struct vcs_checkout_args args = { argv[2], argv[3], max_files, max_bytes };
		op = vcs_checkout(loop, a, &source, &args, on_checked_out, NULL);
	} else {
		const char *const commits[2] = { argv[2], argv[3] };
		op = vcs_changed(loop, a, &source, commits, on_changed, NULL);
	}
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new(1 << 20);
	struct loop_timer cancel;
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		set_option(c);
	if (argc - optind < 3)
		return 2;
	source.allow_nets = nets;
	buf_init(&line, 128 << 20);
	loop = loop_new();
	loop_timer_init(&cancel, loop, on_cancel, NULL);
	start(a, argc - optind, argv + optind);
	BUG_ON(calls != 0); /* never inside the call */
	if (cancel_ms != 0)
		loop_timer_set(&cancel, (int64_t)cancel_ms);
	loop_run(loop);
	loop_timer_cancel(&cancel);
	BUG_ON(calls != 1);
	(void)fwrite(line.p, 1, line.n, stdout);
	buf_done(&line);
	arena_drop(a);
	loop_free(loop);
	return 0;
}
