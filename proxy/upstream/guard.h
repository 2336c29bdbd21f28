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
 * address that it embeds. Pure. When false, `detail` says why
 * ("169.254.0.0/16 link-local", "embeds 10.0.0.1: 10.0.0.0/8 private-use").
 */
bool guard_is_public(const struct addr *a, char detail[static GUARD_DETAIL_MAX]);

/*
 * guard_is_public(), and a route look-up (RTM_GETROUTE): refused when the
 * host itself has the address or reaches it without a gateway on a shared
 * link. An error of the look-up, no route included, is a refusal.
 */
bool guard_check(struct guard *g, const struct addr *a, char detail[static GUARD_DETAIL_MAX]);

#endif
