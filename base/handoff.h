/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher and the proxy say to each other over their socketpair
 * (SOCK_SEQPACKET), and what is the same in every gate. In order:
 *
 *   launcher → proxy  HANDOFF_GATE    the gate's sockets (handoff_fd order), its addresses and a nonce
 *   proxy → launcher  HANDOFF_READY   isolated; the gate answers probes, nothing else
 *   launcher → proxy  HANDOFF_ARM     the probes came back right, S has no other way out
 *   proxy → launcher  HANDOFF_ARMED   the start record is written, the policy is in force
 *
 * While it is READY, the proxy answers each TCP connection and each DNS-port
 * datagram with the nonce, so that the launcher knows that it is *this* proxy
 * at the other end of the veth pair. Only after ARMED does the launcher start
 * the command, and it closes the socket. Anything out of order, or an end of
 * the stream before ARMED, ends both sides.
 */
#ifndef BASE_HANDOFF_H
#define BASE_HANDOFF_H

#include <stdint.h>

#include "base/layout.h"
#include "base/resource.h"

#define HANDOFF_MAGIC 0x6e670003u /* "ng", version 3 */
#define HANDOFF_TAP   16	  /* bytes of a device's name, with the NUL; IFNAMSIZ */
#define HANDOFF_NONCE 16

enum handoff_type { HANDOFF_GATE = 1, HANDOFF_READY, HANDOFF_ARM, HANDOFF_ARMED };

/* The descriptors of HANDOFF_GATE, all of them sockets of G, which the proxy looks at. */
enum handoff_fd {
	HANDOFF_TCP4,  /* listening, IP_TRANSPARENT, non-blocking */
	HANDOFF_TCP6,  /* listening, IPV6_TRANSPARENT, V6ONLY, non-blocking */
	HANDOFF_UDP4,  /* port 53, IP_TRANSPARENT, IP_RECVORIGDSTADDR, IP_PKTINFO */
	HANDOFF_UDP6,  /* the same for IPv6 */
	HANDOFF_NFLOG, /* bound to GATE_NFLOG_GROUP, copy mode and NFULNL_CFG_F_SEQ set */
	HANDOFF_NFT,   /* NETLINK_NETFILTER: through it the monitor reads G's counters (see report.h) */
	HANDOFF_LINK,  /* NETLINK_ROUTE, hears of the links of G and of S (RTNLGRP_LINK, NETLINK_LISTEN_ALL_NSID) */
	/*
	 * Only for a virtual machine: packet socket of gw0 for what its guest asks of
	 * a gateway below IP, or before it has an address (ARP, ND, DHCP). Always the last one.
	 */
	HANDOFF_GUEST,
	HANDOFF_FDS
};

struct handoff_msg {
	uint32_t magic;		      /* HANDOFF_MAGIC */
	uint32_t type;		      /* enum handoff_type */
	uint8_t nonce[HANDOFF_NONCE]; /* HANDOFF_GATE only */
	struct gate_layout layout;    /* HANDOFF_GATE only */
	char tap[HANDOFF_TAP]; /* HANDOFF_GATE only: of a virtual machine, the name of its device in S; else "" */
	uint32_t holder[RESOURCE_COUNT]; /* HANDOFF_ARM only: enum resource_holder, for the record */
};

/*
 * The link: its two ends have these names and MACs as a rule, and find each other
 * without ARP or ND. A guest of a virtual machine must use the sandbox's.
 */
#define GATE_LINK	       "gw0"
#define GATE_SANDBOX_LINK      "eth0"
#define GATE_MAC_BYTES	       2, 0, 0, 0, 0, 1
#define GATE_SANDBOX_MAC_BYTES 2, 0, 0, 0, 0, 2
#define GATE_SANDBOX_MAC       "02:00:00:00:00:02"
/* The sandbox's end is told by its group (ip-link(8)) from whatever else may have its name or index later: links have none (0) as a rule. */
#define GATE_SANDBOX_GROUP 0x6e67

#define GATE_MTU   1500	 /* bytes; what a sandbox's end of the link has, and the gate sends at most */
#define GATE_HEARS 65535 /* bytes; a longer packet that comes all the same is on record as any other */
/*
 * BIG TCP (Linux 6.3): the sandbox's kernel passes this many bytes of a stream to the gate at once, instead of 64 KB, which saves
 * netgate a sixth of its processor time for an upload. A stack in user space that reads whole packets from the link, as gVisor does, has no room for them.
 */
#define GATE_BIG_TCP 262144
#define GATE_POOL4   "198.18.0.0/15"		/* synthetic addresses of the gate's DNS (RFC 2544 range) */
#define GATE_POOL6   "fd6e:6574:6761:5000::/96" /* the same, the IPv4 one in the low 32 bits */
/*
 * Congestion control on the veth pair. The host's default may pace (bbr), which
 * halves the throughput of a link without a delay; reno is in every kernel.
 */
#define GATE_CONGESTION	 "reno"
#define GATE_TCP_PORT	 15001
#define GATE_PROXY_PORT	 3128 /* explicit proxy on GATE_ADDR4 and GATE_ADDR6: HTTP and SOCKS5, */
#define GATE_SOCKS_PORT	 1080 /* on both ports */
#define GATE_NFLOG_GROUP 7
#define GATE_NFT_TABLE	 "netgate" /* family inet */

/* What the names of the counters below begin with in nft, which reserves words such as "udp". */
#define GATE_NFT_COUNTER "count_"

/*
 * Named counters of GATE_NFT_TABLE, exact; the rest of a drop class counts in
 * its NFLOG prefix of the same name. "syn" counts initial TCP SYNs; "dhcp" what
 * goes to HANDOFF_GUEST's DHCP; "frame" what is neither IP nor asked of the gateway (counted, not logged).
 */
/* clang-format off */
#define GATE_COUNTERS \
	X(SYN, "syn") \
	X(DNS, "dns") \
	X(UDP, "udp") \
	X(QUIC, "quic") \
	X(ICMP, "icmp") \
	X(IP_PROTOCOL, "ip_protocol") \
	X(SPOOFED, "spoofed") \
	X(BOGUS, "bogus_destination") \
	X(MALFORMED, "malformed") \
	X(DHCP, "dhcp") \
	X(FRAME, "frame")
/* clang-format on */

enum gate_counter {
#define X(id, name) GATE_COUNTER_##id,
	GATE_COUNTERS
#undef X
		GATE_COUNTER_COUNT
};

#endif
