/*
 * Paths of files inside data sets, outputs, models and tracking runs: relative, with '/', UTF-8,
 * at most 1024 bytes, segments of 1 to 255 bytes, none of them "." or "..", no backslash and no
 * control character. Such a path names a file below any folder of ours and nothing else. Pure.
 */
#ifndef SERVER_CORE_FILEPATH_H
#define SERVER_CORE_FILEPATH_H
#include "lib/base/err.h"
#include "lib/base/str.h"

enum { FILEPATH_MAX = 1024, FILEPATH_SEGMENT_MAX = 255 };

/* The error names `pointer` as its field. */
int filepath_check(struct str path, const char *pointer, struct err *e) MUST_CHECK;
struct str filepath_base(struct str path); /* after the last '/' */

#endif
