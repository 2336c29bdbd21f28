/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of the link between G and S, and the network stack at the sandbox's. */
#ifndef SANDBOX_NET_STACK_H
#define SANDBOX_NET_STACK_H

#include "sandbox-net/gate/netlink.h"

struct err;
struct gate_plan;

/* One end, and what each side needs to know of both. */
struct stack_end {
	struct netlink_end link;
	struct addr v4, v6;
	unsigned plen4, plen6; /* of its network; 32 and 128: there is nobody but the peer */
};

struct stack_ends {
	struct stack_end gate, sandbox;
};

/* What a plan says; its texts are borrowed. Returns 0; -1 for addresses that are none for a gate. */
int stack_ends(struct stack_ends *ends, const struct gate_plan *plan, struct err *err);

/* Turns a failed request (-errno) into the error that says which one it was. Returns 0 or -1. */
int stack_check(int r, const char *what, struct err *err);

/* Addresses of `own` on link `index`, and the way to `peer` without asking for it. Returns 0 or -1. */
int stack_set_addresses(struct netlink *nl, int index, const struct stack_end *own, const struct stack_end *peer,
			struct err *err);

/*
 * Makes the present network namespace the sandbox's side of the link, whose end gets addresses and
 * default routes, and carries packets when this returns. Returns 0 or -1.
 */
int stack_build(const struct stack_ends *ends, struct err *err);

#endif
