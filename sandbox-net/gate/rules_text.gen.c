/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of G, and those for S. They are the second wall: G has no uplink, so even without
 * them nothing could leave. Their work is to hand every TCP connection and
 * every DNS datagram to the proxy, to refuse the rest in a way that programs
 * understand at once, and to put it on record.
 *
 *  - One chain sees everything that arrives, before reassembly, so fragments
 *    are judged as they are and none waits in G's memory. Only what comes from
 *    gw0 with the sandbox's own source address gets further.
 *  - Packets of TCP go to the catch-all listener, whatever their destination;
 *    the vmap lets only sensible flag combinations through. A segment that
 *    belongs to no connection is answered by the kernel with RST.
 *  - UDP to port 53 goes to the responder. Two kinds of ICMP error reach the
 *    kernel: "fragmentation needed" and "packet too big" about a TCP packet, or
 *    clients behind a smaller MTU would stall.
 *  - All else ends in a drop_* chain: it counts always; logs to NFLOG with the
 *    class as prefix, within a limit for each destination (a bounded set: full
 *    means no log) and one for all; refuses where the protocol has a way to;
 *    and drops. A flood thus costs little and the counts stay exact.
 *  - What a quiet sandbox's kernel sends by itself (ICMPv6 housekeeping, the
 *    error about a DNS answer that nobody waits for any more) is dropped without
 *    a trace while it stays rare.
 *  - Output is replies to the sandbox only. ARP is dropped both ways: the
 *    neighbours are permanent.
 *
 * The link-local range of IPv4 is not among the bogus destinations: cloud
 * metadata lives there, and the proxy denies it with a better answer.
 *
 * Set apart in the text is what differs from gate to gate: no variable is an element of a set of intervals, whose elements
 * depend on each other. Protocols and ports are numbers, so that /etc/protocols is not read. Each log is sent at
 * once (queue-threshold 1): the limits keep it cheap, and nothing waits in the kernel when a job ends.
 */
#include "sandbox-net/gate/rules_text.h"

#include "base/handoff.h"

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

/* clang-format off */
#define COUNT(name) " counter name " GATE_NFT_COUNTER name

#define LOG(name) \
	" limit name log_rate log prefix \"" name "\" group " TEXT(GATE_NFLOG_GROUP) " snaplen 1600 queue-threshold 1\n"

#define PER_KEY " limit rate 20/second burst 50 packets }"

/* Counts and logs by address and port. Callers made sure that there is a port. */
#define BY_PORT(name) \
	COUNT(name) "\n" \
	"  meta nfproto ipv4 update @ports4 { ip daddr . th dport" PER_KEY LOG(name) \
	"  meta nfproto ipv6 update @ports6 { ip6 daddr . th dport" PER_KEY LOG(name)

/* Counts and logs by address and protocol. */
#define BY_PROTOCOL(name) \
	COUNT(name) "\n" \
	"  meta nfproto ipv4 update @protos4 { ip daddr . ip protocol" PER_KEY LOG(name) \
	"  meta nfproto ipv6 update @protos6 { ip6 daddr . ip6 nexthdr" PER_KEY LOG(name)

#define REFUSE(condition, how) "  " condition " limit name refusal_rate reject with " how "\n"
/* The kernel looks for what has timed out every gc-interval, in a quiet gate too: by default each second, in each set. */
#define SET(name, key) \
	" set " name " { type " key "; size 1024; flags dynamic,timeout; timeout 10s; gc-interval 10s; }\n"

/* The embedded packet of an ICMP error starts 8 bytes in; offsets are in bits: its protocol and source port. */
#define ICMP4_ABOUT_TCP " @th,136,8 6"
#define ICMP6_ABOUT_TCP " @th,112,8 6"
#define ICMP4_ABOUT_DNS " @th,136,8 17 @th,224,16 53"
#define ICMP6_ABOUT_DNS " @th,112,8 17 @th,384,16 53"

/* Nobody needs ARP: both ends of the link know each other. */
#define NO_ARP \
	"table arp " GATE_NFT_TABLE " {\n" \
	" chain arriving {\n  type filter hook input priority filter; policy drop;\n }\n" \
	" chain leaving {\n  type filter hook output priority filter; policy drop;\n }\n" \
	"}\n"

static const char gate_text[] =
	"table inet " GATE_NFT_TABLE " {\n"
#define X(id, name) " counter " GATE_NFT_COUNTER name " { }\n"
	GATE_COUNTERS
#undef X
	" limit log_rate { rate 2000/second burst 4000 packets }\n"
	" limit refusal_rate { rate 1000/second burst 1000 packets }\n"
	" limit mtu_rate { rate 100/second burst 200 packets }\n"
	" limit quiet_rate { rate 10/second burst 100 packets }\n"
	SET("ports4", "ipv4_addr . inet_service")
	SET("ports6", "ipv6_addr . inet_service")
	SET("protos4", "ipv4_addr . inet_proto")
	SET("protos6", "ipv6_addr . inet_proto")

	" chain drop_udp {\n" BY_PORT("udp")
	REFUSE("", "icmpx port-unreachable")
	"  drop\n }\n"

	" chain drop_quic {\n" BY_PORT("quic")
	REFUSE("", "icmpx port-unreachable")
	"  drop\n }\n"

	" chain drop_icmp {\n" BY_PROTOCOL("icmp")
	REFUSE("icmp type echo-request", "icmp host-prohibited")
	REFUSE("icmpv6 type echo-request", "icmpv6 admin-prohibited")
	"  drop\n }\n"

	" chain drop_ip_protocol {\n" BY_PROTOCOL("ip_protocol")
	REFUSE("meta nfproto ipv4", "icmp prot-unreachable")
	REFUSE("meta nfproto ipv6", "icmpv6 admin-prohibited")
	"  drop\n }\n"

	" chain drop_bogus {\n" BY_PROTOCOL("bogus_destination")
	REFUSE("meta l4proto { 6, 17 }", "icmpx admin-prohibited")
	"  drop\n }\n"

	" chain drop_spoofed {\n" BY_PROTOCOL("spoofed")
	"  drop\n }\n"

	" chain drop_malformed {\n" BY_PROTOCOL("malformed")
	"  drop\n }\n"

	/* Multicast listener reports, and solicitations from the unspecified or the sandbox's own address. */
	" chain housekeeping {\n"
	"  ip6 daddr ff02::/16 icmpv6 type { 131, 132, 133, 135, 143 } limit name quiet_rate drop\n"
	" }\n"
	" chain foreign_source {\n"
	"  ip6 saddr :: jump housekeeping\n"
	"  goto drop_spoofed\n }\n"
	" chain no_destination {\n"
	"  jump housekeeping\n"
	"  goto drop_bogus\n }\n"

	" chain tcp_new {\n"
	"  tcp sport 0 goto drop_malformed\n"
	"  tcp dport 0 goto drop_malformed\n"
	" " COUNT("syn") "\n"
	"  goto tcp_catch\n }\n"
	" chain tcp_catch {\n"
	"  meta nfproto ipv4 meta l4proto 6 tproxy ip to :" TEXT(GATE_TCP_PORT) " accept\n"
	"  meta nfproto ipv6 meta l4proto 6 tproxy ip6 to :" TEXT(GATE_TCP_PORT) " accept\n"
	" }\n"
	" chain from_tcp {\n"
	"  tcp flags & (fin|syn|rst|ack) vmap { syn : goto tcp_new, ack : goto tcp_catch, fin|ack : goto tcp_catch,"
	" rst : goto tcp_catch, rst|ack : goto tcp_catch }\n"
	"  goto drop_malformed\n }\n"

	" chain dns {\n"
	" " COUNT("dns") "\n"
	"  meta nfproto ipv4 meta l4proto 17 tproxy ip to :53 accept\n"
	"  meta nfproto ipv6 meta l4proto 17 tproxy ip6 to :53 accept\n"
	" }\n"
	" chain from_udp {\n"
	"  udp length >= 8 udp dport vmap { 53 : goto dns, 443 : goto drop_quic }\n"
	"  udp length >= 8 goto drop_udp\n"
	"  goto drop_malformed\n }\n"

	" chain from_icmp {\n"
	"  icmp type destination-unreachable icmp code frag-needed" ICMP4_ABOUT_TCP " limit name mtu_rate accept\n"
	"  icmpv6 type packet-too-big" ICMP6_ABOUT_TCP " limit name mtu_rate accept\n"
	"  icmp type destination-unreachable icmp code port-unreachable" ICMP4_ABOUT_DNS " limit name quiet_rate drop\n"
	"  icmpv6 type destination-unreachable icmpv6 code port-unreachable" ICMP6_ABOUT_DNS
	" limit name quiet_rate drop\n"
	"  goto drop_icmp\n }\n"

	/* The first fragment of a datagram that is refused anyway is refused as what it is. */
	" chain first_fragment {\n"
	"  meta l4proto 6 goto drop_malformed\n"
	"  udp dport 53 goto drop_malformed\n"
	"  meta l4proto { 1, 58 } goto drop_icmp\n"
	" }\n"
	" chain extension_header {\n"
	"  ip6 nexthdr != 44 goto drop_malformed\n"
	"  frag frag-off != 0 goto drop_malformed\n"
	"  jump first_fragment\n"
	" }\n"

	" chain arriving {\n"
	"  type filter hook prerouting priority -450; policy drop;\n"
	"  iifname != \"" GATE_LINK "\" drop\n"
	"  ip saddr != $sandbox4 goto foreign_source\n"
	"  ip6 saddr != $sandbox6 goto foreign_source\n"
	"  ip daddr { 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/3 } goto no_destination\n"
	"  ip daddr { $network4, $broadcast4, $sandbox4 } goto no_destination\n"
	"  ip6 daddr { ::/96, ::ffff:0:0/96, fe80::/10, ff00::/8 } goto no_destination\n"
	"  ip6 daddr $sandbox6 goto no_destination\n"
	"  ip hdrlength != 5 goto drop_malformed\n"
	"  ip frag-off & 0x1fff != 0 goto drop_malformed\n"
	"  ip frag-off & 0x2000 != 0 jump first_fragment\n"
	"  ip6 nexthdr { 0, 43, 44, 51, 60 } jump extension_header\n"
	"  meta l4proto vmap { 6 : goto from_tcp, 17 : goto from_udp, 1 : goto from_icmp, 58 : goto from_icmp }\n"
	"  goto drop_ip_protocol\n }\n"

	" chain delivered {\n"
	"  type filter hook input priority filter; policy drop;\n"
	"  iifname \"" GATE_LINK "\" accept\n }\n"
	" chain forwarded {\n"
	"  type filter hook forward priority filter; policy drop;\n }\n"
	" chain leaving {\n"
	"  type filter hook output priority filter; policy drop;\n"
	"  oifname != \"" GATE_LINK "\" drop\n"
	"  ip daddr $sandbox4 meta l4proto { 1, 6 } accept\n"
	"  ip daddr $sandbox4 udp sport 53 accept\n"
	"  ip6 daddr $sandbox6 meta l4proto 6 accept\n"
	"  ip6 daddr $sandbox6 udp sport 53 accept\n"
	"  ip6 daddr $sandbox6 icmpv6 type { 1, 2, 3, 4 } accept\n }\n"
	"}\n" NO_ARP;

/*
 * Below IP, as root of the sandbox can make any frame: what is not addressed to gw0 is judged all the same (the kernel drops a
 * frame to another MAC before any rule of inet sees it), and what is not IP is counted and dropped. Questions for
 * the gateway's MAC are not counted while they are rare: a guest's kernel asks, and so does one whose neighbours were flushed.
 */
static const char frames_text[] =
	"table netdev " GATE_NFT_TABLE " {\n"
	" counter " GATE_NFT_COUNTER "frame { }\n"
	" limit quiet_rate { rate 10/second burst 100 packets }\n"
	" chain frames {\n"
	"  type filter hook ingress device \"" GATE_LINK "\" priority 0; policy drop;\n"
	"  ether type { 0x0800, 0x86dd } meta pkttype set 0 accept\n"
	"  ether saddr " GATE_SANDBOX_MAC " arp operation request limit name quiet_rate drop\n"
	" " COUNT("frame") "\n"
	" }\n"
	"}\n";

/*
 * For a guest: only its MAC may send. What HANDOFF_GUEST answers is dropped here without a further word, DHCP under a count of
 * its own, so that the proxy can record what it did not answer. Then, quietly while it is rare, what a guest's kernel
 * sends by itself: its link-local address is nobody's business. All else is the same as for everybody.
 */
static const char guest_text[] =
	"table inet " GATE_NFT_TABLE " {\n"
	" chain guest_housekeeping {\n"
	"  ip6 daddr ff02::/16 icmpv6 type { 131, 132, 133, 135, 136, 143 } limit name quiet_rate drop\n"
	"  ip6 daddr $gate6 icmpv6 type { 131, 132, 133, 135, 136, 143 } limit name quiet_rate drop\n"
	" }\n"
	" chain guest {\n"
	"  ether saddr != " GATE_SANDBOX_MAC " goto drop_spoofed\n"
	"  ip saddr { 0.0.0.0, $sandbox4 } ip daddr { 255.255.255.255, $gate4 } ip hdrlength 5"
	" ip frag-off & 0x3fff == 0 udp sport 68 udp dport 67" COUNT("dhcp") " drop\n"
	"  ip6 saddr { ::, fe80::/10 } jump guest_housekeeping\n"
	"  ip6 saddr $sandbox6 jump guest_housekeeping\n"
	" }\n"
	"}\n"
	"insert rule inet " GATE_NFT_TABLE " arriving iifname \"" GATE_LINK "\" jump guest\n";

/*
 * The engine's own redirection, at priority -100, finds its work done. What a packet socket puts on lo passes no output hook: prerouting
 * drops it, before its fragments are put together. Of a packet that is not addressed to the resolver there, address translation may still make
 * one that is: who forges a packet from 127.0.0.11 to the gate, and then its answer, gets that translated back. So the last word is the
 * input hook's: all that any socket of S receives passes it, when every address is what it will be. Nothing of what is sent to the resolver is for it;
 * what it asks on, it asks from other addresses.
 */
static const char resolver_text[] =
	"table ip " GATE_NFT_TABLE " {\n"
	" chain asked {\n"
	"  type nat hook output priority -110; policy accept;\n"
	"  ip daddr 127.0.0.11 meta l4proto { 6, 17 } th dport 53 dnat to $gate4\n }\n"
	" chain answered {\n"
	"  type nat hook postrouting priority 90; policy accept;\n"
	"  ip saddr 127.0.0.0/8 ip daddr $gate4 snat to $sandbox4\n }\n"
	" chain leaving {\n"
	"  type filter hook output priority filter; policy accept;\n"
	"  ip daddr 127.0.0.11 reject\n }\n"
	" chain arriving {\n"
	"  type filter hook prerouting priority -450; policy accept;\n"
	"  ip daddr 127.0.0.11 drop\n }\n"
	" chain delivered {\n"
	"  type filter hook input priority filter; policy accept;\n"
	"  ip daddr 127.0.0.11 drop\n }\n"
	"}\n";
/* For a namespace that had a gate before: the table is there, or else it is made to be deleted. */
#define AFRESH(family) "table " family " " GATE_NFT_TABLE "\ndelete table " family " " GATE_NFT_TABLE "\n"

/* Forwarded packets pass both hooks. No link but the gate's has its group, which stays with it wherever it is moved. */
static const char alone_text[] =
	AFRESH("inet") AFRESH("arp")
	"table inet " GATE_NFT_TABLE " {\n"
	" chain arriving {\n"
	"  type filter hook prerouting priority -450; policy drop;\n"
	"  iifname \"lo\" accept\n"
	"  iifgroup " TEXT(GATE_SANDBOX_GROUP) " accept\n }\n"
	" chain leaving {\n"
	"  type filter hook postrouting priority 300; policy drop;\n"
	"  oifname \"lo\" accept\n"
	"  oifgroup " TEXT(GATE_SANDBOX_GROUP) " accept\n }\n"
	"}\n" NO_ARP;

static const char wire_text[] =
	AFRESH("netdev") AFRESH("inet") AFRESH("arp")
	"table netdev " GATE_NFT_TABLE " {\n"
	" chain from_guest {\n"
	"  type filter hook ingress device \"$tap\" priority 0; policy drop;\n"
	"  fwd to $link_index\n }\n"
	" chain from_gate {\n"
	"  type filter hook ingress device \"" GATE_SANDBOX_LINK "\" priority 0; policy drop;\n"
	"  fwd to $tap_index\n }\n"
	"}\n"
	"table inet " GATE_NFT_TABLE " {\n"
	" chain arriving {\n"
	"  type filter hook prerouting priority -450; policy drop;\n"
	"  iifname \"lo\" accept\n }\n"
	" chain leaving {\n"
	"  type filter hook postrouting priority 300; policy drop;\n"
	"  oifname \"lo\" accept\n }\n"
	"}\n" NO_ARP;
/* clang-format on */

const struct rules_text rules_texts[RULES_SETS] = {
	[RULES_GATE] = { gate_text, RULES_SETS },   [RULES_FRAMES] = { frames_text, RULES_SETS },
	[RULES_GUEST] = { guest_text, RULES_GATE }, [RULES_RESOLVER] = { resolver_text, RULES_SETS },
	[RULES_ALONE] = { alone_text, RULES_SETS }, [RULES_WIRE] = { wire_text, RULES_SETS },
};

const char *const rules_variable_names[RULES_VARIABLES] = {
	[RULES_GATE4] = "gate4",	   [RULES_GATE6] = "gate6",	  [RULES_SANDBOX4] = "sandbox4",
	[RULES_SANDBOX6] = "sandbox6",	   [RULES_NETWORK4] = "network4", [RULES_BROADCAST4] = "broadcast4",
	[RULES_LINK_INDEX] = "link_index", [RULES_TAP] = "tap",		  [RULES_TAP_INDEX] = "tap_index",
};
