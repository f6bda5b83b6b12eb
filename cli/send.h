/* Bodies of requests: an object that is written member by member. */
#ifndef CLI_SEND_H
#define CLI_SEND_H
#include "cli/api.h"
#include "lib/json/json_write.h"

enum { SEND_BODY_MAX = 8 << 20 };

struct send {
	struct buf text;
	struct jsn_out w;
};

/* An object is begun; send_end() ends it and gives its text. Free with send_done(). */
void send_init(struct send *s);
void send_done(struct send *s);
struct str send_end(struct send *s);
/* Nothing is written when the value is not there. */
void send_str(struct send *s, const char *name, struct str value);
void send_flag(
	struct send *s, const struct cli *c, const char *flag); /* "expires-in" -> "expires_in" */
/* "labels" from --label NAME=VALUE. */
int send_labels(struct send *s, const struct cli *c, struct err *e) MUST_CHECK;
/* Ends it, sends it with the running command's route and arguments, and shows the object. */
int send_object(struct send *s, struct cli *c, const struct api_call *q, struct err *e) MUST_CHECK;

/* Ends it and prints it where JSON is wanted, and `name` where names are: what a command has done
 * that the API has no object for. On a terminal nothing; that is the caller's. */
int send_print(struct send *s, struct cli *c, struct str name, struct err *e) MUST_CHECK;

#endif
