/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges that the guard refuses.
 *
 * Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890
 * and its updates, as of 2025), every entry that is not "globally reachable";
 * the multicast registries; and metadata services at public-looking addresses.
 * Stricter than the registries, on purpose:
 *
 *  - 192.0.0.0/24 and 2001::/23 are refused whole, also their few anycast
 *    assignments (PCP, TURN, AMT …), which lead to a box of the local network;
 *  - 192.88.99.0/24 and 2002::/16, 6to4, are deprecated (RFC 7526) and lead to
 *    whatever relay is nearest;
 *  - of IPv6, only what IANA hands out as global unicast (2000::/3) can pass, so
 *    that a range that gets a special meaning later is refused already. NAT64's
 *    well-known prefix is the one exception; the IPv4 address in it is judged.
 *
 * The gate's own ranges and most metadata addresses (169.254.169.254,
 * 100.100.100.200, 192.0.0.192, fd00:ec2::254) lie inside the ranges below.
 */
#include "proxy/upstream/guard_table.h"

#include "base/prefix.h"

struct range {
	struct prefix prefix;
	const char *label;
};

#define V4(plen, label, ...) \
	{ \
		{ { ADDR_V4, { __VA_ARGS__ } }, plen }, label \
	}
#define V6(plen, label, ...) \
	{ \
		{ { ADDR_V6, { __VA_ARGS__ } }, plen }, label \
	}

/* The first match names the range: a more specific one stands before the one that holds it. */
static const struct range refused[] = {
	V4(8, "0.0.0.0/8 this network", 0),
	V4(8, "10.0.0.0/8 private-use", 10),
	V4(10, "100.64.0.0/10 shared address space", 100, 64),
	V4(8, "127.0.0.0/8 loopback", 127),
	V4(32, "168.63.129.16/32 cloud platform service", 168, 63, 129, 16),
	V4(16, "169.254.0.0/16 link-local", 169, 254),
	V4(12, "172.16.0.0/12 private-use", 172, 16),
	V4(24, "192.0.0.0/24 IETF protocol assignments", 192, 0, 0),
	V4(24, "192.0.2.0/24 documentation", 192, 0, 2),
	V4(24, "192.88.99.0/24 6to4 relay anycast", 192, 88, 99),
	V4(16, "192.168.0.0/16 private-use", 192, 168),
	V4(15, "198.18.0.0/15 benchmarking", 198, 18),
	V4(24, "198.51.100.0/24 documentation", 198, 51, 100),
	V4(24, "203.0.113.0/24 documentation", 203, 0, 113),
	V4(4, "224.0.0.0/4 multicast", 224),
	V4(32, "255.255.255.255/32 limited broadcast", 255, 255, 255, 255),
	V4(4, "240.0.0.0/4 reserved", 240),

	V6(128, "::/128 unspecified", 0),
	V6(128, "::1/128 loopback", [15] = 1),
	V6(96, "::/96 IPv4-compatible", 0),
	V6(96, "::ffff:0.0.0.0/96 IPv4-mapped", [10] = 0xff, [11] = 0xff),
	V6(96, "::ffff:0:0:0/96 IPv4-translated", [8] = 0xff, [9] = 0xff),
	V6(48, "64:ff9b:1::/48 local-use NAT64", 0, 0x64, 0xff, 0x9b, 0, 1),
	V6(64, "100::/64 discard-only", 0x01),
	V6(64, "100:0:0:1::/64 dummy prefix", 0x01, [7] = 1),
	V6(32, "2001::/32 Teredo", 0x20, 0x01),
	V6(48, "2001:2::/48 benchmarking", 0x20, 0x01, 0, 0x02),
	V6(28, "2001:10::/28 ORCHID", 0x20, 0x01, 0, 0x10),
	V6(28, "2001:20::/28 ORCHIDv2", 0x20, 0x01, 0, 0x20),
	V6(23, "2001::/23 IETF protocol assignments", 0x20, 0x01),
	V6(32, "2001:db8::/32 documentation", 0x20, 0x01, 0x0d, 0xb8),
	V6(16, "2002::/16 6to4", 0x20, 0x02),
	V6(20, "3fff::/20 documentation", 0x3f, 0xff),
	V6(16, "5f00::/16 SRv6 segment identifiers", 0x5f),
	V6(7, "fc00::/7 unique-local", 0xfc),
	V6(10, "fe80::/10 link-local", 0xfe, 0x80),
	V6(10, "fec0::/10 site-local", 0xfe, 0xc0),
	V6(8, "ff00::/8 multicast", 0xff),
};

static const struct prefix global_unicast = { { ADDR_V6, { 0x20 } }, 3 };
static const struct prefix nat64 = { { ADDR_V6, { 0, 0x64, 0xff, 0x9b } }, 96 };

const char *guard_table_find(const struct addr *a)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (prefix_contains(&refused[i].prefix, a))
			return refused[i].label;
	if (a->family == ADDR_V6 && !prefix_contains(&global_unicast, a) && !prefix_contains(&nat64, a))
		return "outside 2000::/3, not global unicast";
	return NULL;
}
