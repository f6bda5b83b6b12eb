/* Cuts a stream of text/event-stream into messages (WHATWG HTML, "event stream interpretation").
 * Pure; feed it bytes as they come. */
#ifndef CLI_SSE_H
#define CLI_SSE_H
#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SSE_LINE_MAX = 16 << 20, SSE_ID_MAX = 64 };

struct sse_message {
	struct str event, data; /* event: "message" when it has no name; valid during the call */
};

/* -1 ends the parsing with *e. */
typedef int sse_message_cb(void *arg, const struct sse_message *m, struct err *e);

struct sse_parser {
	sse_message_cb *fn;
	void *arg;
	struct buf line, data;
	char event[64], id[SSE_ID_MAX]; /* id: the last one, for Last-Event-ID */
	bool has_data, after_cr;
};

void sse_init(struct sse_parser *p, sse_message_cb *fn, void *arg);
void sse_done(struct sse_parser *p);
/* A new connection: what was half read is dropped, the id stays. */
void sse_restart(struct sse_parser *p);
int sse_add(struct sse_parser *p, struct str bytes, struct err *e) MUST_CHECK;

#endif
