/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the gate in real namespaces, as root and as an ordinary user: what S sends
 * arrives where it should, or is refused, counted and logged. Skipped where namespaces can't be made.
 * links: sandbox-net/gate/gate.c sandbox-net/gate/alone.c sandbox-net/gate/netlink.c sandbox-net/gate/netns.c sandbox-net/gate/rules.c sandbox-net/gate/rules_batch.c sandbox-net/gate/sysctl.c sandbox-net/gate/sockets.c sandbox-net/gate/prove.c sandbox-net/gate/probe.c sandbox-net/gate/stack.c sandbox-net/gate/tap.c sandbox-net/gate/wire.c proxy/process/counters.c proxy/audit/nflog.c tests/unit/gate_world.c base/addr.c base/clock.c base/err.c base/fdpass.c base/layout.c base/prefix.c
 */
#include "sandbox-net/gate/gate.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/clock.h"
#include "proxy/process/counters.h"
#include "tests/unit/gate_world.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SYN	 0x02
#define ACK	 0x10

static void tcp_arrives(struct world *w)
{
	static const char *const targets[] = { "192.0.2.7:443",
					       "8.8.8.8:53",
					       "10.200.0.1:15001",
					       "169.254.169.254:80",
					       "[2001:db8::7]:443",
					       "[2606:4700::1111]:65535",
					       "[fd6e:6574:6761:7465::1]:22" };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_SYN] = COUNT(targets) };

	for (size_t i = 0; i < COUNT(targets); i++) {
		int client = world_connect(SOCK_STREAM, 0, targets[i]);
		int server = world_accept(w, targets[i]);
		char buf[8];

		CHECK_EQ(send(client, "up", 2, 0), 2);
		CHECK_EQ(recv(server, buf, sizeof(buf), 0), 2);
		CHECK_EQ(send(server, "down", 4, 0), 4);
		world_wait(client, POLLIN);
		CHECK_EQ(recv(client, buf, sizeof(buf), 0), 4);
		close(client);
		close(server);
	}
	world_check_counters(w, want);
	world_check_no_drop(w);
}

/* Receives a datagram with its original destination, CHECKs that, and answers from there. */
static void answer_dns(int fd, const char *to)
{
	_Alignas(struct cmsghdr) char control[256], reply_control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	struct endpoint want, got = { 0 };
	struct sockaddr_storage peer;
	char buf[64];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr in = { &peer, sizeof(peer), &iov, 1, control, sizeof(control), 0 };
	struct msghdr out = { &peer, 0, &iov, 1, reply_control, 0, 0 };

	CHECK_EQ(endpoint_parse(to, strlen(to), 0, &want), 0);
	world_wait(fd, POLLIN);
	CHECK_EQ(recvmsg(fd, &in, 0), 5);
	CHECK_EQ(memcmp(buf, "query", 5), 0);
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(&in); cm; cm = CMSG_NXTHDR(&in, cm)) {
		if ((cm->cmsg_level == SOL_IP && cm->cmsg_type == IP_RECVORIGDSTADDR) ||
		    (cm->cmsg_level == SOL_IPV6 && cm->cmsg_type == IPV6_RECVORIGDSTADDR)) {
			CHECK_EQ(endpoint_from_sockaddr((struct sockaddr *)CMSG_DATA(cm), &got), 0);
			continue;
		}
		memcpy(reply_control, cm, cm->cmsg_len);
		out.msg_controllen = CMSG_SPACE(cm->cmsg_len - CMSG_LEN(0));
		if (cm->cmsg_level == SOL_IP) {
			struct in_pktinfo *info = (struct in_pktinfo *)CMSG_DATA((struct cmsghdr *)reply_control);

			info->ipi_ifindex = 0;
			info->ipi_spec_dst = info->ipi_addr;
		} else {
			((struct in6_pktinfo *)CMSG_DATA((struct cmsghdr *)reply_control))->ipi6_ifindex = 0;
		}
	}
	CHECK(addr_equal(&got.addr, &want.addr));
	CHECK_EQ(got.port, 53);
	out.msg_namelen = in.msg_namelen;
	memcpy(buf, "reply", 5);
	iov.iov_len = 5;
	CHECK_EQ(sendmsg(fd, &out, 0), 5);
}

static void dns_arrives(struct world *w)
{
	static const char *const servers[] = { "10.200.0.1:53", "9.9.9.9:53", "[fd6e:6574:6761:7465::1]:53",
					       "[2620:fe::fe]:53" };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_DNS] = COUNT(servers) };

	for (size_t i = 0; i < COUNT(servers); i++) {
		int client = world_connect(SOCK_DGRAM, 0, servers[i]);
		char buf[8];

		CHECK_EQ(send(client, "query", 5, 0), 5);
		answer_dns(w->gate.fds[servers[i][0] == '[' ? HANDOFF_UDP6 : HANDOFF_UDP4], servers[i]);
		world_wait(client, POLLIN);
		CHECK_EQ(recv(client, buf, sizeof(buf), 0), 5);
		CHECK_EQ(memcmp(buf, "reply", 5), 0);
		close(client);
	}
	world_check_counters(w, want);
	world_check_no_drop(w);
}

/* Twenty refusals of each kind, each of which must come at once. */
static void udp_is_refused(struct world *w)
{
	static const struct {
		const char *to, *dst, *prefix;
	} cases[] = { { "192.0.2.9:9", "192.0.2.9", "udp" },
		      { "192.0.2.9:443", "192.0.2.9", "quic" },
		      { "[2001:db8::9]:123", "2001:db8::9", "udp" },
		      { "[2001:db8::9]:443", "2001:db8::9", "quic" } };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_UDP] = 40, [GATE_COUNTER_QUIC] = 40 };

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (int k = 0; k < 20; k++) {
			int fd = world_connect(SOCK_DGRAM, 0, cases[i].to);

			CHECK_EQ(send(fd, "secret", 6, 0), 6);
			world_check_refused(fd, ECONNREFUSED);
			world_check_drop(w, cases[i].prefix, cases[i].dst);
		}
	}
	world_check_no_drop(w);
	world_check_counters(w, want);
}

static void other_protocols_are_refused(struct world *w)
{
	static const uint8_t echo4[8] = { 8, 0, 0xf7, 0xff }, echo6[8] = { 128 };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_ICMP] = 2, [GATE_COUNTER_IP_PROTOCOL] = 2 };
	int fd = world_connect(SOCK_RAW, IPPROTO_ICMP, "192.0.2.1");

	CHECK_EQ(send(fd, echo4, sizeof(echo4), 0), sizeof(echo4));
	world_check_refused(fd, EHOSTUNREACH);
	world_check_drop(w, "icmp", "192.0.2.1");
	fd = world_connect(SOCK_RAW, IPPROTO_ICMPV6, "2001:db8::1");
	CHECK_EQ(send(fd, echo6, sizeof(echo6), 0), sizeof(echo6));
	world_check_refused(fd, EACCES);
	world_check_drop(w, "icmp", "2001:db8::1");
	fd = world_connect(SOCK_RAW, IPPROTO_SCTP, "192.0.2.1");
	CHECK_EQ(send(fd, "not SCTP", 8, 0), 8);
	world_check_refused(fd, ENOPROTOOPT);
	world_check_drop(w, "ip_protocol", "192.0.2.1");
	fd = world_connect(SOCK_RAW, IPPROTO_GRE, "2001:db8::1");
	CHECK_EQ(send(fd, "not GRE.", 8, 0), 8);
	world_check_refused(fd, EACCES);
	world_check_drop(w, "ip_protocol", "2001:db8::1");
	world_check_no_drop(w);
	world_check_counters(w, want);
}

/* Source addresses that are not the sandbox's, the gate's own among them. */
static void spoofed_sources_are_dropped(struct world *w)
{
	static const char *const v4[] = { "10.200.0.1", "10.200.0.3", "127.0.0.1", "8.8.8.8", "0.0.0.0" };
	static const char *const v6[] = { "fd6e:6574:6761:7465::1", "fe80::2", "::", "::ffff:10.200.0.2" };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_SPOOFED] = COUNT(v4) + COUNT(v6) };
	uint8_t tcp[20];

	world_tcp(tcp, 1234, 443, SYN);
	for (size_t i = 0; i < COUNT(v4); i++) {
		world_send_v4(w, &(struct world_v4){
					 .src = v4[i], .dst = "192.0.2.1", .proto = 6, .payload = tcp, .len = 20 });
		world_check_drop(w, "spoofed", "192.0.2.1");
	}
	for (size_t i = 0; i < COUNT(v6); i++) {
		world_send_v6(w, &(struct world_v6){
					 .src = v6[i], .dst = "2001:db8::1", .next = 6, .payload = tcp, .len = 20 });
		world_check_drop(w, "spoofed", "2001:db8::1");
	}
	world_check_no_drop(w);
	world_check_counters(w, want);
}

static void bogus_destinations_are_dropped(struct world *w)
{
	static const char *const v4[] = { "127.0.0.1", "0.0.0.0",	  "0.1.2.3",	"224.0.0.1",  "239.255.255.250",
					  "240.0.0.1", "255.255.255.255", "10.200.0.2", "10.200.0.0", "10.200.0.3" };
	static const char *const v6[] = { "::",	     "::10.0.0.1", "::ffff:10.0.0.1",
					  "fe80::1", "ff02::fb",   "fd6e:6574:6761:7465::2" };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_BOGUS] = 2 * COUNT(v4) + COUNT(v6) };
	uint8_t tcp[20], udp[8];

	world_tcp(tcp, 1234, 443, SYN);
	world_udp(udp, 1234, 53, 0);
	for (size_t i = 0; i < COUNT(v4); i++) {
		struct world_v4 p = { .src = GATE_SANDBOX4, .dst = v4[i], .proto = 6, .payload = tcp, .len = 20 };

		world_send_v4(w, &p);
		world_check_drop(w, "bogus_destination", v4[i]);
		p.proto = 17;
		p.payload = udp;
		p.len = 8;
		world_send_v4(w, &p);
		world_check_drop(w, "bogus_destination", v4[i]);
	}
	for (size_t i = 0; i < COUNT(v6); i++) {
		world_send_v6(w, &(struct world_v6){
					 .src = GATE_SANDBOX6, .dst = v6[i], .next = 6, .payload = tcp, .len = 20 });
		world_check_drop(w, "bogus_destination", v6[i]);
	}
	world_check_no_drop(w);
	world_check_counters(w, want);
}

/* One IPv4 packet to 192.0.2.1 that must be logged as `prefix`. */
static void drop_v4(struct world *w, const char *prefix, uint8_t proto, uint16_t frag, uint8_t options,
		    const void *payload, size_t len)
{
	world_send_v4(w, &(struct world_v4){ .src = GATE_SANDBOX4,
					     .dst = "192.0.2.1",
					     .proto = proto,
					     .frag = frag,
					     .options = options,
					     .payload = payload,
					     .len = len });
	world_check_drop(w, prefix, "192.0.2.1");
}

static void drop_v6(struct world *w, const char *prefix, uint8_t next, const void *payload, size_t len)
{
	world_send_v6(
		w, &(struct world_v6){
			   .src = GATE_SANDBOX6, .dst = "2001:db8::1", .next = next, .payload = payload, .len = len });
	world_check_drop(w, prefix, "2001:db8::1");
}

/* Bits that no TCP begins with, options, and fragments whatever is in them. */
static void malformed_packets_are_dropped(struct world *w)
{
	static const uint8_t flags[] = { 0, 0x01, 0x03, 0x06, 0x12, 0x17, 0x29 };
	uint64_t want[GATE_COUNTER_COUNT] = {
		[GATE_COUNTER_MALFORMED] = COUNT(flags) + 14, [GATE_COUNTER_UDP] = 2, [GATE_COUNTER_ICMP] = 1
	};
	uint8_t tcp[20], udp[8], icmp[8] = { 8 }, ext[28];

	for (size_t i = 0; i < COUNT(flags); i++) {
		world_tcp(tcp, 1234, 443, flags[i]);
		drop_v4(w, "malformed", 6, 0, 0, tcp, sizeof(tcp));
	}
	world_tcp(tcp, 1234, 0, SYN);
	drop_v4(w, "malformed", 6, 0, 0, tcp, sizeof(tcp));
	world_tcp(tcp, 0, 443, SYN);
	drop_v4(w, "malformed", 6, 0, 0, tcp, sizeof(tcp));
	world_tcp(tcp, 1234, 443, SYN);
	drop_v4(w, "malformed", 6, 0, 0, tcp, 12);
	drop_v4(w, "malformed", 6, 0, 4, tcp, sizeof(tcp));
	drop_v4(w, "malformed", 6, 0x2000, 0, tcp, sizeof(tcp));
	drop_v4(w, "malformed", 6, 3, 0, tcp, sizeof(tcp));
	drop_v4(w, "malformed", 17, 0x2001, 0, tcp, sizeof(tcp));
	world_udp(udp, 1234, 53, 0);
	drop_v4(w, "malformed", 17, 0x2000, 0, udp, sizeof(udp));
	drop_v4(w, "malformed", 17, 0, 0, udp, 4);
	udp[5] = 7;
	drop_v4(w, "malformed", 17, 0, 0, udp, sizeof(udp));
	world_udp(udp, 1234, 8125, 1400);
	drop_v4(w, "udp", 17, 0x2000, 0, udp, sizeof(udp));
	drop_v4(w, "icmp", 1, 0x2000, 0, icmp, sizeof(icmp));

	/* Destination options; a fragment header (atomic, then a later one); TCP and UDP behind them. */
	memset(ext, 0, sizeof(ext));
	ext[0] = 6;
	memcpy(ext + 8, tcp, sizeof(tcp));
	drop_v6(w, "malformed", 60, ext, sizeof(ext));
	drop_v6(w, "malformed", 44, ext, sizeof(ext));
	ext[3] = 8;
	drop_v6(w, "malformed", 44, ext, sizeof(ext));
	ext[0] = 17;
	drop_v6(w, "malformed", 44, ext, sizeof(ext));
	ext[3] = 1;
	memcpy(ext + 8, udp, sizeof(udp));
	drop_v6(w, "udp", 44, ext, 16);
	world_check_no_drop(w);
	world_check_counters(w, want);
}

/* What is not IP is counted below it; IP for another station, or for all of them, is judged like what is for the gate. */
static void frames_are_counted(struct world *w)
{
	static const uint8_t gate[] = { GATE_MAC_BYTES }, other[] = { 2, 0, 0, 0, 1, 1 };
	static const uint8_t all[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint16_t types[] = { 0x88b5, 0x8100, 0x88a8, 0x8864, 0x8847, 0x88cc };
	static const uint8_t *const macs[] = { gate, other, all };
	uint64_t want[GATE_COUNTER_COUNT] = {
		[GATE_COUNTER_FRAME] = COUNT(types) * COUNT(macs) + 1, [GATE_COUNTER_UDP] = COUNT(macs)
	};
	/* UDP from the sandbox to 192.0.2.1, port 9. */
	static const uint8_t udp[28] = { 0x45, 0, 0, 28,  0, 0, 0, 0, 64, 17, 0xae, 0x06, 10,
					 200,  0, 2, 192, 0, 2, 1, 4, 0,  0,  9,    0,	  8 };
	static const uint8_t arp[28] = { 0, 1, 8, 0, 6, 4, 0, 2 /* a reply */ };

	for (size_t m = 0; m < COUNT(macs); m++) {
		for (size_t i = 0; i < COUNT(types); i++)
			world_send_frame(w, macs[m], types[i], udp, sizeof(udp));
		world_send_frame(w, macs[m], 0x0800, udp, sizeof(udp));
		world_check_drop(w, "udp", "192.0.2.1");
	}
	world_send_frame(w, gate, 0x0806, arp, sizeof(arp));
	world_check_no_drop(w);
	world_check_counters(w, want);
}

/* A flood is counted to the packet and byte, logged in part, and hides nobody else. */
static void floods_are_counted(struct world *w)
{
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT], began = clock_mono_us();
	struct world_drop drop;
	size_t logged = 0;
	uint8_t udp[108];
	struct world_v4 p = {
		.src = GATE_SANDBOX4, .dst = "192.0.2.1", .proto = 17, .payload = udp, .len = sizeof(udp)
	};

	memset(udp, 0, sizeof(udp));
	world_udp(udp, 1234, 999, 100);
	for (int i = 0; i < 3000; i++)
		world_send_v4(w, &p);
	/* 50 at once, and 20 a second. */
	began = clock_mono_us() - began;
	while (world_next_drop(w, 0, &drop))
		logged++;
	CHECK(logged >= 50);
	CHECK(logged <= 51 + began / 50000);
	p.dst = "192.0.2.2";
	world_send_v4(w, &p);
	world_check_drop(w, "udp", "192.0.2.2");
	CHECK_EQ(counters_read(w->gate.fds[HANDOFF_NFT], packets, bytes), 0);
	CHECK_EQ(packets[GATE_COUNTER_UDP], 3001);
	CHECK_EQ(bytes[GATE_COUNTER_UDP], 3001 * 128);
}

/* More destinations than the limit's table has room for: what does not fit is counted, and the table stays bounded. */
static void scans_are_counted(struct world *w)
{
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_UDP] = 3000 };
	struct world_drop drop;
	size_t logged = 0;
	uint8_t udp[8];

	for (uint16_t i = 0; i < 3000; i++) {
		world_udp(udp, 1234, (uint16_t)(1000 + i), 0);
		world_send_v4(w, &(struct world_v4){ .src = GATE_SANDBOX4,
						     .dst = "192.0.2.1",
						     .proto = 17,
						     .payload = udp,
						     .len = sizeof(udp) });
	}
	while (world_next_drop(w, 0, &drop))
		logged++;
	CHECK_EQ(logged, 1024);
	world_check_counters(w, want);
}

/* What every sandbox does: connections, lookups whose answer comes too late, IPv6 housekeeping. */
static void quiet_sandbox_leaves_no_trace(struct world *w)
{
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_SYN] = 2, [GATE_COUNTER_DNS] = 2 };
	static const char *const servers[] = { "10.200.0.1:53", "[fd6e:6574:6761:7465::1]:53" };
	static const char *const targets[] = { "192.0.2.1:80", "[2001:db8::1]:80" };
	struct ipv6_mreq group = { .ipv6mr_multiaddr = { { { 0xff, 2, [15] = 0xfb } } },
				   .ipv6mr_interface = (unsigned)w->eth };
	struct world_drop drop;

	for (int i = 0; i < 2; i++) {
		int client = world_connect(SOCK_DGRAM, 0, servers[i]), tcp = world_connect(SOCK_STREAM, 0, targets[i]);

		CHECK_EQ(send(client, "query", 5, 0), 5);
		close(client);
		answer_dns(w->gate.fds[i ? HANDOFF_UDP6 : HANDOFF_UDP4], servers[i]);
		close(world_accept(w, targets[i]));
		close(tcp);
		/* A program that listens for multicast DNS makes the kernel report it. */
		tcp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (i)
			CHECK_EQ(setsockopt(tcp, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &group, sizeof(group)), 0);
		close(tcp);
	}
	/* Multicast reports are repeated for about a second, solicitations would be. */
	CHECK(!world_next_drop(w, 2500, &drop));
	world_check_counters(w, want);
}

/* Sends an ICMP error about the segment that a raw socket of S saw last, saying that `mtu` is the most. */
static void send_too_big(int raw, bool is4, uint16_t mtu)
{
	uint8_t seen[2000], quote[8 + 48] = { is4 ? 3 : 2, is4 ? 4 : 0 };
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd = socket(is4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, is4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	struct endpoint to;
	uint32_t sum = 0;
	uint8_t *seq;

	CHECK(fd >= 0);
	world_wait(raw, POLLIN);
	CHECK(recvfrom(raw, seen, sizeof(seen), 0, (struct sockaddr *)&ss, &len) > 0);
	/* The kernel believes only what is about a segment in flight, or the next one. */
	seq = seen + (is4 ? 20 : 0) + 4;
	for (int i = 3; i >= 0 && ++seq[i] == 0; i--)
		;
	quote[6] = (uint8_t)(mtu >> 8);
	quote[7] = (uint8_t)mtu;
	if (is4) {
		memcpy(quote + 8, seen, 28);
		for (int i = 0; i < 36; i += 2)
			sum += (uint32_t)(quote[i] << 8 | quote[i + 1]);
		sum = (sum & 0xffff) + (sum >> 16);
		sum += sum >> 16;
		quote[2] = (uint8_t)(~sum >> 8);
		quote[3] = (uint8_t)~sum;
	} else {
		/* An IPv6 raw socket shows no IP header: from the peer to the sandbox, TCP. */
		quote[8] = 0x60;
		quote[14] = 6;
		CHECK_EQ(endpoint_from_sockaddr((struct sockaddr *)&ss, &to), 0);
		memcpy(quote + 16, to.addr.b, 16);
		CHECK_EQ(addr_parse(GATE_SANDBOX6, strlen(GATE_SANDBOX6), &to.addr), 0);
		memcpy(quote + 32, to.addr.b, 16);
		memcpy(quote + 48, seen, 8);
	}
	if (is4)
		((struct sockaddr_in *)&ss)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&ss)->sin6_port = 0;
	CHECK_EQ(sendto(fd, quote, is4 ? 36 : 56, 0, (struct sockaddr *)&ss, len), is4 ? 36 : 56);
	close(fd);
	close(raw);
}

static void smaller_mtu_is_heard(struct world *w)
{
	static const char *const targets[] = { "192.0.2.1:80", "[2001:db8::1]:80" };
	uint64_t want[GATE_COUNTER_COUNT] = { [GATE_COUNTER_SYN] = 2 };

	for (int i = 0; i < 2; i++) {
		int client = world_connect(SOCK_STREAM, 0, targets[i]), server = world_accept(w, targets[i]), mtu = 0;
		int raw = socket(i ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP);
		socklen_t len = sizeof(mtu);

		CHECK(raw >= 0);
		CHECK_EQ(getsockopt(server, i ? SOL_IPV6 : SOL_IP, i ? IPV6_MTU : IP_MTU, &mtu, &len), 0);
		CHECK_EQ(mtu, GATE_MTU);
		CHECK_EQ(send(server, "x", 1, 0), 1);
		send_too_big(raw, i == 0, 1400);
		CHECK_EQ(getsockopt(server, i ? SOL_IPV6 : SOL_IP, i ? IPV6_MTU : IP_MTU, &mtu, &len), 0);
		CHECK_EQ(mtu, 1400);
		close(client);
		close(server);
	}
	world_check_no_drop(w);
	world_check_counters(w, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(tcp_arrives),
		WORLD_TEST(dns_arrives),
		WORLD_TEST(udp_is_refused),
		WORLD_TEST(other_protocols_are_refused),
		WORLD_TEST(spoofed_sources_are_dropped),
		WORLD_TEST(bogus_destinations_are_dropped),
		WORLD_TEST(malformed_packets_are_dropped),
		WORLD_TEST(frames_are_counted),
		WORLD_TEST(floods_are_counted),
		WORLD_TEST(scans_are_counted),
		WORLD_TEST(quiet_sandbox_leaves_no_trace),
		WORLD_TEST(smaller_mtu_is_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
