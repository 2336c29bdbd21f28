/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of reading a gate's counters, from where the monitor is and from where it must not work.
 * links: sandbox-net/gate/gate.c sandbox-net/gate/alone.c sandbox-net/gate/netlink.c sandbox-net/gate/netns.c sandbox-net/gate/rules.c sandbox-net/gate/rules_batch.c sandbox-net/gate/sysctl.c sandbox-net/gate/sockets.c sandbox-net/gate/prove.c sandbox-net/gate/probe.c sandbox-net/gate/stack.c sandbox-net/gate/tap.c sandbox-net/gate/wire.c proxy/process/counters.c proxy/audit/nflog.c tests/unit/gate_world.c base/addr.c base/clock.c base/err.c base/fdpass.c base/layout.c base/prefix.c
 */
#include "proxy/process/counters.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/capability.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/fdpass.h"
#include "sandbox-net/gate/netlink.h"
#include "tests/unit/gate_world.h"

/* The monitor's place: outside, with the socket but not with the namespaces. */
static void read_counters_outside(int sock)
{
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT];
	char c;
	size_t n;
	int fd;

	CHECK_EQ(fdpass_recv(sock, &c, 1, &fd, 1, &n), 1);
	CHECK_EQ(n, 1);
	CHECK_EQ(counters_read(fd, packets, bytes), 0);
	CHECK_EQ(packets[GATE_COUNTER_UDP], 1);
	CHECK_EQ(bytes[GATE_COUNTER_UDP], 20 + 8 + 6);
	CHECK_EQ(packets[GATE_COUNTER_SYN], 0);
	CHECK_EQ(send(sock, "done", 4, 0), 4);
}

static void counters_can_be_read_from_outside(struct world *w)
{
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT];
	int fd = world_connect(SOCK_DGRAM, 0, "192.0.2.1:9");
	char buf[4];
	cap_t none = cap_init();

	CHECK_EQ(send(fd, "secret", 6, 0), 6);
	world_check_refused(fd, ECONNREFUSED);
	CHECK_EQ(fdpass_send(w->parent, "n", 1, &w->gate.fds[HANDOFF_NFT], 1), 0);
	CHECK_EQ(recv(w->parent, buf, 4, 0), 4);
	/* The proxy's place: the same socket, without a capability. */
	CHECK_EQ(cap_set_proc(none), 0);
	cap_free(none);
	CHECK_EQ(counters_read(w->gate.fds[HANDOFF_NFT], packets, bytes), -EPERM);
}

static void counters_distrust_the_socket(struct world *w)
{
	uint64_t packets[GATE_COUNTER_COUNT] = { 1 }, bytes[GATE_COUNTER_COUNT] = { 1 };
	struct netlink route, other;

	CHECK_EQ(counters_read(w->gate.fds[HANDOFF_TCP4], packets, bytes), -EINVAL);
	CHECK_EQ(packets[0] + bytes[0], 0);
	CHECK_EQ(counters_read(-1, packets, bytes), -EINVAL);
	CHECK_EQ(netlink_open(&route, NETLINK_ROUTE), 0);
	CHECK_EQ(counters_read(route.fd, packets, bytes), -EINVAL);
	/* S has no such table. */
	CHECK_EQ(netlink_open(&other, NETLINK_NETFILTER), 0);
	CHECK_EQ(counters_read(other.fd, packets, bytes), -ENOENT);
	/* Leftovers of another request are no answer. */
	for (int i = 0; i < 3; i++) {
		struct nlmsghdr junk = { .nlmsg_len = sizeof(junk), .nlmsg_type = 0xfff, .nlmsg_flags = NLM_F_REQUEST };

		CHECK_EQ(send(w->gate.fds[HANDOFF_NFT], &junk, sizeof(junk), 0), sizeof(junk));
	}
	CHECK_EQ(counters_read(w->gate.fds[HANDOFF_NFT], packets, bytes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST_OUTSIDE(counters_can_be_read_from_outside, read_counters_outside),
		WORLD_TEST(counters_distrust_the_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
