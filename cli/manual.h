/* The manual page tidemill(1), made of the table of commands. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H
#include "lib/base/buf.h"

void manual_print(struct buf *out);

#endif
