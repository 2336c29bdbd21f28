/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address guard: each special-purpose range at its edges, embedded IPv4
 * addresses, and the route look-up in a network namespace of the test's own.
 *
 * links: proxy/upstream/guard.c proxy/upstream/guard_table.c proxy/upstream/guard_route.c base/addr.c base/prefix.c base/err.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/handoff.h"
#include "base/prefix.h"
#include "proxy/upstream/guard.h"

static struct addr addr(const char *text)
{
	struct addr a = { 0 };

	if (addr_parse(text, strlen(text), &a))
		fail_msg("not an address: %s", text);
	return a;
}

static void expect_refused(const char *text, const char *why)
{
	char detail[GUARD_DETAIL_MAX] = "unset";
	struct addr a = addr(text);

	if (guard_is_public(&a, detail))
		fail_msg("%s passed", text);
	assert_string_equal(detail, why);
}

static void expect_public(const char *text)
{
	char detail[GUARD_DETAIL_MAX] = "unset";
	struct addr a = addr(text);

	if (!guard_is_public(&a, detail))
		fail_msg("%s was refused: %s", text, detail);
	assert_string_equal(detail, "");
}

static void test_ipv4_edges(void **state)
{
	(void)state;
	expect_refused("0.0.0.0", "0.0.0.0/8 this network");
	expect_refused("0.255.255.255", "0.0.0.0/8 this network");
	expect_public("1.0.0.0");
	expect_public("9.255.255.255");
	expect_refused("10.0.0.0", "10.0.0.0/8 private-use");
	expect_refused("10.255.255.255", "10.0.0.0/8 private-use");
	expect_public("11.0.0.0");
	expect_public("100.63.255.255");
	expect_refused("100.64.0.0", "100.64.0.0/10 shared address space");
	expect_refused("100.127.255.255", "100.64.0.0/10 shared address space");
	expect_public("100.128.0.0");
	expect_public("126.255.255.255");
	expect_refused("127.0.0.1", "127.0.0.0/8 loopback");
	expect_refused("127.255.255.255", "127.0.0.0/8 loopback");
	expect_public("128.0.0.0");
	expect_public("169.253.255.255");
	expect_refused("169.254.0.0", "169.254.0.0/16 link-local");
	expect_public("169.255.0.0");
	expect_public("172.15.255.255");
	expect_refused("172.16.0.0", "172.16.0.0/12 private-use");
	expect_refused("172.31.255.255", "172.16.0.0/12 private-use");
	expect_public("172.32.0.0");
	expect_public("191.255.255.255");
	expect_refused("192.0.0.9", "192.0.0.0/24 IETF protocol assignments");
	expect_public("192.0.1.0");
	expect_refused("192.0.2.1", "192.0.2.0/24 documentation");
	expect_public("192.0.3.0");
	expect_refused("192.88.99.1", "192.88.99.0/24 6to4 relay anycast");
	expect_public("192.167.255.255");
	expect_refused("192.168.0.0", "192.168.0.0/16 private-use");
	expect_public("192.169.0.0");
	expect_public("198.17.255.255");
	expect_refused("198.18.0.0", "198.18.0.0/15 benchmarking");
	expect_refused("198.19.255.255", "198.18.0.0/15 benchmarking");
	expect_public("198.20.0.0");
	expect_refused("198.51.100.7", "198.51.100.0/24 documentation");
	expect_refused("203.0.113.7", "203.0.113.0/24 documentation");
	expect_public("223.255.255.255");
	expect_refused("224.0.0.0", "224.0.0.0/4 multicast");
	expect_refused("239.255.255.255", "224.0.0.0/4 multicast");
	expect_refused("240.0.0.0", "240.0.0.0/4 reserved");
	expect_refused("255.255.255.254", "240.0.0.0/4 reserved");
	expect_refused("255.255.255.255", "255.255.255.255/32 limited broadcast");
}

static void test_metadata(void **state)
{
	(void)state;
	expect_refused("169.254.169.254", "169.254.0.0/16 link-local");
	expect_refused("169.254.170.2", "169.254.0.0/16 link-local");
	expect_refused("168.63.129.16", "168.63.129.16/32 cloud platform service");
	expect_public("168.63.129.17");
	expect_refused("100.100.100.200", "100.64.0.0/10 shared address space");
	expect_refused("192.0.0.192", "192.0.0.0/24 IETF protocol assignments");
	expect_refused("fd00:ec2::254", "fc00::/7 unique-local");
	expect_refused("fd20:ce::254", "fc00::/7 unique-local");
}

static void test_ipv6_edges(void **state)
{
	(void)state;
	expect_refused("::", "::/128 unspecified");
	expect_refused("::1", "::1/128 loopback");
	expect_refused("100::1", "100::/64 discard-only");
	expect_refused("100:0:0:1::1", "100:0:0:1::/64 dummy prefix");
	expect_refused("1fff:ffff::1", "outside 2000::/3, not global unicast");
	expect_public("2000::1");
	expect_refused("2001:1::1", "2001::/23 IETF protocol assignments");
	expect_refused("2001:2::1", "2001:2::/48 benchmarking");
	expect_refused("2001:2:1::1", "2001::/23 IETF protocol assignments");
	expect_refused("2001:10::1", "2001:10::/28 ORCHID");
	expect_refused("2001:20::1", "2001:20::/28 ORCHIDv2");
	expect_refused("2001:1ff:ffff::1", "2001::/23 IETF protocol assignments");
	expect_public("2001:200::1");
	expect_public("2001:db7:ffff::1");
	expect_refused("2001:db8::1", "2001:db8::/32 documentation");
	expect_public("2001:db9::1");
	expect_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c");
	expect_public("3ffe:ffff::1");
	expect_refused("3fff::1", "3fff::/20 documentation");
	expect_public("3fff:1000::1");
	expect_refused("4000::1", "outside 2000::/3, not global unicast");
	expect_refused("5f00::1", "5f00::/16 SRv6 segment identifiers");
	expect_refused("fc00::1", "fc00::/7 unique-local");
	expect_refused("fdff:ffff::1", "fc00::/7 unique-local");
	expect_refused("fe80::1", "fe80::/10 link-local");
	expect_refused("febf::1", "fe80::/10 link-local");
	expect_refused("fec0::1", "fec0::/10 site-local");
	expect_refused("feff::1", "fec0::/10 site-local");
	expect_refused("ff02::1", "ff00::/8 multicast");
}

static void test_embedded(void **state)
{
	(void)state;
	expect_refused("::ffff:169.254.169.254", "embeds 169.254.169.254: 169.254.0.0/16 link-local");
	expect_refused("::ffff:10.0.0.1", "embeds 10.0.0.1: 10.0.0.0/8 private-use");
	expect_refused("::ffff:93.184.215.14", "::ffff:0.0.0.0/96 IPv4-mapped");
	expect_refused("::ffff:0:93.184.215.14", "::ffff:0:0:0/96 IPv4-translated");
	expect_refused("::127.0.0.1", "embeds 127.0.0.1: 127.0.0.0/8 loopback");
	expect_refused("::93.184.215.14", "::/96 IPv4-compatible");
	expect_refused("64:ff9b::a9fe:a9fe", "embeds 169.254.169.254: 169.254.0.0/16 link-local");
	expect_refused("64:ff9b::7f00:1", "embeds 127.0.0.1: 127.0.0.0/8 loopback");
	expect_public("64:ff9b::93.184.215.14");
	expect_refused("64:ff9b:0:0:1::5db8:d70e", "outside 2000::/3, not global unicast");
	/* RFC 6052 puts the address of a /48 around bits 64 to 71. */
	expect_refused("64:ff9b:1:a9fe:a9:fe00::", "embeds 169.254.169.254: 169.254.0.0/16 link-local");
	expect_refused("64:ff9b:1:5db8:d7:e00:5db8:d70e", "64:ff9b:1::/48 local-use NAT64");
	expect_refused("2002:a00:1::1", "embeds 10.0.0.1: 10.0.0.0/8 private-use");
	expect_refused("2002:5db8:d70e::1", "2002::/16 6to4");
	/* Teredo: the client's address is stored inverted, the server's is not. */
	expect_refused("2001:0:5db8:d70e:0:0:f5ff:fffe", "embeds 10.0.0.1: 10.0.0.0/8 private-use");
	expect_refused("2001:0:a00:1:0:0:a247:28f1", "embeds 10.0.0.1: 10.0.0.0/8 private-use");
	expect_refused("2001:0:5db8:d70e:0:0:a247:28f1", "2001::/32 Teredo");
	/* ISATAP inside a global prefix. */
	expect_refused("2606:2800::5efe:10.0.0.1", "embeds 10.0.0.1: 10.0.0.0/8 private-use");
	expect_refused("2606:2800::200:5efe:10.0.0.1", "embeds 10.0.0.1: 10.0.0.0/8 private-use");
	expect_public("2606:2800::5efe:93.184.215.14");
}

static void test_no_address(void **state)
{
	char detail[GUARD_DETAIL_MAX];
	struct addr none = { 0 };

	(void)state;
	assert_false(guard_is_public(&none, detail));
	assert_string_equal(detail, "no address");
}

/* The first and the last address of what the gate itself uses. */
static void test_gate_ranges(void **state)
{
	static const char *const ranges[] = { GATE_POOL4, GATE_POOL6 };
	char detail[GUARD_DETAIL_MAX];
	struct addr a;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct prefix p;

		assert_int_equal(prefix_parse(ranges[i], strlen(ranges[i]), &p), 0);
		assert_false(guard_is_public(&p.addr, detail));
		for (size_t bit = p.len; bit < 8 * addr_size(&p.addr); bit++)
			p.addr.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		assert_false(guard_is_public(&p.addr, detail));
	}
	a = addr(GATE_ADDR4);
	assert_false(guard_is_public(&a, detail));
	a = addr(GATE_SANDBOX6);
	assert_false(guard_is_public(&a, detail));
}

/* Runs ip(8) with the words of `line`; fails the test when it fails. */
static void ip(const char *line)
{
	char text[256];
	char *argv[32] = { (char *)"ip" };
	char *save = NULL;
	int status = -1;
	pid_t pid;
	int n = 1;

	assert_true(snprintf(text, sizeof(text), "%s", line) < (int)sizeof(text));
	for (char *w = strtok_r(text, " ", &save); w && n < 31; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	assert_int_equal(posix_spawnp(&pid, "ip", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("ip %s: status %d", line, status);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

/* Own network namespace; for an ordinary user in a user namespace where it is root, so that ip(8) keeps the rights. */
static bool own_namespace(void)
{
	unsigned uid = geteuid();
	char map[32];

	if (uid == 0)
		return unshare(CLONE_NEWNET) == 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	return true;
}

#define ONLINK	  "on-link: reached without a gateway"
#define OWN	  "an address of this host"
#define BROADCAST "a broadcast, multicast or anycast address of a network of this host"

/* The kernel makes the route of an IPv6 address its own a moment after it has added the address. */
static void wait_for_own_route(struct guard *g, const char *text)
{
	char detail[GUARD_DETAIL_MAX] = "unset";
	struct addr a = addr(text);

	while (guard_check(g, &a, detail) != GUARD_PRIVATE || strcmp(detail, OWN) != 0)
		sched_yield();
}

/* A namespace with a router on a link, a tunnel-like link, and special routes. Nothing leaves it. */
static int enter_namespace(void **state)
{
	struct err err = { "" };

	if (!own_namespace()) {
		*state = NULL;
		return 0;
	}
	ip("link set lo up");
	ip("link add lan type veth peer name far");
	ip("link set lan addrgenmode none");
	ip("link set far addrgenmode none");
	ip("link set far up");
	ip("link set lan up");
	ip("addr add 93.184.215.2/24 dev lan");
	ip("-6 addr add 2606:2800::2/64 dev lan nodad");
	ip("route add default via 93.184.215.1");
	ip("-6 route add default via 2606:2800::1");
	*state = guard_new(&err);
	if (!*state)
		fail_msg("%s", err.text);
	wait_for_own_route(*state, "2606:2800::2");
	return 0;
}

static int leave_namespace(void **state)
{
	guard_free(*state);
	return 0;
}

static uint64_t now_us;

uint64_t clock_tick_us(void)
{
	return now_us;
}

/* Each look is a second after the one before. */
static void check_route_of(void **state, const char *text, enum guard_result result, const char *why)
{
	char detail[GUARD_DETAIL_MAX] = "unset";
	struct addr a = addr(text);
	enum guard_result r;

	now_us += 1000000;
	r = guard_check(*state, &a, detail);
	if (r != result || strcmp(detail, why) != 0)
		fail_msg("%s: %d \"%s\", not %d \"%s\"", text, (int)r, detail, (int)result, why);
}

static void test_routes(void **state)
{
	if (!*state)
		skip();
	check_route_of(state, "1.1.1.1", GUARD_PASS, "");
	check_route_of(state, "2606:4700::1111", GUARD_PASS, "");
	check_route_of(state, "10.0.0.1", GUARD_PRIVATE, "10.0.0.0/8 private-use");
	check_route_of(state, "93.184.215.2", GUARD_PRIVATE, OWN);
	check_route_of(state, "2606:2800::2", GUARD_PRIVATE, OWN);
	check_route_of(state, "93.184.215.1", GUARD_PRIVATE, ONLINK);
	check_route_of(state, "93.184.215.77", GUARD_PRIVATE, ONLINK);
	check_route_of(state, "2606:2800::77", GUARD_PRIVATE, ONLINK);
	check_route_of(state, "93.184.215.255", GUARD_PRIVATE, BROADCAST);
	/* The same through NAT64. */
	check_route_of(state, "64:ff9b::1.1.1.1", GUARD_PASS, "");
	check_route_of(state, "64:ff9b::93.184.215.2", GUARD_PRIVATE, "embeds 93.184.215.2: " OWN);
	check_route_of(state, "64:ff9b::93.184.215.77", GUARD_PRIVATE, "embeds 93.184.215.77: " ONLINK);
}

/* What passed is believed for a second, and only that; a refusal is not. */
static void test_believed(void **state)
{
	char detail[GUARD_DETAIL_MAX];
	struct addr a = addr("8.5.0.1"), other = addr("8.5.0.2");

	if (!*state)
		skip();
	check_route_of(state, "8.5.0.1", GUARD_PASS, "");
	ip("route add local 8.5.0.0/16 dev lo");
	now_us += 999999;
	assert_int_equal(guard_check(*state, &a, detail), GUARD_PASS);
	assert_int_equal(guard_check(*state, &other, detail), GUARD_PRIVATE);
	now_us += 1;
	assert_int_equal(guard_check(*state, &a, detail), GUARD_PRIVATE);
	ip("route del local 8.5.0.0/16 dev lo");
	assert_int_equal(guard_check(*state, &a, detail), GUARD_PASS);
	/* More addresses than are remembered. */
	for (unsigned i = 0; i < 1000; i++) {
		struct addr many = addr_v4(0x08060000 + i);

		assert_int_equal(guard_check(*state, &many, detail), GUARD_PASS);
	}
	ip("route add local 8.5.0.0/16 dev lo");
	assert_int_equal(guard_check(*state, &a, detail), GUARD_PRIVATE);
	ip("route del local 8.5.0.0/16 dev lo");
}

static void test_special_routes(void **state)
{
	if (!*state)
		skip();
	ip("route add blackhole 8.1.0.0/16");
	ip("route add unreachable 8.2.0.0/16");
	ip("route add prohibit 8.3.0.0/16");
	ip("-6 route add blackhole 2a00:1::/32");
	ip("-6 route add unreachable 2a00:2::/32");
	ip("-6 route add prohibit 2a00:3::/32");
	check_route_of(state, "8.1.0.1", GUARD_UNREACHABLE, "EINVAL");
	check_route_of(state, "8.2.0.1", GUARD_UNREACHABLE, "EHOSTUNREACH");
	check_route_of(state, "8.3.0.1", GUARD_UNREACHABLE, "EACCES");
	check_route_of(state, "2a00:1::1", GUARD_UNREACHABLE, "EINVAL");
	check_route_of(state, "2a00:2::1", GUARD_UNREACHABLE, "EHOSTUNREACH");
	check_route_of(state, "2a00:3::1", GUARD_UNREACHABLE, "EACCES");
	/* Anycast addresses of the host, and a whole range that is local to it. */
	ip("route add local 8.4.0.0/16 dev lo");
	ip("-6 route add anycast 2a00:4::5/128 dev lan");
	check_route_of(state, "8.4.3.2", GUARD_PRIVATE, OWN);
	check_route_of(state, "2a00:4::5", GUARD_PRIVATE, BROADCAST);
}

/* Routes without a gateway: a tunnel to the world is fine, its own network and a neighbour's host route are not. */
static void test_tunnels(void **state)
{
	if (!*state)
		skip();
	ip("route add 9.0.0.0/16 dev lan");
	check_route_of(state, "9.0.1.1", GUARD_PRIVATE, ONLINK);
	ip("route add 9.1.0.1/32 dev lan");
	check_route_of(state, "9.1.0.1", GUARD_PRIVATE, ONLINK);
	ip("route add 128.0.0.0/1 dev far");
	check_route_of(state, "151.101.1.1", GUARD_PASS, "");
	ip("-6 route add 2000::/3 dev far");
	check_route_of(state, "2a04:4e42::1", GUARD_PASS, "");
	ip("-6 route add 2a05::/16 dev far");
	check_route_of(state, "2a05::1", GUARD_PRIVATE, ONLINK);
	ip("route replace default dev far");
	check_route_of(state, "1.1.1.1", GUARD_PASS, "");
	/* An IPv6 router for IPv4, and two routers at once. */
	ip("route add 9.2.0.0/16 via inet6 2606:2800::1 dev lan");
	check_route_of(state, "9.2.0.1", GUARD_PASS, "");
	ip("route add 9.3.0.0/16 nexthop via 93.184.215.1 nexthop via 93.184.215.3");
	check_route_of(state, "9.3.0.1", GUARD_PASS, "");
	ip("nexthop add id 7 via 93.184.215.1 dev lan");
	ip("route add 9.4.0.0/16 nhid 7");
	check_route_of(state, "9.4.0.1", GUARD_PASS, "");
	ip("nexthop add id 8 dev lan");
	ip("route add 9.5.0.0/16 nhid 8");
	check_route_of(state, "9.5.0.1", GUARD_PRIVATE, ONLINK);
}

static void test_no_route(void **state)
{
	if (!*state)
		skip();
	ip("route flush default");
	ip("route del 128.0.0.0/1");
	ip("-6 route del default");
	ip("-6 route del 2000::/3");
	check_route_of(state, "151.101.1.1", GUARD_UNREACHABLE, "ENETUNREACH");
	check_route_of(state, "2a04:4e42::1", GUARD_UNREACHABLE, "ENETUNREACH");
	/* An IPv6-only uplink with NAT64: that IPv4 has no route is no reason to refuse. */
	ip("-6 route add default via 2606:2800::1");
	check_route_of(state, "64:ff9b::1.1.1.1", GUARD_PASS, "");
}

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(test_ipv4_edges), cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_ipv6_edges), cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_no_address), cmocka_unit_test(test_gate_ranges),
	};
	const struct CMUnitTest routes[] = {
		cmocka_unit_test(test_routes),	cmocka_unit_test(test_believed), cmocka_unit_test(test_special_routes),
		cmocka_unit_test(test_tunnels), cmocka_unit_test(test_no_route),
	};
	int failed = cmocka_run_group_tests(pure, NULL, NULL);

	return failed + cmocka_run_group_tests(routes, enter_namespace, leave_namespace);
}
