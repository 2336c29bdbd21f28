/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that G dropped: reads NFLOG, aggregates by (reason, protocol,
 * destination, port, QUIC name), and writes `drop` records: the first of its kind at
 * once, later ones summed up and flushed every DROPS_FLUSH_S seconds and at the end.
 * A QUIC packet whose ClientHello is not complete waits for the rest of it (quic.h).
 *
 * Exactness: NFLOG carries only a rate-limited part of a flood; G's counters
 * have all. drops_reconcile() records the difference for each reason, so that
 * the counts on record add up to what G counted.
 */
#ifndef PROXY_AUDIT_DROPS_H
#define PROXY_AUDIT_DROPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/handoff.h"
#include "rules/reason.h"

struct audit;
struct drops;
struct event_base;
struct quic;

#define DROPS_FLUSH_S	10
#define DROPS_SETTLE_MS 50
#define DROPS_TABLE_MAX 4096 /* distinct keys between two flushes; what does not fit is left to the reconciliation */

/*
 * Reads from `nflog_fd` (HANDOFF_NFLOG; stays the caller's) on `base`. `quic` finds the names; borrowed, for this one
 * alone and outliving it. NULL with errno.
 */
struct drops *drops_new(struct event_base *base, int nflog_fd, struct audit *audit, struct quic *quic);
void drops_free(struct drops *d);

/* Reads what waits in the socket and writes every pending count. */
void drops_flush(struct drops *d);

/*
 * `packets` and `bytes` are G's counters (absolute, GATE_COUNTER order), `accepts` the connections accepted.
 * Writes, per reason, what they have more than the records so far. May be called at any time and often:
 * NFLOG delivers late, so that while the sandbox lives only what an earlier call already saw counted is held
 * to be missing. With `last` (the sandbox is gone) waits up to DROPS_SETTLE_MS for what is still queued, writes the whole
 * difference, and a half_open drop for the SYNs above `accepts`; nothing is read from the socket after that.
 */
void drops_reconcile(struct drops *d, const uint64_t *packets, const uint64_t *bytes, uint64_t accepts, bool last);

/*
 * Records the datagrams to a service of the gate that G let through (`counted`) and the service did not take: nobody read
 * or understood them, but they were attempts.
 */
void drops_record_untaken(struct audit *audit, uint16_t port, enum reason reason, uint64_t counted, uint64_t taken);

#endif
