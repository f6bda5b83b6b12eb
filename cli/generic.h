/* Commands that call one operation of the API and show what it says: their row in the table names
 * operation and view. Positional arguments fill the path's {…} in order. */
#ifndef CLI_GENERIC_H
#define CLI_GENERIC_H
#include "cli/api.h"
#include "cli/cli.h"

command_fn generic_list; /* GET of a list; --limit, and flags marked `query` */
command_fn generic_show; /* GET of an object */
command_fn generic_post; /* POST without a body that answers an object */
command_fn generic_delete; /* asks; sends If-Match where the route wants it */

/* The call of the running command's route with its arguments as parameters. */
struct api_call generic_call(const struct cli *c);
/* Asks for it and lists the items. */
int generic_items(struct cli *c, const struct api_call *q, struct err *e) MUST_CHECK;
/* Sends it and shows the object. */
int generic_object(struct cli *c, const struct api_call *q, struct err *e) MUST_CHECK;
/* On a terminal: what belongs to the command's object and is listed below it. */
int generic_parts(struct cli *c, struct err *e) MUST_CHECK;

enum { GENERIC_LIMIT = 100 }; /* of a list, without --limit */
/* Flags of every list. */
#define LIMIT_FLAG                                                                                 \
	{                                                                                          \
		"limit", FLAG_INT, .letter = 'n', .arg = "N",                                      \
				   .doc = "At most so many (100); 0: all"                          \
	}
#define YES_FLAG                                                                                   \
	{                                                                                          \
		"yes", FLAG_BOOL, .letter = 'y', .doc = "Do not ask"                               \
	}

#endif
