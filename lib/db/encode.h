/* Values into PostgreSQL's binary format ("send" functions of utils/adt: network byte order,
 * instants in µs and days since 2000). For lib/db only. */
#ifndef LIB_DB_ENCODE_H
#define LIB_DB_ENCODE_H
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/db/arg.h"

/* Appends the value (not for NULL). A kind that does not fit the type is a bug; ERR_INVALID for
 * values that do not fit, ERR_TOO_LARGE past the ceiling of out. */
int db_encode(struct buf *out, uint32_t type, const struct db_arg *v, struct err *e) MUST_CHECK;
/* The type that a value of this kind has by itself. */
uint32_t db_arg_type(const struct db_arg *v);

#define DB_EPOCH_DAYS INT64_C(10957) /* 2000-01-01 since 1970-01-01 */
#define DB_EPOCH_US   (DB_EPOCH_DAYS * INT64_C(86400000000))

#endif
