/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway that the guest of a virtual machine sees below IP: answers ARP and
 * neighbour solicitations for the gate's two addresses, and DHCP with the one
 * lease there is. The kernel of G takes no part in it, so that no table of the
 * host has an entry that a guest chose: what it would look up is permanent.
 *
 *   asked                                  answer            record
 *   ARP, ND: the gate's address, from any  its MAC           none: carries nothing, leads nowhere else; what
 *                                                            is sent from another address is recorded then
 *   ARP, ND: any other address             none              none
 *   DHCPDISCOVER                           DHCPOFFER         none
 *   DHCPREQUEST for the lease, DHCPINFORM  DHCPACK           lease, before the answer
 *   DHCPREQUEST for another address        DHCPNAK           none
 *   DHCPRELEASE, DHCPDECLINE               none              none
 *   any other DHCP message                 none              counted, see guest_taken()
 *
 * The lease is the sandbox's fixed address: to have it gives no right, and a
 * guest that sets it by itself is served as well. At most GUEST_ANSWERS_S answers
 * a second; frames of another MAC than the guest's don't get here (HANDOFF_GUEST).
 */
#ifndef PROXY_GUEST_GUEST_H
#define PROXY_GUEST_GUEST_H

#include <stdint.h>

struct audit;
struct event_base;
struct guest;

#define GUEST_ANSWERS_S 50
#define GUEST_TURN	16     /* frames in one turn of the loop */
#define GUEST_LEASE_S	604800 /* a week: longer than a job, and a renewal is answered like anything else */

/* Reads `link_fd` (HANDOFF_GUEST; stays the caller's) on `base` from now on. Borrows `audit`. NULL with errno. */
struct guest *guest_new(struct event_base *base, int link_fd, struct audit *audit);

/* NULL is fine. */
void guest_free(struct guest *g);

/* DHCP messages so far that were answered, or need no answer: what G counted beyond them was not understood. */
uint64_t guest_taken(const struct guest *g);

#endif
