#include "server/settings.h"

#include "lib/base/clock.h"

#define AT(member) offsetof(struct settings, member)

const struct conf_row settings_rows[] = {
	{ "database-url", CONF_SECRET, AT(database_url),
		.doc = "PostgreSQL, as postgresql://user:password@host:port/database" },
	{ "listen", CONF_TEXT, AT(listen), "127.0.0.1:8080",
		.doc = "Address and port to serve on" },
	{ "hosts", CONF_LIST, AT(hosts), .doc = "Host names that are answered; none: every name" },
	{ "tls-cert", CONF_TEXT, AT(tls_cert), .doc = "PEM file of the certificate chain" },
	{ "tls-key", CONF_TEXT, AT(tls_key), .doc = "PEM file of the key" },
	{ "insecure-http", CONF_BOOL, AT(insecure_http),
		.doc = "Serve plain HTTP beyond the loopback interface" },
	{ "behind-tls-proxy", CONF_BOOL, AT(behind_tls_proxy),
		.doc = "A proxy in front speaks TLS" },
	{ "proxies", CONF_LIST, AT(proxies), "127.0.0.0/8,::1",
		.doc = "Addresses and networks of that proxy: what it says of clients "
		       "(X-Forwarded-For, X-Forwarded-Proto) is believed, and "
		       "max-connections-per-ip is not for it" },
	{ "data-dir", CONF_TEXT, AT(data_dir), "/var/lib/tidemill",
		.doc = "Folder of blobs and of the secret key file" },
	{ "ui-dir", CONF_TEXT, AT(ui_dir),
		.doc = "Serve the dashboard from this folder instead of the one compiled in" },
	{ "git-program", CONF_TEXT, AT(git_program),
		.doc = "Path of tidemill-git; default: beside this program, or in "
		       "../libexec/tidemill" },
	{ "allow-local-git", CONF_BOOL, AT(allow_local_git),
		.doc = "Pipelines may name repositories by a path on this host" },
	{ "blob-max", CONF_SIZE, AT(blob_max), "1TiB", .min = 1, .max = INT64_MAX,
		.doc = "Largest single upload" },
	{ "checkpoint-max", CONF_SIZE, AT(checkpoint_max), "256GiB", .min = 1, .max = INT64_MAX,
		.doc = "Bytes that a step's checkpoint may have to be brought here; a larger one "
		       "stays on its host" },
	{ "blob-grace", CONF_SPAN, AT(blob_grace), "24h",
		.doc = "Age of bytes that nothing refers to before they may be removed" },
	{ "blob-gc-interval", CONF_SPAN, AT(blob_gc_interval), "1h", .min = CLOCK_SECOND,
		.max = 30 * CLOCK_DAY, .doc = "How often such bytes are looked for" },
	{ "worker-offline-after", CONF_SPAN, AT(worker_lost_after), "60s", .min = CLOCK_SECOND,
		.max = CLOCK_DAY, .doc = "Silence after which a worker counts as offline" },
	{ "max-connections", CONF_INT, AT(max_connections), "10000", .min = 1, .max = 1000000,
		.doc = "Connections in all" },
	{ "max-connections-per-ip", CONF_INT, AT(max_connections_per_ip), "256", .min = 1,
		.max = 1000000,
		.doc = "Connections from one address; more when workers come through one gateway" },
	{ "shutdown-grace", CONF_SPAN, AT(shutdown_grace), "10s",
		.doc = "How long running requests may take after SIGTERM" },
	{ "log-level", CONF_TEXT, AT(log_level), "info", .doc = "debug, info, warn or error" },
	{ 0 },
};
