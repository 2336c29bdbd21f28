/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the headers of an IP packet that was dropped in the gate, as NFLOG delivers it. Pure. */
#ifndef PROXY_WIRE_PACKET_H
#define PROXY_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/wire/parse.h"

#define PACKET_EXTENSIONS_MAX 8

struct packet {
	struct endpoint src, dst; /* ports 0 where the protocol has none or they are not there to be read */
	/* Upper-layer protocol, behind IPv6 extension headers; where these are cut or too many, the one that wasn't read. */
	uint8_t proto;
	bool fragment;		/* not the first fragment */
	uint16_t icmp;		/* type << 8 | code for ICMP and ICMPv6; 0 where they are not there */
	uint32_t total;		/* bytes of the packet as its header declares; what was captured where it says 0 */
	const uint8_t *payload; /* behind the UDP header; NULL for other protocols or where it is cut; borrowed */
	size_t payload_len;	/* of what was captured; never more than the headers declare */
};

/*
 * Reads a packet that begins with its IP header and may be cut anywhere by the
 * snap length (RFC 791 §3.1, RFC 8200 §3, §4). PARSE_OK when addresses and
 * protocol could be read, whatever the rest says: these packets are recorded,
 * not forwarded. Else PARSE_BAD, and `packet` is all zero. Never PARSE_MORE.
 */
enum parse packet_parse(const uint8_t *p, size_t len, struct packet *packet);

#endif
