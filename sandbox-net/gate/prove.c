/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_prove(), gate_check() and gate_check_empty(): reads back, from the kernel, everything that S could send
 * packets with, and accepts only what gate_build() and the kernel itself put
 * there. Policy rules of S need no look: they can only choose among tables,
 * and the routes of all tables are checked. Neighbours of S need none either: they choose a MAC on a link whose only other end is the
 * gate's, which takes what is for its own. (To read them, the kernel would go through those of all namespaces.)
 *
 * Tunnel devices that the kernel puts into every new namespace where their
 * modules are loaded (sit0, tunl0, …) can't be removed. They are accepted while they are down.
 */
#include "sandbox-net/gate/gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/prefix.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/netns.h"
#include "sandbox-net/gate/probe.h"
#include "sandbox-net/gate/stack.h"
#include "sandbox-net/gate/wire.h"

#define PROVE_ATTRS   64   /* attribute types looked at */
#define PROVE_METRIC6 1024 /* of an IPv6 route that is added without one: IP6_RT_PRIO_USER of the kernel */

/* What was found so far. */
struct prove {
	struct err *err;
	const struct gate_tap *tap;
	struct stack_ends ends;
	uint32_t lo, eth, tun; /* link indexes */
	unsigned addrs;	       /* of eth */
	unsigned defaults;
	bool empty; /* there must be no gate yet */
};

struct prove_attrs {
	const struct nlattr *tb[PROVE_ATTRS];
};

static int keep_attr(const struct nlattr *attr, void *arg)
{
	struct prove_attrs *attrs = arg;

	if (mnl_attr_get_type(attr) < PROVE_ATTRS)
		attrs->tb[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static struct prove_attrs attrs_of(const struct nlmsghdr *nlh, size_t header)
{
	struct prove_attrs attrs = { 0 };

	mnl_attr_parse(nlh, (unsigned)header, keep_attr, &attrs);
	return attrs;
}

static uint32_t attr_u32(const struct nlattr *attr)
{
	return attr && mnl_attr_get_payload_len(attr) == sizeof(uint32_t) ? mnl_attr_get_u32(attr) : 0;
}

static bool attr_is(const struct nlattr *attr, const void *value, size_t len)
{
	return attr && mnl_attr_get_payload_len(attr) == len && memcmp(mnl_attr_get_payload(attr), value, len) == 0;
}

/* A string attribute is NUL-terminated. */
static bool attr_is_text(const struct nlattr *attr, const char *text)
{
	return attr_is(attr, text, strlen(text) + 1);
}

static bool attr_is_addr(const struct nlattr *attr, const struct addr *addr)
{
	return attr_is(attr, addr->b, addr_size(addr));
}

/* An address attribute as text, for a message. */
static const char *attr_text(const struct nlattr *attr, int family, char buf[static INET6_ADDRSTRLEN])
{
	size_t len = family == AF_INET ? 4 : 16;

	if (!attr || mnl_attr_get_payload_len(attr) != len ||
	    !inet_ntop(family, mnl_attr_get_payload(attr), buf, INET6_ADDRSTRLEN))
		return "default";
	return buf;
}

/* The name of a link, which may hold any byte but '/' and white space, for a terminal. */
static const char *printable(const char *name, char text[static IFNAMSIZ])
{
	snprintf(text, IFNAMSIZ, "%s", name);
	for (char *c = text; *c; c++)
		if (*c < '!' || *c > '~')
			*c = '?';
	return text;
}

static int refuse(struct prove *p)
{
	(void)p;
	errno = EPERM;
	return MNL_CB_ERROR;
}

static bool is_down_tunnel(const char *name, const struct nlattr *kind, unsigned flags)
{
	static const struct {
		const char *name, *kind;
	} tunnels[] = {
		{ "tunl0", "ipip" },	 { "sit0", "sit" },	  { "gre0", "gre" },
		{ "gretap0", "gretap" }, { "erspan0", "erspan" }, { "ip_vti0", "vti" },
		{ "ip6tnl0", "ip6tnl" }, { "ip6gre0", "ip6gre" }, { "ip6_vti0", "vti6" },
	};

	for (size_t i = 0; i < sizeof(tunnels) / sizeof(tunnels[0]); i++)
		if (strcmp(name, tunnels[i].name) == 0 && attr_is_text(kind, tunnels[i].kind))
			return !(flags & IFF_UP);
	return false;
}

static const struct nlattr *link_kind(const struct nlattr *info)
{
	struct prove_attrs attrs = { 0 };

	if (info)
		mnl_attr_parse_nested(info, keep_attr, &attrs);
	return attrs.tb[IFLA_INFO_KIND];
}

/* Of whichever gate, as gate_plan_usual() has it. */
static bool is_gates_end(const struct prove_attrs *a)
{
	static const uint8_t usual_mac[NETLINK_MAC] = { GATE_SANDBOX_MAC_BYTES };

	return attr_is_text(link_kind(a->tb[IFLA_LINKINFO]), "veth") &&
	       attr_is(a->tb[IFLA_ADDRESS], usual_mac, sizeof(usual_mac));
}

static int link_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct prove_attrs a = attrs_of(nlh, sizeof(*ifi));
	const struct nlattr *kind = link_kind(a.tb[IFLA_LINKINFO]);
	const char *name = a.tb[IFLA_IFNAME] ? mnl_attr_get_str(a.tb[IFLA_IFNAME]) : "?";
	struct prove *p = arg;
	char text[IFNAMSIZ];

	if (strcmp(name, "lo") == 0 && ifi->ifi_flags & IFF_LOOPBACK) {
		p->lo = (uint32_t)ifi->ifi_index;
		return MNL_CB_OK;
	}
	/* IFLA_LINK_NETNSID: its other end is in another namespace. */
	if (!p->empty && strcmp(name, p->ends.sandbox.link.name) == 0 && attr_is_text(kind, "veth") &&
	    attr_is(a.tb[IFLA_ADDRESS], p->ends.sandbox.link.mac, NETLINK_MAC) && a.tb[IFLA_LINK_NETNSID]) {
		p->eth = (uint32_t)ifi->ifi_index;
		return MNL_CB_OK;
	}
	/* In a namespace that had a gate before, the device is still there. */
	if (p->tap && strcmp(name, p->tap->name) == 0 && attr_is_text(kind, "tun")) {
		p->tun = (uint32_t)ifi->ifi_index;
		return MNL_CB_OK;
	}
	if (is_down_tunnel(name, kind, ifi->ifi_flags))
		return MNL_CB_OK;
	if (p->empty && is_gates_end(&a))
		err_set(p->err, "it has a gate already: its %s is the end of one", printable(name, text));
	else if (p->empty)
		err_set(p->err,
			"it has another interface than lo: %s; the gate must be its only network (a container's: "
			"--network none)",
			printable(name, text));
	else
		err_set(p->err, "it has a link that is not the gate's: %s", printable(name, text));
	return refuse(p);
}

static int addr_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct prove_attrs a = attrs_of(nlh, sizeof(*ifa));
	char text[INET6_ADDRSTRLEN];
	struct prove *p = arg;
	const struct stack_end *own = &p->ends.sandbox;

	if (ifa->ifa_index == p->lo)
		return MNL_CB_OK;
	if (!p->tap && ifa->ifa_index == p->eth &&
	    attr_is_addr(a.tb[IFA_ADDRESS], ifa->ifa_family == AF_INET ? &own->v4 : &own->v6)) {
		p->addrs++;
		return MNL_CB_OK;
	}
	err_set(p->err, "it has an address that is not the gate's: %s",
		attr_text(a.tb[IFA_ADDRESS], ifa->ifa_family, text));
	return refuse(p);
}

/* Several next hops, a gateway of the other family, a next hop object or an encapsulation: none of them is ours. */
static bool is_plain_route(const struct prove_attrs *a)
{
	return !a->tb[RTA_MULTIPATH] && !a->tb[RTA_VIA] && !a->tb[RTA_NH_ID] && !a->tb[RTA_ENCAP] &&
	       !a->tb[RTA_ENCAP_TYPE];
}

/* What the kernel derives from the link's own addresses; without any, what it has for each link: IPv6 multicast. */
static bool is_kernel_route(const struct prove *p, const struct rtmsg *rt, const struct prove_attrs *a, uint32_t table)
{
	if (rt->rtm_protocol != RTPROT_KERNEL || a->tb[RTA_GATEWAY])
		return false;
	if (table == RT_TABLE_LOCAL)
		return true;
	return !p->tap && table == RT_TABLE_MAIN && rt->rtm_type == RTN_UNICAST &&
	       rt->rtm_dst_len == (rt->rtm_family == AF_INET ? p->ends.sandbox.plen4 : p->ends.sandbox.plen6);
}

static bool leads_nowhere(const struct rtmsg *rt)
{
	return rt->rtm_type == RTN_UNREACHABLE || rt->rtm_type == RTN_BLACKHOLE || rt->rtm_type == RTN_PROHIBIT;
}

/*
 * What must go to the gate: itself, what its proof asks, and what its DNS gives out for names. `near`: length of the link's own route that leads
 * there, to which a shorter one is not preferred.
 */
static const struct {
	const char *prefix;
	unsigned near;
} needed[] = {
	{ GATE_ADDR4, GATE_PLEN4 }, { GATE_ADDR6, GATE_PLEN6 }, { PROBE_ADDR4, 0 },
	{ PROBE_ADDR6, 0 },	    { GATE_POOL4, 0 },		{ GATE_POOL6, 0 },
};

/* Where a route of the tables that every stack asks would take some of it away. The one of addresses is asked first. */
static bool takes_needed(const struct rtmsg *rt, const struct nlattr *dst, uint32_t table)
{
	struct prefix route = { .addr.family = rt->rtm_family == AF_INET ? ADDR_V4 : ADDR_V6, .len = rt->rtm_dst_len };

	if (table != RT_TABLE_MAIN && table != RT_TABLE_LOCAL)
		return false;
	if (dst && mnl_attr_get_payload_len(dst) == addr_size(&route.addr))
		memcpy(route.addr.b, mnl_attr_get_payload(dst), addr_size(&route.addr));
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		struct prefix own;

		if (prefix_parse(needed[i].prefix, strlen(needed[i].prefix), &own) == 0 &&
		    (prefix_contains(&route, &own.addr) || prefix_contains(&own, &route.addr)) &&
		    (table == RT_TABLE_LOCAL || route.len >= needed[i].near))
			return true;
	}
	return false;
}

/*
 * Before there is a gate: a route that leads nowhere or to lo, and from which the kernel would not let the gate's in, or which it would prefer to
 * the gate's. No way out, but the gate would not work.
 */
static bool is_in_the_way(const struct prove *p, const struct rtmsg *rt, const struct prove_attrs *a, uint32_t table)
{
	const uint32_t metric_of_gates = rt->rtm_family == AF_INET ? 0 : PROVE_METRIC6;

	if (!p->empty || p->tap)
		return false;
	if (table == RT_TABLE_MAIN && rt->rtm_dst_len == 0)
		return attr_u32(a->tb[RTA_PRIORITY]) <= metric_of_gates;
	return takes_needed(rt, a->tb[RTA_DST], table);
}

static int refuse_in_the_way(struct prove *p, const struct rtmsg *rt, const struct nlattr *dst, uint32_t table)
{
	const char *to = leads_nowhere(rt) ? "unreachable, blackhole or prohibit" : "dev lo";
	char text[INET6_ADDRSTRLEN];

	if (rt->rtm_dst_len == 0)
		err_set(p->err, "it has an IPv%d default route already: %s", rt->rtm_family == AF_INET ? 4 : 6, to);
	else
		err_set(p->err, "it has a route in the gate's way: %s/%u, %s%s", attr_text(dst, rt->rtm_family, text),
			(unsigned)rt->rtm_dst_len, to,
			table == RT_TABLE_LOCAL ? ", in table local, as an address of lo makes one" : "");
	return refuse(p);
}

static int route_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(nlh);
	struct prove_attrs a = attrs_of(nlh, sizeof(*rt));
	uint32_t oif = attr_u32(a.tb[RTA_OIF]);
	uint32_t table = a.tb[RTA_TABLE] ? attr_u32(a.tb[RTA_TABLE]) : rt->rtm_table;
	char text[INET6_ADDRSTRLEN];
	struct prove *p = arg;
	const struct stack_end *gate = &p->ends.gate;

	if ((leads_nowhere(rt) || oif == p->lo) && is_in_the_way(p, rt, &a, table))
		return refuse_in_the_way(p, rt, a.tb[RTA_DST], table);
	if (leads_nowhere(rt))
		return MNL_CB_OK;
	if (is_plain_route(&a)) {
		if (oif == p->lo || ((oif == p->eth || (p->tap && oif == p->tun)) && is_kernel_route(p, rt, &a, table)))
			return MNL_CB_OK;
		if (!p->tap && oif == p->eth && table == RT_TABLE_MAIN && rt->rtm_dst_len == 0 &&
		    attr_is_addr(a.tb[RTA_GATEWAY], rt->rtm_family == AF_INET ? &gate->v4 : &gate->v6)) {
			p->defaults++;
			return MNL_CB_OK;
		}
	}
	err_set(p->err, "it has a route that is not the gate's: %s/%u in table %u",
		attr_text(a.tb[RTA_DST], rt->rtm_family, text), (unsigned)rt->rtm_dst_len, table);
	return refuse(p);
}

/* Dumps one kind of object through `cb`, which has set p->err if it refused. */
static int dump(struct netlink *nl, struct prove *p, uint16_t type, int family, size_t header, mnl_cb_t cb)
{
	struct netlink_request req;
	int r;

	/* Each of these headers begins with its family. */
	*(uint8_t *)netlink_begin(&req, type, NLM_F_DUMP, header) = (uint8_t)family;
	p->err->text[0] = '\0';
	r = netlink_talk(nl, &req, cb, p);
	if (r && !p->err->text[0])
		err_set_errno(p->err, -r, "read its links and routes");
	return r ? -1 : 0;
}

static int check_layout(struct prove *p)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const unsigned each = p->tap ? 0 : 2; /* one of IPv4, one of IPv6 */
	int r = netlink_open(&nl, NETLINK_ROUTE);

	if (r)
		return err_set_errno(p->err, -r, "netlink socket");
	if (dump(&nl, p, RTM_GETLINK, AF_UNSPEC, sizeof(struct ifinfomsg), link_cb))
		return -1;
	if (!p->lo || (!p->empty && (!p->eth || (p->tap && !p->tun))))
		return err_set(p->err, "it has no %s",
			       !p->lo	 ? "lo"
			       : !p->eth ? p->ends.sandbox.link.name
					 : p->tap->name);
	if (dump(&nl, p, RTM_GETADDR, AF_UNSPEC, sizeof(struct ifaddrmsg), addr_cb) ||
	    dump(&nl, p, RTM_GETROUTE, AF_INET, sizeof(struct rtmsg), route_cb) ||
	    dump(&nl, p, RTM_GETROUTE, AF_INET6, sizeof(struct rtmsg), route_cb))
		return -1;
	if (!p->empty && (p->addrs != each || p->defaults != each))
		return err_set(p->err, "it has %u of its %u addresses and %u of its %u default routes", p->addrs, each,
			       p->defaults, each);
	return 0;
}

static int end_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct prove_attrs a = attrs_of(nlh, sizeof(*ifi));

	if (is_gates_end(&a) && a.tb[IFLA_LINK_NETNSID])
		*(int *)arg = ifi->ifi_index;
	return MNL_CB_OK;
}

int gate_find_end(struct netlink *s)
{
	struct netlink_request req;
	int index = 0;

	netlink_begin(&req, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	return netlink_talk(s, &req, end_cb, &index) ? 0 : index;
}

struct prove_job {
	int s_netns;
	const struct gate_plan *plan;
	const struct gate_tap *tap;
	const uint8_t *nonce; /* NULL: nothing is asked */
};

static int prove(void *arg, int *fds, struct err *err)
{
	const struct prove_job *job = arg;
	struct prove p = { .err = err, .tap = job->tap };

	(void)fds;
	if (stack_ends(&p.ends, job->plan, err))
		return -1;
	if (netns_enter(job->s_netns, err))
		return -1;
	if (check_layout(&p))
		return err_wrap(err, "the sandbox's only way out must be the gate, but");
	if (!job->nonce)
		return 0;
	return job->tap ? wire_probe(job->plan, &p.ends, job->nonce, err)
			: probe_gate(&job->plan->layout, job->nonce, err);
}

static int check_empty(void *arg, int *fds, struct err *err)
{
	const struct prove_job *job = arg;
	struct prove p = { .err = err, .tap = job->tap, .empty = true };

	(void)fds;
	return netns_enter(job->s_netns, err) || check_layout(&p) ? -1 : 0;
}

int gate_check_empty(int s_netns, const struct gate_tap *tap, struct err *err)
{
	struct prove_job job = { .s_netns = s_netns, .tap = tap };

	return netns_run(check_empty, &job, NULL, 0, err);
}

int gate_check(int s_netns, const struct gate_plan *plan, struct err *err)
{
	struct prove_job job = { .s_netns = s_netns, .plan = plan, .tap = plan->tap };

	return netns_run(prove, &job, NULL, 0, err);
}

int gate_prove(int s_netns, const struct gate_plan *plan, const uint8_t nonce[HANDOFF_NONCE], struct err *err)
{
	struct prove_job job = { .s_netns = s_netns, .plan = plan, .tap = plan->tap, .nonce = nonce };

	return netns_run(prove, &job, NULL, 0, err);
}
