/*
 * What principals may do in projects, as the database said within the last five seconds: so that
 * not every request asks again. An entry goes at once when this server changes members or projects,
 * and when the hub tells of such a change by another one; the time is the bound for when it cannot.
 * Only what is granted is kept: a new right works with the next request.
 */
#ifndef SERVER_REST_GRANTS_H
#define SERVER_REST_GRANTS_H
#include "lib/base/str.h"

struct app;
struct grants;

struct grant {
	struct str project_id, project, role; /* role "": an administrator's or none */
};

struct grants *grants_new(struct app *app); /* after the hub */
void grants_stop(struct grants *g); /* before the hub goes; NULL is fine */
void grants_free(struct grants *g);

/* Lent until the next turn. */
bool grants_get(
	const struct grants *g, struct str principal_id, struct str project, struct grant *ret);
/* Moves with every grants_clear: a read that began before one must not be kept after it. */
uint64_t grants_changes(const struct grants *g);
void grants_put(
	struct grants *g, uint64_t changes, struct str principal_id, const struct grant *grant);
void grants_clear(struct grants *g);

#endif
