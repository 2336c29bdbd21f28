/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtnetlink requests, each acknowledged by the kernel before the function
 * returns. Every function returns 0 or -errno; -ETIMEDOUT when there is no answer within NETLINK_WAIT_MS.
 */
#ifndef SANDBOX_NET_NETLINK_H
#define SANDBOX_NET_NETLINK_H

#include <libmnl/libmnl.h>
#include <stdint.h>

#include "base/addr.h"

#define NETLINK_WAIT_MS 2000
#define NETLINK_LOOK_MS 5 /* between two looks while an event is awaited */
#define NETLINK_MAC	6
#define NETLINK_REQUEST 1024 /* bytes; no request of ours comes near */

struct netlink {
	int fd;
	uint32_t seq;
};

/* A request under construction: netlink_begin(), then mnl_attr_put*() on `nlh`. */
struct netlink_request {
	_Alignas(struct nlmsghdr) uint8_t buf[NETLINK_REQUEST];
	struct nlmsghdr *nlh;
};

/* One end of a veth pair. */
struct netlink_end {
	const char *name;
	uint8_t mac[NETLINK_MAC];
	uint32_t group;
	uint32_t mtu;	  /* bytes; 0: as the kernel has it, 1500 */
	uint32_t gso_max; /* bytes that TCP over IPv4 may pass to it in one piece; 0: as the kernel has it, 64 KB */
};

/* Opens a socket of the present network namespace (NETLINK_ROUTE, …). */
int netlink_open(struct netlink *nl, int protocol);

/* Closes it; also fit for __attribute__((cleanup)) on a struct whose fd is -1 while closed. */
void netlink_close(struct netlink *nl);

/* Begins a request of `type` with `flags` beside NLM_F_REQUEST and a zeroed extra header of `size` bytes, returned. */
void *netlink_begin(struct netlink_request *req, uint16_t type, uint16_t flags, size_t size);

/*
 * Sends a request and reads until its acknowledgement, error or end of dump.
 * `cb` (may be NULL) gets each message before that; what it returns is as for mnl_cb_run().
 */
int netlink_talk(struct netlink *nl, struct netlink_request *req, mnl_cb_t cb, void *arg);

/*
 * Sends an nfnetlink batch of `len` bytes, whose messages are numbered 0 and of which only the last asks to be acknowledged.
 * The first answer thus says how all of it went: an error, of any of them, comes before the acknowledgement.
 */
int netlink_send_batch(struct netlink *nl, const void *batch, size_t len);

/* Makes a veth pair: `near` in the socket's namespace, `far` in that of descriptor `far_netns`; both down. */
int netlink_add_veth(struct netlink *nl, const struct netlink_end *near, const struct netlink_end *far, int far_netns);

/* The index of a link by name. */
int netlink_find_link(struct netlink *nl, const char *name, int *index);

/* Takes a link away, and the other end of a veth pair with it, before it returns; where there is none, that is no error. */
int netlink_del_link(struct netlink *nl, int index);

/* Sets a link's hardware address. */
int netlink_set_mac(struct netlink *nl, int index, const uint8_t mac[NETLINK_MAC]);

/* Sets IFF_UP. */
int netlink_set_up(struct netlink *nl, int index);

/*
 * Gives the link a place for filters (clsact), before it is up: later, the kernel takes the link's queue away while it
 * does that, and what is sent meanwhile is dropped, uncounted. -ENOENT where the kernel has no sch_ingress.
 */
int netlink_add_clsact(struct netlink *nl, int index);

/* Moves a link to the network namespace of descriptor `netns`, where `name` is its name; it is down there, without addresses. */
int netlink_move(struct netlink *nl, int index, int netns, const char *name);

/* No IPv6 link-local address, hence no router solicitation either: IFLA_INET6_ADDR_GEN_MODE none. */
int netlink_set_no_link_local(struct netlink *nl, int index);

/* Waits until the link can carry packets; IFF_UP alone comes before its queue is in place, and drops them. */
int netlink_wait_running(struct netlink *nl, int index);

/*
 * Adds an address; IPv6 without duplicate address detection. The kernel makes
 * an IPv6 address its own a little later, from a work queue: see netlink_wait_local().
 */
int netlink_add_addr(struct netlink *nl, int index, const struct addr *addr, unsigned plen);

/* Waits until packets to this IPv6 address of ours are delivered; until then they are dropped. */
int netlink_wait_local(struct netlink *nl, const struct addr *addr);

/* Adds a permanent neighbour entry. */
int netlink_add_neigh(struct netlink *nl, int index, const struct addr *addr, const uint8_t mac[NETLINK_MAC]);

/* Adds a route to one address, which is at the other end of the link, for packets of at most `mtu` bytes; the link must be up. */
int netlink_add_host(struct netlink *nl, int index, const struct addr *host, uint32_t mtu);

/* Adds a default route over `gateway` to table main; TCP over it uses `congestion` (RTAX_CC_ALGO). */
int netlink_add_default(struct netlink *nl, int index, const struct addr *gateway, const char *congestion);

/* The same in place of the default route that is there, if any. */
int netlink_set_default(struct netlink *nl, int index, const struct addr *gateway, const char *congestion);

/* Takes the link's route to this network out of table main; where there is none, that is no error. */
int netlink_del_route(struct netlink *nl, int index, const struct addr *network, unsigned plen);

/*
 * Looks, with `check`, until that returns 1 instead of 0, again at each event of rtnetlink group `group`. Its errors (-errno) are
 * passed on; -ETIMEDOUT after `ms` milliseconds.
 */
int netlink_wait(struct netlink *nl, int group, int (*check)(struct netlink *nl, void *arg), void *arg, unsigned ms);

/* Makes every address without a better route local (RTN_LOCAL in table main); `index` is that of lo. */
int netlink_add_catch_all(struct netlink *nl, int index, enum addr_family family);

#endif
