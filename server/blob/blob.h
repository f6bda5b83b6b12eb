/*
 * The blob store: bytes of any length, named by their SHA-256, written once, never changed.
 *
 * Threads: writers belong to the loop; blob_open(), blob_scan() and the shelf functions may be
 * called from any thread (and block for the length of their file operations).
 *
 * Failures: ERR_INVALID when the bytes are not those of the digest or size that was promised,
 * ERR_TOO_LARGE past the maximum, ERR_NO_SPACE, ERR_IO; reading: ERR_CORRUPT when what is stored is
 * missing or is not what its name says.
 */
#ifndef SERVER_BLOB_BLOB_H
#define SERVER_BLOB_BLOB_H
#include "lib/base/err.h"
#include "lib/crypto/hash.h"

struct loop;
struct blobs;
struct blob_writer;

struct blob_id {
	unsigned char digest[HASH_SIZE];
	int64_t size;
};

/* A store in a folder, which is made when it is missing. */
struct blobs *blobs_open_fs(struct loop *l, const char *dir, struct err *e) MUST_CHECK;
void blobs_close(struct blobs *b); /* after its writers; NULL is fine */

/*
 * Writing. Exactly one on_done follows, from the loop, never inside a call; on failure it may come
 * before the end of the bytes, and what is added afterwards is dropped. On success the bytes are on
 * the disk under their name, and the collector is kept away from them until blob_writer_free():
 * make their row durable first. Bytes that are in the store already are hashed and compared but not
 * written again.
 */
struct blob_write {
	bool has_digest; /* the bytes must have this digest */
	unsigned char digest[HASH_SIZE];
	int64_t size; /* and this size; -1: not known */
	int64_t max; /* more is ERR_TOO_LARGE */
	void (*on_room)(void *arg); /* go on after blob_writer_add() said false */
	void (*on_done)(void *arg, const struct blob_id *id, const struct err *e);
	void *arg;
};
struct blob_writer *blob_writer_new(struct blobs *b, const struct blob_write *spec);
/* Takes all of the bytes (a copy). False: hold back until on_room. */
bool blob_writer_add(struct blob_writer *w, struct str bytes);
void blob_writer_end(struct blob_writer *w); /* that was all */
/* At any time: an unfinished write leaves nothing behind and on_done does not come. NULL is fine.
 */
void blob_writer_free(struct blob_writer *w);

/* Opens for reading; the size has been compared. The descriptor is the caller's. */
int blob_open(struct blobs *b, const struct blob_id *id, int *ret_fd, struct err *e) MUST_CHECK;

/* For who reads the descriptor piece by piece from the start: gives the verdict at the end. */
struct blob_check;
struct blob_check *blob_check_new(const struct blob_id *id);
void blob_check_add(struct blob_check *c, struct str bytes);
int blob_check_end(struct blob_check *c, struct err *e) MUST_CHECK; /* ERR_CORRUPT */
void blob_check_free(struct blob_check *c);

/* Reads all of it in a work thread: fn sees the pieces in order; -1 from it stops. What fn saw
 * counts only when this returns 0, since the digest is known at the end. */
typedef int blob_scan_cb(void *arg, struct str piece, struct err *e);
int blob_scan(struct blobs *b, const struct blob_id *id, blob_scan_cb *fn, void *arg,
	struct err *e) MUST_CHECK;

/*
 * For the collector. A shelf is the part of the store whose digests begin with one byte. Locking
 * keeps writers from finishing there (they wait) and lists what is older than a time; who holds the
 * lock deletes rows first, then removes files. All of it for work threads.
 */
enum { BLOB_SHELVES = 256, BLOB_SHELF_MAX = 100000 };
struct blob_shelf;
/* NULL with ERR_IN_PROGRESS when a writer is finishing there just now: come again later. */
struct blob_shelf *blob_shelf_lock(
	struct blobs *b, unsigned shelf, int64_t older_than_us, struct err *e) MUST_CHECK;
/* Files older than that, in the order of their digests, at most BLOB_SHELF_MAX. */
const struct blob_id *blob_shelf_files(const struct blob_shelf *s, size_t *ret_n);
int blob_shelf_remove(
	struct blob_shelf *s, const unsigned char digest[HASH_SIZE], struct err *e) MUST_CHECK;
void blob_shelf_unlock(struct blob_shelf *s); /* NULL is fine */
/* Removes what interrupted uploads have left in tmp/. */
int blob_sweep_tmp(struct blobs *b, int64_t older_than_us, struct err *e) MUST_CHECK;

/* What a kind of store does; the functions above call it. Every store begins with struct blobs. */
struct blob_ops {
	void (*close)(struct blobs *b);
	struct blob_writer *(*writer_new)(struct blobs *b, const struct blob_write *spec);
	bool (*writer_add)(struct blob_writer *w, struct str bytes);
	void (*writer_end)(struct blob_writer *w);
	void (*writer_free)(struct blob_writer *w);
	int (*open)(struct blobs *b, const struct blob_id *id, int *ret_fd, struct err *e);
	struct blob_shelf *(*shelf_lock)(
		struct blobs *b, unsigned shelf, int64_t older_than_us, struct err *e);
	const struct blob_id *(*shelf_files)(const struct blob_shelf *s, size_t *ret_n);
	int (*shelf_remove)(struct blob_shelf *s, const unsigned char *digest, struct err *e);
	void (*shelf_unlock)(struct blob_shelf *s);
	int (*sweep_tmp)(struct blobs *b, int64_t older_than_us, struct err *e);
};
struct blobs {
	const struct blob_ops *ops;
};
struct blob_writer { /* the head of every kind of writer */
	struct blobs *blobs;
};
struct blob_shelf {
	struct blobs *blobs;
};

#endif
