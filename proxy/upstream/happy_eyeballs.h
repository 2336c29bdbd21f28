/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happy Eyeballs (RFC 8305) as pure state: which address to try next, and
 * when. No socket, no clock: the caller says what happened at what time.
 */
#ifndef PROXY_UPSTREAM_HAPPY_EYEBALLS_H
#define PROXY_UPSTREAM_HAPPY_EYEBALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define HAPPY_ADDRS_MAX	    32	   /* addresses of one family; more are left out */
#define HAPPY_IN_FLIGHT_MAX 8	   /* attempts at once; the next one waits until one has failed */
#define HAPPY_RESOLUTION_US 50000  /* Resolution Delay, RFC 8305 §3 */
#define HAPPY_ATTEMPT_US    250000 /* Connection Attempt Delay, RFC 8305 §5 */
#define HAPPY_FOREVER	    UINT64_MAX

struct happy_family {
	struct addr addrs[HAPPY_ADDRS_MAX]; /* in the server's order, without duplicates */
	uint8_t n, tried;
	bool answered; /* the look-up of this family is over */
};

/* All zero is the state before any answer. The fields are private. */
struct happy {
	struct happy_family v6, v4;
	struct addr last;  /* the attempt that was started last; ADDR_NONE before the first */
	uint64_t v4_at;	   /* when the IPv4 answer came */
	uint64_t earliest; /* of the next attempt */
	uint8_t in_flight;
};

enum happy_step {
	HAPPY_START, /* try the address now */
	HAPPY_WAIT,  /* nothing to do before the time given, an answer or a failure */
	HAPPY_DONE   /* every address has failed, and no more will come */
};

/* The answer for `family` came at `now` (microseconds of any steady clock): `n` addresses that may be tried, perhaps 0. */
void happy_answer(struct happy *h, enum addr_family family, const struct addr *addrs, size_t n, uint64_t now);

/*
 * What to do at `now`. HAPPY_START: *out is the address, counted as in flight
 * from now on; ask again at once. HAPPY_WAIT: *wait_us is the time until something is due, or
 * HAPPY_FOREVER. The first address is IPv6 if there is one in time, then the families alternate (RFC 8305 §4).
 */
enum happy_step happy_next(struct happy *h, uint64_t now, struct addr *out, uint64_t *wait_us);

/* The attempt at `a` failed. If it was the last one to start, the next need not wait. */
void happy_failed(struct happy *h, const struct addr *a);

#endif
