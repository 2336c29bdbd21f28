/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accountant: sees each record as it is written and each byte as it is sent, in that order, and fails
 *
 *   - when netgate connects to an address, or sends a byte to one, without an allowing decision on record before
 *     that names the host that the address was resolved for (or the address itself);
 *   - when a byte is sent, or anything is allowed, on a connection after a denial on it;
 *   - when a close record has other counts than what was sent and read, or an allowed connection has none, or two;
 *   - when upstream gets more HTTP requests than were allowed, or one for another host, or TLS for another host;
 *   - when `seq` has a hole, a gap record another count than was lost, or the end record other totals than the records.
 */
#ifndef TESTS_SCENARIO_LEDGER_H
#define TESTS_SCENARIO_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct json_t;
struct tube;

/* Begins a log anew. */
void ledger_reset(void);

/* A line that is in the log now, or one that could not be written. */
void ledger_record(const void *line, size_t len);
void ledger_lost(const void *line, size_t len);

/* `addr` was resolved for `host`. */
void ledger_resolved(const char *host, const struct addr *addr);

/*
 * Who counts netgate's instructions sets this: then what was sent is held against the records at the end of a leg alone, and not
 * at each send as well, which takes netgate's own parser.
 */
extern bool ledger_at_end;

/* Netgate connects to an upstream; it is about to send `n` bytes to one; it has sent them. */
void ledger_connect(const struct endpoint *peer);
void ledger_sent(const struct tube *t, size_t n);
void ledger_requests(const struct tube *t);

/* Every connection is over: checks what can only be known at the end. */
void ledger_finish(void);

/* Records so far, and one of them. */
size_t ledger_size(void);
struct json_t *ledger_at(size_t i);

/* A member as text; "" when the record has none. Valid until the next call. */
const char *ledger_text(const struct json_t *record, const char *key);

/* Shows the records on stderr. */
void ledger_show(void);

#endif
