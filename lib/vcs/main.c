/*
 * tidemill-git: one question about one git repository, answered in a process that may be killed.
 *
 * Order of things: limits and privileges first, then arguments, then credentials from stdin, then
 * libgit2. The result is collected in memory and written at the end, so that a failure leaves
 * stdout empty. connect(2) is defined here, in front of libc's: every socket of libgit2, mbedTLS
 * and libssh2 passes through it, which is where addresses are judged (after name resolution, so
 * that no name gets around it) and where a silent peer gets a time limit.
 */
#include "lib/base/fs.h"
#include "lib/base/ip.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "lib/vcs/confine.h"
#include "lib/vcs/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { MAX_ALLOW = 32, MAX_CHANGED = 10000, RESULT_MAX = 64 << 20 };

static struct {
	bool on;
	unsigned port; /* of the address that was asked for: libgit2 would follow redirects within a
			  host to any other */
	struct ip_net allow[MAX_ALLOW];
	size_t n_allow;
	uint64_t stall_s;
} guard = { .stall_s = 60 };

struct options {
	const char *cache, *ca_file;
	unsigned allow;
	bool credentials;
	struct repo_limits limits;
	struct tree_caps caps;
	uint64_t time_s;
};

#if defined(__SANITIZE_ADDRESS__)
/* libgit2 1.5 loses the match data of its regular expressions. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpcre2";
}
#endif

static bool may_connect(const struct sockaddr *sa, socklen_t n)
{
	struct sockaddr_in in;
	struct ip ip;

	if (sa->sa_family == AF_UNIX)
		return true;
	if (!ip_from_sockaddr(sa, n, &ip))
		return false;
	memcpy(&in, sa, sizeof in); /* the port stands in the same place in both families */
	if (ntohs(in.sin_port) != guard.port)
		return false;
	if (!guard.on)
		return true;
	for (size_t i = 0; i < guard.n_allow; i++) {
		if (ip_net_has(&guard.allow[i], &ip))
			return true;
	}
	return ip_is_public(&ip);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t n)
{
	struct timeval stall = { .tv_sec = (time_t)guard.stall_s };
	const struct sockaddr *sa = address.__sockaddr__;

	if (!may_connect(sa, n)) {
		errno = EACCES;
		return -1;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall);
	return (int)syscall(SYS_connect, fd, sa, n);
}

/* ---- before anything else ---------------------------------------------------------------------
 */

/* Where this question makes us write: the cache, and the folder that the checkout appears in. */
static int confine_to(const struct options *o, const char *checkout_dir, struct err *e)
{
	char parent[VCS_PATH_MAX + 1];
	const char *writable[2], *slash;
	size_t n = 0;
	bool done;

	if (o->cache != NULL) {
		if (fs_mkdirs(o->cache, 0700, e) < 0)
			return -1;
		writable[n++] = o->cache;
	}
	if (checkout_dir != NULL) {
		slash = strrchr(checkout_dir, '/');
		if (checkout_dir[0] != '/' || slash[1] == '\0' ||
			!str_print(parent, sizeof parent, "%.*s",
				slash == checkout_dir ? 1 : (int)(slash - checkout_dir),
				checkout_dir))
			return err_set(e, ERR_INVALID,
				"the folder must be an absolute path without a slash at its end");
		writable[n++] = parent;
	}
	return confine_files(writable, n, &done, e);
}

static int setup_git(const struct options *o, struct err *e)
{
	static const int levels[] = { GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM,
		GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL };
	int rc = git_libgit2_init();

	for (size_t i = 0; rc >= 0 && i < sizeof levels / sizeof levels[0]; i++)
		rc = git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
	if (rc >= 0)
		rc = git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "");
	if (rc >= 0)
		rc = git_libgit2_opts(GIT_OPT_SET_USER_AGENT, "tidemill/" TIDEMILL_VERSION);
	if (rc >= 0)
		rc = git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, (size_t)512 << 20);
	if (rc >= 0)
		rc = git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, (ssize_t)64 << 20);
	if (rc >= 0)
		rc = git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
	if (rc >= 0 && o->ca_file != NULL)
		rc = git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, o->ca_file, NULL);
	if (rc < 0)
		return err_set(e, ERR_INTERNAL, "cannot set up libgit2: %.200s",
			git_error_last() != NULL ? git_error_last()->message : "no reason given");
	return 0;
}

static int read_credentials(struct repo *r, struct arena *a, struct err *e)
{
	struct buf text;
	ssize_t n = 1;
	int rc;

	buf_init(&text, CRED_MAX);
	while (n > 0) {
		char *room = buf_room(&text, 4096);
		if (room == NULL)
			break;
		n = read(STDIN_FILENO, room, 4096);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			buf_grew(&text, (size_t)n);
	}
	rc = n != 0 ? err_set(e, ERR_INVALID, "the credentials cannot be read or are too long")
		    : cred_parse(&r->cred, buf_str(&text), a, e);
	if (text.p != NULL)
		mem_wipe(text.p, text.cap);
	buf_done(&text);
	return rc;
}

/* ---- verbs ------------------------------------------------------------------------------------
 */

struct verb_args {
	struct repo *repo;
	const struct options *options;
	char **argv; /* what follows the address */
	int argc;
	struct buf *out;
};

static int need_commit(const char *text, struct err *e)
{
	return vcs_is_commit(str_c(text))
		       ? 0
		       : err_set(e, ERR_INVALID, "a commit is named by its 40 hex digits");
}

static int do_resolve(struct verb_args *v, struct err *e)
{
	char hex[GIT_OID_HEXSZ + 1];
	git_oid id;

	if (vcs_ref_check(str_c(v->argv[0]), e) < 0 || repo_open(v->repo, e) < 0 ||
		repo_resolve(v->repo, v->argv[0], &id, e) < 0)
		return -1;
	struct jsn_out w = jsn_out(v->out);
	jsn_obj_begin(&w);
	jsn_key(&w, "commit");
	jsn_text(&w, git_oid_tostr(hex, sizeof hex, &id));
	jsn_obj_end(&w);
	buf_addc(v->out, '\n');
	return 0;
}

static int show_one(struct verb_args *v, git_tree *tree, const char *path, struct err *e)
{
	git_odb_object *blob = NULL;

	if (vcs_path_check(str_c(path), e) < 0 ||
		tree_read(v->repo, tree, path, v->options->caps.max_bytes, &blob, e) < 0)
		return -1;
	struct str bytes = STR_NONE;
	if (blob != NULL)
		bytes = (struct str){ git_odb_object_data(blob), git_odb_object_size(blob) };
	struct jsn_out w = jsn_out(v->out);
	jsn_obj_begin(&w);
	jsn_key(&w, "path");
	jsn_text(&w, path);
	jsn_key(&w, "size");
	jsn_int(&w, blob != NULL ? (int64_t)bytes.n : -1);
	jsn_obj_end(&w);
	buf_addc(v->out, '\n');
	buf_add(v->out, bytes);
	git_odb_object_free(blob);
	return buf_failed(v->out)
		       ? err_set(e, ERR_TOO_LARGE, "the files have more than %d bytes together",
				 RESULT_MAX)
		       : 0;
}

static int do_show(struct verb_args *v, struct err *e)
{
	git_tree *tree = NULL;
	int rc = 0;

	if (need_commit(v->argv[0], e) < 0 || repo_open(v->repo, e) < 0 ||
		repo_tree(v->repo, v->argv[0], &tree, e) < 0)
		return -1;
	for (int i = 1; i < v->argc && rc == 0; i++)
		rc = show_one(v, tree, v->argv[i], e);
	git_tree_free(tree);
	return rc;
}

static void put_stats(struct buf *out, const char *commit, const struct tree_stats *s)
{
	const struct {
		const char *key;
		uint64_t n;
	} counts[] = { { "files", s->files }, { "bytes", s->bytes }, { "links", s->links },
		{ "submodules", s->submodules }, { "lfs", s->lfs } };
	struct jsn_out w = jsn_out(out);

	jsn_obj_begin(&w);
	jsn_key(&w, "commit");
	jsn_text(&w, commit);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		jsn_key(&w, counts[i].key);
		jsn_int(&w, (int64_t)counts[i].n);
	}
	jsn_key(&w, "first_lfs");
	jsn_text(&w, s->first_lfs);
	jsn_obj_end(&w);
	buf_addc(out, '\n');
}

/* Writes beside the folder and renames at the end. */
static int write_beside(
	struct verb_args *v, git_tree *tree, const char *dir, struct tree_stats *s, struct err *e)
{
	char part[VCS_PATH_MAX + 16];
	int fd, rc;

	if (!str_print(part, sizeof part, "%s.partial", dir))
		return err_set(e, ERR_INVALID, "the folder's path is too long");
	if (access(dir, F_OK) == 0)
		return err_set(e, ERR_CONFLICT, "the folder exists already");
	if (fs_remove_tree(part, e) < 0)
		return -1;
	if (mkdir(part, 0755) < 0)
		return err_errno(e, "make the folder", part);
	fd = open(part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rc = fd < 0 ? err_errno(e, "open the folder", part)
		    : tree_write(v->repo, tree, fd, &v->options->caps, s, e);
	if (fd >= 0)
		(void)close(fd);
	if (rc == 0 && rename(part, dir) < 0)
		rc = err_errno(e, "name the folder", dir);
	if (rc < 0) {
		struct err ignored;
		(void)!fs_remove_tree(part, &ignored);
	}
	return rc;
}

static int do_checkout(struct verb_args *v, struct err *e)
{
	struct tree_stats stats = { .files = 0 };
	git_tree *tree = NULL;
	int rc;

	if (need_commit(v->argv[0], e) < 0 || repo_open(v->repo, e) < 0 ||
		repo_tree(v->repo, v->argv[0], &tree, e) < 0)
		return -1;
	rc = write_beside(v, tree, v->argv[1], &stats, e);
	git_tree_free(tree);
	if (rc == 0)
		put_stats(v->out, v->argv[0], &stats);
	return rc;
}

static void put_path(void *arg, struct str path)
{
	jsn_str(arg, path);
}

/* OLD may be all zeros, as in the notice of a new branch: everything is new then. */
static int do_changed(struct verb_args *v, struct err *e)
{
	struct jsn_out w = jsn_out(v->out);
	struct tree_diff d = { .max = MAX_CHANGED, .fn = put_path, .arg = &w };
	bool fresh = strspn(v->argv[0], "0") == VCS_COMMIT_HEX, complete = true;
	int rc;

	if (need_commit(v->argv[0], e) < 0 || need_commit(v->argv[1], e) < 0 ||
		repo_open(v->repo, e) < 0 || repo_tree(v->repo, v->argv[1], &d.to, e) < 0)
		return -1;
	rc = fresh ? 0 : repo_tree(v->repo, v->argv[0], &d.from, e);
	jsn_obj_begin(&w);
	jsn_key(&w, "paths");
	jsn_list_begin(&w);
	if (rc == 0)
		rc = tree_changed(v->repo, &d, &complete, e);
	jsn_list_end(&w);
	jsn_key(&w, "complete");
	jsn_bool(&w, complete);
	jsn_obj_end(&w);
	buf_addc(v->out, '\n');
	git_tree_free(d.from);
	git_tree_free(d.to);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(struct verb_args *v, struct err *e);
	int min, max; /* arguments after the address */
} verbs[] = {
	{ "resolve", do_resolve, 1, 1 },
	{ "show", do_show, 2, 33 },
	{ "checkout", do_checkout, 2, 2 },
	{ "changed", do_changed, 2, 2 },
};

/* ---- arguments --------------------------------------------------------------------------------
 */

enum { OPT_CACHE = 256, OPT_CA, OPT_LOCAL, OPT_HTTP, OPT_CRED, OPT_GUARD, OPT_NET, OPT_NUMBER };

static const struct option long_options[] = {
	{ "cache", required_argument, NULL, OPT_CACHE },
	{ "ca-file", required_argument, NULL, OPT_CA },
	{ "allow-local", no_argument, NULL, OPT_LOCAL },
	{ "allow-http", no_argument, NULL, OPT_HTTP },
	{ "credentials", no_argument, NULL, OPT_CRED },
	{ "guard", no_argument, NULL, OPT_GUARD },
	{ "allow-net", required_argument, NULL, OPT_NET },
	{ "time", required_argument, NULL, OPT_NUMBER },
	{ "stall", required_argument, NULL, OPT_NUMBER + 1 },
	{ "max-fetch", required_argument, NULL, OPT_NUMBER + 2 },
	{ "max-objects", required_argument, NULL, OPT_NUMBER + 3 },
	{ "max-files", required_argument, NULL, OPT_NUMBER + 4 },
	{ "max-bytes", required_argument, NULL, OPT_NUMBER + 5 },
	{ "max-file", required_argument, NULL, OPT_NUMBER + 6 },
	{ NULL, 0, NULL, 0 },
};

static int set_number(struct options *o, int which, const char *text, struct err *e)
{
	uint64_t *const at[] = { &o->time_s, &guard.stall_s, &o->limits.max_fetch,
		&o->limits.max_objects, &o->caps.max_files, &o->caps.max_bytes, &o->caps.max_file };

	if (!num_parse_u64(str_c(text), 1, UINT64_C(1) << 50, at[which]))
		return err_set(e, ERR_INVALID, "\"%.40s\" is not a limit", text);
	return 0;
}

static int set_option(struct options *o, int c, struct err *e)
{
	switch (c) {
	case OPT_CACHE: o->cache = optarg; return 0;
	case OPT_CA: o->ca_file = optarg; return 0;
	case OPT_LOCAL: o->allow |= VCS_ALLOW_LOCAL; return 0;
	case OPT_HTTP: o->allow |= VCS_ALLOW_HTTP; return 0;
	case OPT_CRED: o->credentials = true; return 0;
	case OPT_GUARD: guard.on = true; return 0;
	case OPT_NET:
		if (guard.n_allow == MAX_ALLOW)
			return err_set(e, ERR_INVALID, "at most %d networks", MAX_ALLOW);
		return ip_net_parse(str_c(optarg), &guard.allow[guard.n_allow++], e);
	default:
		return c >= OPT_NUMBER ? set_number(o, c - OPT_NUMBER, optarg, e)
				       : err_set(e, ERR_INVALID, "unknown option");
	}
}

/* A pack and its index, or a file of the tree. */
static uint64_t max_file(const struct options *o)
{
	uint64_t pack = o->limits.max_fetch, file = o->caps.max_file;

	return (pack > file ? pack : file) + (UINT64_C(64) << 20);
}

static unsigned port_of(const struct vcs_url *u)
{
	if (u->port != 0)
		return u->port;
	return u->scheme == VCS_SSH ? 22 : u->scheme == VCS_HTTP ? 80 : 443;
}

static int run(int argc, char **argv, struct buf *out, struct err *e)
{
	struct options o = { .limits = { UINT64_C(2) << 30, 2000000 },
		.caps = { 200000, UINT64_C(4) << 30, UINT64_C(512) << 20 },
		.time_s = 600 };
	struct repo repo = { .git = NULL };
	struct verb_args v = { .repo = &repo, .options = &o, .out = out };
	int c, rc;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+", long_options, NULL)) != -1) {
		if (set_option(&o, c, e) < 0)
			return -1;
	}
	v.argc = argc - optind - 2;
	v.argv = argv + optind + 2;
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (v.argc < verbs[i].min || v.argc > verbs[i].max ||
			strcmp(argv[optind], verbs[i].name) != 0)
			continue;
		confine_process(max_file(&o), o.time_s);
		struct arena *a = arena_new(1 << 20);
		repo.cache = o.cache;
		repo.limits = o.limits;
		rc = vcs_url_parse(str_c(argv[optind + 1]), o.allow, &repo.url, e);
		guard.port = port_of(&repo.url);
		if (rc == 0 && o.credentials)
			rc = read_credentials(&repo, a, e);
		if (rc == 0)
			rc = confine_to(&o, verbs[i].run == do_checkout ? v.argv[1] : NULL, e);
		if (rc == 0)
			rc = setup_git(&o, e);
		if (rc == 0)
			rc = verbs[i].run(&v, e);
		repo_close(&repo);
		arena_drop(a);
		return rc;
	}
	return err_set(e, ERR_INVALID,
		"usage: tidemill-git [options] resolve URL REF | show URL COMMIT PATH... | "
		"checkout URL COMMIT DIR | changed URL OLD NEW");
}

static void put_error(const struct err *e)
{
	struct buf line;

	buf_init(&line, 4096);
	struct jsn_out w = jsn_out(&line);
	jsn_obj_begin(&w);
	jsn_key(&w, "code");
	jsn_text(&w, err_name(e->code));
	jsn_key(&w, "message");
	jsn_text(&w, e->msg);
	jsn_key(&w, "field");
	jsn_text(&w, e->field);
	jsn_obj_end(&w);
	buf_addc(&line, '\n');
	struct err ignored;
	(void)!fs_write_all(STDERR_FILENO, buf_str(&line), "stderr", &ignored);
	buf_done(&line);
}

int main(int argc, char **argv)
{
	struct buf out;
	struct err e = { .code = ERR_OK };
	int rc;

	buf_init(&out, RESULT_MAX);
	rc = run(argc, argv, &out, &e);
	if (rc == 0 && buf_failed(&out))
		rc = err_set(&e, ERR_TOO_LARGE, "the answer has more than %d bytes", RESULT_MAX);
	if (rc == 0)
		rc = fs_write_all(STDOUT_FILENO, buf_str(&out), "stdout", &e);
	if (rc < 0)
		put_error(&e);
	buf_done(&out);
	(void)git_libgit2_shutdown();
	return rc < 0 ? 1 : 0;
}
