#include "lib/fetch/guard.h"

#include <netinet/in.h>

/* Both families have the port in the same place. */
static unsigned port_of(const struct sockaddr *sa)
{
	struct sockaddr_in in;

	memcpy(&in, sa, sizeof in);
	return ntohs(in.sin_port);
}

int guard_check(const struct guard *g, const struct sockaddr *sa, size_t n, struct err *e)
{
	char text[IP_TEXT_MAX];
	struct ip ip;

	if (!g->on)
		return 0;
	if (!ip_from_sockaddr(sa, n, &ip))
		return err_set(e, ERR_FORBIDDEN, "only internet addresses may be reached");
	for (size_t i = 0; i < g->n_allow; i++) {
		if (ip_net_has(&g->allow[i], &ip))
			return 0;
	}
	if (!ip_is_public(&ip))
		return err_set(e, ERR_FORBIDDEN,
			"the address %s is not public and not on the list of allowed networks",
			ip_format(text, &ip));
	if (port_of(sa) != 80 && port_of(sa) != 443)
		return err_set(e, ERR_FORBIDDEN, "port %u may not be reached: only 80 and 443",
			port_of(sa));
	return 0;
}
