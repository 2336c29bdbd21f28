/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S as a piece of wire between a TAP device and the gate.
 *
 * What comes in on one of tap0 and eth0 goes out of the other, before anything
 * of S's own stack sees it (an ingress hook with nft's fwd): no bridge, so no
 * table of addresses that a guest could fill, and every frame of it arrives in
 * G as it was sent, where it is judged like any other. S's stack has no
 * address and no route, and rules that let nothing of it leave but over lo.
 */
#ifndef SANDBOX_NET_WIRE_H
#define SANDBOX_NET_WIRE_H

#include <stdint.h>

#include "base/handoff.h"

struct err;
struct gate_plan;
struct gate_tap;
struct stack_ends;

/*
 * In S: makes the TAP device and joins it to eth0, which comes up last. Returns 0 or -1.
 */
int wire_build(const struct gate_tap *tap, struct err *err);

/*
 * In S: asks what probe_gate() asks, through the TAP device of the plan. A network namespace of its own stands in for the guest,
 * with the guest's MAC and IP addresses, and ends when this returns. The caller
 * moves there: this is for a process that ends. Returns 0 or -1.
 */
int wire_probe(const struct gate_plan *plan, const struct stack_ends *ends, const uint8_t nonce[HANDOFF_NONCE],
	       struct err *err);

#endif
