/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address guard: which addresses may be dialled at all. Each address that
 * a name resolves to, and each literal that an address rule lets through,
 * passes here, and exactly the checked address is dialled.
 */
#ifndef PROXY_UPSTREAM_GUARD_H
#define PROXY_UPSTREAM_GUARD_H

#include <stdbool.h>

#include "base/addr.h"

struct err;
struct guard;

#define GUARD_DETAIL_MAX 96

/*
 * Opens the NETLINK_ROUTE socket through which each dial asks the kernel
 * whether an address is local to the host or on-link; must be called before
 * the process loses the right to open sockets of that family. NULL with an error.
 */
struct guard *guard_new(struct err *err);
void guard_free(struct guard *g);

/*
 * True when `a` is a public unicast address: not in the IANA IPv4/IPv6
 * special-purpose registries as not globally reachable, not multicast, not a
 * cloud metadata address, none of the gate's own, and the same for every IPv4
 * address that it embeds. Of IPv6, only 2000::/3 and NAT64 with a public IPv4
 * address pass; the other forms that carry an IPv4 address never do. Pure.
 * When false, `detail` says why ("169.254.0.0/16 link-local", "embeds
 * 10.0.0.1: 10.0.0.0/8 private-use"); else it is "".
 */
bool guard_is_public(const struct addr *a, char detail[static GUARD_DETAIL_MAX]);

enum guard_result {
	GUARD_PASS,
	GUARD_PRIVATE,	  /* not public, an address of the host, or on-link */
	GUARD_UNREACHABLE /* the kernel has no way there, or could not be asked: nothing to dial */
};

/*
 * guard_is_public(), and a route look-up (RTM_GETROUTE): GUARD_PRIVATE when the
 * host itself has the address or reaches it without a gateway, unless by the
 * default route (of a tunnel, say). What passed does so again for a second without another look. Anything but GUARD_PASS is a refusal, with
 * the reason in `detail`; for GUARD_UNREACHABLE that is an errno name.
 */
enum guard_result guard_check(struct guard *g, const struct addr *a, char detail[static GUARD_DETAIL_MAX]);

#endif
