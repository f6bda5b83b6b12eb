/*
 * YAML into the structs of field tables. One document of a careful subset: block and flow
 * collections with string keys, plain, quoted and block scalars. Plain scalars follow the core
 * schema of YAML 1.2 (null, true, false, whole numbers, reals); dates, yes and no stay strings.
 * Anchors, aliases, tags, merge keys and further documents are refused. Limits: 1 MiB of text, 32
 * levels, 50,000 values.
 *
 * Messages carry the place: "line 12, column 7: /spec/steps/train/run: must be a list".
 */
#ifndef LIB_JSON_YAML_H
#define LIB_JSON_YAML_H
#include "lib/json/json_read.h"

enum { YAML_TEXT_MAX = 1 << 20 };

int yaml_decode(const struct field *t, struct str text, struct arena *a, void *out,
	struct err *e) MUST_CHECK;
/* Compact JSON of the document, keys in the order written. */
int yaml_to_json(struct str text, struct buf *out, struct err *e) MUST_CHECK;
/* The document for free reading; free it with jsn_doc_free(). */
int yaml_parse(struct str text, struct jsn_doc **ret_doc, struct err *e) MUST_CHECK;
/* Puts "line L, column C: POINTER: " before e->msg: the place of e->field in this text, or of its
 * nearest parent. For checks that come after decoding. */
void yaml_locate(struct str text, struct err *e);

#endif
