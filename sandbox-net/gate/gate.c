/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a gate. The order is the argument: rules, sockets and G's own end
 * stand before eth0 comes up in S, so there is no moment in which S could send
 * something that the gate would treat differently.
 *
 * All of it happens in a child process; when anything fails the child ends,
 * and with it G, the veth pair and whatever was set on eth0.
 */
#include "sandbox-net/gate/gate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/netlink.h>

#include "base/err.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/netns.h"
#include "sandbox-net/gate/rules.h"
#include "sandbox-net/gate/sockets.h"
#include "sandbox-net/gate/sysctl.h"

/* One end of the link between G and S, and what each side needs to know of both. */
struct gate_end {
	struct netlink_end link;
	struct addr v4, v6;
};

struct gate_plan {
	struct gate_end gate, sandbox;
	int s_netns;
};

static const uint8_t GATE_MAC[NETLINK_MAC] = { GATE_MAC_BYTES };
static const uint8_t SANDBOX_MAC[NETLINK_MAC] = { GATE_SANDBOX_MAC_BYTES };

static int set_end(struct gate_end *end, const char *name, const uint8_t *mac, const char *v4, const char *v6)
{
	end->link.name = name;
	memcpy(end->link.mac, mac, NETLINK_MAC);
	return addr_parse(v4, strlen(v4), &end->v4) || addr_parse(v6, strlen(v6), &end->v6) ? -1 : 0;
}

/* Turns a failed request into the error that says which one it was. */
static int check(int r, const char *what, struct err *err)
{
	return r ? err_set_errno(err, -r, "%s", what) : 0;
}

/*
 * Docker switches IPv6 off in its containers' namespaces, new links included. The gate speaks it, so that an IPv6 packet is refused
 * and on record as any other; on this link it is switched on again.
 */
static int add_addr6(struct netlink *nl, int index, const struct gate_end *own)
{
	int r = netlink_add_addr(nl, index, &own->v6, GATE_PLEN6);
	char path[64];
	int proc;

	if (r != -EACCES)
		return r;
	snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", own->link.name);
	proc = sysctl_open();
	(void)sysctl_write(proc, path, "0");
	sysctl_close(proc);
	return netlink_add_addr(nl, index, &own->v6, GATE_PLEN6);
}

/* Addresses of `own`, and the way to `peer` without asking for it. */
static int set_addresses(struct netlink *nl, int index, const struct gate_end *own, const struct gate_end *peer,
			 struct err *err)
{
	if (check(netlink_set_no_link_local(nl, index), "addr_gen_mode (is IPv6 switched off on this host?)", err) ||
	    check(netlink_add_addr(nl, index, &own->v4, GATE_PLEN4), "IPv4 address", err) ||
	    check(add_addr6(nl, index, own), "IPv6 address (is IPv6 switched off on this host?)", err) ||
	    check(netlink_add_neigh(nl, index, &peer->v4, peer->link.mac), "IPv4 neighbour", err) ||
	    check(netlink_add_neigh(nl, index, &peer->v6, peer->link.mac), "IPv6 neighbour", err))
		return -1;
	return 0;
}

/* Everything on G's side; gw0 is up at the end, without carrier as long as eth0 is down. */
static int build_gate_side(struct netlink *nl, const struct gate_plan *plan, int *gw, struct err *err)
{
	int lo;

	if (check(netlink_find_link(nl, "lo", &lo), "lo", err) || check(netlink_set_up(nl, lo), "lo up", err) ||
	    check(netlink_add_catch_all(nl, lo, ADDR_V4), "catch-all IPv4 route", err) ||
	    check(netlink_add_catch_all(nl, lo, ADDR_V6), "catch-all IPv6 route", err) ||
	    check(netlink_add_veth(nl, &plan->gate.link, &plan->sandbox.link, plan->s_netns), "veth pair", err) ||
	    check(netlink_find_link(nl, plan->gate.link.name, gw), plan->gate.link.name, err) ||
	    set_addresses(nl, *gw, &plan->gate, &plan->sandbox, err) || check(netlink_set_up(nl, *gw), "gw0 up", err))
		return -1;
	return 0;
}

/* Everything on S's side, in S. Routes need the link to be up. */
static int build_sandbox_side(const struct gate_plan *plan, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const char *name = plan->sandbox.link.name;
	int lo, eth;

	if (check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    check(netlink_find_link(&nl, "lo", &lo), "lo", err) || check(netlink_set_up(&nl, lo), "lo up", err) ||
	    check(netlink_find_link(&nl, name, &eth), name, err) ||
	    set_addresses(&nl, eth, &plan->sandbox, &plan->gate, err) ||
	    check(netlink_set_up(&nl, eth), "eth0 up", err) ||
	    check(netlink_add_default(&nl, eth, &plan->gate.v4, GATE_CONGESTION), "IPv4 default route", err) ||
	    check(netlink_add_default(&nl, eth, &plan->gate.v6, GATE_CONGESTION), "IPv6 default route", err) ||
	    check(netlink_wait_running(&nl, eth), "wait for eth0", err) ||
	    check(netlink_wait_local(&nl, &plan->sandbox.v6), "wait for the IPv6 address", err))
		return -1;
	return 0;
}

/*
 * Lets programs without a capability open ICMP sockets (icmp(7)), as most
 * systems do: what they send is refused and on record; a socket that can't be made would leave none.
 */
static void allow_ping(void)
{
	int proc = sysctl_open();

	/* Group ids as the launcher's user namespace has them: an ordinary user's has only its own, as 0. */
	if (!sysctl_write(proc, "net/ipv4/ping_group_range", "0 2147483647"))
		(void)sysctl_write(proc, "net/ipv4/ping_group_range", "0 0");
	sysctl_close(proc);
}

static int build(void *arg, int *fds, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const struct gate_plan *plan = arg;
	int gw;

	if (netns_new(err) || rules_load(err) || sockets_open(fds, err))
		return -1;
	rules_lift_icmp_limit();
	if (check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) || build_gate_side(&nl, plan, &gw, err))
		return err_wrap(err, "gate");
	if (netns_enter(plan->s_netns, err))
		return -1;
	if (build_sandbox_side(plan, err))
		return err_wrap(err, "sandbox");
	allow_ping();
	return check(netlink_wait_running(&nl, gw), "wait for gw0", err);
}

int gate_build(int s_netns, struct gate *gate, struct err *err)
{
	struct gate_plan plan = { .s_netns = s_netns };

	if (set_end(&plan.gate, GATE_LINK, GATE_MAC, GATE_ADDR4, GATE_ADDR6) ||
	    set_end(&plan.sandbox, GATE_SANDBOX_LINK, SANDBOX_MAC, GATE_SANDBOX4, GATE_SANDBOX6))
		return err_set(err, "the gate's layout is not made of addresses");
	if (netns_run(build, &plan, gate->fds, HANDOFF_FDS, err))
		return err_wrap(err, "build the gate");
	return 0;
}

void gate_close(struct gate *gate)
{
	sockets_close(gate->fds);
}
