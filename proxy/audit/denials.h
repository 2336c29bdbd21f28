/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Denials in a flood. A sandbox that is refused again and again must not fill
 * the log, and must not hide anything in it either:
 *
 * - The first denial of each kind (door, protocol, reason, rule, port, and the name, or what
 *   stood in its place) has a record of its own, so that every name that was refused is there at least
 *   once; up to DENIALS_KINDS_MAX kinds, look-ups and all others apart.
 * - So do DENIALS_BURST further ones, and one more each second; look-ups and all others apart.
 * - What is left is counted, and recorded once a second: a decision with `count` in place of what
 *   only one attempt has, DENIALS_SUMS kinds at a time, the others in turn. What has no kind of its own
 *   any more is summed up by door, protocol and reason. Nothing stays uncounted: the end of the job records all that is left.
 *
 * What is allowed never comes here. Private to proxy/audit.
 */
#ifndef PROXY_AUDIT_DENIALS_H
#define PROXY_AUDIT_DENIALS_H

#include <stdbool.h>
#include <stdint.h>

struct audit;
struct audit_decision;
struct denials;
struct event_base;

#define DENIALS_KINDS_MAX 4096
#define DENIALS_BURST	  1000
#define DENIALS_RATE	  1 /* a second */
#define DENIALS_FLUSH_S	  1
#define DENIALS_SUMS	  32

/* `base`: for the timer; NULL: none, denials_flush() has to be called. `a` outlives the result. NULL: ENOMEM. */
struct denials *denials_new(struct event_base *base, struct audit *a);
void denials_free(struct denials *d); /* NULL is fine */

/* True when this denial is to have a record of its own; else it was counted. */
bool denials_take(struct denials *d, const struct audit_decision *denial);

/* A record that says which process made an attempt is not worth it: the attempt was only counted, or that is to be expected. `conn` 0: a look-up. */
bool denials_hide(struct denials *d, uint64_t conn);

/* Records sums: the next ones, or with `all` every one. What can't be written stays. */
void denials_flush(struct denials *d, bool all);

#endif
