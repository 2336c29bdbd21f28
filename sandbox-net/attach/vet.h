/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known of a sandbox that somebody else made, before it is given a gate. */
#ifndef SANDBOX_NET_VET_H
#define SANDBOX_NET_VET_H

#include <stdint.h>

struct err;
struct gate_tap;
struct target;

/*
 * Refuses S when it has a network already (`tap` as for gate_check_empty()); and, unless the risk is among `risks` (bits of
 * enum attach_risk), when a process in it could get at the gate: one with CAP_NET_ADMIN in the user namespace that the gate will belong to, which is
 * enough to make links and change rules in the gate's namespace. *notes gets what is worth knowing (bits of enum attach_note).
 * Returns 0 or -1.
 */
int vet_sandbox(const struct target *t, const struct gate_tap *tap, uint32_t risks, uint32_t *notes, struct err *err);

#endif
