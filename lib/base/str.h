/* Borrowed byte view. Never owns memory; may hold NUL bytes; p may be NULL when n is 0. */
#ifndef LIB_BASE_STR_H
#define LIB_BASE_STR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

/* A growable list of fixed-size items living in an arena; what a FIELD_LIST decodes to. */
struct list {
	void *items;
	size_t n;
};
#define list_at(l, type, i) (&((type *)(l)->items)[i])

#define STR(lit) ((struct str){ (lit), sizeof(lit) - 1 })
#define STR_NONE ((struct str){ NULL, 0 })
/* For printf("%.*s"): precision and pointer. */
#define STR_ARG(s) (int)(s).n, ((s).p != NULL ? (s).p : "")

static inline struct str str_c(const char *z)
{
	return (struct str){ z, z != NULL ? strlen(z) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *z)
{
	return str_eq(a, str_c(z));
}

/* Byte order, shorter first on a tie: the order of COLLATE "C". */
int str_cmp(struct str a, struct str b);
bool str_eq_nocase(struct str a, struct str b); /* ASCII letters only */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Index of the first occurrence, or -1. */
ptrdiff_t str_find(struct str s, struct str needle);
ptrdiff_t str_find_char(struct str s, char c);
struct str str_trim(struct str s); /* spaces and tabs on both sides */
struct str str_slice(struct str s, size_t from, size_t n); /* clamped to s */
/* Cuts the next piece up to `sep` off *rest. False when *rest has been used up. A string without
 * the separator is one piece; "a,,b" has three. Start with rest->p not NULL. */
bool str_next(struct str *rest, char sep, struct str *ret_piece);
bool str_utf8_valid(struct str s); /* no overlong forms, no surrogates, NUL allowed */
size_t str_utf8_count(struct str s); /* code points of valid UTF-8 */
bool str_has_control(struct str s); /* a byte below 0x20, or 0x7f */
bool str_is_text(struct str s); /* no control characters but newlines and tabs */
/* True for ^[a-z0-9][a-z0-9._-]{0,62}$: what may name a project, pipeline, dataset or monitor. */
bool str_is_name(struct str s);
uint64_t str_hash(
	struct str s, uint64_t seed); /* for tables; not for hostile keys without a seed */
/* Case-sensitive glob with * and ? over the whole string; * crosses '/'. Linear in practice: no
 * recursion, backtracks to the last star only. */
bool str_glob(struct str pattern, struct str s);

/* snprintf for fixed buffers: always terminates; false when the text was cut. Used instead of
 * snprintf everywhere, so that a cut is a value to look at and not a compiler's guess. */
bool str_print(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
