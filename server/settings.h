/* The server's settings; `tidemill-server --help` and docs/config.md are made from their table. */
#ifndef SERVER_SETTINGS_H
#define SERVER_SETTINGS_H
#include "lib/base/conf.h"

struct settings {
	struct str database_url, listen, tls_cert, tls_key, data_dir, ui_dir, log_level,
		git_program;
	struct list hosts, proxies; /* struct str */
	bool insecure_http, behind_tls_proxy, allow_local_git;
	int64_t worker_lost_after, shutdown_grace, blob_grace, blob_gc_interval, blob_max,
		checkpoint_max;
	int64_t max_connections, max_connections_per_ip;
};

extern const struct conf_row settings_rows[];

#endif
