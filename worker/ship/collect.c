#include "worker/ship/collect.h"

#include "api/pipeline.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

struct walk {
	struct collect *c;
	const struct assigned_output *output;
	bool single; /* the output is a file */
	size_t n;
};

static int wrong(struct collect *c, enum reason reason, struct err *e)
{
	c->reason = reason;
	c->err = *e;
	return -1;
}

static int on_other(void *arg, const char *path, int64_t size, struct err *e)
{
	const struct walk *w = arg;

	(void)size;
	return err_set(e, ERR_INVALID,
		"output %.63s: %.200s is not a plain file; links are not followed",
		w->output->name.p, path);
}

static int on_file(void *arg, const char *path, int64_t size, struct err *e)
{
	struct walk *w = arg;
	struct collect *c = w->c;
	struct str p = str_c(path), full;

	if (w->n == FILES_MAX)
		return err_set(e, ERR_INVALID, "output %.63s has more than %d files",
			w->output->name.p, FILES_MAX);
	if (p.n + w->output->path.n + 1 > PATH_BYTES_MAX || str_has_control(p) ||
		!str_utf8_valid(p))
		return err_set(e, ERR_INVALID,
			"output %.63s: the path of a file must be UTF-8 without control "
			"characters and up to %d bytes",
			w->output->name.p, PATH_BYTES_MAX);
	if (arena_room(c->a) < 4 * PATH_MAX)
		return err_set(e, ERR_INVALID, "the outputs have too many files");
	full = w->single ? arena_str(c->a, w->output->path)
			 : arena_printf(c->a, "%s/%s", w->output->path.p, path);
	c->files = mem_resize(c->files, c->n + 1, sizeof *c->files);
	c->files[c->n++] = (struct file){ .path = full, .size = size };
	w->n++;
	return 0;
}

/* A path that leads nowhere but below: the server checks this too. */
static bool path_is_plain(struct str path)
{
	struct str piece;

	if (path.n == 0 || path.n > PATH_BYTES_MAX || str_has_control(path))
		return false;
	while (str_next(&path, '/', &piece))
		if (piece.n == 0 || str_is(piece, ".") || str_is(piece, ".."))
			return false;
	return true;
}

static int find_output(struct collect *c, int root, const struct assigned_output *o)
{
	struct walk w = { .c = c, .output = o };
	struct err e = { .code = ERR_OK };
	struct stat st;
	int fd;

	if (!path_is_plain(o->path)) {
		(void)err_set(&e, ERR_INVALID, "output %.63s has no usable path", o->name.p);
		return wrong(c, REASON_OUTPUT_INVALID, &e);
	}
	fd = fs_open_beneath(root, o->path.p, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0 && errno == ENOENT) {
		(void)err_set(&e, ERR_NOT_FOUND,
			"output %.63s: there is no %.200s in TIDEMILL_OUTPUT", o->name.p,
			o->path.p);
		return wrong(c, REASON_OUTPUT_MISSING, &e);
	}
	int rc = fd < 0 || fstat(fd, &st) < 0 ? -1 : 0;
	if (fd >= 0)
		(void)close(fd);
	if (rc < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))) {
		(void)on_other(&w, o->path.p, 0, &e);
		return wrong(c, REASON_OUTPUT_INVALID, &e);
	}
	w.single = S_ISREG(st.st_mode);
	if (w.single)
		rc = on_file(&w, "", st.st_size, &e);
	else
		rc = fs_walk_beneath(root, o->path.p, on_file, on_other, &w, &e);
	if (rc < 0)
		return wrong(c, REASON_OUTPUT_INVALID, &e);
	if (o->kind == OUTPUT_VALUE && !w.single) {
		(void)err_set(&e, ERR_INVALID,
			"output %.63s: a value is one file, and %.200s is a folder", o->name.p,
			o->path.p);
		return wrong(c, REASON_OUTPUT_INVALID, &e);
	}
	if (w.n == 0) {
		(void)err_set(&e, ERR_NOT_FOUND, "output %.63s: the folder %.200s is empty",
			o->name.p, o->path.p);
		return wrong(c, REASON_OUTPUT_MISSING, &e);
	}
	return 0;
}

static int digest_file(struct collect *c, int root, struct file *f, struct hash *hash, char *bytes)
{
	unsigned char digest[HASH_SIZE];
	char hex[HASH_HEX + 1];
	struct err e;
	ssize_t n = 1;
	int fd = fs_open_file_beneath(root, f->path.p, &e);

	if (fd < 0)
		return wrong(c, REASON_OUTPUT_INVALID, &e);
	f->size = 0;
	while (n > 0 && !atomic_load(&c->stop)) {
		n = read(fd, bytes, READ_BYTES);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n > 0) {
			hash_add(hash, (struct str){ bytes, (size_t)n });
			f->size += n;
		}
	}
	if (n < 0) /* the host's fault, and no word about what the step has left */
		(void)err_errno(&e, "read", f->path.p);
	(void)close(fd);
	hash_end(hash, digest);
	f->digest = arena_str(c->a, str_c(hash_hex(hex, digest)));
	return n < 0 ? wrong(c, REASON_UPLOAD_FAILED, &e) : 0;
}

/* What it holds goes with its name; that it is what the digest says, the server sees. */
static int read_value(struct collect *c, int root, const struct file *f, size_t *left,
	struct output_files *ret, char *bytes)
{
	struct err e;
	struct str text = { bytes, 0 };
	int fd = fs_open_file_beneath(root, f->path.p, &e);
	ssize_t n = 1;

	if (fd < 0)
		return wrong(c, REASON_OUTPUT_INVALID, &e);
	while (n > 0 && text.n <= VALUE_MAX) {
		n = read(fd, bytes + text.n, VALUE_MAX + 1 - text.n);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			text.n += (size_t)n;
	}
	(void)close(fd);
	if (n < 0)
		(void)err_errno(&e, "read", f->path.p);
	else if (text.n > VALUE_MAX)
		(void)err_set(&e, ERR_INVALID, "output %.63s: a value has at most %d bytes",
			ret->name.p, VALUE_MAX);
	else if (text.n > *left)
		(void)err_set(&e, ERR_INVALID,
			"output %.63s: a step's values have at most %d bytes together", ret->name.p,
			VALUES_MAX);
	else if (!str_utf8_valid(text) || !str_is_text(text))
		(void)err_set(&e, ERR_INVALID,
			"output %.63s: a value is UTF-8 text without control characters but "
			"newlines and tabs",
			ret->name.p);
	else {
		*left -= text.n;
		ret->value = arena_str(c->a, text);
		ret->has_value = true;
		return 0;
	}
	return wrong(c, n < 0 ? REASON_UPLOAD_FAILED : REASON_OUTPUT_INVALID, &e);
}

static int read_values(struct collect *c, int root, char *bytes)
{
	size_t left = VALUES_MAX;

	for (size_t i = 0; i < c->outputs->n; i++)
		if (list_at(c->outputs, struct assigned_output, i)->kind == OUTPUT_VALUE &&
			read_value(c, root, list_at(&c->found[i].files, struct file, 0), &left,
				&c->found[i], bytes) < 0)
			return -1;
	return 0;
}

void collect_run(struct collect *c)
{
	size_t *first = mem_new(c->outputs->n + 1, sizeof *first);
	struct hash *hash = hash_new();
	char *bytes = mem_new(1, READ_BYTES);
	int root = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (root < 0) {
		struct err e;
		(void)err_errno(&e, "open", c->root);
		rc = wrong(c, REASON_UPLOAD_FAILED, &e);
	}
	for (size_t i = 0; rc == 0 && i < c->outputs->n; i++) {
		first[i] = c->n;
		rc = find_output(c, root, list_at(c->outputs, struct assigned_output, i));
		first[i + 1] = c->n;
	}
	for (size_t i = 0; rc == 0 && i < c->n && !atomic_load(&c->stop); i++)
		rc = digest_file(c, root, &c->files[i], hash, bytes);
	c->found = arena_array_of(c->a, struct output_files, c->outputs->n + 1);
	for (size_t i = 0; rc == 0 && i < c->outputs->n; i++)
		c->found[i] = (struct output_files){
			.name = list_at(c->outputs, struct assigned_output, i)->name,
			.files = { c->files + first[i], first[i + 1] - first[i] },
		};
	if (rc == 0 && !atomic_load(&c->stop))
		(void)read_values(c, root, bytes);
	if (root >= 0)
		(void)close(root);
	mem_free(bytes);
	hash_free(hash);
	mem_free(first);
}

void collect_done(struct collect *c)
{
	mem_free(c->files);
	c->files = NULL;
}
