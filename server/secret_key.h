/* The server's secret key, the pepper of all credentials: the file data-dir/secret.key (0600). */
#ifndef SERVER_SECRET_KEY_H
#define SERVER_SECRET_KEY_H
#include "lib/base/err.h"

struct pepper;

/* Reads it, or makes it on first use; NULL with the error. */
struct pepper *secret_key_open(const char *data_dir, struct err *e);

#endif
