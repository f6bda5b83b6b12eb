/* Files in the control folder: mode 0640, close-on-exec, never through a symbolic link, and given
 * to the folder's group where we may, so that the worker can read them. */
#ifndef WORKER_INIT_FILE_H
#define WORKER_INIT_FILE_H
#include <stddef.h>

/* Opens or makes a file for writing; flags are added to those above. -1 with errno set. */
int file_make(int dirfd, const char *name, int flags);
/* The start of a file as a string, "" when it cannot be read. */
void file_peek(const char *path, char *out, size_t size);

#endif
