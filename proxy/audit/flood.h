/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is tried again and again. A sandbox that is refused all the time, or
 * looks up one name all the time, must not fill the log, and must not hide anything in it either:
 *
 * - The first attempt of each kind (door, protocol, reason, rule, port, and the name, or what
 *   stood in its place) has a record of its own, so that every name is there at least
 *   once; up to FLOOD_KINDS_MAX kinds of refused look-ups, of answered ones and of all else.
 * - So do FLOOD_BURST further ones, and one more each second, of each of the three.
 * - What is left is counted, and recorded once a second: a decision with `count` in place of what
 *   only one attempt has, FLOOD_SUMS kinds at a time, the others in turn. What has no kind of its own
 *   any more is summed up by door, protocol and reason. Nothing stays uncounted: the end of the job records all that is left.
 *
 * Here come denials, and look-ups that are answered: an answer carries nothing out, and the same one again
 * even less. A connection or request that is allowed always has a record of its own. Private to proxy/audit.
 */
#ifndef PROXY_AUDIT_FLOOD_H
#define PROXY_AUDIT_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

struct audit;
struct audit_decision;
struct flood;
struct event_base;

#define FLOOD_KINDS_MAX 4096
#define FLOOD_BURST	1000
#define FLOOD_RATE	1 /* a second */
#define FLOOD_FLUSH_S	1
#define FLOOD_SUMS	32

/* `base`: for the timer; NULL: none, flood_flush() has to be called. `a` outlives the result. NULL: ENOMEM. */
struct flood *flood_new(struct event_base *base, struct audit *a);
void flood_free(struct flood *d); /* NULL is fine */

/* True when this attempt is to have a record of its own; else it was counted. */
bool flood_take(struct flood *d, const struct audit_decision *attempt);

/* A record that says which process made an attempt is not worth it: the attempt was only counted, or that is to be expected. `conn` 0: a look-up. */
bool flood_hide(struct flood *d, uint64_t conn);

/* True while flood_hide() would only expect it: connection `conn` has no verdict yet, and others are being counted. */
bool flood_unsure(const struct flood *d, uint64_t conn);

/* Records sums: the next ones, or with `all` every one. What can't be written stays. */
void flood_flush(struct flood *d, bool all);

#endif
