/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host QUIC packets that were dropped wanted: finds the server name in
 * the ClientHello of a client's Initial packets, also when it is spread over
 * several datagrams, and hands the packets back in groups of one name.
 *
 * For the record only: nothing is let through for what is found here. Bounded in
 * memory and time; beyond a bound packets have no name, and are counted all the same.
 */
#ifndef PROXY_AUDIT_QUIC_H
#define PROXY_AUDIT_QUIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

struct name;
struct packet;
struct quic;

#define QUIC_FLOWS_MAX 64      /* connections remembered; the one not seen for longest makes room */
#define QUIC_OPENS_MAX 200     /* packets decrypted in a second */
#define QUIC_HOLD_US   1000000 /* how long a packet waits for the rest of its ClientHello */

/* Packets with the same destination and name, to be counted. */
struct quic_group {
	struct endpoint dst;
	const struct name *name; /* NULL: none. Valid until the next call */
	uint64_t count, bytes;
};

/* NULL when out of memory. */
struct quic *quic_new(void);
void quic_free(struct quic *q);

/*
 * Takes a UDP packet. True when there is something to count, `out`: this packet,
 * and with it those of the same connection that waited. False when it waits:
 * its ClientHello is not complete yet. `now_us` is a monotonic clock.
 */
bool quic_take(struct quic *q, const struct packet *packet, uint64_t now_us, struct quic_group *out);

/*
 * The next group that has waited for QUIC_HOLD_US, with the name if what came so far shows one; false when there is
 * none (any more). UINT64_MAX as `now_us` releases all that wait.
 */
bool quic_release(struct quic *q, uint64_t now_us, struct quic_group *out);

/* True while packets wait, and quic_release() is due. */
bool quic_is_waiting(const struct quic *q);

#endif
