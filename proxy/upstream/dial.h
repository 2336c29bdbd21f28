/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dials what a verdict allowed: resolve once, guard each address, then happy
 * eyeballs (RFC 8305: resolution delay 50 ms, connection attempt delay
 * 250 ms, families interleaved) across exactly the guarded addresses. Writes a
 * `dial` record for each address tried or refused, before its effect is used (of
 * several without a route, for the first of their family).
 */
#ifndef PROXY_UPSTREAM_DIAL_H
#define PROXY_UPSTREAM_DIAL_H

#include <stdint.h>

#include "base/addr.h"
#include "base/name.h"
#include "rules/reason.h"

struct audit;
struct dial;
struct event_base;
struct guard;
struct policy;
struct policy_rule;
struct resolver;

#define DIAL_TIMEOUT_S 10 /* for all of it: lookup and every address */

struct dialer {
	struct event_base *base;
	struct resolver *resolver;
	struct guard *guard;
	struct audit *audit;
	const struct policy *policy;
	/*
	 * Attempts of all dials beside the first one of each, and how many there may be: each takes a descriptor. At the
	 * bound, a dial tries its addresses one after the other, the next once one has failed or there is room.
	 */
	uint64_t races, races_max;
};

struct dial_target {
	uint64_t conn;
	const struct name *host; /* NULL: dial `addr` (an address rule) */
	struct addr addr;
	uint16_t port;
	const struct policy_rule *rule; /* may exempt addresses from the guard; or NULL */
};

/*
 * Called once, never from inside dial_start(). fd >= 0: a connected,
 * non-blocking, CLOEXEC socket with TCP_NODELAY and SO_KEEPALIVE (first probe
 * after 60 s), now the callee's; `reason` is CONNECTED and `peer` its far end. fd < 0: `reason`
 * says why (CONNECT_FAILED, DENIED_BY_RULE, PRIVATE_ADDRESS, DNS_FAILED, LOG_UNAVAILABLE) and `peer` means nothing.
 * When addresses failed for different reasons, the first of these that occurred wins.
 */
typedef void dial_fn(void *arg, int fd, enum reason reason, const struct endpoint *peer);

/* Copies what it needs of `target`. `dialer` is borrowed and outlives the dial. Returns NULL when out of memory. */
struct dial *dial_start(struct dialer *dialer, const struct dial_target *target, dial_fn *done, void *arg);

/* No callback after this; every attempt is closed and recorded as "cancelled". Not allowed in or after the callback. */
void dial_cancel(struct dial *d);

#endif
