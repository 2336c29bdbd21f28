/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a gate. The order is the argument: rules, sockets and G's own end
 * stand before S's end comes up, so there is no moment in which S could send
 * something that the gate would treat differently.
 *
 * All of it happens in a child process; when anything fails, it takes the veth pair away and ends, and with it G.
 */
#include "sandbox-net/gate/gate.h"

#include <linux/netlink.h>

#include "base/err.h"
#include "sandbox-net/gate/alone.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/netns.h"
#include "sandbox-net/gate/rules.h"
#include "sandbox-net/gate/sockets.h"
#include "sandbox-net/gate/stack.h"
#include "sandbox-net/gate/sysctl.h"
#include "sandbox-net/gate/wire.h"

#define BUFFER_MAX 1048576 /* bytes, for each direction of a connection */

struct gate_job {
	struct stack_ends ends;
	const struct gate_plan *plan;
	struct rules_values values;
	int s_netns;
};

/* Everything on G's side; gw0 is up at the end, without carrier as long as the other end is down. */
static int build_gate_side(struct netlink *nl, const struct gate_job *job, int *gw, struct err *err)
{
	const struct stack_end *gate = &job->ends.gate, *sandbox = &job->ends.sandbox;
	int lo;

	if (stack_check(netlink_find_link(nl, "lo", &lo), "lo", err) ||
	    stack_check(netlink_set_up(nl, lo), "lo up", err) ||
	    stack_check(netlink_add_catch_all(nl, lo, ADDR_V4), "catch-all IPv4 route", err) ||
	    stack_check(netlink_add_catch_all(nl, lo, ADDR_V6), "catch-all IPv6 route", err) ||
	    stack_check(netlink_add_veth(nl, &gate->link, &sandbox->link, job->s_netns), "veth pair", err) ||
	    stack_check(netlink_find_link(nl, gate->link.name, gw), gate->link.name, err) ||
	    stack_set_addresses(nl, *gw, gate, sandbox, err) || rules_load(RULES_FRAMES, &job->values, err) ||
	    (job->plan->tap && rules_load(RULES_GUEST, &job->values, err)))
		return -1;
	if (stack_check(netlink_set_up(nl, *gw), "gw0 up", err) ||
	    stack_check(netlink_add_host(nl, *gw, &sandbox->v4, GATE_MTU), "IPv4 route to the sandbox", err) ||
	    stack_check(netlink_add_host(nl, *gw, &sandbox->v6, GATE_MTU), "IPv6 route to the sandbox", err))
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

/*
 * The link has no delay, so that more in the buffers of its sockets makes nothing faster; and it is the host's memory, which a
 * sandbox could take for each connection by not reading, or by sending what nobody reads. The host's own bound may be 32 MB.
 */
static void bound_buffers(int proc)
{
	/* For a new namespace these are the host's. Without effect they stay, which the caller can do nothing about. */
	(void)sysctl_bound(proc, "net/ipv4/tcp_rmem", BUFFER_MAX);
	(void)sysctl_bound(proc, "net/ipv4/tcp_wmem", BUFFER_MAX);
}

/* This process stays in S. */
static int build_sandbox_side(const struct gate_job *job, struct err *err)
{
	if (netns_enter(job->s_netns, err))
		return -1;
	if ((job->plan->alone && alone_load(err)) ||
	    (job->plan->tap ? wire_build(job->plan->tap, err) : stack_build(&job->ends, err)))
		return err_wrap(err, "sandbox");
	allow_ping();
	return 0;
}

static int build(void *arg, int *fds, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const struct gate_job *job = arg;
	int gw = 0, proc, rc;

	if (netns_new(err) || rules_load(RULES_GATE, &job->values, err) || sockets_open(fds, err))
		return -1;
	proc = sysctl_open();
	rules_lift_icmp_limit(proc);
	bound_buffers(proc);
	sysctl_close(proc);
	if (stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    build_gate_side(&nl, job, &gw, err) || (job->plan->tap && sockets_open_guest(gw, &fds[HANDOFF_GUEST], err)))
		rc = err_wrap(err, "gate");
	else
		rc = build_sandbox_side(job, err) || stack_check(netlink_wait_running(&nl, gw), "wait for gw0", err)
			     ? -1
			     : 0;
	/* The kernel would do so, but only when it comes to that: whoever tries again at once must not find half a gate. */
	if (rc && gw)
		(void)netlink_del_link(&nl, gw);
	return rc;
}

void gate_plan_usual(struct gate_plan *plan)
{
	*plan = (struct gate_plan){ .link = GATE_SANDBOX_LINK };
	layout_usual(&plan->layout);
}

int gate_build(int s_netns, const struct gate_plan *plan, struct gate *gate, struct err *err)
{
	struct gate_job job = { .s_netns = s_netns, .plan = plan };

	gate->n_fds = plan->tap ? HANDOFF_FDS : HANDOFF_GUEST;
	gate->fds[HANDOFF_GUEST] = -1;
	rules_set_layout(&job.values, &plan->layout);
	if (stack_ends(&job.ends, plan, err) || netns_run(build, &job, gate->fds, gate->n_fds, err))
		return err_wrap(err, "build the gate");
	return 0;
}

void gate_close(struct gate *gate)
{
	sockets_close(gate->fds);
}
