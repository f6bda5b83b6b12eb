#include "lib/vcs/repo.h"

#include "lib/base/fs.h"
#include "lib/base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The cache of a remote repository holds its branches and tags under their own names, as a mirror
 * would. One fetch at a time: under the lock we also clear what a killed fetch left behind (lock
 * files, half a pack), and drop references that are gone from the remote before new ones are
 * written, since a branch "a" would stand in the way of "a/b". Revisions are resolved from what the
 * remote says now, never from the cache.
 *
 * Each fetch adds a pack, and libgit2 does not repack: past PACKS_MAX, or when its objects turn out
 * to be damaged, the cache is made anew, unless somebody else reads from it just then.
 */

enum { PACKS_MAX = 64 };

static enum err_code code_of(const struct repo *r, int rc, int class)
{
	if (r->too_large)
		return ERR_TOO_LARGE;
	if (r->cred.refused || r->cred.unknown_host || rc == GIT_EAUTH || rc == GIT_ECERTIFICATE)
		return ERR_FORBIDDEN;
	if (rc == GIT_ENOTFOUND)
		return ERR_NOT_FOUND;
	if (rc == GIT_EAMBIGUOUS || rc == GIT_EINVALIDSPEC)
		return ERR_INVALID;
	switch (class) {
	case GIT_ERROR_NET:
	case GIT_ERROR_HTTP:
	case GIT_ERROR_SSL:
	case GIT_ERROR_SSH: return ERR_NETWORK;
	case GIT_ERROR_OS:
		return errno == ENOSPC              ? ERR_NO_SPACE
		       : r->url.scheme != VCS_LOCAL ? ERR_NETWORK
						    : ERR_IO;
	case GIT_ERROR_ODB:
	case GIT_ERROR_OBJECT:
	case GIT_ERROR_TREE:
	case GIT_ERROR_INDEXER:
	case GIT_ERROR_ZLIB: return ERR_CORRUPT;
	default: return r->url.scheme != VCS_LOCAL ? ERR_NETWORK : ERR_IO;
	}
}

int repo_fail(struct repo *r, int rc, const char *doing, struct err *e)
{
	const git_error *last = git_error_last(); /* may be NULL after a failure */
	enum err_code code = code_of(r, rc, last != NULL ? last->klass : GIT_ERROR_NONE);
	char why[200];

	if (r->too_large)
		return err_set(e, code, "cannot %s: more than %llu bytes or %llu objects", doing,
			(unsigned long long)r->limits.max_fetch,
			(unsigned long long)r->limits.max_objects);
	if (r->cred.unknown_host)
		return err_set(
			e, code, "cannot %s: the host key is not among the known ones", doing);
	if (r->cred.refused)
		return err_set(e, code, "cannot %s: the repository wants %scredentials", doing,
			r->cred.tries > 1 ? "other " : "");
	(void)str_print(why, sizeof why, "%s", last != NULL ? last->message : "no reason given");
	for (char *p = why; *p != '\0'; p++)
		*p = (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p;
	return err_set(e, code, "cannot %s: %s", doing, why);
}

static int open_local(struct repo *r, struct err *e)
{
	char inner[VCS_URL_MAX + 8];
	struct stat st;
	int rc;

	(void)str_print(inner, sizeof inner, "%s/.git", r->url.text);
	rc = stat(inner, &st) == 0 && S_ISDIR(st.st_mode)
		     ? git_repository_open_bare(&r->git, inner)
		     : git_repository_open_bare(&r->git, r->url.text);
	return rc < 0 ? repo_fail(r, rc, "open the local repository", e) : 0;
}

static int lock_take(const char *path, int how, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_errno(e, "open", path);
	while (flock(fd, how) < 0) {
		if (errno == EINTR)
			continue;
		(void)err_errno(e, "lock", path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int cache_paths(struct repo *r, struct err *e)
{
	char hex[GIT_OID_HEXSZ + 1];
	git_oid key;

	if (git_odb_hash(&key, r->url.text, strlen(r->url.text), GIT_OBJECT_BLOB) < 0)
		return repo_fail(r, -1, "name the cache", e);
	git_oid_tostr(hex, sizeof hex, &key);
	if (!str_print(r->path, sizeof r->path, "%s/%s.git", r->cache, hex) ||
		!str_print(r->lock, sizeof r->lock, "%s/%s.lock", r->cache, hex) ||
		!str_print(r->used, sizeof r->used, "%s/%s.used", r->cache, hex))
		return err_set(e, ERR_INVALID, "the path of the cache is too long");
	return fs_mkdirs(r->cache, 0700, e);
}

int repo_open(struct repo *r, struct err *e)
{
	r->cred.url = &r->url;
	if (r->url.scheme == VCS_LOCAL)
		return open_local(r, e);
	if (r->cache == NULL)
		return 0;
	if (cache_paths(r, e) < 0)
		return -1;
	r->use = lock_take(r->used, LOCK_SH, e);
	if (r->use < 0) {
		r->use = 0;
		return -1;
	}
	if (git_repository_open_bare(&r->git, r->path) < 0)
		r->git = NULL; /* made by the first fetch */
	return 0;
}

void repo_close(struct repo *r)
{
	git_repository_free(r->git);
	r->git = NULL;
	if (r->use > 0)
		(void)close(r->use);
	r->use = 0;
}

static int on_progress(const git_indexer_progress *p, void *payload)
{
	struct cred *c = payload;
	struct repo *r = (struct repo *)(void *)((char *)c - offsetof(struct repo, cred));

	if (p->received_bytes <= r->limits.max_fetch && p->total_objects <= r->limits.max_objects)
		return 0;
	r->too_large = true;
	return GIT_EUSER;
}

static void set_callbacks(struct repo *r, git_remote_callbacks *cb)
{
	cb->credentials = cred_acquire;
	cb->certificate_check = cred_check_host;
	cb->transfer_progress = on_progress;
	cb->payload = &r->cred;
}

/* On success the caller disconnects and frees the remote. */
static int connect_remote(struct repo *r, git_remote **ret, struct err *e)
{
	git_remote_connect_options o = GIT_REMOTE_CONNECT_OPTIONS_INIT;
	git_remote *remote = NULL;
	int rc;

	o.follow_redirects = GIT_REMOTE_REDIRECT_NONE;
	o.proxy_opts.type = GIT_PROXY_NONE;
	set_callbacks(r, &o.callbacks);
	rc = r->git != NULL ? git_remote_create_anonymous(&remote, r->git, r->url.text)
			    : git_remote_create_detached(&remote, r->url.text);
	if (rc == 0)
		rc = git_remote_connect_ext(remote, GIT_DIRECTION_FETCH, &o);
	if (rc < 0) {
		(void)repo_fail(r, rc, "reach the repository", e);
		git_remote_free(remote);
		return -1;
	}
	*ret = remote;
	return 0;
}

/* ---- fetch --------------------------------------------------------------------------------- */

struct sweeping {
	int dir;
	unsigned packs;
};

static int sweep_one(void *arg, const char *path, int64_t size, struct err *e)
{
	struct sweeping *s = arg;
	struct str p = str_c(path);

	(void)size, (void)e;
	if (str_ends(p, STR(".lock")) || str_find(p, STR("pack/pack_git2_")) >= 0)
		(void)unlinkat(s->dir, path, 0);
	else if (str_ends(p, STR(".pack")))
		s->packs++;
	return 0;
}

static int sweep(struct repo *r, unsigned *ret_packs, struct err *e)
{
	struct sweeping s = { open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0 };

	if (s.dir < 0)
		return err_errno(e, "open", r->path);
	int rc = fs_walk(r->path, sweep_one, NULL, &s, e);
	(void)close(s.dir);
	if (rc == 0)
		*ret_packs = s.packs;
	return rc;
}

/* Away with the cache, unless it is in use; the rename makes that whole or not at all. */
static int forget_cache(struct repo *r, struct err *e)
{
	char old[sizeof r->path + 8];
	int rc = 0;

	if (flock(r->use, LOCK_EX | LOCK_NB) == 0) {
		git_repository_free(r->git);
		r->git = NULL;
		(void)str_print(old, sizeof old, "%s.old", r->path);
		rc = fs_remove_tree(old, e);
		if (rc == 0 && rename(r->path, old) < 0)
			rc = err_errno(e, "rename", r->path);
		if (rc == 0)
			rc = fs_remove_tree(old, e);
	}
	if (flock(r->use, LOCK_SH) < 0 && rc == 0)
		rc = err_errno(e, "lock", r->used);
	return rc;
}

static int make_cache(struct repo *r, struct err *e)
{
	git_repository_init_options o = GIT_REPOSITORY_INIT_OPTIONS_INIT;
	int rc;

	if (r->git != NULL || git_repository_open_bare(&r->git, r->path) == 0)
		return 0;
	o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR;
	o.mode = 0700;
	rc = git_repository_init_ext(&r->git, r->path, &o);
	return rc < 0 ? repo_fail(r, rc, "make the cache", e) : 0;
}

static int drop_gone(struct repo *r, const git_remote_head **heads, size_t n, struct err *e)
{
	git_strarray have = { NULL, 0 };
	int rc = git_reference_list(&have, r->git);
	struct map *there = map_new();

	for (size_t i = 0; i < n; i++)
		(void)map_put(there, str_c(heads[i]->name), r);
	for (size_t i = 0; rc == 0 && i < have.count; i++) {
		if (map_get(there, str_c(have.strings[i])) == NULL)
			rc = git_reference_remove(r->git, have.strings[i]);
	}
	map_free(there);
	git_strarray_dispose(&have);
	return rc < 0 ? repo_fail(r, rc, "drop old references", e) : 0;
}

static int download(struct repo *r, git_remote *remote, struct err *e)
{
	git_fetch_options o = GIT_FETCH_OPTIONS_INIT;
	char branches[] = "+refs/heads/*:refs/heads/*", tags[] = "+refs/tags/*:refs/tags/*";
	char *specs[] = { branches, tags };
	git_strarray want = { specs, 2 };
	const git_remote_head **heads = NULL;
	size_t n = 0;
	int rc = git_remote_ls(&heads, &n, remote);

	if (rc < 0)
		return repo_fail(r, rc, "list the references", e);
	if (drop_gone(r, heads, n, e) < 0)
		return -1;
	o.follow_redirects = GIT_REMOTE_REDIRECT_NONE;
	o.proxy_opts.type = GIT_PROXY_NONE;
	o.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
	o.update_fetchhead = 0;
	set_callbacks(r, &o.callbacks);
	rc = git_remote_download(remote, &want, &o);
	if (rc == 0)
		rc = git_remote_update_tips(
			remote, &o.callbacks, 0, GIT_REMOTE_DOWNLOAD_TAGS_NONE, NULL);
	return rc < 0 ? repo_fail(r, rc, "fetch", e) : 0;
}

static int fetch_once(struct repo *r, struct err *e)
{
	git_remote *remote = NULL;
	int rc;

	if (make_cache(r, e) < 0)
		return -1;
	r->cred.tries = 0;
	if (connect_remote(r, &remote, e) < 0)
		return -1;
	rc = download(r, remote, e);
	(void)git_remote_disconnect(remote);
	git_remote_free(remote);
	return rc;
}

static int fetch_locked(struct repo *r, struct err *e)
{
	unsigned packs = 0;

	if (make_cache(r, e) < 0 || sweep(r, &packs, e) < 0)
		return -1;
	if (packs > PACKS_MAX && forget_cache(r, e) < 0)
		return -1;
	if (fetch_once(r, e) == 0)
		return 0;
	if (e->code != ERR_CORRUPT || forget_cache(r, e) < 0 || r->git != NULL)
		return -1;
	return fetch_once(r, e);
}

static bool has_commit(struct repo *r, const git_oid *id, size_t hex)
{
	git_object *commit = NULL;
	bool found = r->git != NULL &&
		     git_object_lookup_prefix(&commit, r->git, id, hex, GIT_OBJECT_COMMIT) == 0;

	git_object_free(commit);
	return found;
}

/* After this the cache has the commit (or the prefix of one), if the remote has it. */
static int bring(struct repo *r, const git_oid *id, size_t hex, struct err *e)
{
	int lock, rc;

	if (r->url.scheme == VCS_LOCAL || has_commit(r, id, hex))
		return 0;
	if (r->cache == NULL)
		return err_set(e, ERR_INVALID, "a cache is needed to look for a commit");
	lock = lock_take(r->lock, LOCK_EX, e);
	if (lock < 0)
		return -1;
	/* Somebody else may have fetched it while we waited. */
	if (r->git == NULL && git_repository_open_bare(&r->git, r->path) < 0)
		r->git = NULL;
	rc = has_commit(r, id, hex) ? 0 : fetch_locked(r, e);
	(void)close(lock);
	return rc;
}

/* ---- revisions ----------------------------------------------------------------------------- */

static bool is_hex(const char *s, size_t n)
{
	return n >= 7 && n <= GIT_OID_HEXSZ && strspn(s, "0123456789abcdef") == n;
}

/* The revision is to blame. */
static int of_ref(struct err *e)
{
	(void)str_print(e->field, sizeof e->field, "/ref");
	return -1;
}

static int by_id(struct repo *r, const char *hex, git_oid *ret, struct err *e)
{
	git_object *object = NULL;
	size_t n = strlen(hex);
	git_oid id;
	int rc;

	if (!is_hex(hex, n) || git_oid_fromstrn(&id, hex, n) < 0) {
		(void)err_set(e, ERR_NOT_FOUND,
			"the repository has no branch, tag or commit \"%s\"", hex);
		return of_ref(e);
	}
	if (bring(r, &id, n, e) < 0)
		return -1;
	rc = git_object_lookup_prefix(&object, r->git, &id, n, GIT_OBJECT_COMMIT);
	if (rc == GIT_EAMBIGUOUS)
		(void)err_set(e, ERR_INVALID, "the commit id \"%s\" is ambiguous", hex);
	else if (rc < 0)
		(void)err_set(e, ERR_NOT_FOUND,
			"the repository has no commit %s on a branch or tag", hex);
	if (rc < 0)
		return of_ref(e);
	git_oid_cpy(ret, git_object_id(object));
	git_object_free(object);
	return 0;
}

enum { N_CANDIDATES = 3, REF_TEXT = VCS_REF_MAX + 32 };

/* The candidates for a name, best first; the count is returned. */
static size_t candidates(const char *ref, char out[N_CANDIDATES][REF_TEXT])
{
	size_t n = 0;

	if (strcmp(ref, "HEAD") == 0) {
		(void)str_print(out[n++], REF_TEXT, "HEAD");
		return n;
	}
	if (strncmp(ref, "refs/", 5) == 0) {
		(void)str_print(out[n++], REF_TEXT, "%s^{}", ref);
		(void)str_print(out[n++], REF_TEXT, "%s", ref);
		return n;
	}
	(void)str_print(out[n++], REF_TEXT, "refs/tags/%s^{}", ref);
	(void)str_print(out[n++], REF_TEXT, "refs/tags/%s", ref);
	(void)str_print(out[n++], REF_TEXT, "refs/heads/%s", ref);
	return n;
}

/* 1 when found, 0 when not, -1 on failure. */
static int by_remote_name(struct repo *r, const char *ref, git_oid *ret, struct err *e)
{
	char names[N_CANDIDATES][REF_TEXT];
	const git_remote_head **heads = NULL;
	git_remote *remote = NULL;
	size_t n = 0, wanted = candidates(ref, names);
	int rc, found = 0;

	if (connect_remote(r, &remote, e) < 0)
		return -1;
	rc = git_remote_ls(&heads, &n, remote);
	if (rc < 0)
		found = repo_fail(r, rc, "list the references", e);
	for (size_t i = 0; i < wanted && found == 0; i++) {
		for (size_t k = 0; k < n && found == 0; k++) {
			if (strcmp(heads[k]->name, names[i]) != 0)
				continue;
			git_oid_cpy(ret, &heads[k]->oid);
			found = 1;
		}
	}
	(void)git_remote_disconnect(remote);
	git_remote_free(remote);
	return found;
}

static int by_local_name(struct repo *r, const char *ref, git_oid *ret, struct err *e)
{
	char names[N_CANDIDATES][REF_TEXT];
	size_t wanted = candidates(ref, names);

	for (size_t i = 0; i < wanted; i++) {
		git_reference *reference = NULL;
		git_object *commit = NULL;
		int rc;
		if (str_ends(str_c(names[i]), STR("^{}")))
			continue;
		if (git_reference_lookup(&reference, r->git, names[i]) < 0)
			continue;
		rc = git_reference_peel(&commit, reference, GIT_OBJECT_COMMIT);
		git_reference_free(reference);
		if (rc == GIT_ENOTFOUND)
			continue; /* HEAD of an empty repository */
		if (rc < 0)
			return repo_fail(r, rc, "follow the reference to a commit", e);
		git_oid_cpy(ret, git_object_id(commit));
		git_object_free(commit);
		return 1;
	}
	return 0;
}

int repo_resolve(struct repo *r, const char *ref, git_oid *ret, struct err *e)
{
	int found = 0;

	if (!vcs_is_commit(str_c(ref))) {
		found = r->url.scheme == VCS_LOCAL ? by_local_name(r, ref, ret, e)
						   : by_remote_name(r, ref, ret, e);
		if (found < 0)
			return -1;
	}
	return found > 0 ? 0 : by_id(r, ref, ret, e);
}

int repo_tree(struct repo *r, const char *commit, git_tree **ret, struct err *e)
{
	git_commit *c = NULL;
	git_oid id;
	int rc;

	if (by_id(r, commit, &id, e) < 0)
		return -1;
	rc = git_commit_lookup(&c, r->git, &id);
	if (rc == 0)
		rc = git_commit_tree(ret, c);
	git_commit_free(c);
	return rc < 0 ? repo_fail(r, rc, "read the commit's tree", e) : 0;
}
