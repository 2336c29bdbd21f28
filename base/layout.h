/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a gate's two ends. Sandboxes have the same ones as a rule, since each lives in namespaces of its
 * own; who hands out addresses himself, such as docker's networks, may ask for others.
 */
#ifndef BASE_LAYOUT_H
#define BASE_LAYOUT_H

#include <stdbool.h>

#include "base/addr.h"

#define GATE_ADDR4    "10.200.0.1"
#define GATE_SANDBOX4 "10.200.0.2"
#define GATE_PLEN4    30
#define GATE_ADDR6    "fd6e:6574:6761:7465::1"
#define GATE_SANDBOX6 "fd6e:6574:6761:7465::2"
#define GATE_PLEN6    64

struct gate_layout {
	struct addr gate4, sandbox4;
	struct addr gate6, sandbox6;
	uint8_t plen4, plen6; /* of the network that both are in */
};

/* The one above. */
void layout_usual(struct gate_layout *l);

/*
 * True when both ends can be told apart, are in one network each and can be a host's: neither the network's own address nor its
 * broadcast address, neither loopback nor multicast, and clear of the addresses that the gate's DNS gives out.
 */
bool layout_ok(const struct gate_layout *l);

/* The first address of the network that `a` is in, and the last. */
struct addr layout_network(const struct addr *a, unsigned plen);
struct addr layout_broadcast(const struct addr *a, unsigned plen);

#endif
