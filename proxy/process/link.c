/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RTM_DELLINK of gw0. Where the socket overflowed (ENOBUFS: root in the sandbox
 * can make many events, by setting its end up and down), that message may be among the lost ones, so
 * the kernel is asked for gw0; its answer comes through the same socket, and may be lost as well: then it is asked again.
 */
#include "proxy/process/link.h"

#include <errno.h>
#include <event2/event.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LINK_NAME "gw0"
#define LINK_TURN 64   /* datagrams a turn of the loop */
#define LINK_BUF  8192 /* bytes; a link's description is about 1,400 */

struct link_watch {
	struct event *ev;
	int fd;
	uint32_t seq; /* of the last question */
	void (*gone)(void *arg);
	void *arg;
};

static int name_cb(const struct nlattr *attr, void *arg)
{
	const char **name = arg;

	if (mnl_attr_get_type(attr) == IFLA_IFNAME && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
		*name = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

static enum link_news one_message(const struct nlmsghdr *nlh, uint32_t seq)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const char *name = "";

	if (nlh->nlmsg_type == NLMSG_ERROR && nlh->nlmsg_seq == seq &&
	    mnl_nlmsg_get_payload_len(nlh) >= sizeof(struct nlmsgerr))
		return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error == -ENODEV ? LINK_GONE
											       : LINK_NOTHING;
	if ((nlh->nlmsg_type != RTM_DELLINK && nlh->nlmsg_type != RTM_NEWLINK) ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi) || ifi->ifi_family != AF_UNSPEC)
		return LINK_NOTHING;
	(void)mnl_attr_parse(nlh, sizeof(*ifi), name_cb, &name);
	if (strcmp(name, LINK_NAME) != 0)
		return LINK_NOTHING;
	return nlh->nlmsg_type == RTM_DELLINK ? LINK_GONE : LINK_THERE;
}

enum link_news link_news(const void *buf, size_t len, uint32_t seq)
{
	enum link_news news = LINK_NOTHING;
	const struct nlmsghdr *nlh = buf;
	int left = len <= INT32_MAX ? (int)len : 0;

	for (; news != LINK_GONE && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		enum link_news one = one_message(nlh, seq);

		news = one == LINK_NOTHING ? news : one;
	}
	return news;
}

static void ask(struct link_watch *w)
{
	_Alignas(struct nlmsghdr) uint8_t buf[128];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = ++w->seq;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(nlh, IFLA_IFNAME, LINK_NAME);
	(void)!sendto(w->fd, nlh, nlh->nlmsg_len, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof(kernel));
}

/* One datagram of the kernel's. Returns 1, with *news; 0 at the end; or -errno. */
static int take(struct link_watch *w, enum link_news *news)
{
	_Alignas(struct nlmsghdr) uint8_t buf[LINK_BUF];
	struct sockaddr_nl from = { 0 };
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(w->fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);

	*news = LINK_NOTHING;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (from.nl_pid == 0)
		*news = link_news(buf, (size_t)n, w->seq);
	return 1;
}

static void on_link(evutil_socket_t fd, short what, void *arg)
{
	struct link_watch *w = arg;
	enum link_news news;
	bool lost = false;

	(void)fd, (void)what;
	for (int i = 0; i < LINK_TURN; i++) {
		int r = take(w, &news);

		if (r == 0)
			break;
		lost = lost || r == -ENOBUFS;
		if (news == LINK_GONE) {
			event_del(w->ev);
			w->gone(w->arg);
			return;
		}
	}
	if (lost)
		ask(w);
}

struct link_watch *link_watch_new(struct event_base *base, int fd, void (*gone)(void *arg), void *arg)
{
	struct link_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct link_watch){ .fd = fd, .gone = gone, .arg = arg };
	w->ev = event_new(base, fd, EV_READ | EV_PERSIST, on_link, w);
	if (!w->ev || event_add(w->ev, NULL) < 0) {
		link_watch_free(w);
		return NULL;
	}
	return w;
}

void link_watch_free(struct link_watch *w)
{
	if (w && w->ev)
		event_free(w->ev);
	free(w);
}
