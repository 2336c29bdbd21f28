/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's side of base/handoff.h: from a built gate to a proxy that is in force. */
#ifndef SANDBOX_NET_HANDOFF_H
#define SANDBOX_NET_HANDOFF_H

#define HANDOFF_WAIT_MS 20000 /* for each answer of the proxy */

#include <stdbool.h>

#include "base/resource.h"

struct err;
struct gate_plan;

/*
 * Builds the gate of S (`s_netns`) by the plan, hands its sockets to the proxy at `proxy`,
 * proves that this proxy is S's only way out and has it armed. `holder` is for the
 * record: what holds the command to each of its limits; NULL: it has none. Returns 0; -1
 * with the gate's sockets closed on this side, and S without a way out. *built (NULL: nobody asks): the gate's link is in S, or was until
 * the proxy gave its sockets up.
 */
int handoff_run(int proxy, int s_netns, const struct gate_plan *plan, const enum resource_holder *holder, bool *built,
		struct err *err);

#endif
