/* Where the other ranks of a gang reach the one that runs here. */
#ifndef WORKER_RANK_H
#define WORKER_RANK_H
#include "worker/conf.h"

struct rank_address {
	char address[256]; /* as advertise-address says, or of the way to the server */
	char interface[32]; /* that has it; "" when it is none of this host's own */
	uint16_t port; /* that was free a moment ago */
};

/* (blocks) Nothing is sent. */
int rank_find(const struct worker_conf *c, struct rank_address *ret, struct err *e) MUST_CHECK;

#endif
