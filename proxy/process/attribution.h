/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process made an attempt: at the end of the loop's turn it looks where the kernel notes the senders of first packets
 * (trace.h), where that may be believed and is all there is to say; else it asks the finder (finder.h), and writes a
 * `process` record when the answer comes. No decision waits for it, and
 * nothing that is allowed either. Only the socket of a connection that is over is kept open
 * until its answer is there, at most twice ATTRIBUTION_HOLD_MS: once a connection is reset, the kernel no longer knows whose it was.
 *
 * At most ATTRIBUTION_MAX questions are open at a time; what comes beyond is counted, and recorded as `unknown`.
 */
#ifndef PROXY_PROCESS_ATTRIBUTION_H
#define PROXY_PROCESS_ATTRIBUTION_H

#include <stdint.h>

#include "base/addr.h"

struct attribution;
struct audit;
struct event_base;

#define ATTRIBUTION_MAX	    64
#define ATTRIBUTION_HOLD_MS 50
#define ATTRIBUTION_WAIT_MS 2000 /* for an answer; then it is `unknown` */

/* Both stay the caller's. NULL when out of memory. */
struct attribution *attribution_new(struct event_base *base, struct audit *audit);

/* Closes what it holds. NULL is fine. */
void attribution_free(struct attribution *a);

/* Whom to ask: takes `fd`, one end of a SOCK_SEQPACKET pair, non-blocking. Before, every question is `unknown`. */
void attribution_use(struct attribution *a, int fd);

/* Asks whose connection `conn` is. */
void attribution_tcp(struct attribution *a, uint64_t conn, const struct endpoint *src, const struct endpoint *dst);

/* Asks whose socket sent a datagram; not again for the same source within a second. */
void attribution_udp(struct attribution *a, const struct endpoint *src, const struct endpoint *dst);

/* Takes the socket of a connection that is over, and closes it: at once, or when it is known whose it was. */
void attribution_close(struct attribution *a, uint64_t conn, int fd);

/* The sandbox is gone: records what is open still as `unknown`, and closes what is held. Nothing is asked from here on. */
void attribution_finish(struct attribution *a);

#endif
