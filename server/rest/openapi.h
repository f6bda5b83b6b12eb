/* The OpenAPI 3.1 document, from the route, field and error tables. */
#ifndef SERVER_REST_OPENAPI_H
#define SERVER_REST_OPENAPI_H
#include "lib/base/buf.h"

enum { OPENAPI_MAX = 4 << 20 };
void openapi_print(struct buf *out);
/* JSON Schema of what users write: "pipeline.json" or "monitor.json"; false for another name. */
bool openapi_file_schema(struct str name, struct buf *out);
/* Every key of those files, for docs/files.md. */
void openapi_files(struct buf *out);

#endif
