/* The worker's settings; `tidemill-worker --help` and docs/config.md are made from their table. */
#ifndef WORKER_CONF_H
#define WORKER_CONF_H
#include "lib/base/conf.h"

struct worker_conf {
	struct str server, step_server, join_token, name, work_dir, secrets_dir, step_secrets_dir;
	struct list runtimes; /* struct str: names of runtimes */
	struct str docker_socket, docker_network, registry_auth_file;
	struct str advertise_address, gang_ports;
	uint16_t gang_port_first, gang_port_last; /* 0: any */
	struct str git_program, git_credentials, init_program, step_user, cpus_text, ca_file,
		log_level, nvml_library;
	bool docker_rdma, docker_host_gateway, gang_host_network, allow_local_git, allow_http_git,
		insecure_http;
	int64_t docker_tmp, cache_max, memory, checkpoint_every, system_metrics_every, disk_high,
		disk_low, image_keep;
	double cpus; /* 0: what the host has */
};

extern const struct conf_row worker_conf_rows[];

/* "gpu-01.lan" of "https://gpu-01.lan:8443/x", "[fd00::1]" with its brackets; "": it names
 * none. */
struct str worker_conf_host(struct str url);

/* Whether other hosts reach what containers of a step on several workers listen at. */
static inline bool conf_gang_reachable(const struct worker_conf *c)
{
	return c->gang_host_network || str_is(c->docker_network, "host");
}

/* What the table cannot say; normalises addresses and paths. ERR_INVALID names the setting. */
int worker_conf_check(struct worker_conf *c, struct arena *a, struct err *e) MUST_CHECK;

#endif
