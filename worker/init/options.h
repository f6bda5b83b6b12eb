/* The command line of tidemill-init. Strings point into argv. */
#ifndef WORKER_INIT_OPTIONS_H
#define WORKER_INIT_OPTIONS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct options {
	const char *ctl; /* control folder (ctl.h) */
	const char *secrets; /* folder with the secret environment, or NULL */
	const char *workdir; /* or NULL */
	bool has_user;
	uid_t uid;
	gid_t gid;
	int64_t deadman_us; /* 0: none */
	int64_t grace_us;
	int64_t usage_us; /* between two looks at what the command uses; 0: none */
	uint64_t max_log; /* payload bytes that the spool may hold */
	uint16_t rank;
	bool barrier;
	char **argv; /* the command, ended by NULL */
};

/* False, with a complaint and the usage on stderr, when the command line is not valid. */
bool options_parse(struct options *o, int argc, char **argv);

#endif
