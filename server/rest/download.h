/* Stored bytes as an answer: ranges, ETag, never rendered as a page of ours, and hashed on the way:
 * a client never gets the whole of a file that is not what its digest says. */
#ifndef SERVER_REST_DOWNLOAD_H
#define SERVER_REST_DOWNLOAD_H
#include "server/rest/upload.h"

struct download {
	struct blob_id id;
	struct str name; /* offered as the file's name */
	const char *type;
};

/* fail: as in upload.h. */
void download_send(struct call *c, const struct download *d, call_fail_cb *fail);
/* From columns digest (bytes) and size of a row. */
struct blob_id download_id(const struct db_rows *rows, size_t row);
/* A media type that users have named, if it is one of the few that browsers cannot run, else
 * application/octet-stream. */
const char *download_type(struct str media_type);

#endif
