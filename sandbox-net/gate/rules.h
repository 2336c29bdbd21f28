/* SPDX-License-Identifier: Apache-2.0 */
/* The packet rules of a gate, and how they are loaded. What they are is in rules_text.gen.c. */
#ifndef SANDBOX_NET_RULES_H
#define SANDBOX_NET_RULES_H

#include <stdint.h>

struct err;
struct gate_layout;

enum rules_set {
	/* The complete ruleset of a gate's network namespace. */
	RULES_GATE,
	/* What is added for frames that are not IP, or not for gw0. Loaded after RULES_GATE, when gw0 is there. */
	RULES_FRAMES,
	/*
	 * What is added for the guest of a virtual machine, whose own kernel, with any
	 * frame that it can make, is at the other end. Loaded after both.
	 */
	RULES_GUEST,
	/*
	 * For a sandbox (not a gate) in which a resolver of a container engine's own waits at 127.0.0.11, and may ask on from
	 * elsewhere: what is sent there is the gate's, and nothing reaches that resolver. Needs connection tracking.
	 */
	RULES_RESOLVER,
	/* For a sandbox: IP over lo and the gate's link alone, no ARP. */
	RULES_ALONE,
	/* For a sandbox that is a virtual machine's: frames between RULES_TAP and the link, nothing else. */
	RULES_WIRE,
	RULES_SETS
};

/* What differs from gate to gate. */
enum rules_variable {
	RULES_GATE4,
	RULES_GATE6,
	RULES_SANDBOX4,
	RULES_SANDBOX6,
	RULES_NETWORK4,
	RULES_BROADCAST4,
	RULES_LINK_INDEX, /* the sandbox's end */
	RULES_TAP,
	RULES_TAP_INDEX,
	RULES_VARIABLES
};

#define RULES_VALUE_MAX 16 /* bytes: an IPv6 address, the name of a link */

/* Their values, as they are in the kernel's messages. Only those that a set has need be given. */
struct rules_values {
	uint8_t v[RULES_VARIABLES][RULES_VALUE_MAX];
};

/* Gives the addresses. */
void rules_set_layout(struct rules_values *values, const struct gate_layout *layout);

/* Gives the name of a link (RULES_LINK, RULES_TAP), shorter than IFNAMSIZ, or its index. */
void rules_set_name(struct rules_values *values, enum rules_variable variable, const char *name);
void rules_set_index(struct rules_values *values, enum rules_variable variable, int index);

/* Adds a set to the present network namespace, all of it or nothing. Returns 0 or -1. */
int rules_load(enum rules_set set, const struct rules_values *values, struct err *err);

/*
 * Lets the present network namespace answer every refused packet: by default
 * the kernel sends one destination six ICMP errors and then one a second, so
 * that most refusals would look like silence. RULES_GATE has a limit of its
 * own. `proc` is of sysctl_open(). Costs about 0.1 ms, and is not an error where /proc/sys is out of reach:
 * refusals are then as slow as the kernel's default makes them.
 */
void rules_lift_icmp_limit(int proc);

#endif
