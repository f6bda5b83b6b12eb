#include "server/blob/blob.h"

#include "lib/base/mem.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

void blobs_close(struct blobs *b)
{
	if (b != NULL)
		b->ops->close(b);
}

struct blob_writer *blob_writer_new(struct blobs *b, const struct blob_write *spec)
{
	return b->ops->writer_new(b, spec);
}

bool blob_writer_add(struct blob_writer *w, struct str bytes)
{
	return w->blobs->ops->writer_add(w, bytes);
}

void blob_writer_end(struct blob_writer *w)
{
	w->blobs->ops->writer_end(w);
}

void blob_writer_free(struct blob_writer *w)
{
	if (w != NULL)
		w->blobs->ops->writer_free(w);
}

int blob_open(struct blobs *b, const struct blob_id *id, int *ret_fd, struct err *e)
{
	return b->ops->open(b, id, ret_fd, e);
}

struct blob_shelf *blob_shelf_lock(
	struct blobs *b, unsigned shelf, int64_t older_than_us, struct err *e)
{
	return b->ops->shelf_lock(b, shelf, older_than_us, e);
}

const struct blob_id *blob_shelf_files(const struct blob_shelf *s, size_t *ret_n)
{
	return s->blobs->ops->shelf_files(s, ret_n);
}

int blob_shelf_remove(struct blob_shelf *s, const unsigned char digest[HASH_SIZE], struct err *e)
{
	return s->blobs->ops->shelf_remove(s, digest, e);
}

void blob_shelf_unlock(struct blob_shelf *s)
{
	if (s != NULL)
		s->blobs->ops->shelf_unlock(s);
}

int blob_sweep_tmp(struct blobs *b, int64_t older_than_us, struct err *e)
{
	return b->ops->sweep_tmp(b, older_than_us, e);
}

/* ---- reading with a verdict ---- */

struct blob_check {
	struct blob_id id;
	struct hash *hash;
	int64_t seen;
};

struct blob_check *blob_check_new(const struct blob_id *id)
{
	struct blob_check *c = mem_new_of(struct blob_check);

	c->id = *id;
	c->hash = hash_new();
	return c;
}

void blob_check_add(struct blob_check *c, struct str bytes)
{
	hash_add(c->hash, bytes);
	c->seen += (int64_t)bytes.n;
}

int blob_check_end(struct blob_check *c, struct err *e)
{
	unsigned char got[HASH_SIZE];
	char hex[HASH_HEX + 1];

	hash_end(c->hash, got);
	if (c->seen == c->id.size && memcmp(got, c->id.digest, HASH_SIZE) == 0)
		return 0;
	return err_set(e, ERR_CORRUPT, "the stored bytes of %s are not what their digest says",
		hash_hex(hex, c->id.digest));
}

void blob_check_free(struct blob_check *c)
{
	if (c == NULL)
		return;
	hash_free(c->hash);
	mem_free(c);
}

static int scan_fd(int fd, struct blob_check *c, blob_scan_cb *fn, void *arg, struct err *e)
{
	char *piece = mem_new(PIECE, 1);
	int rc = 0;

	for (;;) {
		ssize_t n = read(fd, piece, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = err_errno(e, "read", "a blob");
		if (n <= 0)
			break;
		struct str s = { piece, (size_t)n };
		blob_check_add(c, s);
		rc = fn(arg, s, e);
		if (rc < 0)
			break;
	}
	mem_free(piece);
	return rc < 0 ? -1 : blob_check_end(c, e);
}

int blob_scan(struct blobs *b, const struct blob_id *id, blob_scan_cb *fn, void *arg, struct err *e)
{
	int fd, rc;

	if (blob_open(b, id, &fd, e) < 0)
		return -1;
	struct blob_check *c = blob_check_new(id);
	rc = scan_fd(fd, c, fn, arg, e);
	blob_check_free(c);
	(void)close(fd);
	return rc;
}
