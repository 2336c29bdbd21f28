/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exact look-up (SOCK_DIAG_BY_FAMILY without NLM_F_DUMP): a hash look-up
 * in the kernel, where a dump would walk through every socket of the
 * namespace. The kernel has the answer ready when the request is sent.
 */
#include "proxy/process/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define SOCKDIAG_STALE 8 /* answers to earlier questions that are passed over */

int sockdiag_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

static void put_endpoint(const struct endpoint *e, __be32 addr[static 4], __be16 *port)
{
	memcpy(addr, e->addr.b, addr_size(&e->addr));
	*port = htons(e->port);
}

size_t sockdiag_request(const struct sockdiag_query *q, void *buf)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct inet_diag_req_v2 *req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	/* For UDP the kernel takes the two the other way round (udp_dump_one()). */
	bool swapped = q->protocol == IPPROTO_UDP;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = q->seq;
	req->sdiag_family = q->local.addr.family == ADDR_V4 ? AF_INET : AF_INET6;
	req->sdiag_protocol = q->protocol;
	req->idiag_states = ~0u;
	put_endpoint(swapped ? &q->remote : &q->local, req->id.idiag_src, &req->id.idiag_sport);
	put_endpoint(swapped ? &q->local : &q->remote, req->id.idiag_dst, &req->id.idiag_dport);
	req->id.idiag_if = q->ifindex;
	req->id.idiag_cookie[0] = req->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return nlh->nlmsg_len;
}

int sockdiag_answer(const struct sockdiag_query *q, const void *buf, size_t len, uint32_t *inode)
{
	const struct nlmsghdr *nlh = buf;
	const struct inet_diag_msg *msg;
	const struct nlmsgerr *error;

	if (len > INT32_MAX || !mnl_nlmsg_ok(nlh, (int)len))
		return -EBADMSG;
	if (nlh->nlmsg_seq != q->seq)
		return -EAGAIN;
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*error))
			return -EBADMSG;
		error = mnl_nlmsg_get_payload(nlh);
		return error->error < 0 ? error->error : -EBADMSG;
	}
	if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return -EBADMSG;
	msg = mnl_nlmsg_get_payload(nlh);
	/* In place of a connection that is gone, the kernel may answer with a socket that listens on the port. */
	if (msg->id.idiag_sport != htons(q->local.port) ||
	    (q->protocol == IPPROTO_TCP && msg->id.idiag_dport != htons(q->remote.port)) || msg->idiag_inode == 0)
		return -ENOENT;
	*inode = msg->idiag_inode;
	return 0;
}

int sockdiag_inode(int fd, const struct sockdiag_query *q, uint32_t *inode)
{
	_Alignas(struct nlmsghdr) uint8_t buf[SOCKDIAG_MAX];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	size_t len = sockdiag_request(q, buf);

	if (sendto(fd, buf, len, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	for (int i = 0; i < SOCKDIAG_STALE; i++) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		int r = n < 0 ? -errno : sockdiag_answer(q, buf, (size_t)n, inode);

		if (n < 0 || r != -EAGAIN)
			return r == -EAGAIN ? -EPROTO : r;
	}
	return -EPROTO;
}
