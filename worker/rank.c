#include "worker/rank.h"

#include "lib/base/id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIES = 64 };

/* ---- the address ---------------------------------------------------------------------------- */

static bool text_of(const struct sockaddr *sa, socklen_t n, char *out, socklen_t size)
{
	return getnameinfo(sa, n, out, size, NULL, 0, NI_NUMERICHOST) == 0;
}

/* The source address of the way to that one: connecting a datagram socket sends nothing. */
static bool way_to(const struct addrinfo *to, struct rank_address *ret)
{
	struct sockaddr_storage own;
	socklen_t n = sizeof own;
	int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
		  getsockname(fd, (struct sockaddr *)&own, &n) == 0 &&
		  text_of((struct sockaddr *)&own, n, ret->address, sizeof ret->address);

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* http://HOST[:PORT], as the settings have been checked for. */
static void split_url(struct str url, char *host, char *port, size_t size)
{
	bool tls = str_starts(url, STR("https://"));
	struct str rest = str_slice(url, tls ? 8 : 7, url.n);
	size_t n = strcspn(rest.p, "/?#");

	rest = str_slice(rest, 0, n);
	if (rest.n != 0 && rest.p[0] == '[') {
		n = strcspn(rest.p, "]");
		(void)str_print(host, size, "%.*s", (int)(n - 1), rest.p + 1);
		rest = str_slice(rest, n + 1, rest.n);
	} else {
		n = strcspn(rest.p, ":/");
		n = n < rest.n ? n : rest.n;
		(void)str_print(host, size, "%.*s", (int)n, rest.p);
		rest = str_slice(rest, n, rest.n);
	}
	(void)str_print(port, size, "%.*s", (int)(rest.n > 1 ? rest.n - 1 : 0),
		rest.n > 1 ? rest.p + 1 : "");
	if (port[0] == '\0')
		(void)str_print(port, size, "%s", tls ? "443" : "80");
}

static int find_way(const struct worker_conf *c, struct rank_address *ret, struct err *e)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	char host[256], port[256];
	struct addrinfo *all = NULL;
	bool ok = false;

	split_url(c->server, host, port, sizeof host);
	int rc = getaddrinfo(host, port, &hints, &all);
	for (const struct addrinfo *to = all; to != NULL && !ok; to = to->ai_next)
		ok = way_to(to, ret);
	if (all != NULL)
		freeaddrinfo(all);
	if (ok)
		return 0;
	return err_set(e, ERR_UNAVAILABLE,
		"no way to the server %.200s: %s; give advertise-address", host,
		rc != 0 ? gai_strerror(rc) : strerror(errno));
}

/* Of the interface that has the address. */
static void find_interface(struct rank_address *r)
{
	struct ifaddrs *all = NULL;
	char text[256];

	r->interface[0] = '\0';
	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *i = all; i != NULL && r->interface[0] == '\0'; i = i->ifa_next) {
		sa_family_t family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t n = family == AF_INET    ? sizeof(struct sockaddr_in)
			      : family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : 0;
		if (n != 0 && text_of(i->ifa_addr, n, text, sizeof text) &&
			strcmp(text, r->address) == 0)
			(void)str_print(r->interface, sizeof r->interface, "%s", i->ifa_name);
	}
	freeifaddrs(all);
}

/* ---- the port ------------------------------------------------------------------------------- */

/* The port when it could be bound now (0: any), else 0. */
static uint16_t try_port(int family, uint16_t port)
{
	struct sockaddr_storage at = { .ss_family = (sa_family_t)family };
	socklen_t n = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	in_port_t *where = family == AF_INET6 ? &((struct sockaddr_in6 *)&at)->sin6_port
					      : &((struct sockaddr_in *)&at)->sin_port;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint16_t got = 0;

	*where = htons(port);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 &&
		getsockname(fd, (struct sockaddr *)&at, &n) == 0)
		got = ntohs(*where);
	if (fd >= 0)
		(void)close(fd);
	return got;
}

/* Taken at random, so that two steps that start at once seldom get the same. */
static int find_port(const struct worker_conf *c, struct rank_address *ret, struct err *e)
{
	int family = strchr(ret->address, ':') != NULL ? AF_INET6 : AF_INET;
	uint32_t first = c->gang_port_first, n = c->gang_port_last - first + 1;
	uint32_t at;

	id_random(&at, sizeof at);
	ret->port = 0;
	for (uint32_t i = 0; i < TRIES + n && ret->port == 0; i++)
		ret->port = try_port(family, (uint16_t)(first != 0 ? first + (at + i) % n : 0));
	if (ret->port == 0)
		return err_set(e, ERR_UNAVAILABLE, "none of the %u ports of gang-ports is free", n);
	return 0;
}

int rank_find(const struct worker_conf *c, struct rank_address *ret, struct err *e)
{
	*ret = (struct rank_address){ .port = 0 };
	if (c->advertise_address.n != 0)
		(void)str_print(
			ret->address, sizeof ret->address, "%.*s", STR_ARG(c->advertise_address));
	else if (find_way(c, ret, e) < 0)
		return -1;
	find_interface(ret);
	return find_port(c, ret, e);
}
