#include "lib/vcs/tree.h"

#include "lib/base/buf.h"
#include "lib/base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Why links are safe: a target is relative, has ".." at its front only, and not more of them than
 * there are folders above the link. Folders of the tree are real (an entry below a link cannot be
 * written: mkdirat and openat fail on the link's name), so the ".." stay inside; the rest of the
 * target goes down, maybe through other links, of which the same holds, with no ".." after them.
 */

enum { DEPTH_MAX = 128, NAME_BYTES_MAX = 255, LINK_MAX = 1024 };

struct writer {
	struct repo *r;
	git_odb *odb;
	const struct tree_caps *caps;
	struct tree_stats *stats;
	uint64_t entries;
	struct buf path;
	unsigned depth; /* folders above the entry in hand */
};

/* Code points that HFS+ ignores in names: U+200B–200F, 202A–202E, 206A–206F, FEFF. */
static size_t hfs_ignored(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (s.n < 3)
		return 0;
	if (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf)
		return 3;
	if (p[0] != 0xe2)
		return 0;
	if (p[1] == 0x80)
		return (p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xaa && p[2] <= 0xae) ? 3 : 0;
	return p[1] == 0x81 && p[2] >= 0xaa && p[2] <= 0xaf ? 3 : 0;
}

/* ".git" as any file system may read it: case, ignored code points, trailing dots and spaces,
 * alternate streams, the short name. */
static bool is_dot_git(struct str name)
{
	char plain[8];
	size_t n = 0;

	while (name.n != 0 && n < sizeof plain) {
		size_t skip = hfs_ignored(name);
		if (skip == 0 && name.p[0] == ':')
			break;
		if (skip == 0)
			plain[n++] = name.p[0];
		name = str_slice(name, skip != 0 ? skip : 1, name.n);
	}
	bool cut = n == sizeof plain;
	while (n != 0 && (plain[n - 1] == '.' || plain[n - 1] == ' '))
		n--;
	struct str p = { plain, n };
	if (cut && n != 4 && n != 5)
		return false;
	return str_eq_nocase(p, STR(".git")) || str_eq_nocase(p, STR("git~1"));
}

bool tree_name_ok(struct str name)
{
	return name.n != 0 && name.n <= NAME_BYTES_MAX && !str_has_control(name) &&
	       str_find_char(name, '/') < 0 && !str_is(name, ".") && !str_is(name, "..") &&
	       !is_dot_git(name);
}

bool tree_link_ok(struct str target, unsigned depth)
{
	struct str piece;
	unsigned up = 0;
	bool down = false;

	if (target.n == 0 || target.n > LINK_MAX || target.p[0] == '/' || str_has_control(target))
		return false;
	while (str_next(&target, '/', &piece)) {
		if (str_is(piece, "..")) {
			if (down || ++up > depth)
				return false;
		} else if (piece.n != 0 && !str_is(piece, ".")) {
			down = true;
		}
	}
	return true;
}

static int refuse(const struct writer *w, enum err_code code, const char *why, struct err *e)
{
	char shown[161];
	size_t n = w->path.n < sizeof shown - 1 ? w->path.n : sizeof shown - 1;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)w->path.p[i];
		shown[i] = c < ' ' || c == 0x7f ? '?' : (char)c;
	}
	shown[n] = '\0';
	return err_set(e, code, "\"%s\" %s", shown, why);
}

static bool is_lfs(const char *bytes, size_t n)
{
	return n < 1024 && str_starts((struct str){ bytes, n },
				   STR("version https://git-lfs.github.com/spec/"));
}

static int write_bytes(
	struct writer *w, int dirfd, const char *name, mode_t mode, struct str bytes, struct err *e)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int rc;

	if (fd < 0 && errno == EEXIST)
		return refuse(w, ERR_INVALID, "is in the tree twice", e);
	if (fd < 0)
		return err_errno(e, "create", name);
	rc = fs_write_all(fd, bytes, name, e);
	if (close(fd) < 0 && rc == 0)
		rc = err_errno(e, "write", name);
	return rc;
}

/* The blob, when it is within the caps. */
static int read_blob(
	struct writer *w, const git_oid *id, uint64_t max, git_odb_object **ret, struct err *e)
{
	git_object_t type;
	size_t n = 0;
	int rc = git_odb_read_header(&n, &type, w->odb, id);

	if (rc < 0)
		return repo_fail(w->r, rc == GIT_ENOTFOUND ? -1 : rc, "read an object", e);
	if (type != GIT_OBJECT_BLOB)
		return refuse(w, ERR_INVALID, "is not a file in the repository", e);
	if (n > max)
		return refuse(w, ERR_TOO_LARGE, "is larger than the limit for one file", e);
	if (n > w->caps->max_bytes - w->stats->bytes)
		return refuse(w, ERR_TOO_LARGE, "would take the tree past its limit of bytes", e);
	rc = git_odb_read(ret, w->odb, id);
	return rc < 0 ? repo_fail(w->r, rc == GIT_ENOTFOUND ? -1 : rc, "read an object", e) : 0;
}

static int write_file(struct writer *w, int dirfd, const git_tree_entry *entry, struct err *e)
{
	mode_t mode = git_tree_entry_filemode(entry) == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644;
	git_odb_object *blob = NULL;

	if (read_blob(w, git_tree_entry_id(entry), w->caps->max_file, &blob, e) < 0)
		return -1;
	struct str bytes = { git_odb_object_data(blob), git_odb_object_size(blob) };
	int rc = write_bytes(w, dirfd, git_tree_entry_name(entry), mode, bytes, e);
	w->stats->files++;
	w->stats->bytes += bytes.n;
	if (is_lfs(bytes.p, bytes.n) && w->stats->lfs++ == 0)
		(void)str_print(w->stats->first_lfs, sizeof w->stats->first_lfs, "%s", w->path.p);
	git_odb_object_free(blob);
	return rc;
}

static int write_link(struct writer *w, int dirfd, const git_tree_entry *entry, struct err *e)
{
	char target[LINK_MAX + 1];
	git_odb_object *blob = NULL;
	size_t n;

	if (read_blob(w, git_tree_entry_id(entry), LINK_MAX, &blob, e) < 0)
		return -1;
	n = git_odb_object_size(blob);
	memcpy(target, git_odb_object_data(blob), n);
	target[n] = '\0';
	git_odb_object_free(blob);
	if (!tree_link_ok((struct str){ target, n }, w->depth))
		return refuse(w, ERR_INVALID, "is a link that could lead out of the tree", e);
	if (symlinkat(target, dirfd, git_tree_entry_name(entry)) < 0)
		return errno == EEXIST ? refuse(w, ERR_INVALID, "is in the tree twice", e)
				       : err_errno(e, "make the link", git_tree_entry_name(entry));
	w->stats->links++;
	return 0;
}

static int write_folder(struct writer *w, const git_tree *tree, int dirfd, struct err *e);

static int write_subfolder(struct writer *w, int dirfd, const git_tree_entry *entry, struct err *e)
{
	const char *name = git_tree_entry_name(entry);
	git_tree *tree = NULL;
	int sub, rc;

	if (w->depth >= DEPTH_MAX)
		return refuse(w, ERR_TOO_LARGE, "is nested too deeply", e);
	if (mkdirat(dirfd, name, 0755) < 0)
		return errno == EEXIST ? refuse(w, ERR_INVALID, "is in the tree twice", e)
				       : err_errno(e, "make the folder", name);
	sub = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		return err_errno(e, "open the folder", name);
	rc = git_tree_lookup(&tree, w->r->git, git_tree_entry_id(entry));
	if (rc < 0) {
		rc = repo_fail(w->r, rc == GIT_ENOTFOUND ? -1 : rc, "read a tree", e);
	} else {
		w->depth++;
		rc = write_folder(w, tree, sub, e);
		w->depth--;
	}
	git_tree_free(tree);
	(void)close(sub);
	return rc;
}

static int write_entry(struct writer *w, int dirfd, const git_tree_entry *entry, struct err *e)
{
	if (!tree_name_ok(str_c(git_tree_entry_name(entry))))
		return refuse(w, ERR_INVALID, "is a name that is not allowed in a tree", e);
	if (buf_failed(&w->path))
		return refuse(w, ERR_TOO_LARGE, "is a path that is too long", e);
	if (++w->entries > w->caps->max_files)
		return refuse(w, ERR_TOO_LARGE, "is past the limit of files in a tree", e);
	switch (git_tree_entry_filemode(entry)) {
	case GIT_FILEMODE_TREE: return write_subfolder(w, dirfd, entry, e);
	case GIT_FILEMODE_BLOB:
	case GIT_FILEMODE_BLOB_EXECUTABLE: return write_file(w, dirfd, entry, e);
	case GIT_FILEMODE_LINK: return write_link(w, dirfd, entry, e);
	case GIT_FILEMODE_COMMIT: /* a submodule stays an empty folder */
		w->stats->submodules++;
		return mkdirat(dirfd, git_tree_entry_name(entry), 0755) < 0
			       ? err_errno(e, "make the folder", git_tree_entry_name(entry))
			       : 0;
	case GIT_FILEMODE_UNREADABLE: break;
	}
	return refuse(w, ERR_INVALID, "has an unknown kind", e);
}

static int write_folder(struct writer *w, const git_tree *tree, int dirfd, struct err *e)
{
	size_t n = git_tree_entrycount(tree), base = w->path.n;

	for (size_t i = 0; i < n; i++) {
		const git_tree_entry *entry = git_tree_entry_byindex(tree, i);
		if (base != 0)
			buf_addc(&w->path, '/');
		buf_adds(&w->path, git_tree_entry_name(entry));
		if (write_entry(w, dirfd, entry, e) < 0)
			return -1;
		w->path.n = base;
		w->path.p[base] = '\0';
	}
	return 0;
}

int tree_write(struct repo *r, git_tree *tree, int dirfd, const struct tree_caps *caps,
	struct tree_stats *ret, struct err *e)
{
	struct tree_stats stats = { .files = 0 };
	struct writer w = { .r = r, .caps = caps, .stats = &stats };
	int rc = git_repository_odb(&w.odb, r->git);

	if (rc < 0)
		return repo_fail(r, rc, "open the object database", e);
	buf_init(&w.path, VCS_PATH_MAX);
	rc = write_folder(&w, tree, dirfd, e);
	buf_done(&w.path);
	git_odb_free(w.odb);
	if (rc == 0)
		*ret = stats;
	return rc;
}

int tree_read(struct repo *r, git_tree *tree, const char *path, uint64_t max, git_odb_object **ret,
	struct err *e)
{
	git_tree_entry *entry = NULL;
	git_odb_object *blob = NULL;
	git_odb *odb = NULL;
	git_object_t type;
	size_t n = 0;
	int rc = git_tree_entry_bypath(&entry, tree, path);

	if (rc == 0 && git_tree_entry_filemode(entry) != GIT_FILEMODE_BLOB &&
		git_tree_entry_filemode(entry) != GIT_FILEMODE_BLOB_EXECUTABLE)
		rc = GIT_ENOTFOUND;
	if (rc == 0)
		rc = git_repository_odb(&odb, r->git);
	if (rc == 0)
		rc = git_odb_read_header(&n, &type, odb, git_tree_entry_id(entry));
	if (rc == 0 && n <= max)
		rc = git_odb_read(&blob, odb, git_tree_entry_id(entry));
	git_odb_free(odb);
	git_tree_entry_free(entry);
	if (rc == GIT_ENOTFOUND)
		rc = 0;
	else if (rc == 0 && n > max)
		return err_set(e, ERR_TOO_LARGE, "\"%.160s\" has %zu bytes; the limit is %llu",
			path, n, (unsigned long long)max);
	if (rc < 0)
		return repo_fail(r, rc, "read a file", e);
	*ret = blob;
	return 0;
}

int tree_changed(struct repo *r, const struct tree_diff *d, bool *ret_complete, struct err *e)
{
	git_diff_options o = GIT_DIFF_OPTIONS_INIT;
	git_diff *diff = NULL;
	size_t n;
	int rc;

	o.flags = GIT_DIFF_IGNORE_SUBMODULES | GIT_DIFF_SKIP_BINARY_CHECK;
	rc = git_diff_tree_to_tree(&diff, r->git, d->from, d->to, &o);
	if (rc < 0)
		return repo_fail(r, rc, "compare the commits", e);
	n = git_diff_num_deltas(diff);
	for (size_t i = 0; i < n && i < d->max; i++)
		d->fn(d->arg, str_c(git_diff_get_delta(diff, i)->new_file.path));
	*ret_complete = n <= d->max;
	git_diff_free(diff);
	return 0;
}
