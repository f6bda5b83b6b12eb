/*
 * What every connection of ours is opened with: the operator's conninfo, taken apart once, plus
 * keepalives, timeouts and session settings. Host names are resolved here and not by libpq, which
 * would block the loop: conninfo_resolve() is for a work thread and touches nothing but its job.
 */
#ifndef LIB_DB_CONNINFO_H
#define LIB_DB_CONNINFO_H
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

enum { CONNINFO_WORDS = 48 };

struct conninfo {
	char *words[CONNINFO_WORDS + 1], *values[CONNINFO_WORDS + 1]; /* end with NULL */
	size_t n;
};

/* name: application_name, unless the operator gave one. session: "-c name=value …", or "". */
int conninfo_parse(struct conninfo *c, const char *text, const char *name, const char *session,
	struct err *e) MUST_CHECK;
void conninfo_done(struct conninfo *c); /* also zeroed memory; wipes the password */
const char *conninfo_get(const struct conninfo *c, const char *word); /* NULL when not there */

/* Host names and ports to look up, and the expanded lists. Plain values, so that a thread can have
 * it to itself. */
struct conninfo_hosts {
	char *host, *port; /* as in the conninfo */
	char *ret_host, *ret_addr, *ret_port; /* one entry for each address */
	struct err err; /* ERR_OK when the lists are filled */
};
/* True when a host is a name; fills h->host and h->port. */
bool conninfo_needs_lookup(const struct conninfo *c, struct conninfo_hosts *h);
void conninfo_resolve(struct conninfo_hosts *h);
void conninfo_hosts_done(struct conninfo_hosts *h);

struct pg_conn;
/* PQconnectStartParams; the lists of h replace the hosts unless h is NULL. */
struct pg_conn *conninfo_connect_start(const struct conninfo *c, const struct conninfo_hosts *h);

#endif
