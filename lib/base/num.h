/* Strict numbers from text and back. No leading space, no '+', nothing after the number. */
#ifndef LIB_BASE_NUM_H
#define LIB_BASE_NUM_H
#include "lib/base/str.h"

/* Decimal digits only, no sign, no leading zeros beyond "0"; false outside [min, max]. */
bool num_parse_u64(struct str s, uint64_t min, uint64_t max, uint64_t *ret);
bool num_parse_i64(struct str s, int64_t min, int64_t max, int64_t *ret); /* one '-' is allowed */
bool num_parse_hex_u64(struct str s, uint64_t *ret); /* 1 to 16 hex digits */
/* JSON's number grammar; finite only. */
bool num_parse_double(struct str s, double *ret);
/* "1GiB", "500MB", "4096": bytes. KiB … PiB are powers of 1024, KB … PB of 1000. */
bool num_parse_size(struct str s, uint64_t *ret);
bool num_is_size(struct str s); /* written like one, however large */
/* Bytes for people: "1.5 GiB". Returns out. */
enum { NUM_SIZE_MAX = 24, NUM_DOUBLE_MAX = 32 };
const char *num_format_size(char out[NUM_SIZE_MAX], uint64_t bytes);
/* What "row" takes after a number: "" after one, else "s". */
const char *num_plural(uint64_t n);
/* The shortest text that reads back to the same double, always with a '.', an 'e' or a name, so
 * that it stays a real number in JSON; "NaN", "Infinity" and "-Infinity" for the rest. Returns out.
 */
const char *num_format_double(char out[NUM_DOUBLE_MAX], double v);

#endif
