#include "cli/files.h"

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_LIMIT = 10000, READ_SIZE = 1 << 20 };

/* ---- finding --------------------------------------------------------------------------------- */

struct finder {
	struct cli *c;
	const char *root;
	struct local_file *files;
	size_t n;
};

/* What a data set cannot call a file. */
static int check_name(struct str name, struct err *e)
{
	struct buf shown;

	if (str_utf8_valid(name) && !str_has_control(name))
		return 0;
	buf_init(&shown, 4096);
	for (size_t i = 0; i < name.n; i++)
		buf_addc(&shown, (unsigned char)(name.p[i] - ' ') < 0x5f ? name.p[i] : '?');
	(void)cli_usage(e, "the name of the file %.200s %s", buf_str(&shown).p,
		str_has_control(name) ? "has a control character" : "is not UTF-8");
	buf_done(&shown);
	return -1;
}

static int add_file(struct finder *f, struct str path, struct str name, int64_t size, struct err *e)
{
	if (f->n == FILES_LIMIT)
		return err_set(
			e, ERR_TOO_LARGE, "a version has at most %d files", (int)FILES_LIMIT);
	if (check_name(name, e) < 0)
		return -1;
	for (size_t i = 0; i < f->n; i++) {
		if (str_eq(f->files[i].name, name))
			return cli_usage(e, "two files would both be called %.*s", STR_ARG(name));
	}
	f->files[f->n++] = (struct local_file){ .path = path, .name = name, .size = size };
	return 0;
}

static int on_file(void *arg, const char *path, int64_t size, struct err *e)
{
	struct finder *f = arg;

	return add_file(f, arena_printf(f->c->arena, "%s/%s", f->root, path),
		arena_str(f->c->arena, str_c(path)), size, e);
}

static int on_other(void *arg, const char *path, int64_t size, struct err *e)
{
	struct finder *f = arg;

	(void)size;
	(void)e;
	cli_say(f->c, "%s/%s is no regular file: left out", f->root, path);
	return 0;
}

static struct str base_name(struct str path)
{
	size_t n = path.n;

	while (n > 0 && path.p[n - 1] != '/')
		n--;
	return str_slice(path, n, path.n);
}

static int find_below(struct finder *f, const char *path, struct err *e)
{
	struct stat st;
	int64_t size;
	int fd;

	f->root = path;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return fs_walk(path, on_file, on_other, f, e);
	if (cli_open(path, &size, &fd, e) < 0)
		return -1;
	(void)close(fd);
	return add_file(f, str_c(path), base_name(str_c(path)), size, e);
}

int files_find(
	struct cli *c, int n_paths, const char *const *paths, struct list *ret, struct err *e)
{
	struct finder f = { .c = c,
		.files = arena_array_of(c->arena, struct local_file, FILES_LIMIT) };

	for (int i = 0; i < n_paths; i++) {
		if (find_below(&f, paths[i], e) < 0)
			return -1;
	}
	if (f.n == 0)
		return cli_usage(e, "there are no files in %s", paths[0]);
	*ret = (struct list){ f.files, f.n };
	return 0;
}

/* ---- uploading ------------------------------------------------------------------------------- */

/* The digest of what the descriptor has from its position on, and how much that is. */
static int digest_of(
	int fd, const char *what, char out[HASH_HEX + 1], int64_t *ret_size, struct err *e)
{
	unsigned char digest[HASH_SIZE];
	struct hash *h = hash_new();
	char *room = mem_new(1, READ_SIZE);
	int64_t size = 0;
	ssize_t got;

	do {
		do
			got = read(fd, room, READ_SIZE);
		while (got < 0 && errno == EINTR);
		if (got > 0) {
			hash_add(h, (struct str){ room, (size_t)got });
			size += got;
		}
	} while (got > 0);
	hash_end(h, digest);
	hash_free(h);
	mem_free(room);
	if (got < 0)
		return err_errno(e, "read", what);
	(void)hash_hex(out, digest);
	*ret_size = size;
	return 0;
}

static int is_there(struct cli *c, const char *digest, bool *ret, struct err *e)
{
	struct api_call q = { .route = "blobs.head", .params = { str_c(digest) } };
	struct api_reply r;

	*ret = api_do(c, &q, &r, e) == 0;
	if (*ret) {
		api_done(&r);
		return 0;
	}
	return e->code == ERR_NOT_FOUND ? 0 : -1;
}

static int upload(struct cli *c, struct local_file *f, int fd, struct err *e)
{
	struct api_reply r;
	bool there;

	if (digest_of(fd, f->path.p, f->digest, &f->size, e) < 0 ||
		is_there(c, f->digest, &there, e) < 0)
		return -1;
	if (there)
		return 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(e, "rewind", f->path.p);
	struct api_call q = { .route = "blobs.put",
		.params = { str_c(f->digest) },
		.has_fd = true,
		.fd = fd,
		.length = f->size,
		.content_type = "application/octet-stream",
		.timeout = -1,
		.idle = 60 * INT64_C(1000000) };
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	api_done(&r);
	return 0;
}

/* How far we are, on a terminal only. */
static void progress(const struct cli *c, const char *verb, size_t i, size_t n, struct str name)
{
	if (c->quiet || isatty(STDERR_FILENO) != 1)
		return;
	(void)fprintf(stderr, "\r\033[K%s %zu of %zu: %.*s", verb, i, n,
		name.n > 40 ? 40 : (int)name.n, name.p);
	if (i == n)
		(void)fputs("\r\033[K", stderr);
}

int files_upload(struct cli *c, struct list *files, struct err *e)
{
	for (size_t i = 0; i < files->n; i++) {
		struct local_file *f = list_at(files, struct local_file, i);
		progress(c, "sending", i + 1, files->n, f->name);
		int fd;
		if (cli_open(f->path.p, &f->size, &fd, e) < 0)
			return -1;
		int rc = upload(c, f, fd, e);
		(void)close(fd);
		if (rc < 0)
			return -1;
	}
	return 0;
}

void files_send(struct send *s, const struct list *files)
{
	jsn_key(&s->w, "files");
	jsn_list_begin(&s->w);
	for (size_t i = 0; i < files->n; i++) {
		const struct local_file *f = list_at(files, struct local_file, i);
		jsn_obj_begin(&s->w);
		send_str(s, "path", f->name);
		send_str(s, "digest", str_c(f->digest));
		jsn_key(&s->w, "size");
		jsn_int(&s->w, f->size);
		jsn_obj_end(&s->w);
	}
	jsn_list_end(&s->w);
}

/* ---- downloading ----------------------------------------------------------------------------- */

bool files_path_ok(struct str path)
{
	struct str rest = path, piece;

	if (path.n == 0 || str_has_control(path))
		return false;
	while (str_next(&rest, '/', &piece)) {
		if (piece.n == 0 || str_is(piece, ".") || str_is(piece, ".."))
			return false;
	}
	return true;
}

struct download {
	struct cli *c;
	const char *one, *folder;
	struct str params[2];
	size_t n;
	int64_t bytes;
};

/* Bytes into an open file; false digests never get their name. */
static int fetch_into(struct download *d, struct str path, struct str digest, int fd,
	const char *where, struct err *e)
{
	struct api_call q = { .route = d->one,
		.params = { d->params[0], d->params[1], path },
		.to_fd = true,
		.out_fd = fd,
		.timeout = -1,
		.idle = 60 * INT64_C(1000000) };
	char have[HASH_HEX + 1];
	struct api_reply r;
	int64_t size;

	if (api_do(d->c, &q, &r, e) < 0)
		return -1;
	api_done(&r);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(e, "rewind", where);
	if (digest_of(fd, where, have, &size, e) < 0)
		return -1;
	if (!str_is(digest, have))
		return err_set(e, ERR_CORRUPT, "%.*s: the bytes are not those of its digest",
			STR_ARG(path));
	d->bytes += size;
	return 0;
}

static int download_one(void *arg, const struct jsn *item, struct err *e)
{
	struct download *d = arg;
	struct str path = jsn_get_str(jsn_get(item, "path"));
	struct str digest = jsn_get_str(jsn_get(item, "digest")), folder;

	if (!files_path_ok(path))
		return err_set(e, ERR_INVALID, "the server names a file '%.*s'", STR_ARG(path));
	struct str where = arena_printf(d->c->arena, "%s/%.*s", d->folder, STR_ARG(path));
	struct str part = arena_printf(d->c->arena, "%s.part", where.p);
	folder = where;
	while (folder.p[folder.n - 1] != '/')
		folder.n--;
	if (fs_mkdirs(arena_dup(d->c->arena, str_slice(folder, 0, folder.n - 1)), 0777, e) < 0)
		return -1;
	int fd = open(part.p, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return err_errno(e, "make", part.p);
	int rc = fetch_into(d, path, digest, fd, part.p, e);
	(void)close(fd);
	if (rc == 0 && rename(part.p, where.p) < 0)
		rc = err_errno(e, "rename", part.p);
	if (rc < 0)
		(void)unlink(part.p);
	d->n++;
	return rc;
}

static int say_download(const struct download *d, struct err *e)
{
	struct send s;

	cli_say(d->c, "%zu file%s, %lld byte%s in %s", d->n, num_plural(d->n), (long long)d->bytes,
		num_plural((uint64_t)d->bytes), d->folder);
	send_init(&s);
	send_str(&s, "folder", str_c(d->folder));
	jsn_key(&s.w, "files");
	jsn_int(&s.w, (int64_t)d->n);
	jsn_key(&s.w, "bytes");
	jsn_int(&s.w, d->bytes);
	int rc = send_print(&s, d->c, str_c(d->folder), e);
	send_done(&s);
	return rc;
}

int files_download(struct cli *c, const char *list, const char *one, const struct str params[2],
	const char *folder, struct err *e)
{
	struct download d = {
		.c = c, .one = one, .folder = folder, .params = { params[0], params[1] }
	};
	struct api_call q = { .route = list, .params = { params[0], params[1] } };
	struct str more;

	if (api_each(c, &q, 0, download_one, &d, &more, e) < 0)
		return -1;
	return say_download(&d, e);
}
