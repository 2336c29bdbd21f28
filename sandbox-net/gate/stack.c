/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The order matters: routes need the link to be up, and up comes last of what is visible to G. */
#include "sandbox-net/gate/stack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/netlink.h>

#include "base/err.h"
#include "base/handoff.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/sysctl.h"

int stack_ends(struct stack_ends *ends, const struct gate_plan *plan, struct err *err)
{
	const struct gate_layout *l = &plan->layout;

	if (!layout_ok(l))
		return err_set(err, "the gate's addresses are not those of two hosts in one network");
	*ends = (struct stack_ends){
		/* Whatever else S sends to an address of the network is the gate's, as all other addresses are. */
		.gate = { { GATE_LINK, { GATE_MAC_BYTES }, 0, GATE_HEARS, 0 }, l->gate4, l->gate6, 32, 128 },
		.sandbox = { { plan->link,
			       { GATE_SANDBOX_MAC_BYTES },
			       GATE_SANDBOX_GROUP,
			       GATE_MTU,
			       plan->big_tcp ? GATE_BIG_TCP : 0 },
			     l->sandbox4,
			     l->sandbox6,
			     l->plen4,
			     l->plen6 },
	};
	return 0;
}

int stack_check(int r, const char *what, struct err *err)
{
	return r ? err_set_errno(err, -r, "%s", what) : 0;
}

/*
 * Docker switches IPv6 off in its containers' namespaces, new links included. The gate speaks it, so that an IPv6 packet is refused
 * and on record as any other; on this link it is switched on again.
 */
static int add_addr6(struct netlink *nl, int index, const struct stack_end *own)
{
	int r = netlink_add_addr(nl, index, &own->v6, own->plen6);
	char path[64];
	int proc;

	if (r != -EACCES)
		return r;
	snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", own->link.name);
	proc = sysctl_open();
	(void)sysctl_write(proc, path, "0");
	sysctl_close(proc);
	return netlink_add_addr(nl, index, &own->v6, own->plen6);
}

int stack_set_addresses(struct netlink *nl, int index, const struct stack_end *own, const struct stack_end *peer,
			struct err *err)
{
	if (stack_check(netlink_set_no_link_local(nl, index), "addr_gen_mode (is IPv6 switched off on this host?)",
			err) ||
	    stack_check(netlink_add_addr(nl, index, &own->v4, own->plen4), "IPv4 address", err) ||
	    stack_check(add_addr6(nl, index, own), "IPv6 address (is IPv6 switched off on this host?)", err) ||
	    stack_check(netlink_add_neigh(nl, index, &peer->v4, peer->link.mac), "IPv4 neighbour", err) ||
	    stack_check(netlink_add_neigh(nl, index, &peer->v6, peer->link.mac), "IPv6 neighbour", err))
		return -1;
	return 0;
}

int stack_build(const struct stack_ends *ends, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const char *name = ends->sandbox.link.name;
	int lo, eth;

	if (stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    stack_check(netlink_find_link(&nl, "lo", &lo), "lo", err) ||
	    stack_check(netlink_set_up(&nl, lo), "lo up", err) ||
	    stack_check(netlink_find_link(&nl, name, &eth), name, err) ||
	    stack_set_addresses(&nl, eth, &ends->sandbox, &ends->gate, err))
		return -1;
	/* For the program that notes who sends; it can be done without. */
	(void)netlink_add_clsact(&nl, eth);
	if (stack_check(netlink_set_up(&nl, eth), "link up", err) ||
	    stack_check(netlink_add_default(&nl, eth, &ends->gate.v4, GATE_CONGESTION), "IPv4 default route", err) ||
	    stack_check(netlink_add_default(&nl, eth, &ends->gate.v6, GATE_CONGESTION), "IPv6 default route", err) ||
	    stack_check(netlink_wait_running(&nl, eth), "wait for the link", err) ||
	    stack_check(netlink_wait_local(&nl, &ends->sandbox.v6), "wait for the IPv6 address", err))
		return -1;
	return 0;
}
