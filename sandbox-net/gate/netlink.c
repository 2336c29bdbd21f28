/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtnetlink(7) by libmnl. Requests are small and go one at a time: the cost is
 * the kernel's work, not the round trip.
 */
#include "sandbox-net/gate/netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define NETLINK_ANSWER 32768 /* bytes; the kernel fills at most this much of a dump at a time */

int netlink_open(struct netlink *nl, int protocol)
{
	nl->seq = 0;
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	return nl->fd < 0 ? -errno : 0;
}

void netlink_close(struct netlink *nl)
{
	if (nl->fd >= 0)
		close(nl->fd);
	nl->fd = -1;
}

void *netlink_begin(struct netlink_request *req, uint16_t type, uint16_t flags, size_t size)
{
	req->nlh = mnl_nlmsg_put_header(req->buf);
	req->nlh->nlmsg_type = type;
	req->nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	return mnl_nlmsg_put_extra_header(req->nlh, size);
}

/* Waits until `fd` is readable or CLOCK_MONOTONIC reaches `until_us`. */
static int wait_readable(int fd, uint64_t until_us)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_mono_us();
		int r;

		if (now >= until_us)
			return -ETIMEDOUT;
		r = poll(&pfd, 1, (int)((until_us - now) / 1000 + 1));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/* Reads until the acknowledgement, error or end of dump of what was sent under number `seq`; 0: any. */
static int read_answer(struct netlink *nl, uint32_t seq, mnl_cb_t cb, void *arg)
{
	_Alignas(struct nlmsghdr) static uint8_t answer[NETLINK_ANSWER];
	uint64_t until = clock_mono_us() + NETLINK_WAIT_MS * 1000;
	int r;

	do {
		ssize_t n = recv(nl->fd, answer, sizeof(answer), 0);

		if (n >= 0) {
			r = mnl_cb_run(answer, (size_t)n, seq, 0, cb, arg);
			if (r < 0)
				r = -errno;
		} else if (errno == EAGAIN) {
			r = wait_readable(nl->fd, until);
			r = r ? r : MNL_CB_OK;
		} else {
			r = errno == EINTR ? MNL_CB_OK : -errno;
		}
	} while (r == MNL_CB_OK);
	return r;
}

int netlink_talk(struct netlink *nl, struct netlink_request *req, mnl_cb_t cb, void *arg)
{
	req->nlh->nlmsg_seq = ++nl->seq;
	if ((req->nlh->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		req->nlh->nlmsg_flags |= NLM_F_ACK;
	if (send(nl->fd, req->nlh, req->nlh->nlmsg_len, 0) < 0)
		return -errno;
	return read_answer(nl, nl->seq, cb, arg);
}

int netlink_send_batch(struct netlink *nl, const void *batch, size_t len)
{
	if (send(nl->fd, batch, len, 0) < 0)
		return -errno;
	return read_answer(nl, 0, NULL, NULL);
}

/* IFLA_GSO_IPV4_MAX_SIZE of Linux 6.3, which headers may not have yet; a kernel that does not know it overlooks it. */
#define GSO_IPV4_MAX_SIZE 63

static void put_end(struct nlmsghdr *nlh, const struct netlink_end *end)
{
	mnl_attr_put_strz(nlh, IFLA_IFNAME, end->name);
	mnl_attr_put(nlh, IFLA_ADDRESS, NETLINK_MAC, end->mac);
	mnl_attr_put_u32(nlh, IFLA_GROUP, end->group);
	if (end->mtu)
		mnl_attr_put_u32(nlh, IFLA_MTU, end->mtu);
	if (end->gso_max)
		mnl_attr_put_u32(nlh, GSO_IPV4_MAX_SIZE, end->gso_max);
	/* One queue, whatever the number of processors: a queue costs memory, and a sandbox has one gate. */
	mnl_attr_put_u32(nlh, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(nlh, IFLA_NUM_RX_QUEUES, 1);
}

int netlink_add_veth(struct netlink *nl, const struct netlink_end *near, const struct netlink_end *far, int far_netns)
{
	struct nlattr *info, *data, *peer;
	struct netlink_request req;

	netlink_begin(&req, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	put_end(req.nlh, near);
	info = mnl_attr_nest_start(req.nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(req.nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(req.nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(req.nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(req.nlh, sizeof(struct ifinfomsg));
	put_end(req.nlh, far);
	mnl_attr_put_u32(req.nlh, IFLA_NET_NS_FD, (uint32_t)far_netns);
	mnl_attr_nest_end(req.nlh, peer);
	mnl_attr_nest_end(req.nlh, data);
	mnl_attr_nest_end(req.nlh, info);
	return netlink_talk(nl, &req, NULL, NULL);
}

static int link_index_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	int *index = arg;

	*index = ifi->ifi_index;
	return MNL_CB_OK;
}

int netlink_find_link(struct netlink *nl, const char *name, int *index)
{
	struct netlink_request req;
	int r;

	*index = 0;
	netlink_begin(&req, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(req.nlh, IFLA_IFNAME, name);
	r = netlink_talk(nl, &req, link_index_cb, index);
	return r ? r : *index > 0 ? 0 : -ENODEV;
}

int netlink_del_link(struct netlink *nl, int index)
{
	struct netlink_request req;
	struct ifinfomsg *ifi = netlink_begin(&req, RTM_DELLINK, 0, sizeof(*ifi));
	int r;

	ifi->ifi_index = index;
	r = netlink_talk(nl, &req, NULL, NULL);
	return r == -ENODEV ? 0 : r;
}

int netlink_set_mac(struct netlink *nl, int index, const uint8_t mac[NETLINK_MAC])
{
	struct netlink_request req;
	struct ifinfomsg *ifi = netlink_begin(&req, RTM_NEWLINK, 0, sizeof(*ifi));

	ifi->ifi_index = index;
	mnl_attr_put(req.nlh, IFLA_ADDRESS, NETLINK_MAC, mac);
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_set_up(struct netlink *nl, int index)
{
	struct netlink_request req;
	struct ifinfomsg *ifi = netlink_begin(&req, RTM_NEWLINK, 0, sizeof(*ifi));

	ifi->ifi_index = index;
	ifi->ifi_flags = IFF_UP;
	ifi->ifi_change = IFF_UP;
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_add_clsact(struct netlink *nl, int index)
{
	struct netlink_request req;
	struct tcmsg *tc = netlink_begin(&req, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, sizeof(*tc));

	tc->tcm_ifindex = index;
	tc->tcm_parent = TC_H_CLSACT;
	tc->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	mnl_attr_put_strz(req.nlh, TCA_KIND, "clsact");
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_move(struct netlink *nl, int index, int netns, const char *name)
{
	struct netlink_request req;
	struct ifinfomsg *ifi = netlink_begin(&req, RTM_NEWLINK, 0, sizeof(*ifi));

	ifi->ifi_index = index;
	ifi->ifi_change = IFF_UP;
	mnl_attr_put_u32(req.nlh, IFLA_NET_NS_FD, (uint32_t)netns);
	mnl_attr_put_strz(req.nlh, IFLA_IFNAME, name);
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_set_no_link_local(struct netlink *nl, int index)
{
	struct netlink_request req;
	struct ifinfomsg *ifi = netlink_begin(&req, RTM_NEWLINK, 0, sizeof(*ifi));
	struct nlattr *spec, *inet6;

	ifi->ifi_index = index;
	spec = mnl_attr_nest_start(req.nlh, IFLA_AF_SPEC);
	inet6 = mnl_attr_nest_start(req.nlh, AF_INET6);
	mnl_attr_put_u8(req.nlh, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(req.nlh, inet6);
	mnl_attr_nest_end(req.nlh, spec);
	return netlink_talk(nl, &req, NULL, NULL);
}

/* Waits for the next event on `events`, and forgets it. */
static int wait_event(struct netlink *events, uint64_t until_us)
{
	uint8_t scrap[4096];
	int r = wait_readable(events->fd, until_us);

	if (r)
		return r;
	/* ENOBUFS (events were lost) is as good an occasion to look again as an event. */
	if (recv(events->fd, scrap, sizeof(scrap), 0) < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		return -errno;
	return 0;
}

/* Subscribes to a group. Unbound sockets have port 0, which is the kernel's own: it would not send them its events. */
static int subscribe(struct netlink *events, int group)
{
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };

	if (bind(events->fd, (struct sockaddr *)&any, sizeof(any)) ||
	    setsockopt(events->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		return -errno;
	return 0;
}

int netlink_wait(struct netlink *nl, int group, int (*check)(struct netlink *nl, void *arg), void *arg, unsigned ms)
{
	__attribute__((cleanup(netlink_close))) struct netlink events = { .fd = -1 };
	uint64_t until = clock_mono_us() + (uint64_t)ms * 1000;
	int r;

	/* The usual case needs no events. */
	r = check(nl, arg);
	if (r)
		return r < 0 ? r : 0;
	r = netlink_open(&events, NETLINK_ROUTE);
	if (r == 0)
		r = subscribe(&events, group);
	if (r)
		return r;
	while ((r = check(nl, arg)) == 0) {
		uint64_t look = clock_mono_us() + NETLINK_LOOK_MS * 1000;

		/* The event can come before what it tells of, and be the last one: so look again now and then. */
		r = wait_event(&events, look < until ? look : until);
		if (r && (r != -ETIMEDOUT || clock_mono_us() >= until))
			return r;
	}
	return r < 0 ? r : 0;
}

static int link_flags_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	unsigned *flags = arg;

	*flags = ifi->ifi_flags;
	return MNL_CB_OK;
}

static int is_running(struct netlink *nl, void *arg)
{
	struct netlink_request req;
	struct ifinfomsg *ifi = netlink_begin(&req, RTM_GETLINK, 0, sizeof(*ifi));
	unsigned flags = 0;
	int r;

	ifi->ifi_index = *(const int *)arg;
	r = netlink_talk(nl, &req, link_flags_cb, &flags);
	return r ? r : (flags & IFF_RUNNING) != 0;
}

int netlink_wait_running(struct netlink *nl, int index)
{
	return netlink_wait(nl, RTNLGRP_LINK, is_running, &index, NETLINK_WAIT_MS);
}

static int route_type_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(nlh);
	uint8_t *type = arg;

	*type = rt->rtm_type;
	return MNL_CB_OK;
}

static int is_local(struct netlink *nl, void *arg)
{
	const struct addr *addr = arg;
	struct netlink_request req;
	struct rtmsg *rt = netlink_begin(&req, RTM_GETROUTE, 0, sizeof(*rt));
	uint8_t type = RTN_UNSPEC;
	int r;

	rt->rtm_family = AF_INET6;
	rt->rtm_dst_len = 128;
	mnl_attr_put(req.nlh, RTA_DST, addr_size(addr), addr->b);
	r = netlink_talk(nl, &req, route_type_cb, &type);
	/* Without any route yet, the answer is an error. */
	return r == -ENETUNREACH || r == -EHOSTUNREACH ? 0 : r ? r : type == RTN_LOCAL;
}

int netlink_wait_local(struct netlink *nl, const struct addr *addr)
{
	return netlink_wait(nl, RTNLGRP_IPV6_ROUTE, is_local, (void *)addr, NETLINK_WAIT_MS);
}

static uint8_t family_of(const struct addr *addr)
{
	return addr->family == ADDR_V4 ? AF_INET : AF_INET6;
}

int netlink_add_addr(struct netlink *nl, int index, const struct addr *addr, unsigned plen)
{
	struct netlink_request req;
	struct ifaddrmsg *ifa = netlink_begin(&req, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*ifa));

	ifa->ifa_family = family_of(addr);
	ifa->ifa_prefixlen = (uint8_t)plen;
	ifa->ifa_index = (uint32_t)index;
	ifa->ifa_flags = addr->family == ADDR_V6 ? IFA_F_NODAD : 0;
	mnl_attr_put(req.nlh, IFA_LOCAL, addr_size(addr), addr->b);
	mnl_attr_put(req.nlh, IFA_ADDRESS, addr_size(addr), addr->b);
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_add_neigh(struct netlink *nl, int index, const struct addr *addr, const uint8_t mac[NETLINK_MAC])
{
	struct netlink_request req;
	struct ndmsg *nd = netlink_begin(&req, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*nd));

	nd->ndm_family = family_of(addr);
	nd->ndm_ifindex = index;
	nd->ndm_state = NUD_PERMANENT;
	mnl_attr_put(req.nlh, NDA_DST, addr_size(addr), addr->b);
	mnl_attr_put(req.nlh, NDA_LLADDR, NETLINK_MAC, mac);
	return netlink_talk(nl, &req, NULL, NULL);
}

/* Begins a route of table main: the default one, unless told otherwise. */
static void begin_route(struct netlink_request *req, uint16_t flags, uint8_t family, uint8_t type, uint8_t scope,
			int index)
{
	struct rtmsg *rt = netlink_begin(req, RTM_NEWROUTE, NLM_F_CREATE | flags, sizeof(*rt));

	rt->rtm_family = family;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_type = type;
	rt->rtm_scope = scope;
	mnl_attr_put_u32(req->nlh, RTA_OIF, (uint32_t)index);
}

static int put_default(struct netlink *nl, uint16_t flags, int index, const struct addr *gateway,
		       const char *congestion)
{
	struct netlink_request req;
	struct nlattr *metrics;

	begin_route(&req, flags, family_of(gateway), RTN_UNICAST, RT_SCOPE_UNIVERSE, index);
	mnl_attr_put(req.nlh, RTA_GATEWAY, addr_size(gateway), gateway->b);
	metrics = mnl_attr_nest_start(req.nlh, RTA_METRICS);
	mnl_attr_put_strz(req.nlh, RTAX_CC_ALGO, congestion);
	mnl_attr_nest_end(req.nlh, metrics);
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_add_host(struct netlink *nl, int index, const struct addr *host, uint32_t mtu)
{
	struct netlink_request req;
	struct nlattr *metrics;

	begin_route(&req, NLM_F_EXCL, family_of(host), RTN_UNICAST, RT_SCOPE_LINK, index);
	((struct rtmsg *)mnl_nlmsg_get_payload(req.nlh))->rtm_dst_len = (uint8_t)(8 * addr_size(host));
	mnl_attr_put(req.nlh, RTA_DST, addr_size(host), host->b);
	metrics = mnl_attr_nest_start(req.nlh, RTA_METRICS);
	mnl_attr_put_u32(req.nlh, RTAX_MTU, mtu);
	mnl_attr_nest_end(req.nlh, metrics);
	return netlink_talk(nl, &req, NULL, NULL);
}

int netlink_add_default(struct netlink *nl, int index, const struct addr *gateway, const char *congestion)
{
	return put_default(nl, NLM_F_EXCL, index, gateway, congestion);
}

int netlink_set_default(struct netlink *nl, int index, const struct addr *gateway, const char *congestion)
{
	return put_default(nl, NLM_F_REPLACE, index, gateway, congestion);
}

int netlink_del_route(struct netlink *nl, int index, const struct addr *network, unsigned plen)
{
	struct netlink_request req;
	struct rtmsg *rt = netlink_begin(&req, RTM_DELROUTE, 0, sizeof(*rt));
	int r;

	rt->rtm_family = family_of(network);
	rt->rtm_dst_len = (uint8_t)plen;
	rt->rtm_table = RT_TABLE_MAIN;
	rt->rtm_scope = RT_SCOPE_NOWHERE; /* whichever it has */
	mnl_attr_put(req.nlh, RTA_DST, addr_size(network), network->b);
	mnl_attr_put_u32(req.nlh, RTA_OIF, (uint32_t)index);
	r = netlink_talk(nl, &req, NULL, NULL);
	return r == -ESRCH ? 0 : r;
}

int netlink_add_catch_all(struct netlink *nl, int index, enum addr_family family)
{
	struct netlink_request req;

	begin_route(&req, NLM_F_EXCL, family == ADDR_V4 ? AF_INET : AF_INET6, RTN_LOCAL, RT_SCOPE_HOST, index);
	return netlink_talk(nl, &req, NULL, NULL);
}
