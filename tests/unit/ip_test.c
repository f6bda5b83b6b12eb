#include "lib/base/ip.h"
#include "tests/unit/unit.h"

#include <netinet/in.h>

static bool is_public(const char *text)
{
	struct ip ip;

	assert_true(ip_parse(str_c(text), &ip));
	return ip_is_public(&ip);
}

/* The last address of each special range, and its first neighbour outside. */
void test_ip__special_ranges_end_where_they_should(void **state)
{
	static const char *const pairs[][2] = {
		{ "0.255.255.255", "1.0.0.0" },
		{ "10.255.255.255", "11.0.0.0" },
		{ "100.64.0.0", "100.63.255.255" },
		{ "100.127.255.255", "100.128.0.0" },
		{ "127.255.255.255", "128.0.0.0" },
		{ "169.254.169.254", "169.255.0.0" },
		{ "172.16.0.0", "172.15.255.255" },
		{ "172.31.255.255", "172.32.0.0" },
		{ "192.0.0.255", "192.0.1.0" },
		{ "192.0.2.1", "192.0.3.0" },
		{ "192.88.99.1", "192.88.100.0" },
		{ "192.168.255.255", "192.169.0.0" },
		{ "198.19.255.255", "198.20.0.0" },
		{ "198.51.100.9", "198.51.101.0" },
		{ "203.0.113.9", "203.0.114.0" },
		{ "255.255.255.255", "223.255.255.255" },
		{ "::", "2606:4700::1" },
		{ "::1", "2001:4860:4860::8888" },
		{ "::127.0.0.1", "2a00:1450::1" },
		{ "::ffff:127.0.0.1", "::ffff:8.8.8.8" },
		{ "64:ff9b::7f00:1", "64:ff9b::808:808" },
		{ "2002:7f00:1::", "2002:808:808::" },
		{ "2001:0:1::", "2001:200::" },
		{ "fd00:ec2::254", "fbff::1" },
		{ "fe80::1", "fe00::1" },
		{ "feff::1", "2001:db9::" },
		{ "2001:db8::1", "2001:db7::1" },
		{ "ff02::1", "2607:f8b0::1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		if (is_public(pairs[i][0]) || !is_public(pairs[i][1]))
			fail_msg("%s must be special and %s public", pairs[i][0], pairs[i][1]);
	}
}

void test_ip__networks_are_parsed_strictly(void **state)
{
	static const char *const bad[] = { "", "/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.1/8",
		"fd00::/129", "127.1", "0177.0.0.1", "10.0.0.0/08", "::1/64", "a", "1.2.3.4.5" };
	struct ip_net net;
	struct ip in, out;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(ip_net_parse(str_c(bad[i]), &net, &e), -1);
	assert_int_equal(ip_net_parse(STR("10.2.0.0/15"), &net, &e), 0);
	assert_true(ip_parse(STR("10.3.255.255"), &in) && ip_parse(STR("10.4.0.0"), &out));
	assert_true(ip_net_has(&net, &in));
	assert_false(ip_net_has(&net, &out));
	assert_int_equal(ip_net_parse(STR("::/0"), &net, &e), 0);
	assert_true(ip_net_has(&net, &out));
	assert_int_equal(ip_net_parse(STR("::1"), &net, &e), 0);
	assert_int_equal(net.bits, 128);
}

void test_ip__socket_addresses_and_text(void **state)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_storage odd = { .ss_family = AF_UNIX };
	char text[IP_TEXT_MAX];
	struct ip ip;

	(void)state;
	v4.sin_addr.s_addr = htonl(0x7f000001);
	assert_true(ip_from_sockaddr((const struct sockaddr *)&v4, sizeof v4, &ip));
	assert_string_equal(ip_format(text, &ip), "127.0.0.1");
	assert_true(ip_is_loopback(&ip));
	assert_false(ip_from_sockaddr((const struct sockaddr *)&v4, sizeof v4 - 1, &ip));
	assert_true(ip_from_sockaddr((const struct sockaddr *)&v6, sizeof v6, &ip));
	assert_string_equal(ip_format(text, &ip), "::1");
	assert_true(ip_is_loopback(&ip));
	assert_false(ip_from_sockaddr((const struct sockaddr *)&odd, sizeof odd, &ip));
}
