/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 and IPv6 addresses and endpoints: strict parsing, formatting, and what is embedded in an IPv6 address. */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_STRLEN	  46	       /* longest text of an address, with the NUL */
#define ENDPOINT_STRLEN	  (46 + 2 + 6) /* "[addr]:65535", with the NUL */
#define ADDR_EMBEDDED_MAX 3	       /* most IPv4 addresses found in one IPv6 address */

enum addr_family { ADDR_NONE = 0, ADDR_V4 = 4, ADDR_V6 = 6 };

struct addr {
	uint8_t family; /* enum addr_family */
	uint8_t b[16];	/* network order; v4 in b[0..3], the rest zero */
};

struct endpoint {
	struct addr addr;
	uint16_t port; /* host order */
};

/* Bytes of an address of this family: 4, 16, or 0 for ADDR_NONE. */
size_t addr_size(const struct addr *a);

/* An IPv4 address from a number in host order. */
struct addr addr_v4(uint32_t host_order);

/*
 * Parses exactly `len` bytes. IPv4 must be canonical dotted quad: four
 * decimal parts, no leading zeros (RFC 6943 §3.1.1); IPv6 as RFC 4291 §2.2,
 * without zone and without brackets. Returns 0, or -1 for anything else.
 */
int addr_parse(const char *text, size_t len, struct addr *out);

/* Writes the text (IPv6 as RFC 5952) and returns `buf`. "-" for ADDR_NONE. */
const char *addr_format(const struct addr *a, char buf[static ADDR_STRLEN]);

/* "192.0.2.1:443" or "[2001:db8::1]:443"; returns `buf`. */
const char *endpoint_format(const struct endpoint *e, char buf[static ENDPOINT_STRLEN]);

/*
 * "IP", "IP:PORT", "[IP6]:PORT" or "IP6"; `default_port` where none is given. A port is
 * 1 to 65535 without leading zeros; brackets only around IPv6 and only with a port. Returns 0 or -1.
 */
int endpoint_parse(const char *text, size_t len, uint16_t default_port, struct endpoint *out);

/* Same family and same bytes: v4-mapped IPv6 is not equal to its IPv4 address. */
bool addr_equal(const struct addr *a, const struct addr *b);

/* From a socket address; AF_INET6 v4-mapped stays IPv6. Returns 0, or -1 for another family. */
int endpoint_from_sockaddr(const struct sockaddr *sa, struct endpoint *out);

/* To a socket address; returns its length. */
socklen_t endpoint_to_sockaddr(const struct endpoint *e, struct sockaddr_storage *ss);

/*
 * The IPv4 addresses that an IPv6 address may carry: v4-mapped and
 * v4-compatible (RFC 4291 §2.5.5; not :: and ::1), v4-translated ::ffff:0:0/96
 * (RFC 2765 §2.1), NAT64 64:ff9b::/96 (RFC 6052) and 64:ff9b:1::/48 (RFC 8215;
 * the embedding of RFC 6052 §2.2 for /48 and the last 32 bits are both
 * candidates), 6to4 2002::/16 (RFC 3056), Teredo 2001::/32 (RFC 4380, the
 * obfuscated client address and the server), ISATAP interface identifiers
 * (RFC 5214 §6.1). Fills at most `max` of them and returns how many it filled;
 * ADDR_EMBEDDED_MAX is always enough. 0 for a plain address.
 */
size_t addr_embedded_v4(const struct addr *a, struct addr *out, size_t max);

#endif
