/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of G. What needs a privilege is done here once (IP_TRANSPARENT,
 * port 53, the NFLOG group), so that their user needs none.
 */
#include "sandbox-net/gate/sockets.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/handoff.h"
#include "sandbox-net/gate/netlink.h"

#define SOCKETS_BACKLOG	      4096	/* the kernel's own ceiling (net.core.somaxconn) for a new namespace */
#define SOCKETS_NFLOG_BUFFER  (8 << 20) /* bytes: 150,000 packets a second without loss */
#define SOCKETS_UDP_BUFFER    (1 << 20)
#define SOCKETS_LINK_BUFFER   (1 << 20)
#define SOCKETS_GUEST_SNAPLEN (14 + GATE_MTU)
#define SOCKETS_NFLOG_SNAPLEN 1600 /* a whole datagram, so that a QUIC Initial can be read */

/* Sets an int option. Returns 0 or -1. */
static int set(int fd, int level, int option, int value, const char *what, struct err *err)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		return err_set_errno(err, errno, "%s", what);
	return 0;
}

/* Asks for a receive buffer; without root over the host it is at most net.core.rmem_max. */
static void set_receive_buffer(int fd, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

/* Binds to the wildcard address. */
static int bind_port(int fd, int family, uint16_t port, struct err *err)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	bool is4 = family == AF_INET;

	if (bind(fd, is4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, is4 ? sizeof(v4) : sizeof(v6)))
		return err_set_errno(err, errno, "bind to port %u", (unsigned)port);
	return 0;
}

static int set_transparent(int fd, int family, struct err *err)
{
	if (family == AF_INET)
		return set(fd, SOL_IP, IP_TRANSPARENT, 1, "IP_TRANSPARENT", err);
	if (set(fd, SOL_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY", err))
		return -1;
	return set(fd, SOL_IPV6, IPV6_TRANSPARENT, 1, "IPV6_TRANSPARENT", err);
}

static int open_socket(int family, int type, int protocol, struct err *err)
{
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		err_set_errno(err, errno, "%s socket",
			      family == AF_INET	   ? "IPv4"
			      : family == AF_INET6 ? "IPv6"
						   : "netlink");
	return fd;
}

/* Fills *out as soon as there is something to close. The same holds for the functions below. */
static int open_tcp(int family, int *out, struct err *err)
{
	int fd = *out = open_socket(family, SOCK_STREAM, 0, err);

	if (fd < 0 || set(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR", err) || set_transparent(fd, family, err) ||
	    bind_port(fd, family, GATE_TCP_PORT, err))
		return -1;
	/* Accepted sockets inherit it. Where the kernel lacks it, its default is only slower. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, GATE_CONGESTION, sizeof(GATE_CONGESTION) - 1);
	if (listen(fd, SOCKETS_BACKLOG))
		return err_set_errno(err, errno, "listen");
	return 0;
}

/* Where a datagram was sent to comes with it, and the answer is sent from there: see ip(7), IP_PKTINFO. */
static int open_dns(int family, int *out, struct err *err)
{
	int fd = *out = open_socket(family, SOCK_DGRAM, 0, err);

	if (fd < 0 || set_transparent(fd, family, err))
		return -1;
	if (family == AF_INET) {
		if (set(fd, SOL_IP, IP_RECVORIGDSTADDR, 1, "IP_RECVORIGDSTADDR", err) ||
		    set(fd, SOL_IP, IP_PKTINFO, 1, "IP_PKTINFO", err))
			return -1;
	} else if (set(fd, SOL_IPV6, IPV6_RECVORIGDSTADDR, 1, "IPV6_RECVORIGDSTADDR", err) ||
		   set(fd, SOL_IPV6, IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO", err)) {
		return -1;
	}
	set_receive_buffer(fd, SOCKETS_UDP_BUFFER);
	return bind_port(fd, family, 53, err);
}

/* Begins an NFULNL_MSG_CONFIG request about our group. */
static void begin_nflog(struct netlink_request *req)
{
	struct nfgenmsg *nfg = netlink_begin(req, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, 0, sizeof(*nfg));

	nfg->nfgen_family = AF_UNSPEC;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(GATE_NFLOG_GROUP);
}

static int open_nflog(int *out, struct err *err)
{
	struct nfulnl_msg_config_mode mode = { .copy_range = htonl(SOCKETS_NFLOG_SNAPLEN),
					       .copy_mode = NFULNL_COPY_PACKET };
	struct nfulnl_msg_config_cmd bind_cmd = { .command = NFULNL_CFG_CMD_BIND };
	struct netlink nl = { .fd = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, err) };
	struct netlink_request req;
	int r;

	*out = nl.fd;
	if (nl.fd < 0)
		return -1;
	set_receive_buffer(nl.fd, SOCKETS_NFLOG_BUFFER);
	begin_nflog(&req);
	mnl_attr_put(req.nlh, NFULA_CFG_CMD, sizeof(bind_cmd), &bind_cmd);
	r = netlink_talk(&nl, &req, NULL, NULL);
	if (r)
		return err_set_errno(err, -r, "bind to the NFLOG group (is nfnetlink_log available?)");
	begin_nflog(&req);
	mnl_attr_put(req.nlh, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u16(req.nlh, NFULA_CFG_FLAGS, htons(NFULNL_CFG_F_SEQ));
	r = netlink_talk(&nl, &req, NULL, NULL);
	return r ? err_set_errno(err, -r, "configure the NFLOG group") : 0;
}

/*
 * When S is gone, so is gw0, and this socket says so. Bound, since the kernel sends its events to nobody else. It also hears of S's own links,
 * as soon as one of them is the other end of gw0; to ask for that takes CAP_NET_BROADCAST, without which it does not (ATTACH_NOTE_DEAF).
 */
static int open_link(int *out, struct err *err)
{
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int fd = *out = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, err);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
		return err_set_errno(err, errno, "bind the socket for links");
	set_receive_buffer(fd, SOCKETS_LINK_BUFFER);
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &(int){ 1 }, sizeof(int));
	return set(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_LINK, "NETLINK_ADD_MEMBERSHIP", err);
}

int sockets_open(int *fds, struct err *err)
{
	for (int i = 0; i < HANDOFF_FDS; i++)
		fds[i] = -1;
	if (open_tcp(AF_INET, &fds[HANDOFF_TCP4], err) || open_tcp(AF_INET6, &fds[HANDOFF_TCP6], err) ||
	    open_dns(AF_INET, &fds[HANDOFF_UDP4], err) || open_dns(AF_INET6, &fds[HANDOFF_UDP6], err) ||
	    open_nflog(&fds[HANDOFF_NFLOG], err) || open_link(&fds[HANDOFF_LINK], err))
		goto fail;
	fds[HANDOFF_NFT] = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, err);
	if (fds[HANDOFF_NFT] >= 0)
		return 0;
fail:
	sockets_close(fds);
	return -1;
}

/*
 * What the guest asks of its gateway, from its own MAC. Offsets are those of an
 * Ethernet frame: type at 12, IPv4 header at 14 (fragment at 20, protocol at
 * 23), IPv6 at 14 (next header at 20), ICMPv6 type at 54.
 */
static int attach_guest_filter(int fd, struct err *err)
{
	static const uint8_t mac[] = { GATE_SANDBOX_MAC_BYTES };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 | (uint32_t)mac[2] << 8 | mac[3], 0, 18),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 10),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)mac[4] << 8 | mac[5], 0, 16),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_ARP, 13, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 12),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 10),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 8, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 67, 4, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 54),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ND_NEIGHBOR_SOLICIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SOCKETS_GUEST_SNAPLEN),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		return err_set_errno(err, errno, "filter of the packet socket");
	return set(fd, SOL_SOCKET, SO_LOCK_FILTER, 1, "SO_LOCK_FILTER", err);
}

int sockets_open_guest(int gw, int *fd, struct err *err)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = gw };

	/* Protocol 0: nothing arrives before the filter is in place. */
	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return err_set_errno(err, errno, "packet socket (is AF_PACKET available?)");
	if (attach_guest_filter(*fd, err) ||
	    set(*fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING", err))
		goto fail;
	if (bind(*fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return 0;
	err_set_errno(err, errno, "bind the packet socket");
fail:
	close(*fd);
	*fd = -1;
	return -1;
}

void sockets_close(int *fds)
{
	for (int i = 0; i < HANDOFF_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}
