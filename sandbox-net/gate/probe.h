/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the gate, from inside S, whether it is ours. */
#ifndef SANDBOX_NET_PROBE_H
#define SANDBOX_NET_PROBE_H

#include "base/handoff.h"

struct err;
struct gate_layout;

#define PROBE_WAIT_MS 5000
#define PROBE_ADDR4   "198.51.100.1" /* addresses that exist nowhere (RFC 5737, RFC 3849) */
#define PROBE_ADDR6   "2001:db8::1"

/*
 * In the present network namespace: connects to PROBE_ADDR4 and PROBE_ADDR6, and sends a datagram to the gate's
 * port 53 over both families. Each must bring back exactly `nonce` within PROBE_WAIT_MS. Returns 0 or -1.
 */
int probe_gate(const struct gate_layout *layout, const uint8_t nonce[HANDOFF_NONCE], struct err *err);

#endif
