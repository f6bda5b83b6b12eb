/* Where the other ranks of a gang reach the one that runs here. */
#ifndef WORKER_RANK_H
#define WORKER_RANK_H
#include "worker/conf.h"

struct rank_address {
	char address[256]; /* as advertise-address says, or this host's on the way to the server */
	char interface[32]; /* that has it; "" when it is none of this host's own */
	char network[24]; /* of that interface, "10.0.0.0/24"; "": none, or not of IPv4 */
	uint16_t port; /* that was free a moment ago */
};

/* (blocks) from: this host's address as its connection to the server has it; no name is looked up
 * and nothing is sent. ERR_UNAVAILABLE: no port is free. */
int rank_find(const struct worker_conf *c, const char *from, struct rank_address *ret,
	struct err *e) MUST_CHECK;

#endif
