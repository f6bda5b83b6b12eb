/*
 * IP addresses and networks as values: 16 bytes, IPv4 as ::ffff:a.b.c.d. ip_is_public says whether
 * an address lies outside all ranges that IANA's special-purpose registries (RFC 6890 and its
 * successors) keep for private, local, test, relay or multicast use; forms that embed an IPv4
 * address (mapped, NAT64, 6to4) are judged by that address. Pure; nothing is resolved here.
 */
#ifndef LIB_BASE_IP_H
#define LIB_BASE_IP_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct sockaddr;

struct ip {
	uint8_t b[16];
};

struct ip_net {
	struct ip base;
	unsigned bits; /* 0 to 128; an IPv4 prefix counts from 96 */
};

/* "10.1.2.3", "fd00::1"; dotted quads in full only (no "127.1", no octal). */
bool ip_parse(struct str s, struct ip *ret);
/* False for other families than IPv4 and IPv6. */
bool ip_from_sockaddr(const struct sockaddr *sa, size_t n, struct ip *ret);
/* "10.2.0.0/16", "fd00::/8", or one address; bits beyond the prefix must be zero. */
int ip_net_parse(struct str s, struct ip_net *ret, struct err *e) MUST_CHECK;
bool ip_net_has(const struct ip_net *net, const struct ip *ip);
bool ip_is_public(const struct ip *ip);
bool ip_is_loopback(const struct ip *ip); /* 127/8 and ::1 */
enum { IP_TEXT_MAX = 48 };
const char *ip_format(char out[IP_TEXT_MAX], const struct ip *ip); /* returns out */

#endif
