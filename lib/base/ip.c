#include "lib/base/ip.h"

#include "lib/base/num.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool ip_parse(struct str s, struct ip *ret)
{
	char text[INET6_ADDRSTRLEN];
	struct ip ip;

	if (s.n == 0 || s.n >= sizeof text || memchr(s.p, '\0', s.n) != NULL)
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (inet_pton(AF_INET6, text, ip.b) != 1) {
		memcpy(ip.b, mapped, sizeof mapped);
		if (inet_pton(AF_INET, text, ip.b + 12) != 1)
			return false;
	}
	*ret = ip;
	return true;
}

bool ip_from_sockaddr(const struct sockaddr *sa, size_t n, struct ip *ret)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (n >= sizeof v4 && sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof v4);
		memcpy(ret->b, mapped, sizeof mapped);
		memcpy(ret->b + 12, &v4.sin_addr, 4);
		return true;
	}
	if (n >= sizeof v6 && sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof v6);
		memcpy(ret->b, &v6.sin6_addr, 16);
		return true;
	}
	return false;
}

/* The first `bits` bits are equal. */
static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || (unsigned)(a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

int ip_net_parse(struct str s, struct ip_net *ret, struct err *e)
{
	ptrdiff_t slash = str_find_char(s, '/');
	struct str address = slash < 0 ? s : str_slice(s, 0, (size_t)slash);
	bool v4 = str_find_char(address, ':') < 0;
	uint64_t bits = v4 ? 32 : 128;
	struct ip_net net;

	if (!ip_parse(address, &net.base) ||
		(slash >= 0 &&
			!num_parse_u64(str_slice(s, (size_t)slash + 1, s.n), 0, bits, &bits)))
		return err_set(e, ERR_INVALID, "\"%.*s\" is not an address or a network",
			s.n < 64 ? (int)s.n : 64, s.p != NULL ? s.p : "");
	net.bits = (unsigned)bits + (v4 ? 96 : 0);
	for (unsigned i = net.bits; i < 128; i++) {
		if (net.base.b[i / 8] & 0x80U >> i % 8)
			return err_set(e, ERR_INVALID,
				"the network \"%.*s\" has bits set beyond its prefix", (int)s.n,
				s.p);
	}
	*ret = net;
	return 0;
}

bool ip_net_has(const struct ip_net *net, const struct ip *ip)
{
	return same_prefix(net->base.b, ip->b, net->bits);
}

static bool v4_is_public(const uint8_t *b)
{
	static const struct {
		uint8_t base[4];
		unsigned bits;
	} special[] = {
		{ { 0, 0, 0, 0 }, 8 },
		{ { 10, 0, 0, 0 }, 8 },
		{ { 100, 64, 0, 0 }, 10 },
		{ { 127, 0, 0, 0 }, 8 },
		{ { 169, 254, 0, 0 }, 16 },
		{ { 172, 16, 0, 0 }, 12 },
		{ { 192, 0, 0, 0 }, 24 },
		{ { 192, 0, 2, 0 }, 24 },
		{ { 192, 88, 99, 0 }, 24 },
		{ { 192, 168, 0, 0 }, 16 },
		{ { 198, 18, 0, 0 }, 15 },
		{ { 198, 51, 100, 0 }, 24 },
		{ { 203, 0, 113, 0 }, 24 },
		{ { 224, 0, 0, 0 }, 4 },
		{ { 240, 0, 0, 0 }, 4 },
	};

	for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
		if (same_prefix(special[i].base, b, special[i].bits))
			return false;
	}
	return true;
}

bool ip_is_public(const struct ip *ip)
{
	static const struct ip_net nat64 = { { { 0, 0x64, 0xff, 0x9b } }, 96 };
	static const struct ip_net six_to_four = { { { 0x20, 0x02 } }, 16 };
	static const struct ip_net special[] = {
		{ { { 0 } }, 96 }, /* unspecified, loopback, IPv4-compatible */
		{ { { 0, 0x64, 0xff, 0x9b, 0, 1 } }, 48 }, /* local NAT64 */
		{ { { 0x01 } }, 64 }, /* discard only */
		{ { { 0x20, 0x01, 0x00, 0x00 } }, 23 }, /* Teredo and other protocols */
		{ { { 0x20, 0x01, 0x0d, 0xb8 } }, 32 }, /* documentation */
		{ { { 0x3f, 0xff } }, 20 }, /* documentation */
		{ { { 0x5f, 0x00 } }, 16 }, /* segment routing */
		{ { { 0xfc } }, 7 },
		{ { { 0xfe, 0x80 } }, 10 },
		{ { { 0xfe, 0xc0 } }, 10 },
		{ { { 0xff } }, 8 },
	};

	if (memcmp(ip->b, mapped, sizeof mapped) == 0 || ip_net_has(&nat64, ip))
		return v4_is_public(ip->b + 12);
	if (ip_net_has(&six_to_four, ip))
		return v4_is_public(ip->b + 2);
	for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
		if (ip_net_has(&special[i], ip))
			return false;
	}
	return true;
}

bool ip_is_loopback(const struct ip *ip)
{
	static const struct ip one = { { [15] = 1 } };

	return memcmp(ip, &one, sizeof one) == 0 ||
	       (memcmp(ip->b, mapped, sizeof mapped) == 0 && ip->b[12] == 127);
}

const char *ip_format(char out[IP_TEXT_MAX], const struct ip *ip)
{
	bool v4 = memcmp(ip->b, mapped, sizeof mapped) == 0;

	out[0] = '\0';
	(void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip->b + 12 : ip->b, out, IP_TEXT_MAX);
	return out;
}
