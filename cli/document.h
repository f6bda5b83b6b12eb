/*
 * YAML files that the user names: one or several documents each, parted by lines that begin with
 * "---". Errors name the file, and line and column where these are known: "FILE:LINE:COLUMN: …".
 */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H
#include "cli/cli.h"
#include "lib/json/yaml.h"

enum { DOCUMENTS_MAX = 1000 };

struct document {
	struct str file; /* as it was named; "stdin" for "-" */
	struct str text;
	size_t line; /* of the file, where the text begins; from 0 */
	struct jsn_doc *tree; /* of document_parse(); the caller frees it */
};

/* Appends the documents of a file to a list that has room for DOCUMENTS_MAX. */
int document_read(struct cli *c, struct str file, struct list *out, struct err *e) MUST_CHECK;
/* Appends those of a text. Pure. */
int document_split(struct str file, struct str text, struct list *out, struct err *e) MUST_CHECK;
int document_parse(struct document *d, struct err *e) MUST_CHECK;
/* Puts file and place before e->msg: of the parser, or of the server that was sent the text. Where
 * e->field leads to something else of the request, nothing. Returns -1. */
int document_fail(const struct document *d, struct err *e);
/* The file alone, where the server was not sent its text. */
int document_name(const struct document *d, struct err *e);

#endif
