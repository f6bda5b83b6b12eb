#include "worker/rank.h"

#include "lib/base/id.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIES = 64 };

/* ---- the interface -------------------------------------------------------------------------- */

static bool text_of(const struct sockaddr *sa, socklen_t n, char *out, socklen_t size)
{
	return getnameinfo(sa, n, out, size, NULL, 0, NI_NUMERICHOST) == 0;
}

static void set_network(struct rank_address *r, const struct ifaddrs *i)
{
	struct sockaddr_in own, mask;
	struct in_addr base;
	char text[INET_ADDRSTRLEN];

	if (i->ifa_addr->sa_family != AF_INET || i->ifa_netmask == NULL)
		return;
	memcpy(&own, i->ifa_addr, sizeof own);
	memcpy(&mask, i->ifa_netmask, sizeof mask);
	base.s_addr = own.sin_addr.s_addr & mask.sin_addr.s_addr;
	if (inet_ntop(AF_INET, &base, text, sizeof text) != NULL)
		(void)str_print(r->network, sizeof r->network, "%s/%d", text,
			__builtin_popcount(mask.sin_addr.s_addr));
}

/* The one that has the address. */
static void find_interface(struct rank_address *r)
{
	struct ifaddrs *all = NULL;
	char text[256];

	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *i = all; i != NULL && r->interface[0] == '\0'; i = i->ifa_next) {
		sa_family_t family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t n = family == AF_INET    ? sizeof(struct sockaddr_in)
			      : family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : 0;
		if (n == 0 || !text_of(i->ifa_addr, n, text, sizeof text) ||
			strcmp(text, r->address) != 0)
			continue;
		(void)str_print(r->interface, sizeof r->interface, "%s", i->ifa_name);
		set_network(r, i);
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

int rank_find(
	const struct worker_conf *c, const char *from, struct rank_address *ret, struct err *e)
{
	struct str address = c->advertise_address.n != 0 ? c->advertise_address : str_c(from);

	*ret = (struct rank_address){ .port = 0 };
	(void)str_print(ret->address, sizeof ret->address, "%.*s", STR_ARG(address));
	find_interface(ret);
	return find_port(c, ret, e);
}
