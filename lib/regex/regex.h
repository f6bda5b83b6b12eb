/*
 * Patterns that users write, by RE2: in time that grows with the text only, whatever the pattern,
 * and in bounded memory. Syntax: https://github.com/google/re2/wiki/Syntax. Texts are bytes;
 * what is no UTF-8 in them matches nothing.
 */
#ifndef LIB_REGEX_REGEX_H
#define LIB_REGEX_REGEX_H
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { REGEX_PATTERN_MAX = 1000, REGEX_WHY_MAX = 128 };
enum { REGEX_LITERAL = 1, REGEX_IGNORE_CASE = 2 };

struct regex;
/* NULL, and why[] says it in words, when the pattern is no regular expression, too large, or longer
 * than REGEX_PATTERN_MAX bytes. */
struct regex *regex_new(const char *pattern, size_t n, unsigned flags, char why[REGEX_WHY_MAX]);
void regex_free(struct regex *r); /* NULL is fine */
/* Whether it matches anywhere in the text. From any thread. */
bool regex_matches(const struct regex *r, const char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
