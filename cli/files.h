/* Files between this machine and the blob store. Bytes are known by their SHA-256: what the server
 * has is not sent again, and what comes down is checked before it gets its name. */
#ifndef CLI_FILES_H
#define CLI_FILES_H
#include "cli/api.h"
#include "cli/send.h"

struct local_file {
	struct str path, name; /* on this machine; in the version */
	int64_t size;
	char digest[65];
};

/* The files below these paths: a file under its own name, a folder's under theirs within it. Links
 * and devices in folders are passed over with a note. */
int files_find(struct cli *c, int n_paths, const char *const *paths, struct list *ret,
	struct err *e) MUST_CHECK;
/* Hashes and uploads what the server lacks. */
int files_upload(struct cli *c, struct list *files, struct err *e) MUST_CHECK;
/* "files": [{path, digest, size}, …] */
void files_send(struct send *s, const struct list *files);

/* All files of a version into a folder. `list` and `one` are the routes of the list and of one
 * file's bytes; params those of the version. */
int files_download(struct cli *c, const char *list, const char *one, const struct str params[2],
	const char *folder, struct err *e) MUST_CHECK;
/* Relative, without empty, "." or ".." segments. Pure. */
bool files_path_ok(struct str path);

#endif
