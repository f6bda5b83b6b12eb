/*
 * Which addresses a client may open sockets to. The judgement is made on the address about to be
 * connected, after name resolution, for each socket: no spelling of an address, no name that
 * changes its mind, no redirect gets around it. Pure.
 */
#ifndef LIB_FETCH_GUARD_H
#define LIB_FETCH_GUARD_H
#include "lib/base/err.h"
#include "lib/base/ip.h"

struct guard {
	bool on; /* off: everything is allowed */
	const struct ip_net *allow; /* special networks that are allowed, with any port */
	size_t n_allow;
};

/* ERR_FORBIDDEN with the address in the message when refused. Outside the allow list an address
 * must be public and the port 80 or 443. */
int guard_check(
	const struct guard *g, const struct sockaddr *sa, size_t n, struct err *e) MUST_CHECK;

#endif
