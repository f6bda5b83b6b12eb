/*
 * Patterns that users write, by RE2: in time that grows with the text only, whatever the pattern,
 * and in bounded memory. Syntax: https://github.com/google/re2/wiki/Syntax. Texts are bytes;
 * what is no UTF-8 in them matches nothing.
 */
#ifndef LIB_REGEX_REGEX_H
#define LIB_REGEX_REGEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { REGEX_PATTERN_MAX = 1000, REGEX_WHY_MAX = 128 };
/* REGEX_SMALL: one that takes little time to read, and of which a set may have many. */
enum { REGEX_LITERAL = 1, REGEX_IGNORE_CASE = 2, REGEX_SMALL = 4 };

struct regex;
/* NULL, and why[] says it in words, when the pattern is no regular expression, too large, or longer
 * than REGEX_PATTERN_MAX bytes. */
struct regex *regex_new(const char *pattern, size_t n, unsigned flags, char why[REGEX_WHY_MAX]);
void regex_free(struct regex *r); /* NULL is fine */
/* Whether it matches anywhere in the text. From any thread. */
bool regex_matches(const struct regex *r, const char *text, size_t n);

/* Many small patterns, looked for in one pass over a text. */
enum { REGEX_SET_MAX = 64 };
struct regex_set;
/* NULL, and why[] and *ret_bad say what is wrong with which pattern; n when they are too large
 * together. */
struct regex_set *regex_set_new(
	const char *const *patterns, size_t n, size_t *ret_bad, char why[REGEX_WHY_MAX]);
void regex_set_free(struct regex_set *s); /* NULL is fine */
/* Bit i: pattern i matches anywhere in the text. One thread at a time. */
uint64_t regex_set_matches(struct regex_set *s, const char *text, size_t n);
/* Where pattern i first matches in the text; n when it does not. */
size_t regex_set_find(const struct regex_set *s, size_t i, const char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
