/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and endpoints. Parsing accepts one spelling of an IPv4 address
 * only: what else libraries read as one (octal, hex, fewer parts) is how
 * checks were passed elsewhere. Formatting is done here, not by inet_ntop(),
 * which goes through stdio: it runs several times for each record.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/digits.h"

size_t addr_size(const struct addr *a)
{
	return a->family == ADDR_V4 ? 4 : a->family == ADDR_V6 ? 16 : 0;
}

struct addr addr_v4(uint32_t host_order)
{
	return (struct addr){ .family = ADDR_V4,
			      .b = { (uint8_t)(host_order >> 24), (uint8_t)(host_order >> 16),
				     (uint8_t)(host_order >> 8), (uint8_t)host_order } };
}

static int parse_v4(const char *text, size_t len, struct addr *out)
{
	const char *end = text + len;
	struct addr a = { .family = ADDR_V4 };

	for (int i = 0; i < 4; i++) {
		const char *stop = i < 3 ? memchr(text, '.', (size_t)(end - text)) : end;
		uint32_t v;

		if (!stop || digits_parse(text, (size_t)(stop - text), 255, &v))
			return -1;
		a.b[i] = (uint8_t)v;
		text = stop + (i < 3);
	}
	*out = a;
	return 0;
}

static int parse_v6(const char *text, size_t len, struct addr *out)
{
	char copy[ADDR_STRLEN] = "";
	struct addr a = { .family = ADDR_V6 };

	if (len >= sizeof(copy))
		return -1;
	memcpy(copy, text, len);
	/* Exactly the bytes of the grammar: no zone, no NUL inside. */
	if (strspn(copy, "0123456789abcdefABCDEF:.") != len || inet_pton(AF_INET6, copy, a.b) != 1)
		return -1;
	*out = a;
	return 0;
}

int addr_parse(const char *text, size_t len, struct addr *out)
{
	if (len == 0)
		return -1;
	return memchr(text, ':', len) ? parse_v6(text, len, out) : parse_v4(text, len, out);
}

static char *put_v4(char *at, const uint8_t *b)
{
	for (int i = 0; i < 4; i++) {
		if (i)
			*at++ = '.';
		at = digits_put(at, b[i]);
	}
	return at;
}

static char *put_group(char *at, unsigned int v)
{
	bool begun = false;

	for (int shift = 12; shift >= 0; shift -= 4) {
		unsigned int digit = v >> shift & 15;

		begun |= digit || shift == 0;
		if (begun)
			*at++ = "0123456789abcdef"[digit];
	}
	return at;
}

/* The longest run of zero groups, the first of equals; none of a single group (RFC 5952 §4.2). */
static void zero_run(const unsigned int *groups, int *start, int *len)
{
	int run = 0;

	*start = -1;
	*len = 1;
	for (int i = 0; i < 8; i++) {
		run = groups[i] ? 0 : run + 1;
		if (run > *len) {
			*len = run;
			*start = i - run + 1;
		}
	}
}

static char *put_v6(char *at, const uint8_t *b)
{
	unsigned int groups[8];
	int start, len;

	for (int i = 0; i < 8; i++)
		groups[i] = (unsigned int)b[2 * i] << 8 | b[2 * i + 1];
	zero_run(groups, &start, &len);
	for (int i = 0; i < 8; i++) {
		if (i == start) {
			*at++ = ':';
			*at++ = ':';
			i += len - 1;
			continue;
		}
		if (i && i != start + len)
			*at++ = ':';
		/* v4-mapped in mixed notation (RFC 5952 §5); v4-compatible is deprecated, and ::1:80 is not ::0.1.0.128. */
		if (i == 6 && start == 0 && len == 5 && groups[5] == 0xffff)
			return put_v4(at, b + 12);
		at = put_group(at, groups[i]);
	}
	return at;
}

/* The text without a NUL; returns its end. */
static char *put_addr(char *at, const struct addr *a)
{
	if (a->family == ADDR_V4)
		return put_v4(at, a->b);
	if (a->family == ADDR_V6)
		return put_v6(at, a->b);
	*at = '-';
	return at + 1;
}

const char *addr_format(const struct addr *a, char buf[static ADDR_STRLEN])
{
	*put_addr(buf, a) = '\0';
	return buf;
}

const char *endpoint_format(const struct endpoint *e, char buf[static ENDPOINT_STRLEN])
{
	char *at = buf;

	if (e->addr.family == ADDR_V6)
		*at++ = '[';
	at = put_addr(at, &e->addr);
	if (e->addr.family == ADDR_V6)
		*at++ = ']';
	if (e->addr.family != ADDR_NONE) {
		*at++ = ':';
		at = digits_put(at, e->port);
	}
	*at = '\0';
	return buf;
}

int endpoint_parse(const char *text, size_t len, uint16_t default_port, struct endpoint *out)
{
	const char *addr = text;
	const char *colon = memrchr(text, ':', len);
	size_t addr_len = colon ? (size_t)(colon - text) : 0;
	struct endpoint e = { .port = default_port };
	uint8_t family = ADDR_V4;
	uint32_t port;

	if (addr_parse(text, len, &e.addr) == 0) {
		*out = e;
		return 0;
	}
	if (!colon || digits_parse(colon + 1, len - addr_len - 1, 65535, &port) || port == 0)
		return -1;
	if (addr_len >= 2 && addr[0] == '[' && addr[addr_len - 1] == ']') {
		addr++;
		addr_len -= 2;
		family = ADDR_V6;
	}
	if (addr_parse(addr, addr_len, &e.addr) || e.addr.family != family)
		return -1;
	e.port = (uint16_t)port;
	*out = e;
	return 0;
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	return a->family == b->family && memcmp(a->b, b->b, addr_size(a)) == 0;
}

int endpoint_from_sockaddr(const struct sockaddr *sa, struct endpoint *out)
{
	struct endpoint e = { 0 };
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	/* Copied, because callers hold them in buffers of any alignment. */
	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		e.addr.family = ADDR_V4;
		memcpy(e.addr.b, &in.sin_addr, 4);
		e.port = ntohs(in.sin_port);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		e.addr.family = ADDR_V6;
		memcpy(e.addr.b, &in6.sin6_addr, 16);
		e.port = ntohs(in6.sin6_port);
	} else {
		return -1;
	}
	*out = e;
	return 0;
}

socklen_t endpoint_to_sockaddr(const struct endpoint *e, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(e->port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(e->port) };

	memset(ss, 0, sizeof(*ss));
	if (e->addr.family == ADDR_V6) {
		memcpy(&in6.sin6_addr, e->addr.b, 16);
		memcpy(ss, &in6, sizeof(in6));
		return sizeof(in6);
	}
	memcpy(&in.sin_addr, e->addr.b, 4);
	memcpy(ss, &in, sizeof(in));
	return sizeof(in);
}

struct candidates {
	struct addr *out;
	size_t max;
	size_t n;
};

static void add_candidate(struct candidates *c, uint8_t b0, uint8_t b1, uint8_t b2, uint8_t b3)
{
	if (c->n < c->max)
		c->out[c->n++] = (struct addr){ .family = ADDR_V4, .b = { b0, b1, b2, b3 } };
}

size_t addr_embedded_v4(const struct addr *a, struct addr *out, size_t max)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t translated[12] = { [8] = 0xff, [9] = 0xff };
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const uint8_t nat64_local[6] = { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 };
	static const uint8_t teredo[4] = { 0x20, 0x01 };
	static const uint8_t zero[12];
	struct candidates c = { .out = out, .max = max };
	const uint8_t *b = a->b;
	bool low32 = false; /* the last 32 bits are an address */

	if (a->family != ADDR_V6)
		return 0;
	/* ::/128 and ::1/128 are addresses of their own, not v4-compatible ones. */
	if (memcmp(b, zero, 12) == 0)
		low32 = b[12] || b[13] || b[14] || b[15] > 1;
	else if (memcmp(b, mapped, 12) == 0 || memcmp(b, translated, 12) == 0 || memcmp(b, nat64, 12) == 0)
		low32 = true;
	/* ISATAP: the interface identifier is 0000:5efe or 0200:5efe and the address. */
	if ((b[8] & ~0x02) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe)
		low32 = true;
	if (memcmp(b, nat64_local, sizeof(nat64_local)) == 0) {
		add_candidate(&c, b[6], b[7], b[9], b[10]); /* bits 64 to 71 are reserved */
		low32 = true;
	}
	if (b[0] == 0x20 && b[1] == 0x02)
		add_candidate(&c, b[2], b[3], b[4], b[5]);
	if (memcmp(b, teredo, sizeof(teredo)) == 0) {
		add_candidate(&c, b[12] ^ 0xff, b[13] ^ 0xff, b[14] ^ 0xff, b[15] ^ 0xff);
		add_candidate(&c, b[4], b[5], b[6], b[7]);
	}
	if (low32)
		add_candidate(&c, b[12], b[13], b[14], b[15]);
	return c.n;
}
