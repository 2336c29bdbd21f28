/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of dropped IP packets, for the record. The kernel has seen the
 * packet as valid enough to reach the gate, but its fields are the sandbox's
 * and the end may be cut off: what isn't there is left zero.
 */
#include "proxy/wire/packet.h"

#include <netinet/in.h>
#include <string.h>

#include "base/reader.h"

#define IPV4_HEADER_MIN	 20
#define IPV4_OFFSET_MASK 0x1fff
#define IPV6_HEADER	 40
#define IPV6_OFFSET_MASK 0xfff8
#define UDP_HEADER	 8
#define NEXT_HIP	 139 /* RFC 7401 §5.1 */
#define NEXT_SHIM6	 140 /* RFC 5533 §5.1 */

static struct addr take_addr(struct reader *r, enum addr_family family)
{
	struct addr a = { .family = (uint8_t)family };
	struct reader bytes = reader_take(r, addr_size(&a));

	memcpy(a.b, bytes.p, bytes.left);
	return a;
}

/* Behind the UDP ports: the length it declares bounds the payload, unless it is a lie (or 0, RFC 2675 §4). */
static void read_udp(struct reader r, struct packet *packet)
{
	uint16_t declared = reader_u16(&r);

	reader_u16(&r); /* checksum */
	if (r.bad)
		return;
	packet->payload = r.p;
	packet->payload_len = r.left;
	if (declared >= UDP_HEADER && (size_t)declared - UDP_HEADER < r.left)
		packet->payload_len = (size_t)declared - UDP_HEADER;
}

static void read_upper(struct reader r, struct packet *packet)
{
	uint32_t word = reader_u32(&r);

	if (r.bad || packet->fragment)
		return;
	switch (packet->proto) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		packet->icmp = (uint16_t)(word >> 16);
		break;
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_DCCP:
	case IPPROTO_SCTP:
	case IPPROTO_UDPLITE:
		packet->src.port = (uint16_t)(word >> 16);
		packet->dst.port = (uint16_t)word;
		break;
	default:
		break;
	}
	if (packet->proto == IPPROTO_UDP)
		read_udp(r, packet);
}

/* Bytes behind the declared end (a link's padding) are not the packet's. */
static void cut_at_total(struct reader *r, size_t header, struct packet *packet, uint32_t declared)
{
	packet->total = declared >= header ? declared : (uint32_t)(header + r->left);
	if (r->left > packet->total - header)
		r->left = packet->total - header;
}

static enum parse parse_v4(struct reader r, struct packet *packet)
{
	size_t words = reader_u8(&r) & 15;
	uint16_t total, fragment;

	reader_u8(&r); /* TOS */
	total = reader_u16(&r);
	reader_u16(&r); /* identification */
	fragment = reader_u16(&r);
	reader_u8(&r); /* TTL */
	packet->proto = reader_u8(&r);
	reader_u16(&r); /* checksum */
	packet->src.addr = take_addr(&r, ADDR_V4);
	packet->dst.addr = take_addr(&r, ADDR_V4);
	if (r.bad || words * 4 < IPV4_HEADER_MIN)
		return PARSE_BAD;
	packet->fragment = fragment & IPV4_OFFSET_MASK;
	cut_at_total(&r, IPV4_HEADER_MIN, packet, total);
	reader_take(&r, words * 4 - IPV4_HEADER_MIN); /* options */
	read_upper(r, packet);
	return PARSE_OK;
}

static bool is_extension(uint8_t next)
{
	switch (next) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_FRAGMENT:
	case IPPROTO_AH:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
	case NEXT_HIP:
	case NEXT_SHIM6:
		return true;
	default:
		return false;
	}
}

/* Steps over one extension header. False, with nothing left to read, when it is cut. */
static bool skip_extension(struct reader *r, struct packet *packet)
{
	uint8_t next = reader_u8(r);
	uint8_t len = reader_u8(r);

	if (packet->proto == IPPROTO_FRAGMENT) {
		packet->fragment = reader_u16(r) & IPV6_OFFSET_MASK;
		reader_u32(r);
	} else if (packet->proto == IPPROTO_AH) {
		reader_take(r, (len + 2U) * 4 - 2); /* RFC 4302 §2.2 */
	} else {
		reader_take(r, (len + 1U) * 8 - 2);
	}
	if (r->bad)
		return false;
	packet->proto = next;
	return true;
}

static enum parse parse_v6(struct reader r, struct packet *packet)
{
	uint16_t declared;

	reader_u32(&r); /* version, traffic class, flow label */
	declared = reader_u16(&r);
	packet->proto = reader_u8(&r);
	reader_u8(&r); /* hop limit */
	packet->src.addr = take_addr(&r, ADDR_V6);
	packet->dst.addr = take_addr(&r, ADDR_V6);
	if (r.bad)
		return PARSE_BAD;
	cut_at_total(&r, IPV6_HEADER, packet, declared ? IPV6_HEADER + (uint32_t)declared : 0);
	for (int i = 0; i < PACKET_EXTENSIONS_MAX && is_extension(packet->proto) && !packet->fragment; i++) {
		if (!skip_extension(&r, packet))
			break;
	}
	read_upper(r, packet);
	return PARSE_OK;
}

enum parse packet_parse(const uint8_t *p, size_t len, struct packet *packet)
{
	struct reader r = reader_over(p, len);
	struct reader first = r;
	uint8_t version = reader_u8(&first) >> 4;
	enum parse got = PARSE_BAD;

	*packet = (struct packet){ 0 };
	if (version == 4)
		got = parse_v4(r, packet);
	else if (version == 6)
		got = parse_v6(r, packet);
	if (got == PARSE_BAD)
		*packet = (struct packet){ 0 };
	return got;
}
