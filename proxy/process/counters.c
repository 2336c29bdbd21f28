/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dump of nf_tables' counter objects (NFT_MSG_GETOBJ), parsed by libmnl.
 * The reader is the monitor: it holds privileges, so it takes nothing from the
 * socket but messages that the kernel itself sent in answer to this request.
 */
#include "proxy/process/counters.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define COUNTERS_ANSWER	 32768 /* bytes; the kernel fills at most this much of a dump at a time */
#define COUNTERS_REQUEST 256
#define COUNTERS_ATTRS	 16
#define COUNTERS_TRIES	 3   /* dumps, when the ruleset changes under one */
#define COUNTERS_DRAIN	 256 /* leftover messages */

static const char *const counter_names[] = {
#define X(id, name) [GATE_COUNTER_##id] = GATE_NFT_COUNTER name,
	GATE_COUNTERS
#undef X
};
_Static_assert(sizeof(counter_names) / sizeof(counter_names[0]) == GATE_COUNTER_COUNT, "a name for each counter");

struct counters {
	uint64_t *packets, *bytes;
	bool seen[GATE_COUNTER_COUNT];
};

static bool option_is(int fd, int option, int value)
{
	int got = -1;
	socklen_t len = sizeof(got);

	return getsockopt(fd, SOL_SOCKET, option, &got, &len) == 0 && got == value;
}

static bool attr_is_text(const struct nlattr *attr, const char *text)
{
	size_t len = strlen(text) + 1;

	return attr && mnl_attr_get_payload_len(attr) == len && memcmp(mnl_attr_get_payload(attr), text, len) == 0;
}

static bool attr_be64(const struct nlattr *attr, uint64_t *out)
{
	uint32_t half[2];

	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(half))
		return false;
	memcpy(half, mnl_attr_get_payload(attr), sizeof(half));
	*out = (uint64_t)ntohl(half[0]) << 32 | ntohl(half[1]);
	return true;
}

/* The attributes of one level that are looked at; none of their types is as large as COUNTERS_ATTRS. */
struct counter_attrs {
	const struct nlattr *tb[COUNTERS_ATTRS];
};

static int keep_attr(const struct nlattr *attr, void *arg)
{
	struct counter_attrs *attrs = arg;

	if (mnl_attr_get_type(attr) < COUNTERS_ATTRS)
		attrs->tb[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

/* The values of one counter object. False when either is missing. */
static bool read_values(const struct nlattr *data, uint64_t *packets, uint64_t *bytes)
{
	struct counter_attrs a = { 0 };

	mnl_attr_parse_nested(data, keep_attr, &a);
	return attr_be64(a.tb[NFTA_COUNTER_PACKETS], packets) && attr_be64(a.tb[NFTA_COUNTER_BYTES], bytes);
}

/* A counter can be in both families, the one of frames below IP for instance: the sum counts. */
static void add_values(struct counters *c, int i, const struct nlattr *data)
{
	uint64_t packets, bytes;

	if (!read_values(data, &packets, &bytes))
		return;
	c->packets[i] += packets;
	c->bytes[i] += bytes;
	c->seen[i] = true;
}

static int object_cb(const struct nlmsghdr *nlh, void *arg)
{
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);
	struct counter_attrs a = { 0 };
	struct counters *c = arg;

	if (nlh->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ) ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(*nfg) ||
	    (nfg->nfgen_family != NFPROTO_INET && nfg->nfgen_family != NFPROTO_NETDEV))
		return MNL_CB_OK;
	mnl_attr_parse(nlh, sizeof(*nfg), keep_attr, &a);
	if (!a.tb[NFTA_OBJ_DATA] || !attr_is_text(a.tb[NFTA_OBJ_TABLE], GATE_NFT_TABLE))
		return MNL_CB_OK;
	for (int i = 0; i < GATE_COUNTER_COUNT; i++)
		if (attr_is_text(a.tb[NFTA_OBJ_NAME], counter_names[i]))
			add_values(c, i, a.tb[NFTA_OBJ_DATA]);
	return MNL_CB_OK;
}

static int send_request(int fd, uint32_t seq)
{
	_Alignas(struct nlmsghdr) uint8_t buf[COUNTERS_REQUEST];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = seq;
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = NFPROTO_UNSPEC; /* inet and netdev, that is */
	nfg->version = NFNETLINK_V0;
	mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, GATE_NFT_TABLE);
	mnl_attr_put_u32(nlh, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	/* To the kernel by name: the socket may have been connected to somebody else. */
	if (sendto(fd, nlh, nlh->nlmsg_len, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

/* Receives one datagram of the kernel's. Returns its length, 0 for one to be ignored, or -errno. */
static ssize_t receive(int fd, void *buf, size_t cap)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { .iov_base = buf, .iov_len = cap };
	struct msghdr mh = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	if (mh.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	return mh.msg_namelen == sizeof(from) && from.nl_pid == 0 ? n : 0;
}

/* Throws away what is in the socket. What does not end is somebody's play. */
static int drain(int fd)
{
	uint8_t scrap[64];

	for (int i = 0; i < COUNTERS_DRAIN; i++)
		if (recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT) < 0 && errno != EINTR && errno != ENOBUFS)
			return errno == EAGAIN ? 0 : -errno;
	return -EBUSY;
}

/* Waits until `fd` is readable or CLOCK_MONOTONIC reaches `until_us`. */
static int wait_readable(int fd, uint64_t until_us)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now = clock_mono_us();

	if (now >= until_us)
		return -ETIMEDOUT;
	if (poll(&pfd, 1, (int)((until_us - now) / 1000 + 1)) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

/* One dump. -EINTR when the ruleset changed meanwhile and it must be read again. */
static int dump(int fd, uint64_t until_us, struct counters *c)
{
	_Alignas(struct nlmsghdr) static uint8_t answer[COUNTERS_ANSWER];
	uint32_t seq = (uint32_t)clock_mono_us();
	int r = drain(fd);

	memset(c->seen, 0, sizeof(c->seen));
	memset(c->packets, 0, GATE_COUNTER_COUNT * sizeof(*c->packets));
	memset(c->bytes, 0, GATE_COUNTER_COUNT * sizeof(*c->bytes));
	if (r == 0)
		r = send_request(fd, seq);
	while (r == 0) {
		ssize_t n = receive(fd, answer, sizeof(answer));

		if (n == -EAGAIN) {
			r = wait_readable(fd, until_us);
		} else if (n < 0) {
			r = n == -EINTR ? 0 : (int)n;
		} else if (n > 0) {
			r = mnl_cb_run(answer, (size_t)n, seq, 0, object_cb, c);
			if (r == MNL_CB_STOP)
				return 0;
			r = r < 0 ? -errno : 0;
		}
	}
	return r;
}

int counters_read(int nft_fd, uint64_t packets[GATE_COUNTER_COUNT], uint64_t bytes[GATE_COUNTER_COUNT])
{
	uint64_t until = clock_mono_us() + COUNTERS_WAIT_MS * 1000;
	struct counters c = { .packets = packets, .bytes = bytes };
	int r = -EINTR;

	if (!option_is(nft_fd, SO_DOMAIN, AF_NETLINK) || !option_is(nft_fd, SO_PROTOCOL, NETLINK_NETFILTER))
		r = -EINVAL;
	for (int i = 0; i < COUNTERS_TRIES && r == -EINTR; i++)
		r = dump(nft_fd, until, &c);
	for (int i = 0; i < GATE_COUNTER_COUNT && r == 0; i++)
		r = c.seen[i] ? 0 : -ENOENT;
	if (r) {
		memset(packets, 0, GATE_COUNTER_COUNT * sizeof(*packets));
		memset(bytes, 0, GATE_COUNTER_COUNT * sizeof(*bytes));
	}
	return r;
}
