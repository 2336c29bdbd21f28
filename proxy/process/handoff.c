/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. What is handed over is looked at: a socket of another kind, or of another network namespace, would be
 * served all the same, and who is at its other end would not be the sandbox.
 */
#include "proxy/process/handoff.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fdpass.h"

static const struct kind {
	const char *name;
	int domain, type, protocol, listens;
} kinds[] = {
	[HANDOFF_TCP4] = { "listener for IPv4", AF_INET, SOCK_STREAM, IPPROTO_TCP, 1 },
	[HANDOFF_TCP6] = { "listener for IPv6", AF_INET6, SOCK_STREAM, IPPROTO_TCP, 1 },
	[HANDOFF_UDP4] = { "DNS socket for IPv4", AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0 },
	[HANDOFF_UDP6] = { "DNS socket for IPv6", AF_INET6, SOCK_DGRAM, IPPROTO_UDP, 0 },
	[HANDOFF_NFLOG] = { "NFLOG socket", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, 0 },
	[HANDOFF_NFT] = { "socket for counters", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, 0 },
	[HANDOFF_LINK] = { "socket for links", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0 },
	[HANDOFF_GUEST] = { "socket for a guest", AF_PACKET, SOCK_RAW, 0, 0 },
};

static_assert(sizeof(kinds) / sizeof(*kinds) == HANDOFF_FDS, "a kind for each descriptor");

static bool has_option(int fd, int option, int want)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == want;
}

static bool is_kind(int fd, const struct kind *k)
{
	return has_option(fd, SO_DOMAIN, k->domain) && has_option(fd, SO_TYPE, k->type) &&
	       has_option(fd, SO_PROTOCOL, k->protocol) && has_option(fd, SO_ACCEPTCONN, k->listens) &&
	       fcntl(fd, F_GETFL) & O_NONBLOCK;
}

/* The number of a socket's network namespace; 0 where the kernel does not say (before Linux 5.14). */
static uint64_t namespace_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

static int check_gate(const int *gate, size_t n, struct err *err)
{
	int own = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t here, there;

	if (own < 0)
		return err_set_errno(err, errno, "proxy: socket");
	here = namespace_of(own);
	close(own);
	there = namespace_of(gate[0]);
	if (here != 0 && here == there)
		return err_set(err, "proxy: the launcher handed over sockets of the proxy's own network");
	for (size_t i = 0; i < n; i++)
		if (!is_kind(gate[i], &kinds[i]) || namespace_of(gate[i]) != there)
			return err_set(err, "proxy: what the launcher handed over is no %s of the gate", kinds[i].name);
	return 0;
}

int handoff_take_gate(int fd, int gate[static HANDOFF_FDS], struct handoff_msg *msg, struct err *err)
{
	size_t n_fds = 0;
	ssize_t n;

	gate[HANDOFF_GUEST] = -1;
	do
		n = fdpass_recv(fd, msg, sizeof(*msg), gate, HANDOFF_FDS, &n_fds);
	while (n == -EINTR);
	if (n != sizeof(*msg) || msg->magic != HANDOFF_MAGIC || msg->type != HANDOFF_GATE ||
	    (n_fds != HANDOFF_FDS && n_fds != HANDOFF_GUEST) || !layout_ok(&msg->layout) ||
	    !memchr(msg->tap, '\0', sizeof(msg->tap)))
		return -1;
	return check_gate(gate, n_fds, err);
}

int handoff_say(int fd, enum handoff_type type)
{
	const struct handoff_msg msg = { .magic = HANDOFF_MAGIC, .type = type };

	return fdpass_send(fd, &msg, sizeof(msg), NULL, 0);
}

int handoff_take_order(int fd, uint32_t holder[static RESOURCE_COUNT])
{
	struct handoff_msg msg;
	size_t n_fds = 0;
	ssize_t n = fdpass_recv(fd, &msg, sizeof(msg), NULL, 0, &n_fds);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n != sizeof(msg) || msg.magic != HANDOFF_MAGIC || msg.type != HANDOFF_ARM)
		return -1;
	memcpy(holder, msg.holder, sizeof(msg.holder));
	return 1;
}
