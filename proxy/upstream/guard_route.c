/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RTM_GETROUTE by hand: one request of fixed form, one reply, so a library
 * would be no shorter. The kernel answers within sendto(), so that the reply is
 * there when it returns; nothing is waited for, and no reply is a failure.
 */
#include "proxy/upstream/guard_route.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLIES_MAX 16 /* left-overs of earlier requests that are read over */

struct request {
	struct nlmsghdr nl;
	struct rtmsg rt;
	struct rtattr dst;
	uint8_t addr[16];
};

int guard_route_open(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	/* Connected to the kernel (port 0): a message of another process is not taken for an answer. */
	if (connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* Reads the attributes behind a struct rtmsg; false when they don't add up. */
static bool parse_route(const struct nlmsghdr *nl, struct guard_route *route)
{
	const struct rtmsg *rt = NLMSG_DATA(nl);
	const struct rtattr *attr;
	int left;

	if (nl->nlmsg_type != RTM_NEWROUTE || nl->nlmsg_len < NLMSG_LENGTH(sizeof(*rt)))
		return false;
	*route = (struct guard_route){ .type = rt->rtm_type, .plen = rt->rtm_dst_len };
	left = (int)(nl->nlmsg_len - NLMSG_LENGTH(sizeof(*rt)));
	for (attr = RTM_RTA(rt); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == RTA_GATEWAY || attr->rta_type == RTA_VIA)
			route->gateway = true;
		else if (attr->rta_type == RTA_OIF && RTA_PAYLOAD(attr) >= sizeof(route->ifindex))
			memcpy(&route->ifindex, RTA_DATA(attr), sizeof(route->ifindex));
	}
	return true;
}

/* One datagram of the socket. Returns 1 when it answers `seq`, 0 for another one, or -errno. */
static int read_reply(int fd, uint32_t seq, struct guard_route *route)
{
	_Alignas(struct nlmsghdr) uint8_t buf[4096];
	const struct nlmsghdr *nl = (const struct nlmsghdr *)buf;
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (!NLMSG_OK(nl, (size_t)n) || nl->nlmsg_seq != seq)
		return 0;
	if (nl->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = NLMSG_DATA(nl);

		/* An acknowledgement was not asked for: error 0 answers nothing. */
		return nl->nlmsg_len >= NLMSG_LENGTH(sizeof(*e)) && e->error < 0 ? e->error : -EPROTO;
	}
	return parse_route(nl, route) ? 1 : -EPROTO;
}

int guard_route_lookup(int fd, uint32_t *seq, const struct addr *a, bool match, struct guard_route *route)
{
	size_t size = addr_size(a);
	struct request req = {
		.nl = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++*seq },
		.rt = { .rtm_family = a->family == ADDR_V4 ? AF_INET : AF_INET6,
			.rtm_dst_len = (unsigned char)(size * 8),
			.rtm_flags = match ? RTM_F_FIB_MATCH : 0 },
		.dst = { .rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(size) },
	};
	int r = 0;

	if (size == 0)
		return -EAFNOSUPPORT;
	memcpy(req.addr, a->b, size);
	req.nl.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(req.rt)) + RTA_LENGTH(size));
	if (send(fd, &req, req.nl.nlmsg_len, 0) < 0)
		return -errno;
	for (int i = 0; i < REPLIES_MAX && r == 0; i++)
		r = read_reply(fd, *seq, route);
	if (r == 0)
		return -EPROTO;
	return r < 0 ? r : 0;
}
