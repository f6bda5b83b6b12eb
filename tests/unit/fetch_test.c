#include "lib/fetch/guard.h"
#include "lib/fetch/retry.h"
#include "tests/unit/unit.h"

#include <netdb.h>
#include <netinet/in.h>

void test_retry__waits_grow_to_the_cap_and_end(void **state)
{
	struct retry r = { .first = 100, .cap = 1000, .max_tries = 6 };
	static const int64_t limits[] = { 100, 200, 400, 800, 1000, 1000 };

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct retry same = r;
		/* The largest value that the modulus lets through, and the smallest. */
		assert_int_equal(retry_next(&same, (uint64_t)limits[i], 0), limits[i]);
		assert_int_equal(retry_next(&r, 0, 0), 0);
	}
	assert_int_equal(retry_next(&r, 5, 0), -1);
}

void test_retry__jitter_is_full_and_retry_after_is_the_least(void **state)
{
	struct retry r = { .first = 100, .cap = INT64_MAX };

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		int64_t wait = retry_next(&r, UINT64_MAX - i, 0);
		assert_true(wait >= 0);
	}
	r = (struct retry){ .first = 100, .cap = 1000 };
	assert_int_equal(retry_next(&r, 7, 5000), 5000);
	assert_int_equal(retry_next(&r, 150, 20), 150);
}

void test_retry__what_may_help(void **state)
{
	struct err e = { .code = ERR_OK };

	(void)state;
	assert_true(retry_useful(&e, 503) && retry_useful(&e, 429));
	assert_false(retry_useful(&e, 200) || retry_useful(&e, 404) || retry_useful(&e, 422));
	e.code = ERR_TIMEOUT;
	assert_true(retry_useful(&e, 0));
	e.code = ERR_TOO_LARGE;
	assert_false(retry_useful(&e, 0));
}

/* What the C library makes of a host, judged as the client judges what it is about to connect. */
static int judge(const struct guard *g, const char *host, const char *port, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	int rc = 1;

	if (getaddrinfo(host, port, &hints, &found) != 0)
		return rc;
	for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
		rc = guard_check(g, a->ai_addr, a->ai_addrlen, e);
		if (rc == 0)
			break;
	}
	freeaddrinfo(found);
	return rc;
}

void test_guard__every_spelling_of_an_inner_address_is_refused(void **state)
{
	static const char *const inner[] = { "127.0.0.1", "127.1", "2130706433", "0x7f000001",
		"0177.0.0.1", "0.0.0.0", "localhost", "::1", "::", "::ffff:127.0.0.1",
		"::ffff:7f00:1", "64:ff9b::7f00:1", "fe80::1%lo", "169.254.169.254",
		"fd00:ec2::254", "10.0.0.1", "100.64.0.1", "192.168.1.1", "172.16.0.1",
		"2002:7f00:1::" };
	struct guard g = { .on = true }, off = { .on = false };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
		e.code = ERR_OK;
		if (judge(&g, inner[i], "443", &e) != -1 || e.code != ERR_FORBIDDEN)
			fail_msg("%s was not refused", inner[i]);
		assert_int_equal(judge(&off, inner[i], "443", &e), 0);
	}
}

void test_guard__public_addresses_and_the_allow_list(void **state)
{
	struct ip_net nets[2];
	struct guard g = { .on = true, .allow = nets, .n_allow = 2 };
	struct sockaddr_storage unix_address = { .ss_family = AF_UNIX };
	struct err e;

	(void)state;
	assert_int_equal(ip_net_parse(STR("10.2.0.0/16"), &nets[0], &e), 0);
	assert_int_equal(ip_net_parse(STR("fd00:1::/32"), &nets[1], &e), 0);
	assert_int_equal(judge(&g, "8.8.8.8", "443", &e), 0);
	assert_int_equal(judge(&g, "2606:4700::1111", "80", &e), 0);
	assert_int_equal(judge(&g, "8.8.8.8", "5432", &e), -1);
	assert_int_equal(judge(&g, "10.2.255.255", "5432", &e), 0);
	assert_int_equal(judge(&g, "10.3.0.0", "443", &e), -1);
	assert_int_equal(judge(&g, "fd00:1::9", "8080", &e), 0);
	assert_int_equal(
		guard_check(&g, (const struct sockaddr *)&unix_address, sizeof unix_address, &e),
		-1);
}
