/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's routing says about an address (rtnetlink(7), RTM_GETROUTE). */
#ifndef PROXY_UPSTREAM_GUARD_ROUTE_H
#define PROXY_UPSTREAM_GUARD_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

struct guard_route {
	uint8_t type;	  /* RTN_UNICAST, RTN_LOCAL, … */
	uint8_t plen;	  /* with `match`: bits of the route's prefix; else those of the address */
	bool gateway;	  /* the next hop is a router */
	uint32_t ifindex; /* outgoing interface; 0: not told */
};

/* A non-blocking NETLINK_ROUTE socket, CLOEXEC; or -errno. */
int guard_route_open(void);

/*
 * Looks `a` up as a connect() of this process would; with `match`, tells the
 * route that matches (RTM_F_FIB_MATCH) instead of the one next hop that would
 * be taken. `seq` counts requests on `fd`. Returns 0; or -errno: of the look-up
 * (ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL for the respective route types) or of the socket.
 */
int guard_route_lookup(int fd, uint32_t *seq, const struct addr *a, bool match, struct guard_route *route);

#endif
