/* Follows a stream of server-sent events over lost connections, going on where it stopped. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H
#include "cli/api.h"
#include "cli/sse.h"

struct follow {
	const char *route;
	struct str params[API_PARAMS];
	struct api_pair query[API_QUERY];
	/* Before each connection: where to go on, when the stream does not do that by ids. May be
	 * NULL. */
	void (*resume)(void *arg, struct api_pair *query);
	sse_message_cb *on_message;
	void *arg;
	bool forever; /* else it ends when nothing has come for some seconds */
	const volatile bool *over; /* set by on_message: the stream has said all */
	int64_t until; /* on clock_elapsed(): ERR_TIMEOUT from then on; 0: never */
};

int follow(struct cli *c, struct follow *f, struct err *e) MUST_CHECK;

#endif
