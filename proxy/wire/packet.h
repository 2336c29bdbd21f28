/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the headers of an IP packet that was dropped in the gate, as NFLOG delivers it. Pure. */
#ifndef PROXY_WIRE_PACKET_H
#define PROXY_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/wire/parse.h"

struct packet {
	struct endpoint src, dst; /* ports 0 where the protocol has none or a later fragment hides them */
	uint8_t proto;		  /* upper-layer protocol number, behind IPv6 extension headers (at most 8 of them) */
	bool fragment;		  /* not the first fragment */
	uint16_t icmp;		  /* type << 8 | code for ICMP and ICMPv6 */
	uint32_t total;		  /* bytes of the packet as its header declares */
	const uint8_t *payload;	  /* behind the UDP header; NULL for other protocols; borrowed */
	size_t payload_len;	  /* of what was captured */
};

/* PARSE_OK when addresses and protocol could be read (the rest may be cut by the snap length); else PARSE_BAD. */
enum parse packet_parse(const uint8_t *p, size_t len, struct packet *packet);

#endif
