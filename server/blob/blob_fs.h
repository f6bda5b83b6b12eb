/* The file system's store, inside: paths and locks. For server/blob only. */
#ifndef SERVER_BLOB_BLOB_FS_H
#define SERVER_BLOB_BLOB_FS_H
#include "server/blob/blob.h"

#include <limits.h>

struct blobs_fs {
	struct blobs head;
	struct loop *loop;
	char dir[PATH_MAX - 160]; /* room for what is appended to it */
};

extern const struct blob_ops blob_fs_ops;

static inline struct blobs_fs *blobs_fs_of(struct blobs *b)
{
	return (struct blobs_fs *)b;
}

/* dir/sha256/ab/cd/<hex> */
void blob_fs_path(const struct blobs_fs *b, const unsigned char *digest, char out[PATH_MAX]);
/* Makes dir/sha256/ab and takes its lock (`how` as in flock(2)). Returns the descriptor, or -1. */
int blob_fs_lock(const struct blobs_fs *b, unsigned shelf, int how, struct err *e) MUST_CHECK;

struct blob_writer *blob_fs_writer_new(struct blobs *b, const struct blob_write *spec);
bool blob_fs_writer_add(struct blob_writer *w, struct str bytes);
void blob_fs_writer_end(struct blob_writer *w);
void blob_fs_writer_free(struct blob_writer *w);

#endif
