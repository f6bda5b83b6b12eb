/*
 * The manifest of a data set version and its digest.
 *
 * Canonical form: the files in byte order of their paths, each as
 *
 *     path  NUL  size in decimal  NUL  sha256 in 64 lower-case hex digits  LF
 *
 * and the version's digest is the SHA-256 of these bytes. Media types and descriptions are not part
 * of it: two versions with the same files are the same data. Pure.
 */
#ifndef SERVER_STORE_MANIFEST_H
#define SERVER_STORE_MANIFEST_H
#include "api/dataset.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/crypto/hash.h"

enum { MANIFEST_FILES_MAX = 100000 };

/* Checks the files of a request one by one and sorts them by path; ERR_INVALID names the culprit
 * ("/files/3/path"): a path that is not allowed or there twice, a digest that is none. */
int manifest_check(struct list *files, struct arena *a, struct err *e) MUST_CHECK;

/* Digest, count and sum of sizes of two sorted lists together; `before` may be empty. ERR_INVALID
 * when a path is in both or when there are more than MANIFEST_FILES_MAX. */
struct manifest_sum {
	unsigned char digest[HASH_SIZE];
	int64_t files, bytes;
};
int manifest_sum(const struct list *before, const struct list *files, struct manifest_sum *ret,
	struct err *e) MUST_CHECK;

#endif
