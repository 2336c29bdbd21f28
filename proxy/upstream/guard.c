/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address guard: first what the address is (guard_table), then where this
 * host would send it (guard_route).
 *
 * On-link. A public address that the host reaches without a router is a
 * neighbour: another tenant's machine, a load balancer's back end, a switch. It
 * is refused. But a tunnel's route to the world (tun, WireGuard, PPP) has no
 * gateway either, so a route without one counts as on-link only when its prefix
 * is narrower than a default route, or the halves of one that VPN clients set
 * up (0.0.0.0/1 and 128.0.0.0/1, 2000::/3): no network that the host is part of
 * is that wide. A narrower gateway-less route over a tunnel is refused: it leads
 * to that tunnel's own network.
 *
 * What passed is believed for a second: a client opens connections to one address in bursts, and routes change
 * between a look and its use anyway. A refusal is never remembered.
 */
#include "proxy/upstream/guard.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "proxy/upstream/guard_route.h"
#include "proxy/upstream/guard_table.h"

#define EMBEDDED_MAX 4
#define PASSED_MAX   16 /* addresses that passed lately */
#define PASSED_US    US_PER_S
#define WIDE_PLEN4   1 /* half of all */
#define WIDE_PLEN6   3 /* all of the global unicast space */

struct guard {
	int fd; /* NETLINK_ROUTE */
	uint32_t seq;
	struct {
		struct addr addr;
		uint64_t until; /* monotonic microseconds */
	} passed[PASSED_MAX];
	size_t passed_at; /* the next one to be replaced */
};

struct guard *guard_new(struct err *err)
{
	struct guard *g = calloc(1, sizeof(*g));

	if (!g) {
		err_set_errno(err, ENOMEM, "address guard");
		return NULL;
	}
	g->fd = guard_route_open();
	if (g->fd < 0) {
		err_set_errno(err, -g->fd, "cannot open a NETLINK_ROUTE socket");
		free(g);
		return NULL;
	}
	return g;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	close(g->fd);
	free(g);
}

bool guard_is_public(const struct addr *a, char detail[static GUARD_DETAIL_MAX])
{
	struct addr embedded[EMBEDDED_MAX];
	size_t n = addr_embedded_v4(a, embedded, EMBEDDED_MAX);
	char text[ADDR_STRLEN];
	const char *label;

	detail[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		label = guard_table_find(&embedded[i]);
		if (label) {
			snprintf(detail, GUARD_DETAIL_MAX, "embeds %s: %s", addr_format(&embedded[i], text), label);
			return false;
		}
	}
	label = a->family == ADDR_NONE ? "no address" : guard_table_find(a);
	if (label)
		snprintf(detail, GUARD_DETAIL_MAX, "%s", label);
	return !label;
}

/* What the routes say: an address of the host, a neighbour, or neither. */
static enum guard_result check_route(struct guard *g, const struct addr *a, char detail[static GUARD_DETAIL_MAX])
{
	uint8_t wide = a->family == ADDR_V4 ? WIDE_PLEN4 : WIDE_PLEN6;
	struct guard_route route;
	int r = guard_route_lookup(g->fd, &g->seq, a, false, &route);
	const char *what = NULL;

	/* Only without a gateway does the prefix matter, and only the matching route, not the next hop, tells it. */
	if (r == 0 && route.type == RTN_UNICAST && !route.gateway)
		r = guard_route_lookup(g->fd, &g->seq, a, true, &route);
	if (r < 0) {
		const char *name = strerrorname_np(-r);

		snprintf(detail, GUARD_DETAIL_MAX, "%s", name ? name : "route look-up failed");
		return GUARD_UNREACHABLE;
	}
	if (route.type == RTN_LOCAL)
		what = "an address of this host";
	else if (route.type == RTN_BROADCAST || route.type == RTN_MULTICAST || route.type == RTN_ANYCAST)
		what = "a broadcast, multicast or anycast address of a network of this host";
	else if (route.type != RTN_UNICAST)
		what = "not a unicast route";
	else if (!route.gateway && route.plen > wide)
		what = "on-link: reached without a gateway";
	if (!what)
		return GUARD_PASS;
	snprintf(detail, GUARD_DETAIL_MAX, "%s", what);
	return GUARD_PRIVATE;
}

static bool passed_lately(const struct guard *g, const struct addr *a)
{
	uint64_t now = clock_tick_us();

	for (size_t i = 0; i < PASSED_MAX; i++)
		if (now < g->passed[i].until && addr_equal(&g->passed[i].addr, a))
			return true;
	return false;
}

static void remember(struct guard *g, const struct addr *a)
{
	g->passed[g->passed_at].addr = *a;
	g->passed[g->passed_at].until = clock_tick_us() + PASSED_US;
	g->passed_at = (g->passed_at + 1) % PASSED_MAX;
}

enum guard_result guard_check(struct guard *g, const struct addr *a, char detail[static GUARD_DETAIL_MAX])
{
	struct addr embedded[EMBEDDED_MAX];
	char why[GUARD_DETAIL_MAX];
	enum guard_result result;
	char text[ADDR_STRLEN];
	size_t n;

	if (!guard_is_public(a, detail))
		return GUARD_PRIVATE;
	if (passed_lately(g, a))
		return GUARD_PASS;
	/* Through NAT64 the host and its neighbours could be reached by their IPv4 addresses; no IPv4 route is no harm. */
	n = addr_embedded_v4(a, embedded, EMBEDDED_MAX);
	for (size_t i = 0; i < n; i++) {
		if (check_route(g, &embedded[i], why) != GUARD_PRIVATE)
			continue;
		snprintf(detail, GUARD_DETAIL_MAX, "embeds %s: %.60s", addr_format(&embedded[i], text), why);
		return GUARD_PRIVATE;
	}
	result = check_route(g, a, detail);
	if (result == GUARD_PASS)
		remember(g, a);
	return result;
}
