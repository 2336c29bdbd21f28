/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of S as a piece of wire between a TAP device and the gate, in real namespaces: what a guest's
 * frames become in G, and that S itself is mute.
 * links: sandbox-net/gate/gate.c sandbox-net/gate/alone.c sandbox-net/gate/netlink.c sandbox-net/gate/netns.c sandbox-net/gate/rules.c sandbox-net/gate/rules_batch.c sandbox-net/gate/sysctl.c sandbox-net/gate/sockets.c sandbox-net/gate/prove.c sandbox-net/gate/probe.c sandbox-net/gate/stack.c sandbox-net/gate/tap.c sandbox-net/gate/wire.c proxy/process/counters.c proxy/audit/nflog.c tests/unit/gate_world.c base/addr.c base/clock.c base/err.c base/fdpass.c base/layout.c base/prefix.c
 */
#include "sandbox-net/gate/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proxy/process/counters.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/tap.h"
#include "tests/unit/gate_world.h"

#define IPV4 "\x08\x00"
#define ARP  "\x08\x06"
#define IPV6 "\x86\xdd"

static const uint8_t gate_mac[6] = { GATE_MAC_BYTES }, guest_mac[6] = { GATE_SANDBOX_MAC_BYTES };
static const uint8_t other_mac[6] = { 2, 0, 0, 0, 0, 9 }, everybody[6] = { 255, 255, 255, 255, 255, 255 };

static int open_tap(void)
{
	struct netlink nl;
	struct err err = { "" };
	int fd = tap_open(world_tap.name, &err);

	CHECK(fd >= 0);
	CHECK_EQ(netlink_open(&nl, NETLINK_ROUTE), 0);
	CHECK_EQ(netlink_wait_running(&nl, (int)if_nametoindex(world_tap.name)), 0);
	netlink_close(&nl);
	return fd;
}

/* A frame as a guest could make it. */
static void send_frame(int tap, const uint8_t *to, const uint8_t *from, const char *type, const void *payload,
		       size_t len)
{
	uint8_t frame[1514] = { 0 };

	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	memcpy(frame + 12, type, 2);
	memcpy(frame + 14, payload, len);
	CHECK_EQ(write(tap, frame, 14 + len), 14 + len);
}

/* An IPv4 packet without options; the checksum is the kernel's to check. */
static size_t v4(uint8_t *p, const char *src, const char *dst, uint8_t proto, const uint8_t *payload, size_t len)
{
	struct addr a, b;
	uint32_t sum = 0;

	CHECK(!addr_parse(src, strlen(src), &a) && !addr_parse(dst, strlen(dst), &b));
	memset(p, 0, 20);
	p[0] = 0x45;
	p[3] = (uint8_t)(20 + len);
	p[8] = 64;
	p[9] = proto;
	memcpy(p + 12, a.b, 4);
	memcpy(p + 16, b.b, 4);
	for (size_t i = 0; i < 20; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	p[10] = (uint8_t)(~sum >> 8);
	p[11] = (uint8_t)~sum;
	memcpy(p + 20, payload, len);
	return 20 + len;
}

/* Waits until counter `i` is `want`, and returns all of them. */
static void await_counter(struct world *w, uint64_t packets[GATE_COUNTER_COUNT], int i, uint64_t want)
{
	uint64_t bytes[GATE_COUNTER_COUNT], until = clock_mono_us() + 60000000;
	int r;

	do {
		CHECK(clock_mono_us() < until);
		r = counters_read(w->gate.fds[HANDOFF_NFT], packets, bytes);
	} while (r || packets[i] < want);
	CHECK_EQ(packets[i], want);
}

static void udp_to(int tap, const uint8_t *to, const uint8_t *from, const char *src, const char *dst)
{
	uint8_t packet[64] = { 0 }, udp[12] = { 0, 99, 0, 9, 0, 12 };

	send_frame(tap, to, from, IPV4, packet, v4(packet, src, dst, IPPROTO_UDP, udp, sizeof(udp)));
}

/* Whatever MAC a frame is sent to, its packet is judged; from another one than the guest's it is spoofed. */
static void macs_are_judged(struct world *w)
{
	uint64_t packets[GATE_COUNTER_COUNT];
	int tap = open_tap();

	udp_to(tap, gate_mac, guest_mac, GATE_SANDBOX4, "192.0.2.1");
	world_check_drop(w, "udp", "192.0.2.1");
	udp_to(tap, other_mac, guest_mac, GATE_SANDBOX4, "192.0.2.2");
	world_check_drop(w, "udp", "192.0.2.2");
	udp_to(tap, everybody, guest_mac, GATE_SANDBOX4, "192.0.2.3");
	world_check_drop(w, "udp", "192.0.2.3");
	udp_to(tap, gate_mac, other_mac, GATE_SANDBOX4, "192.0.2.4");
	world_check_drop(w, "spoofed", "192.0.2.4");
	udp_to(tap, gate_mac, guest_mac, "10.200.0.9", "192.0.2.5");
	world_check_drop(w, "spoofed", "192.0.2.5");
	world_check_no_drop(w);
	await_counter(w, packets, GATE_COUNTER_UDP, 3);
	await_counter(w, packets, GATE_COUNTER_SPOOFED, 2);
	await_counter(w, packets, GATE_COUNTER_FRAME, 0);
}

/* LLDP, a VLAN tag around a packet, ARP from another MAC, an ARP reply, a runt: counted. */
static void frames_are_counted(struct world *w)
{
	static const uint8_t vlan[] = "\x00\x07\x08\x00\x45\x00\x00\x14\x00\x00\x00\x00\x40\x11";
	static const uint8_t reply[28] = { 0, 1, 8, 0, 6, 4, 0, 2 }, request[28] = { 0, 1, 8, 0, 6, 4, 0, 1 };
	uint64_t packets[GATE_COUNTER_COUNT];
	int tap = open_tap();

	send_frame(tap, everybody, guest_mac, "\x88\xcc", "lldp", 4);
	send_frame(tap, gate_mac, guest_mac, "\x81\x00", vlan, sizeof(vlan) - 1);
	send_frame(tap, everybody, other_mac, ARP, request, sizeof(request));
	send_frame(tap, gate_mac, guest_mac, ARP, reply, sizeof(reply));
	send_frame(tap, gate_mac, guest_mac, "\x88\xb5", "", 0);
	await_counter(w, packets, GATE_COUNTER_FRAME, 5);
	for (int i = 0; i < GATE_COUNTER_COUNT; i++)
		CHECK(i == GATE_COUNTER_FRAME || packets[i] == 0);
	world_check_no_drop(w);
}

/* What the proxy is asked comes to its socket, from the guest alone; what is in G answers none of it. */
static void questions_reach_the_proxy(struct world *w)
{
	static const uint8_t request[28] = { 0,	 1,   8, 0, 6, 4, 0, 1, 2, 0, 0,  0,   0, 2,
					     10, 200, 0, 2, 0, 0, 0, 0, 0, 0, 10, 200, 0, 1 };
	const int link = w->gate.fds[HANDOFF_GUEST];
	uint8_t packet[64] = { 0 }, udp[12] = { 0, 68, 0, 67, 0, 12 }, got[1600];
	uint64_t packets[GATE_COUNTER_COUNT];
	int tap = open_tap();

	send_frame(tap, everybody, other_mac, ARP, request, sizeof(request));
	send_frame(tap, everybody, guest_mac, ARP, request, sizeof(request));
	world_wait(link, POLLIN);
	CHECK_EQ(recv(link, got, sizeof(got), 0), 14 + sizeof(request));
	CHECK_EQ(memcmp(got + 6, guest_mac, 6), 0);
	send_frame(tap, everybody, guest_mac, IPV4, packet,
		   v4(packet, "0.0.0.0", "255.255.255.255", IPPROTO_UDP, udp, sizeof(udp)));
	world_wait(link, POLLIN);
	CHECK_EQ(recv(link, got, sizeof(got), 0), 14 + 32);
	udp_to(tap, gate_mac, guest_mac, GATE_SANDBOX4, "192.0.2.1");
	world_check_drop(w, "udp", "192.0.2.1");
	CHECK_EQ(recv(link, got, sizeof(got), MSG_DONTWAIT), -1);
	await_counter(w, packets, GATE_COUNTER_DHCP, 1);
	await_counter(w, packets, GATE_COUNTER_FRAME, 1);
	/* And what the proxy sends comes to the guest; the refusal of the datagram is there already. */
	CHECK_EQ(send(link, got, 60, 0), 60);
	for (int i = 0; i < 2; i++) {
		world_wait(tap, POLLIN);
		CHECK(read(tap, got, sizeof(got)) > 0);
	}
	CHECK_EQ(read(tap, got, sizeof(got)), -1);
}

/* Another filter on the proxy's socket, or none, is refused: all that it gets is what it must answer. */
static void filter_is_locked(struct world *w)
{
	int none = 0;

	CHECK_EQ(setsockopt(w->gate.fds[HANDOFF_GUEST], SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), -1);
	CHECK_EQ(errno, EPERM);
}

/* Sends a datagram, tied to eth0 as anybody may tie it, from `from` where that isn't NULL. Returns errno or 0. */
static int send_tied(const char *from, const char *to)
{
	struct sockaddr_in src = { .sin_family = AF_INET }, dst = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1, error;

	CHECK_EQ(inet_pton(AF_INET, to, &dst.sin_addr), 1);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5), 0);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)), 0);
	if (from) {
		CHECK_EQ(setsockopt(fd, SOL_IP, IP_FREEBIND, &on, sizeof(on)), 0);
		CHECK_EQ(inet_pton(AF_INET, from, &src.sin_addr), 1);
		CHECK_EQ(bind(fd, (struct sockaddr *)&src, sizeof(src)), 0);
	}
	error = sendto(fd, "x", 1, 0, (struct sockaddr *)&dst, sizeof(dst)) < 0 ? errno : 0;
	close(fd);
	return error;
}

static void stack_of_s_is_mute(struct world *w)
{
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT];

	CHECK_EQ(send_tied(NULL, "192.0.2.1"), EPERM);
	CHECK_EQ(send_tied(NULL, "255.255.255.255"), EPERM);
	CHECK_EQ(send_tied(NULL, "224.0.0.1"), EPERM);
	CHECK_EQ(send_tied(GATE_SANDBOX4, "192.0.2.1"), ENETUNREACH);
	CHECK_EQ(counters_read(w->gate.fds[HANDOFF_NFT], packets, bytes), 0);
	for (int i = 0; i < GATE_COUNTER_COUNT; i++)
		CHECK_EQ(packets[i], 0);
	world_check_no_drop(w);
}

/* Without the gate, tap0 leads nowhere. */
static void ends_with_the_gate(struct world *w)
{
	uint64_t until = clock_mono_us() + 60000000;
	int tap = open_tap();
	uint8_t got[64];

	gate_close(&w->gate);
	while (if_nametoindex(GATE_SANDBOX_LINK)) {
		CHECK(clock_mono_us() < until);
		poll(NULL, 0, 5);
	}
	/* What the kernel had to say before. */
	while (read(tap, got, sizeof(got)) > 0)
		continue;
	udp_to(tap, gate_mac, guest_mac, GATE_SANDBOX4, "192.0.2.1");
	CHECK_EQ(read(tap, got, sizeof(got)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST_TAP(macs_are_judged),	   WORLD_TEST_TAP(frames_are_counted),
		WORLD_TEST_TAP(questions_reach_the_proxy), WORLD_TEST_TAP(filter_is_locked),
		WORLD_TEST_TAP(stack_of_s_is_mute),	   WORLD_TEST_TAP(ends_with_the_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
