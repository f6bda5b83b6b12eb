/* Inside lib/json: what a plain YAML scalar means, by the core schema of YAML 1.2 (section 10.3.2).
 */
#ifndef LIB_JSON_YAML_SCALAR_H
#define LIB_JSON_YAML_SCALAR_H
#include "lib/json/node.h"

/* Sets type and value of v. False with the reason when it is a number that cannot be one of ours:
 * too large, or with leading zeros, which mean different things to different readers. `text` is
 * NUL-terminated and outlives v. ".inf" and ".nan" stay strings. */
bool yaml_scalar(struct str text, struct jsn *v, const char **ret_why) MUST_CHECK;

#endif
