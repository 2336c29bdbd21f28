/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the proof, in real namespaces: it holds for what gate_build() made, and finds anything beside it; and of how a gate goes.
 * links: sandbox-net/gate/gate.c sandbox-net/gate/alone.c sandbox-net/gate/netlink.c sandbox-net/gate/netns.c sandbox-net/gate/rules.c sandbox-net/gate/rules_batch.c sandbox-net/gate/sysctl.c sandbox-net/gate/sockets.c sandbox-net/gate/prove.c sandbox-net/gate/probe.c sandbox-net/gate/stack.c sandbox-net/gate/tap.c sandbox-net/gate/wire.c proxy/process/counters.c proxy/audit/nflog.c tests/unit/gate_world.c base/addr.c base/clock.c base/err.c base/fdpass.c base/layout.c base/prefix.c
 */
#include "sandbox-net/gate/gate.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "sandbox-net/gate/netlink.h"
#include "tests/unit/gate_world.h"

static const uint8_t nonce[HANDOFF_NONCE] = "0123456789abcde";

/* The proxy's part of the proof: the nonce to whoever asks. */
static void answer_probes(struct world *w)
{
	struct pollfd pfds[4];

	for (int i = 0; i < 4; i++)
		pfds[i] = (struct pollfd){ .fd = w->gate.fds[i], .events = POLLIN };
	for (;;) {
		CHECK(poll(pfds, 4, -1) > 0);
		for (int i = 0; i < 4; i++) {
			struct sockaddr_storage peer;
			socklen_t len = sizeof(peer);
			char buf[64];
			int fd;

			if (!pfds[i].revents)
				continue;
			if (i == HANDOFF_UDP4 || i == HANDOFF_UDP6) {
				CHECK(recvfrom(pfds[i].fd, buf, sizeof(buf), 0, (struct sockaddr *)&peer, &len) > 0);
				CHECK_EQ(sendto(pfds[i].fd, nonce, sizeof(nonce), 0, (struct sockaddr *)&peer, len),
					 sizeof(nonce));
			} else {
				fd = accept(pfds[i].fd, NULL, NULL);
				CHECK_EQ(send(fd, nonce, sizeof(nonce), 0), sizeof(nonce));
				close(fd);
			}
		}
	}
}

/* CHECKs that the proof for S with or without a TAP device fails with a message that has `what` in it. */
static void check_unproven_as(struct world *w, const struct gate_tap *tap, const uint8_t *expected, const char *what)
{
	struct gate_plan plan = w->plan;
	struct err err = { "" };

	plan.tap = tap;
	CHECK_EQ(gate_prove(w->s_netns, &plan, expected, &err), -1);
	if (!strstr(err.text, what))
		world_fail(what, 0, err.text);
}

static void check_unproven(struct world *w, const uint8_t *expected, const char *what)
{
	check_unproven_as(w, NULL, expected, what);
}

static void proof_holds(struct world *w)
{
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_SYN] = 2, [GATE_COUNTER_DNS] = 2 };
	struct err err = { "" };
	uint8_t other[HANDOFF_NONCE] = "other";
	pid_t pid = world_fork(answer_probes, w);

	if (gate_prove(w->s_netns, &w->plan, nonce, &err))
		world_fail(__FILE__, __LINE__, err.text);
	if (gate_check(w->s_netns, &w->plan, &err))
		world_fail(__FILE__, __LINE__, err.text);
	world_check_no_drop(w);
	world_check_counters(w, want);
	check_unproven(w, other, "another gate");
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void proof_finds_other_ways_out(struct world *w)
{
	static const struct netlink_end near = { .name = "veth1", .mac = { 2, 0, 0, 0, 1, 1 } },
					far = { .name = "veth2", .mac = { 2, 0, 0, 0, 1, 2 } };
	struct addr addr = addr_v4(0x0a010101);
	struct err err = { "" };
	struct netlink nl;

	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_add_addr(&nl, w->eth, &addr, 24), 0);
	check_unproven(w, nonce, "address that is not the gate's: 10.1.1.1");
	CHECK_EQ(gate_check(w->s_netns, &w->plan, &err), -1);
	CHECK(strstr(err.text, "address that is not the gate's: 10.1.1.1"));
	CHECK_EQ(netlink_add_veth(&nl, &near, &far, w->s_netns), 0);
	check_unproven(w, nonce, "link that is not the gate's: veth");
	netlink_close(&nl);
}

/* What S sends to one still arrives at the gate, which takes it for somebody else's. */
static void neighbours_are_no_way_out(struct world *w)
{
	static const uint8_t mac[NETLINK_MAC] = { 2, 0, 0, 0, 1, 1 };
	struct addr addr = addr_v4(0x0a010101);
	struct err err = { "" };
	struct netlink nl;

	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_add_neigh(&nl, w->eth, &addr, mac), 0);
	CHECK_EQ(gate_check(w->s_netns, &w->plan, &err), 0);
	netlink_close(&nl);
}

static void proof_finds_other_routes(struct world *w)
{
	struct netlink_request req;
	struct netlink nl;
	struct rtmsg *rt = netlink_begin(&req, RTM_NEWROUTE, NLM_F_CREATE, sizeof(*rt));
	const uint8_t dst[4] = { 192, 0, 2, 0 };

	rt->rtm_family = AF_INET;
	rt->rtm_table = 77;
	rt->rtm_dst_len = 24;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_type = RTN_UNICAST;
	rt->rtm_scope = RT_SCOPE_LINK;
	mnl_attr_put(req.nlh, RTA_DST, sizeof(dst), dst);
	mnl_attr_put_u32(req.nlh, RTA_OIF, (uint32_t)w->eth);
	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_talk(&nl, &req, NULL, NULL), 0);
	check_unproven(w, nonce, "route that is not the gate's: 192.0.2.0/24 in table 77");
	netlink_close(&nl);
}

static void proof_needs_the_link(struct world *w)
{
	gate_close(&w->gate);
	while (if_nametoindex(GATE_SANDBOX_LINK))
		poll(NULL, 0, 5);
	check_unproven(w, nonce, "has no eth0");
}

/* gate_check_empty(): true of a namespace as it is made, and of nothing else. */
static void empty_or_not(struct world *w)
{
	static const struct netlink_end near = { .name = "\033[31m", .mac = { 2, 0, 0, 0, 1, 1 } },
					far = { .name = "veth2", .mac = { 2, 0, 0, 0, 1, 2 } };
	struct err err = { "" };
	struct netlink nl;

	CHECK_EQ(gate_check_empty(w->s_netns, NULL, &err), -1);
	if (!strstr(err.text, "it has a gate already: its eth0"))
		world_fail("a gate", 0, err.text);
	gate_close(&w->gate);
	while (if_nametoindex(GATE_SANDBOX_LINK))
		poll(NULL, 0, 5);
	CHECK_EQ(gate_check_empty(w->s_netns, NULL, &err), 0);
	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_add_veth(&nl, &near, &far, w->s_netns), 0);
	CHECK_EQ(gate_check_empty(w->s_netns, NULL, &err), -1);
	if (!strstr(err.text, "it has another interface than lo: ") || strchr(err.text, '\033'))
		world_fail("another interface", 0, err.text);
	netlink_close(&nl);
}

static void proof_holds_for_a_wire(struct world *w)
{
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_SYN] = 2, [GATE_COUNTER_DNS] = 2 };
	struct err err = { "" };
	uint8_t other[HANDOFF_NONCE] = "other";
	pid_t pid = world_fork(answer_probes, w);

	if (gate_prove(w->s_netns, &w->plan, nonce, &err))
		world_fail(__FILE__, __LINE__, err.text);
	world_check_no_drop(w);
	world_check_counters(w, want);
	check_unproven_as(w, &world_tap, other, "another gate");
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void proof_of_a_wire_finds_a_stack(struct world *w)
{
	const struct gate_tap other = { .name = "tap7" };
	struct addr addr = addr_v4(0x0ac80002);
	struct netlink nl;

	check_unproven(w, nonce, "link that is not the gate's: tap0");
	check_unproven_as(w, &other, nonce, "link that is not the gate's: tap0");
	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	/* The very address that a stack of S would have. */
	CHECK_EQ(netlink_add_addr(&nl, w->eth, &addr, GATE_PLEN4), 0);
	check_unproven_as(w, &world_tap, nonce, "address that is not the gate's: 10.200.0.2");
	netlink_close(&nl);
}

static void proof_of_a_wire_finds_routes(struct world *w)
{
	struct addr gateway = addr_v4(0x0ac80001);
	struct netlink_request req;
	struct netlink nl;
	struct rtmsg *rt = netlink_begin(&req, RTM_NEWROUTE, NLM_F_CREATE, sizeof(*rt));

	rt->rtm_family = AF_INET;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_type = RTN_UNICAST;
	rt->rtm_flags = RTNH_F_ONLINK;
	mnl_attr_put(req.nlh, RTA_GATEWAY, 4, gateway.b);
	mnl_attr_put_u32(req.nlh, RTA_OIF, if_nametoindex(world_tap.name));
	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_talk(&nl, &req, NULL, NULL), 0);
	check_unproven_as(w, &world_tap, nonce, "route that is not the gate's: default/0");
	netlink_close(&nl);
}

/* The kernel takes a namespace away when it comes to it. */
static void eth0_goes_with_the_gate(struct world *w)
{
	CHECK(if_nametoindex(GATE_SANDBOX_LINK) > 0);
	gate_close(&w->gate);
	for (int i = 0; i < HANDOFF_FDS; i++)
		CHECK_EQ(w->gate.fds[i], -1);
	while (if_nametoindex(GATE_SANDBOX_LINK))
		poll(NULL, 0, 5);
}

/* Of a gate that can't be built, nothing is left when that is known; what was there stays. */
static void half_a_gate_goes_at_once(struct world *w)
{
	const struct gate_tap no_tap = { .name = GATE_SANDBOX_LINK };
	struct gate_plan plan = w->plan;
	struct err err = { "" };
	struct gate gate;

	snprintf(plan.link, sizeof(plan.link), "eth1");
	plan.tap = &no_tap;
	CHECK_EQ(gate_build(w->s_netns, &plan, &gate, &err), -1);
	CHECK(strstr(err.text, "TAP device"));
	CHECK_EQ(if_nametoindex("eth1"), 0);
	CHECK_EQ(gate_build(w->s_netns, &w->plan, &gate, &err), -1);
	CHECK(strstr(err.text, "veth pair"));
	CHECK_EQ(if_nametoindex(GATE_SANDBOX_LINK), w->eth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(proof_holds),
		WORLD_TEST(proof_finds_other_ways_out),
		WORLD_TEST(neighbours_are_no_way_out),
		WORLD_TEST(proof_finds_other_routes),
		WORLD_TEST(proof_needs_the_link),
		WORLD_TEST(empty_or_not),
		WORLD_TEST(eth0_goes_with_the_gate),
		WORLD_TEST(half_a_gate_goes_at_once),
		WORLD_TEST_TAP(proof_holds_for_a_wire),
		WORLD_TEST_TAP(proof_of_a_wire_finds_a_stack),
		WORLD_TEST_TAP(proof_of_a_wire_finds_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
