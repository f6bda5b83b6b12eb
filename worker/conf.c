#include "worker/conf.h"

#include "lib/base/clock.h"
#include "lib/base/ip.h"
#include "lib/base/num.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define AT(member) offsetof(struct worker_conf, member)

const struct conf_row worker_conf_rows[] = {
	{ "server", CONF_TEXT, AT(server), "http://127.0.0.1:8080", .doc = "URL of the server" },
	{ "step-server", CONF_TEXT, AT(step_server),
		.doc = "URL at which steps reach the server; default: the same" },
	{ "insecure-http", CONF_BOOL, AT(insecure_http),
		.doc = "Speak plain HTTP to a server beyond the loopback interface" },
	{ "ca-file", CONF_TEXT, AT(ca_file),
		.doc = "PEM file of the authorities that the server's certificate may come from; "
		       "default: the system's" },
	{ "join-token", CONF_SECRET, AT(join_token),
		.doc = "Token that enrols this worker; needed once, and when the server is made "
		       "anew; a file of it may be gone after that",
		.used_up = true },
	{ "name", CONF_TEXT, AT(name), .doc = "Unique name of this worker; default: the host's" },
	{ "work-dir", CONF_TEXT, AT(work_dir), "/var/lib/tidemill-worker",
		.doc = "Folder of the credential, the attempts and the cache; one worker each" },
	{ "secrets-dir", CONF_TEXT, AT(secrets_dir),
		.doc = "Folder, best on a tmpfs, for the secrets of running steps; default: with "
		       "the attempts" },
	{ "step-secrets-dir", CONF_TEXT, AT(step_secrets_dir),
		.doc = "Folder of the secrets that steps may name: PROJECT/NAME, files of mode "
		       "0600; without it there are none" },
	{ "runtimes", CONF_LIST, AT(runtimes), "docker",
		.doc = "How steps may be run: docker, process (no isolation)" },
	{ "docker-socket", CONF_TEXT, AT(docker_socket), "/var/run/docker.sock",
		.doc = "Socket of Docker or Podman" },
	{ "docker-network", CONF_TEXT, AT(docker_network), "bridge",
		.doc = "Network of the containers" },
	{ "docker-host-gateway", CONF_BOOL, AT(docker_host_gateway),
		.doc = "Containers reach this host as host.docker.internal" },
	{ "docker-tmp", CONF_SIZE, AT(docker_tmp), "1GiB", .min = 0, .max = INT64_MAX,
		.doc = "Bytes of /tmp in a container, kept in the step's memory, and never more "
		       "than half of that; 0: /tmp is on the daemon's disk, without a limit" },
	{ "docker-rdma", CONF_BOOL, AT(docker_rdma),
		.doc = "Steps with GPUs get the devices in /dev/infiniband, and may pin memory" },
	{ "registry-auth-file", CONF_TEXT, AT(registry_auth_file),
		.doc = "Credentials of image registries, in the form of Docker's config.json "
		       "(auths); mode 0600, read anew for each pull" },
	{ "advertise-address", CONF_TEXT, AT(advertise_address),
		.doc = "Address at which other workers reach steps that run here; default: the one "
		       "from which this host reaches the server" },
	{ "gang-ports", CONF_TEXT, AT(gang_ports),
		.doc = "FIRST-LAST: where the port is taken from at which the ranks of a step find "
		       "each other; default: any that is free" },
	{ "gang-host-network", CONF_BOOL, AT(gang_host_network),
		.doc = "Containers of steps that run on several workers use the host's network, "
		       "without which they do not reach each other; they then reach whatever "
		       "listens on this host, too" },
	{ "step-user", CONF_TEXT, AT(step_user),
		.doc = "User that runs process steps; default: tidemill-step, else nobody" },
	{ "init-program", CONF_TEXT, AT(init_program),
		.doc = "Path of tidemill-init; default: beside this program, or in "
		       "../libexec/tidemill" },
	{ "git-program", CONF_TEXT, AT(git_program),
		.doc = "Path of tidemill-git; default: likewise" },
	{ "git-credentials", CONF_SECRET, AT(git_credentials),
		.doc = "JSON with username and password, or ssh_key and known_hosts" },
	{ "allow-local-git", CONF_BOOL, AT(allow_local_git),
		.doc = "Pipelines may name repositories by a path on this host" },
	{ "allow-http-git", CONF_BOOL, AT(allow_http_git),
		.doc = "Pipelines may name repositories by http://" },
	{ "cache-max", CONF_SIZE, AT(cache_max), "50GiB", .min = 0, .max = INT64_MAX,
		.doc = "Bytes of staged data that are kept for later attempts" },
	{ "checkpoint-every", CONF_SPAN, AT(checkpoint_every), "1m", .min = 0, .max = CLOCK_DAY,
		.doc = "How often what a running step has put into TIDEMILL_CHECKPOINT_DIR is "
		       "brought to the server, when it has changed; 0s: only when the attempt "
		       "ends" },
	{ "system-metrics-every", CONF_SPAN, AT(system_metrics_every), "10s", .min = 0,
		.max = CLOCK_DAY,
		.doc = "How often what a running step uses of this host is recorded in its "
		       "metrics (system/…), in whole seconds; 0s: never" },
	{ "disk-high", CONF_INT, AT(disk_high), "85", .min = 1, .max = 100,
		.doc = "Percent of a disk's use above which room is made on it: images that this "
		       "worker has pulled, and staged data, that no attempt uses go, least "
		       "recently used first; 100: never" },
	{ "disk-low", CONF_INT, AT(disk_low), "80", .min = 0, .max = 100,
		.doc = "Percent of its use at which that is enough" },
	{ "image-keep", CONF_SPAN, AT(image_keep), "10m", .min = 0, .max = 365 * CLOCK_DAY,
		.doc = "An image that was used within this time goes only when a pull finds no "
		       "space" },
	{ "cpus", CONF_TEXT, AT(cpus_text),
		.doc = "CPU cores to offer; default: all that this process may use" },
	{ "memory", CONF_SIZE, AT(memory), .min = 0, .max = INT64_MAX,
		.doc = "Bytes of memory to offer; default: the host's" },
	{ "nvml-library", CONF_TEXT, AT(nvml_library),
		.doc = "NVIDIA's management library; default: libnvidia-ml.so.1" },
	{ "log-level", CONF_TEXT, AT(log_level), "info", .doc = "debug, info, warn or error" },
	{ 0 },
};

/* Without the slashes at its end. */
static struct str trim_slashes(struct arena *a, struct str s)
{
	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	return arena_str(a, s);
}

struct str worker_conf_host(struct str url)
{
	ptrdiff_t at = str_find(url, STR("://"));
	struct str rest = at < 0 ? url : str_slice(url, (size_t)at + 3, url.n);
	size_t n = 0;

	if (rest.n != 0 && rest.p[0] == '[')
		return str_slice(rest, 0, (size_t)(str_find_char(rest, ']') + 1));
	while (n < rest.n && strchr(":/?#", rest.p[n]) == NULL)
		n++;
	return str_slice(rest, 0, n);
}

static bool is_loopback(struct str host)
{
	struct ip ip;

	if (host.n > 2 && host.p[0] == '[')
		host = str_slice(host, 1, host.n - 2);
	return str_is(host, "localhost") || (ip_parse(host, &ip) && ip_is_loopback(&ip));
}

static int check_url(const char *name, struct str url, bool insecure, struct err *e)
{
	static const struct str http = { "http://", 7 }, https = { "https://", 8 };
	struct str host = worker_conf_host(url);

	if ((!str_starts(url, http) && !str_starts(url, https)) || host.n == 0 ||
		str_find_char(url, '@') >= 0 || str_has_control(url) || url.n > 255)
		return err_set(e, ERR_INVALID,
			"%s must be http://HOST[:PORT] or https://HOST[:PORT], up to 255 bytes",
			name);
	if (str_starts(url, http) && !insecure && !is_loopback(host))
		return err_set(e, ERR_INVALID,
			"%s is plain HTTP to another host: use https, or give insecure-http", name);
	return 0;
}

static int check_dir(const char *name, struct str *dir, size_t max, struct arena *a, struct err *e)
{
	if (dir->n == 0 || dir->p[0] != '/' || str_has_control(*dir) || dir->n > max)
		return err_set(e, ERR_INVALID, "%s must be an absolute path of up to %zu bytes",
			name, max);
	*dir = trim_slashes(a, *dir);
	return 0;
}

static int check_gang(struct worker_conf *c, struct err *e)
{
	struct str rest = c->gang_ports, first;
	uint64_t low, high;

	if (c->advertise_address.n > 255 || str_has_control(c->advertise_address) ||
		str_find_char(c->advertise_address, ' ') >= 0 ||
		str_find_char(c->advertise_address, '/') >= 0)
		return err_set(e, ERR_INVALID,
			"advertise-address must be an address or a name of this host, up to 255 "
			"bytes");
	if (c->gang_ports.n == 0)
		return 0;
	if (!str_next(&rest, '-', &first) || !num_parse_u64(first, 1, 65535, &low) ||
		!num_parse_u64(rest, low, 65535, &high))
		return err_set(e, ERR_INVALID,
			"gang-ports must be FIRST-LAST, from 1 to 65535, not %.60s",
			c->gang_ports.p);
	c->gang_port_first = (uint16_t)low;
	c->gang_port_last = (uint16_t)high;
	return 0;
}

static int fill_name(struct worker_conf *c, struct arena *a, struct err *e)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (c->name.n == 0) {
		if (gethostname(host, sizeof host - 1) < 0)
			return err_errno(e, "read", "the host's name");
		for (char *p = host; *p != '\0'; p++)
			*p = *p >= 'A' && *p <= 'Z' ? (char)(*p + ('a' - 'A')) : *p;
		c->name = arena_str(a, str_slice(str_c(host), 0, 63));
	}
	if (!str_is_name(c->name))
		return err_set(e, ERR_INVALID, "name must be of [a-z0-9._-], up to 63, not %.63s",
			c->name.p);
	return 0;
}

int worker_conf_check(struct worker_conf *c, struct arena *a, struct err *e)
{
	c->server = trim_slashes(a, c->server);
	c->step_server = c->step_server.n == 0 ? c->server : trim_slashes(a, c->step_server);
	if (check_url("server", c->server, c->insecure_http, e) < 0 ||
		check_url("step-server", c->step_server, true, e) < 0 ||
		check_dir("work-dir", &c->work_dir, 255, a, e) < 0 ||
		(c->secrets_dir.n != 0 &&
			check_dir("secrets-dir", &c->secrets_dir, 255, a, e) < 0) ||
		(c->step_secrets_dir.n != 0 &&
			check_dir("step-secrets-dir", &c->step_secrets_dir, 255, a, e) < 0) ||
		(c->registry_auth_file.n != 0 &&
			check_dir("registry-auth-file", &c->registry_auth_file, 255, a, e) < 0))
		return -1;
	if (c->cpus_text.n != 0 && (!num_parse_double(c->cpus_text, &c->cpus) ||
					   !(c->cpus >= 0.01) || c->cpus > 100000))
		return err_set(e, ERR_INVALID, "cpus must be a number from 0.01 to 100000");
	if (c->disk_low >= c->disk_high)
		return err_set(e, ERR_INVALID, "disk-low must be less than disk-high (%lld)",
			(long long)c->disk_high);
	if (c->runtimes.n == 0)
		return err_set(e, ERR_INVALID, "runtimes must name docker, process or both");
	for (size_t i = 0; i < c->runtimes.n; i++) {
		struct str r = *list_at(&c->runtimes, struct str, i);
		if (!str_is(r, "docker") && !str_is(r, "process"))
			return err_set(e, ERR_INVALID,
				"runtimes may name docker and process, not %.*s",
				(int)(r.n < 60 ? r.n : 60), r.p);
	}
	return check_gang(c, e) < 0 ? -1 : fill_name(c, a, e);
}
