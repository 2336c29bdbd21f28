/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. Checksums: ICMPv6's is checked (RFC 4861 §7.1.1). IP's and UDP's of a DHCP message are not: a virtual machine
 * may leave them to a network card that isn't there, and nothing but the message itself is believed.
 */
#include "proxy/wire/gateway.h"

#include <string.h>

#include "base/reader.h"
#include "base/writer.h"

#define TYPE_IPV4 0x0800
#define TYPE_ARP  0x0806
#define TYPE_IPV6 0x86dd

#define ARP_ETHERNET 1
#define ARP_REQUEST  1
#define ARP_REPLY    2

#define IPV4_HEADER   20
#define IPV4_START    0x45 /* version 4, no options */
#define FRAGMENT_BITS 0x3fff
#define PROTO_UDP     17
#define PROTO_ICMPV6  58
#define UDP_HEADER    8
#define TTL	      64
#define DHCP_SERVER   67
#define DHCP_CLIENT   68

#define ND_HOPS	       255 /* RFC 4861 §7.1.1: from this very link */
#define ND_SOLICIT     135
#define ND_ADVERT      136
#define ND_SOLICIT_MIN 24
#define ND_ADVERT_LEN  32
#define ND_FLAGS       0xe0000000 /* router, solicited, override */
#define ND_OWN_MAC     2	  /* option: target link-layer address, of 1 · 8 bytes */

static struct addr take_addr(struct reader *r, enum addr_family family)
{
	struct addr a = { .family = (uint8_t)family };
	struct reader bytes = reader_take(r, addr_size(&a));

	memcpy(a.b, bytes.p, bytes.left);
	return a;
}

static bool is_zero(const struct addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->b, zero, addr_size(a)) == 0;
}

/* RFC 1071 over `n` bytes, going on from `sum`. */
static uint32_t add_sum(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The pseudo header (RFC 8200 §8.1, RFC 768) and what is behind it. */
static uint16_t checksum(const struct addr *src, const struct addr *dst, uint8_t proto, const uint8_t *p, size_t n)
{
	uint32_t sum = add_sum(add_sum(0, src->b, addr_size(src)), dst->b, addr_size(dst));

	return fold(add_sum(sum + proto + (uint32_t)n, p, n));
}

static enum parse parse_arp(struct reader r, struct gateway_question *q)
{
	bool good = reader_u16(&r) == ARP_ETHERNET;
	struct reader sender;

	good &= reader_u16(&r) == TYPE_IPV4;
	good &= reader_u8(&r) == GATEWAY_MAC;
	good &= reader_u8(&r) == 4;
	good &= reader_u16(&r) == ARP_REQUEST;
	sender = reader_take(&r, GATEWAY_MAC);
	q->src = take_addr(&r, ADDR_V4);
	reader_take(&r, GATEWAY_MAC);
	q->target = take_addr(&r, ADDR_V4);
	q->kind = GATEWAY_ARP;
	return good && !r.bad && memcmp(sender.p, q->mac, GATEWAY_MAC) == 0 ? PARSE_OK : PARSE_BAD;
}

static enum parse parse_dhcp(struct reader r, struct gateway_question *q)
{
	bool good = reader_u8(&r) == IPV4_START;
	size_t total, udp;

	reader_u8(&r); /* TOS */
	total = reader_u16(&r);
	reader_u16(&r); /* identification */
	good &= (reader_u16(&r) & FRAGMENT_BITS) == 0;
	reader_u8(&r); /* TTL */
	good &= reader_u8(&r) == PROTO_UDP;
	reader_u16(&r); /* checksum */
	q->src = take_addr(&r, ADDR_V4);
	q->dst = take_addr(&r, ADDR_V4);
	good &= reader_u16(&r) == DHCP_CLIENT;
	good &= reader_u16(&r) == DHCP_SERVER;
	udp = reader_u16(&r);
	reader_u16(&r); /* checksum */
	if (!good || r.bad || udp < UDP_HEADER || total < IPV4_HEADER + udp)
		return PARSE_BAD;
	r = reader_take(&r, udp - UDP_HEADER);
	q->payload = r.p;
	q->payload_len = r.left;
	q->kind = GATEWAY_DHCP;
	return r.bad ? PARSE_BAD : PARSE_OK;
}

static enum parse parse_solicit(struct reader r, struct gateway_question *q)
{
	bool good = reader_u32(&r) >> 28 == 6;
	size_t len = reader_u16(&r);
	struct reader body;

	good &= reader_u8(&r) == PROTO_ICMPV6;
	good &= reader_u8(&r) == ND_HOPS;
	q->src = take_addr(&r, ADDR_V6);
	q->dst = take_addr(&r, ADDR_V6);
	body = reader_take(&r, len);
	if (!good || body.bad || len < ND_SOLICIT_MIN || checksum(&q->src, &q->dst, PROTO_ICMPV6, body.p, len) != 0)
		return PARSE_BAD;
	good &= reader_u16(&body) == ND_SOLICIT << 8; /* and code 0 */
	reader_u16(&body);			      /* checksum */
	reader_u32(&body);			      /* reserved */
	q->target = take_addr(&body, ADDR_V6);
	q->kind = GATEWAY_SOLICIT;
	return good ? PARSE_OK : PARSE_BAD;
}

enum parse gateway_parse(const uint8_t *frame, size_t len, struct gateway_question *q)
{
	struct reader r = reader_over(frame, len), mac;
	enum parse got = PARSE_BAD;
	uint16_t type;

	*q = (struct gateway_question){ .kind = GATEWAY_ARP };
	reader_take(&r, GATEWAY_MAC);
	mac = reader_take(&r, GATEWAY_MAC);
	memcpy(q->mac, mac.p, mac.left);
	type = reader_u16(&r);
	if (len > GATEWAY_FRAME_MAX || r.bad)
		return PARSE_BAD;
	if (type == TYPE_ARP)
		got = parse_arp(r, q);
	else if (type == TYPE_IPV4)
		got = parse_dhcp(r, q);
	else if (type == TYPE_IPV6)
		got = parse_solicit(r, q);
	return got;
}

static void put_ethernet(struct writer *w, const uint8_t *to, const uint8_t *from, unsigned type)
{
	writer_put(w, to, GATEWAY_MAC);
	writer_put(w, from, GATEWAY_MAC);
	writer_u16(w, type);
}

static void put_addr(struct writer *w, const struct addr *a)
{
	writer_put(w, a->b, addr_size(a));
}

static void put_arp(struct writer *w, const struct gateway_answerer *a, const struct gateway_question *q)
{
	put_ethernet(w, a->guest, a->mac, TYPE_ARP);
	writer_u16(w, ARP_ETHERNET);
	writer_u16(w, TYPE_IPV4);
	writer_u8(w, GATEWAY_MAC);
	writer_u8(w, 4);
	writer_u16(w, ARP_REPLY);
	writer_put(w, a->mac, GATEWAY_MAC);
	put_addr(w, &a->v4);
	writer_put(w, a->guest, GATEWAY_MAC);
	put_addr(w, &q->src);
}

static void put_advert(struct writer *w, const struct gateway_answerer *a, const struct gateway_question *q)
{
	size_t body;

	put_ethernet(w, a->guest, a->mac, TYPE_IPV6);
	writer_u32(w, 6u << 28);
	writer_u16(w, ND_ADVERT_LEN);
	writer_u8(w, PROTO_ICMPV6);
	writer_u8(w, ND_HOPS);
	put_addr(w, &a->v6);
	put_addr(w, &q->src);
	body = w->len;
	writer_u16(w, ND_ADVERT << 8);
	writer_u16(w, 0);
	writer_u32(w, ND_FLAGS);
	put_addr(w, &a->v6);
	writer_u8(w, ND_OWN_MAC);
	writer_u8(w, 1);
	writer_put(w, a->mac, GATEWAY_MAC);
	if (!w->full)
		writer_set_u16(w, body + 2, checksum(&a->v6, &q->src, PROTO_ICMPV6, w->p + body, ND_ADVERT_LEN));
}

size_t gateway_answer(const struct gateway_answerer *a, const struct gateway_question *q, uint8_t *out, size_t cap)
{
	struct writer w = { .p = out, .cap = cap };

	if (memcmp(q->mac, a->guest, GATEWAY_MAC) != 0 || is_zero(&q->src))
		return 0;
	if (q->kind == GATEWAY_ARP && addr_equal(&q->target, &a->v4))
		put_arp(&w, a, q);
	else if (q->kind == GATEWAY_SOLICIT && addr_equal(&q->target, &a->v6))
		put_advert(&w, a, q);
	return w.full ? 0 : w.len;
}

size_t gateway_dhcp(const struct gateway_answerer *a, const struct addr *dst, const uint8_t *payload,
		    size_t payload_len, uint8_t *out, size_t cap)
{
	static const uint8_t everybody[GATEWAY_MAC] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct writer w = { .p = out, .cap = cap };
	const size_t ip = 14, udp = ip + IPV4_HEADER;
	uint16_t sum;

	if (cap < GATEWAY_HEADERS || payload_len > cap - GATEWAY_HEADERS)
		return 0;
	memmove(out + GATEWAY_HEADERS, payload, payload_len);
	put_ethernet(&w, memcmp(dst->b, everybody, 4) == 0 ? everybody : a->guest, a->mac, TYPE_IPV4);
	writer_u8(&w, IPV4_START);
	writer_u8(&w, 0);
	writer_u16(&w, (unsigned)(IPV4_HEADER + UDP_HEADER + payload_len));
	writer_u32(&w, 0); /* identification, no fragment */
	writer_u8(&w, TTL);
	writer_u8(&w, PROTO_UDP);
	writer_u16(&w, 0);
	put_addr(&w, &a->v4);
	put_addr(&w, dst);
	writer_set_u16(&w, ip + 10, fold(add_sum(0, out + ip, IPV4_HEADER)));
	writer_u16(&w, DHCP_SERVER);
	writer_u16(&w, DHCP_CLIENT);
	writer_u16(&w, (unsigned)(UDP_HEADER + payload_len));
	writer_u16(&w, 0);
	sum = checksum(&a->v4, dst, PROTO_UDP, out + udp, UDP_HEADER + payload_len);
	writer_set_u16(&w, udp + 6, sum ? sum : 0xffff);
	return w.len + payload_len;
}
