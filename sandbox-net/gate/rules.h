/* SPDX-License-Identifier: Apache-2.0 */
/* The packet rules of a gate, and how they are loaded. */
#ifndef SANDBOX_NET_RULES_H
#define SANDBOX_NET_RULES_H

struct err;
struct gate_layout;

/* The complete ruleset of a gate's network namespace, in nft(8) syntax, with variables for its addresses. */
extern const char rules_text[];

/* What is added for frames that are not IP, or not for gw0. Loaded after rules_text, when gw0 is there. */
extern const char rules_frames_text[];

/*
 * What is added for the guest of a virtual machine, whose own kernel, with any
 * frame that it can make, is at the other end. Loaded after the others.
 */
extern const char rules_guest_text[];

/*
 * For a sandbox (not a gate) in which a resolver of a container engine's own waits at 127.0.0.11, and may ask on from elsewhere: what
 * is sent there is the gate's, and nothing reaches that resolver. Needs connection tracking.
 */
extern const char rules_resolver_text[];

/*
 * Adds rules in nft(8) syntax to the present network namespace; `layout` (may be NULL) is what their variables say. Only for a short-lived process: libnftables keeps global state
 * and aborts the process when its descriptor is FD_SETSIZE or more. Returns 0 or -1.
 */
int rules_load(const char *text, const struct gate_layout *layout, struct err *err);

/*
 * Lets the present network namespace answer every refused packet: by default
 * the kernel sends one destination six ICMP errors and then one a second, so
 * that most refusals would look like silence. rules_text has a limit of its
 * own. Costs about 0.1 ms, and is not an error where /proc/sys is out of reach:
 * refusals are then as slow as the kernel's default makes them.
 */
void rules_lift_icmp_limit(void);

#endif
