/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/gate/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/gate/alone.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/netns.h"
#include "sandbox-net/gate/rules.h"
#include "sandbox-net/gate/stack.h"
#include "sandbox-net/gate/sysctl.h"

/* ---- the stand-in ---- */

static int make_stand_in(void *arg, int *fds, struct err *err)
{
	(void)arg;
	if (netns_new(err))
		return -1;
	fds[0] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fds[0] >= 0 ? 0 : err_set_errno(err, errno, "/proc/self/ns/net");
}

int adopt_make_stand_in(struct err *err)
{
	int fd = -1;

	(void)netns_run(make_stand_in, NULL, &fd, 1, err);
	return fd;
}

struct hand_over {
	int from, to;
	const char *link, *name;
};

static int hand_over(void *arg, int *fds, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const struct hand_over *h = arg;
	int index;

	(void)fds;
	if (netns_enter(h->from, err) || stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    stack_check(netlink_find_link(&nl, h->link, &index), h->link, err))
		return -1;
	return stack_check(netlink_move(&nl, index, h->to, h->name), "move the link", err);
}

int adopt_hand_over(int stand_in, const struct gate_plan *plan, const char *name, struct err *err)
{
	struct hand_over h = { .from = stand_in, .link = plan->link, .name = name };
	int rc;

	h.to = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (h.to < 0)
		return err_set_errno(err, errno, "/proc/self/ns/net");
	rc = netns_run(hand_over, &h, NULL, 0, err);
	close(h.to);
	return rc;
}

static int is_gone(struct netlink *nl, void *arg)
{
	int index, r = netlink_find_link(nl, arg, &index);

	return r == -ENODEV ? 1 : r;
}

int adopt_wait_moved(const char *name, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	int r = netlink_open(&nl, NETLINK_ROUTE);

	if (r == 0)
		r = netlink_wait(&nl, RTNLGRP_LINK, is_gone, (void *)name, ADOPT_MOVE_MS);
	return stack_check(r, "wait for the link to be moved", err);
}

/* ---- in S ---- */

struct found {
	const struct stack_end *own;
	char name[GATE_LINK_NAME_MAX];
	int index; /* 0: not there */
	bool ipv6; /* its maker makes routes for it, too */
	unsigned halves4, halves6;
	bool crowded; /* another link is up */
};

static int take_attr(const struct nlattr *attr, void *arg)
{
	const struct nlattr **tb = arg;

	if (mnl_attr_get_type(attr) <= IFLA_LINK_NETNSID)
		tb[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_LINK_NETNSID + 1] = { 0 };
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct found *f = arg;

	(void)mnl_attr_parse(nlh, sizeof(*ifi), take_attr, tb);
	if (!tb[IFLA_ADDRESS] || !tb[IFLA_IFNAME] || !tb[IFLA_LINK_NETNSID] ||
	    mnl_attr_get_payload_len(tb[IFLA_ADDRESS]) != NETLINK_MAC ||
	    memcmp(mnl_attr_get_payload(tb[IFLA_ADDRESS]), f->own->link.mac, NETLINK_MAC) != 0) {
		f->crowded = f->crowded || ((ifi->ifi_flags & IFF_UP) && !(ifi->ifi_flags & IFF_LOOPBACK));
		return MNL_CB_OK;
	}
	f->index = ifi->ifi_index;
	snprintf(f->name, sizeof(f->name), "%s", mnl_attr_get_str(tb[IFLA_IFNAME]));
	return MNL_CB_OK;
}

static int route_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[IFLA_LINK_NETNSID + 1] = { 0 };
	const struct rtmsg *rt = mnl_nlmsg_get_payload(nlh);
	struct found *f = arg;

	(void)mnl_attr_parse(nlh, sizeof(*rt), take_attr, tb);
	if (rt->rtm_table == RT_TABLE_MAIN && rt->rtm_dst_len == 1 && tb[RTA_OIF] &&
	    mnl_attr_get_u32(tb[RTA_OIF]) == (uint32_t)f->index)
		++*(rt->rtm_family == AF_INET ? &f->halves4 : &f->halves6);
	return MNL_CB_OK;
}

static int dump(struct netlink *nl, uint16_t type, uint8_t family, size_t header, mnl_cb_t cb, void *arg)
{
	struct netlink_request req;

	*(uint8_t *)netlink_begin(&req, type, NLM_F_DUMP, header) = family;
	return netlink_talk(nl, &req, cb, arg);
}

/* Whether its maker is done: routes are the last thing that he makes. */
static int is_ready(struct netlink *nl, void *arg)
{
	struct found *f = arg;
	int r;

	f->index = 0;
	f->crowded = false;
	f->halves4 = f->halves6 = 0;
	r = dump(nl, RTM_GETLINK, AF_UNSPEC, sizeof(struct ifinfomsg), link_cb, f);
	if (r == 0 && f->index)
		r = dump(nl, RTM_GETROUTE, AF_INET, sizeof(struct rtmsg), route_cb, f);
	if (r == 0 && f->index && f->ipv6)
		r = dump(nl, RTM_GETROUTE, AF_INET6, sizeof(struct rtmsg), route_cb, f);
	return r ? r : f->crowded ? -EEXIST : f->halves4 == 2 && (!f->ipv6 || f->halves6 == 2);
}

static int wait_ready(struct netlink *nl, struct found *f, struct err *err)
{
	int r = netlink_wait(nl, f->ipv6 ? RTNLGRP_IPV6_ROUTE : RTNLGRP_IPV4_ROUTE, is_ready, f, ADOPT_READY_MS);

	if (r == -EEXIST)
		return err_set(err, "the sandbox's only way out must be the gate, but it has another network");
	return stack_check(r, "wait for the link's routes", err);
}

static bool set_ipv6(int proc, const char *link, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", link);
	return sysctl_write(proc, path, value);
}

/* IPv6 begins anew: whatever its maker and the kernel have put there goes. */
static int restart_ipv6(struct netlink *nl, const struct found *f, struct err *err)
{
	int proc = sysctl_open();
	int rc = 0;

	if (!set_ipv6(proc, f->name, "1"))
		rc = err_set_errno(err, errno, "IPv6 of %s", f->name);
	else if (stack_check(netlink_set_no_link_local(nl, f->index), "addr_gen_mode", err))
		rc = -1;
	else if (!set_ipv6(proc, f->name, "0"))
		rc = err_set_errno(err, errno, "IPv6 of %s", f->name);
	sysctl_close(proc);
	return rc;
}

static int complete_link(struct netlink *nl, const struct found *f, const struct stack_ends *ends,
			 const struct gate_layout *l, struct err *err)
{
	const struct addr network4 = layout_network(&l->sandbox4, l->plen4);
	const struct addr network6 = layout_network(&l->sandbox6, l->plen6);
	const struct stack_end *gate = &ends->gate, *own = &ends->sandbox;
	const struct addr low = addr_v4(0), high = addr_v4(0x80000000);
	const int eth = f->index;

	/* Without one, the finder knows less. What was there went when the link was moved. */
	(void)netlink_add_clsact(nl, eth);
	if (restart_ipv6(nl, f, err) ||
	    stack_check(netlink_add_addr(nl, eth, &own->v6, own->plen6), "IPv6 address", err) ||
	    stack_check(netlink_add_neigh(nl, eth, &gate->v4, gate->link.mac), "IPv4 neighbour", err) ||
	    stack_check(netlink_add_neigh(nl, eth, &gate->v6, gate->link.mac), "IPv6 neighbour", err) ||
	    stack_check(netlink_set_default(nl, eth, &gate->v4, GATE_CONGESTION), "IPv4 default route", err) ||
	    stack_check(netlink_set_default(nl, eth, &gate->v6, GATE_CONGESTION), "IPv6 default route", err))
		return -1;
	/* Those of IPv6 went with all else of it. */
	if (stack_check(netlink_del_route(nl, eth, &low, 1), "IPv4 route", err) ||
	    stack_check(netlink_del_route(nl, eth, &high, 1), "IPv4 route", err))
		return -1;
	/* Other containers of the network are not neighbours: an attempt to reach one is for the gate to refuse. */
	if (stack_check(netlink_del_route(nl, eth, &network4, l->plen4), "IPv4 network", err) ||
	    stack_check(netlink_del_route(nl, eth, &network6, l->plen6), "IPv6 network", err))
		return -1;
	return 0;
}

struct completion {
	int s_netns;
	bool ipv6;
	struct gate_plan plan; /* shared with the caller */
};

static int complete(void *arg, int *fds, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	struct completion *c = arg;
	struct stack_ends ends;
	struct found f = { .own = &ends.sandbox, .ipv6 = c->ipv6 };

	(void)fds;
	if (stack_ends(&ends, &c->plan, err) || netns_enter(c->s_netns, err) ||
	    stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) || wait_ready(&nl, &f, err) ||
	    complete_link(&nl, &f, &ends, &c->plan.layout, err))
		return -1;
	memcpy(c->plan.link, f.name, sizeof(c->plan.link));
	return 0;
}

static int close_others(void *arg, int *fds, struct err *err)
{
	const int *s_netns = arg;

	(void)fds;
	return netns_enter(*s_netns, err) || alone_load(err) ? -1 : 0;
}

int adopt_close_others(int s_netns, struct err *err)
{
	return netns_run(close_others, &s_netns, NULL, 0, err);
}

static int silence(void *arg, int *fds, struct err *err)
{
	const struct completion *c = arg;
	struct rules_values values = { 0 };
	int proc, rc = 0;

	(void)fds;
	rules_set_layout(&values, &c->plan.layout);
	if (netns_enter(c->s_netns, err) || rules_load(RULES_RESOLVER, &values, err))
		return -1;
	/* What the rules send out for 127.0.0.1 comes back to it. */
	proc = sysctl_open();
	if (!sysctl_write(proc, "net/ipv4/conf/all/route_localnet", "1"))
		rc = err_set_errno(err, errno, "route_localnet");
	sysctl_close(proc);
	return rc;
}

int adopt_silence_resolver(int s_netns, const struct gate_plan *plan, struct err *err)
{
	struct completion c = { .s_netns = s_netns, .plan = *plan };

	return netns_run(silence, &c, NULL, 0, err);
}

int adopt_complete(int s_netns, struct gate_plan *plan, bool ipv6, struct err *err)
{
	struct completion c = { .s_netns = s_netns, .ipv6 = ipv6, .plan = *plan };
	int rc = netns_run(complete, &c, NULL, 0, err);

	memcpy(plan->link, c.plan.link, sizeof(plan->link));
	return rc;
}
