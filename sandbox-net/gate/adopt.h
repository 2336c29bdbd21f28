/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate for an S that is not there yet, and whose maker moves the link there himself and gives it its addresses (docker's
 * networks). The gate is built, proven and armed for a namespace that stands in for S; then its end of the link is handed over, and found again in S.
 */
#ifndef SANDBOX_NET_ADOPT_H
#define SANDBOX_NET_ADOPT_H

#include <stdbool.h>

struct err;
struct gate_plan;

#define ADOPT_MOVE_MS  60000 /* for its maker to move the link, */
#define ADOPT_READY_MS 20000 /* and to make the routes */

/*
 * The routes that its maker is asked for, by way of the gate, as the last that he makes: everything in two halves. With a default
 * route, docker would take the container for one with a way out of docker's own (docker/resolver.c).
 */
#define ADOPT_LOW4  "0.0.0.0/1"
#define ADOPT_HIGH4 "128.0.0.0/1"
#define ADOPT_LOW6  "::/1"
#define ADOPT_HIGH6 "8000::/1"

/* Makes the namespace that stands in for S. It lives as long as the descriptor that is returned, or -1. */
int adopt_make_stand_in(struct err *err);

/* Moves the link of a gate that was built for `stand_in` here, down and by another name. Returns 0 or -1. */
int adopt_hand_over(int stand_in, const struct gate_plan *plan, const char *name, struct err *err);

/* Waits until the link of this name is not here any more. Returns 0 or -1. */
int adopt_wait_moved(const char *name, struct err *err);

/* In S (`s_netns`), where the link need not be yet: nothing but the link will ever carry anything (alone.h). Returns 0 or -1. */
int adopt_close_others(int s_netns, struct err *err);

/* In S: what is asked of the engine's own resolver is the gate's from now on (RULES_RESOLVER). Returns 0 or -1. */
int adopt_silence_resolver(int s_netns, const struct gate_plan *plan, struct err *err);

/*
 * In S: when the maker has made the two routes, and with `ipv6` those of IPv6 as well, completes what he does not: neighbours,
 * IPv6, a default route in their place, every address of the network by way of the gate. plan->link gets the name that the link has there. Returns 0 or -1; gate_check() then says whether it is S's only way out.
 */
int adopt_complete(int s_netns, struct gate_plan *plan, bool ipv6, struct err *err);

#endif
