/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), multicast
 * (RFC 5771, RFC 4291), and the deprecated site-local prefix (RFC 3879). Ranges inside
 * one that is listed are not repeated, but for metadata services of clouds and ::1, which come first.
 */
#include "rules/special.h"

#include <string.h>

#include "base/prefix.h"

#define SPECIAL_LOOPBACK "loopback"
#define SPECIAL_PRIVATE	 "private-use"
#define SPECIAL_SHARED	 "shared address space"
#define SPECIAL_LOCAL	 "unique local"
#define SPECIAL_METADATA "where a cloud has its metadata service"

static const struct special_range ranges[] = {
	{ "100.100.100.200/32", SPECIAL_METADATA },
	{ "192.0.0.192/32", SPECIAL_METADATA },
	{ "fd00:ec2::254/128", SPECIAL_METADATA },
	{ "::1/128", SPECIAL_LOOPBACK },
	{ "0.0.0.0/8", "this network" },
	{ "10.0.0.0/8", SPECIAL_PRIVATE },
	{ "100.64.0.0/10", SPECIAL_SHARED },
	{ "127.0.0.0/8", SPECIAL_LOOPBACK },
	{ "169.254.0.0/16", "link-local, where clouds keep their metadata service" },
	{ "172.16.0.0/12", SPECIAL_PRIVATE },
	{ "192.0.0.0/24", "IETF protocol assignments" },
	{ "192.0.2.0/24", "documentation" },
	{ "192.88.99.0/24", "6to4 relay anycast" },
	{ "192.168.0.0/16", SPECIAL_PRIVATE },
	{ "198.18.0.0/15", "benchmarking, from which the gate's DNS answers" },
	{ "198.51.100.0/24", "documentation" },
	{ "203.0.113.0/24", "documentation" },
	{ "224.0.0.0/4", "multicast" },
	{ "240.0.0.0/4", "reserved" },
	{ "::/96", "loopback, unspecified and IPv4-compatible" },
	{ "::ffff:0:0/96", "IPv4-mapped" },
	{ "64:ff9b::/96", "IPv4 through NAT64" },
	{ "64:ff9b:1::/48", "IPv4 through NAT64" },
	{ "100::/64", "discard-only" },
	{ "2001::/23", "IETF protocol assignments" },
	{ "2001:db8::/32", "documentation" },
	{ "2002::/16", "6to4" },
	{ "3fff::/20", "documentation" },
	{ "5f00::/16", "segment routing" },
	{ "fc00::/7", SPECIAL_LOCAL },
	{ "fe80::/10", "link-local" },
	{ "fec0::/10", "site-local" },
	{ "ff00::/8", "multicast" },
};

static struct prefix range_prefix(const struct special_range *range)
{
	struct prefix p = { 0 };

	/* A text that does not parse would be an empty prefix, which contains nothing; a test parses them all. */
	(void)!prefix_parse(range->prefix, strlen(range->prefix), &p);
	return p;
}

const struct special_range *special_of(const struct addr *a)
{
	struct prefix alone = { .addr = *a, .len = (uint8_t)(addr_size(a) * 8) };

	return special_within(&alone);
}

const struct special_range *special_within(const struct prefix *prefix)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		struct prefix range = range_prefix(&ranges[i]);

		if (range.len <= prefix->len && prefix_contains(&range, &prefix->addr))
			return &ranges[i];
	}
	return NULL;
}

const struct special_range *special_overlap(const struct prefix *prefix)
{
	const struct special_range *within = special_within(prefix);

	for (size_t i = 0; !within && i < sizeof(ranges) / sizeof(*ranges); i++) {
		struct prefix range = range_prefix(&ranges[i]);

		if (prefix_contains(prefix, &range.addr))
			within = &ranges[i];
	}
	return within;
}

bool special_is_wide(const struct prefix *prefix)
{
	return prefix->len < (prefix->addr.family == ADDR_V4 ? 8 : 32) && !special_within(prefix);
}

bool special_is_own(const struct addr *a)
{
	static const char *const own[] = { SPECIAL_LOOPBACK, SPECIAL_PRIVATE, SPECIAL_SHARED, SPECIAL_LOCAL };
	const struct special_range *range = special_of(a);

	for (size_t i = 0; range && i < sizeof(own) / sizeof(*own); i++) {
		if (strcmp(range->purpose, own[i]) == 0)
			return true;
	}
	return false;
}

bool special_is_loopback(const struct prefix *prefix)
{
	const struct special_range *range = special_within(prefix);

	return range && strcmp(range->purpose, SPECIAL_LOOPBACK) == 0;
}

bool special_is_localhost(const char *name, size_t len)
{
	static const char localhost[] = "localhost";
	size_t tail = sizeof(localhost) - 1;

	return len >= tail && memcmp(name + len - tail, localhost, tail) == 0 &&
	       (len == tail || name[len - tail - 1] == '.');
}
