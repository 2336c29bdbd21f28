/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of news come through one socket of G:
 *
 *   of G's own links              RTM_DELLINK of gw0: it is gone
 *   of namespaces that G knows    with the namespace's number in G (NETLINK_LISTEN_ALL_NSID). Known to G are those in which gw0's other
 *                                 end is, or was: of a docker network that is the host's, too
 *
 * So an interface that is up is suspect at first, and when that end has settled, the kernel is asked for gw0, whose description says
 * where it is. That is the sandbox; what is up there, and is not that end, is another interface in it.
 *
 * Before it settles the end goes through other namespaces, and may be heard of there first. One that is gone leaves its number to the
 * next, so where the end has been is no suspect: it would be taken for an interface of the sandbox's.
 *
 * The kernel describes gw0 as well when its other end goes down, as one that is moved does, or comes up: wherever it is raised, it
 * is seen there before it can be of use. Of the move itself it says nothing: while the other end is down, the kernel is asked now and
 * then where it is, so that a gate whose link was taken away does not stay.
 *
 * Where the socket overflowed (ENOBUFS: root in the sandbox can make many events, by setting its end up and down), an RTM_DELLINK of gw0
 * may be among the lost messages, so the kernel is asked as well; its answer comes through the same socket, and may be lost, too: then it is
 * asked again. What an interface of the sandbox's said is lost for good. Who could make so many events there could
 * make interfaces, and has been let in with that.
 */
#include "proxy/process/link.h"

#include <errno.h>
#include <event2/event.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LINK_NAME     "gw0"
#define LINK_TURN     64		/* datagrams a turn of the loop */
#define LINK_BUF      8192		/* bytes; a link's description is about 1,400 */
#define LINK_OF_ONE   8			/* suspects of one namespace at a time */
#define LINK_SUSPECTS (4 * LINK_OF_ONE) /* G has known no more than three namespaces */
#define LINK_BEEN     8			/* places of the end before it settles: twice as many as there are */
#define LINK_AGAIN_MS 500		/* between two questions while the other end is down, or one can't be sent */
#define LINK_NO_NSID  (-1)

struct suspect {
	struct link_place place;
	char name[LINK_NAME_MAX];
	bool asked; /* the question that is open came later than its news */
};

struct link_watch {
	struct link_watch_config config;
	struct event *ev, *again;
	uint32_t seq; /* of the last question */
	bool open;    /* it has no answer yet */
	bool lost;    /* messages, since then */
	bool settled;
	int32_t home; /* the sandbox; LINK_NO_NSID: not known yet */
	struct suspect suspects[LINK_SUSPECTS];
	size_t n_suspects;
	struct link_place been[LINK_BEEN]; /* until it has settled */
	size_t n_been;
	struct link_place told[LINK_OTHERS_MAX];
	size_t n_told;
};

/* ---- messages ---- */

struct attrs {
	const char *name;
	int32_t peer_index, peer_nsid;
};

static int attr_cb(const struct nlattr *attr, void *arg)
{
	struct attrs *a = arg;

	switch (mnl_attr_get_type(attr)) {
	case IFLA_IFNAME:
		if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
			a->name = mnl_attr_get_str(attr);
		break;
	case IFLA_LINK:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			a->peer_index = (int32_t)mnl_attr_get_u32(attr);
		break;
	case IFLA_LINK_NETNSID:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			a->peer_nsid = (int32_t)mnl_attr_get_u32(attr);
		break;
	}
	return MNL_CB_OK;
}

/* A message about a link; NULL for any other. */
static const struct ifinfomsg *read_link(const struct nlmsghdr *nlh, struct attrs *a)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

	*a = (struct attrs){ .name = "", .peer_nsid = LINK_NO_NSID };
	if ((nlh->nlmsg_type != RTM_DELLINK && nlh->nlmsg_type != RTM_NEWLINK) ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi) || ifi->ifi_family != AF_UNSPEC)
		return NULL;
	(void)mnl_attr_parse(nlh, sizeof(*ifi), attr_cb, a);
	return ifi;
}

static enum link_news one_message(const struct nlmsghdr *nlh, uint32_t seq, struct link_end *peer)
{
	const struct ifinfomsg *ifi;
	struct attrs a;

	if (nlh->nlmsg_type == NLMSG_ERROR && nlh->nlmsg_seq == seq &&
	    mnl_nlmsg_get_payload_len(nlh) >= sizeof(struct nlmsgerr))
		return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error == -ENODEV ? LINK_GONE
											       : LINK_NOTHING;
	ifi = read_link(nlh, &a);
	if (!ifi || strcmp(a.name, LINK_NAME) != 0)
		return LINK_NOTHING;
	*peer = (struct link_end){ { a.peer_nsid, a.peer_index }, ifi->ifi_flags & IFF_LOWER_UP };
	return nlh->nlmsg_type == RTM_DELLINK ? LINK_GONE : LINK_THERE;
}

enum link_news link_news(const void *buf, size_t len, uint32_t seq, struct link_end *peer, bool *answer)
{
	enum link_news news = LINK_NOTHING;
	const struct nlmsghdr *nlh = buf;
	int left = len <= INT32_MAX ? (int)len : 0;

	*answer = false;
	for (; news != LINK_GONE && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		enum link_news one = one_message(nlh, seq, peer);

		news = one == LINK_NOTHING ? news : one;
		*answer = *answer || (one == LINK_THERE && nlh->nlmsg_seq == seq);
	}
	return news;
}

bool link_find_up(const void *buf, size_t len, struct link_up *up)
{
	const struct nlmsghdr *nlh = buf;
	int left = len <= INT32_MAX ? (int)len : 0;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		struct attrs a;
		const struct ifinfomsg *ifi = read_link(nlh, &a);

		if (!ifi || nlh->nlmsg_type != RTM_NEWLINK || !(ifi->ifi_flags & IFF_UP) ||
		    ifi->ifi_flags & IFF_LOOPBACK)
			continue;
		up->index = ifi->ifi_index;
		snprintf(up->name, sizeof(up->name), "%s", a.name);
		return true;
	}
	return false;
}

/* ---- questions ---- */

static void ask_later(struct link_watch *w)
{
	event_add(w->again, &(struct timeval){ .tv_usec = LINK_AGAIN_MS * 1000 });
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
	w->open =
		sendto(w->config.fd, nlh, nlh->nlmsg_len, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof(kernel)) > 0;
	w->lost = w->lost && !w->open;
	for (size_t i = 0; i < w->n_suspects; i++)
		w->suspects[i].asked = w->open;
	if (!w->open)
		ask_later(w);
}

static bool same_place(const struct link_place *a, const struct link_place *b)
{
	return a->nsid == b->nsid && a->index == b->index;
}

static bool is_among(const struct link_place *places, size_t n, const struct link_place *place)
{
	for (size_t i = 0; i < n; i++)
		if (same_place(&places[i], place))
			return true;
	return false;
}

/* The end is, or was, at `peer`, and has not settled. */
static void note_place(struct link_watch *w, const struct link_place *peer)
{
	size_t kept = 0;

	if (w->n_been < LINK_BEEN && !is_among(w->been, w->n_been, peer))
		w->been[w->n_been++] = *peer;
	for (size_t i = 0; i < w->n_suspects; i++)
		if (!same_place(&w->suspects[i].place, peer))
			w->suspects[kept++] = w->suspects[i];
	w->n_suspects = kept;
}

static void suspect(struct link_watch *w, int32_t nsid, const struct link_up *up)
{
	const struct link_place place = { nsid, up->index };
	size_t of_namespace = 0;

	if (w->config.tap[0] && strcmp(up->name, w->config.tap) == 0)
		return;
	if (is_among(w->told, w->n_told, &place) || is_among(w->been, w->n_been, &place))
		return;
	for (size_t i = 0; i < w->n_suspects; i++) {
		if (same_place(&w->suspects[i].place, &place))
			return;
		of_namespace += w->suspects[i].place.nsid == nsid;
	}
	if (of_namespace == LINK_OF_ONE || w->n_suspects == LINK_SUSPECTS)
		return;
	w->suspects[w->n_suspects] = (struct suspect){ .place = place };
	memcpy(w->suspects[w->n_suspects++].name, up->name, sizeof(up->name));
}

/* `peer` was the sandbox's end of the link after all that was asked for had been heard. */
static void judge(struct link_watch *w, const struct link_place *peer)
{
	size_t kept = 0;

	w->open = false;
	if (!w->settled)
		return;
	w->home = w->home == LINK_NO_NSID ? peer->nsid : w->home;
	for (size_t i = 0; i < w->n_suspects; i++) {
		const struct suspect *s = &w->suspects[i];

		if (!s->asked) {
			w->suspects[kept++] = *s;
		} else if (s->place.nsid == peer->nsid && s->place.index != peer->index &&
			   w->n_told < LINK_OTHERS_MAX) {
			w->told[w->n_told++] = s->place;
			w->config.other(w->config.arg, s->name);
		}
	}
	w->n_suspects = kept;
}

/* ---- the socket ---- */

struct datagram {
	_Alignas(struct nlmsghdr) uint8_t buf[LINK_BUF];
	size_t len;
	int32_t nsid; /* LINK_NO_NSID: of G itself */
};

/* One of the kernel's. Returns 1; 0 at the end; or -errno. */
static int receive(int fd, struct datagram *d)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = d->buf, .iov_len = sizeof(d->buf) };
	struct sockaddr_nl from = { 0 };
	struct msghdr msg = { .msg_name = &from,
			      .msg_namelen = sizeof(from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *c;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	c = CMSG_FIRSTHDR(&msg);
	d->len = from.nl_pid == 0 ? (size_t)n : 0;
	d->nsid = LINK_NO_NSID;
	if (c && c->cmsg_level == SOL_NETLINK && c->cmsg_type == NETLINK_LISTEN_ALL_NSID &&
	    c->cmsg_len == CMSG_LEN(sizeof(d->nsid)))
		memcpy(&d->nsid, CMSG_DATA(c), sizeof(d->nsid));
	return 1;
}

/* Returns false when gw0 is gone, or its other end is elsewhere. */
static bool take(struct link_watch *w, const struct datagram *d)
{
	struct link_end peer;
	struct link_up up;
	enum link_news news;
	bool answer;

	if (d->nsid != LINK_NO_NSID) {
		if (link_find_up(d->buf, d->len, &up))
			suspect(w, d->nsid, &up);
		return true;
	}
	news = link_news(d->buf, d->len, w->seq, &peer, &answer);
	if (news == LINK_THERE && !w->settled)
		note_place(w, &peer.place);
	if (answer)
		judge(w, &peer.place);
	if (news == LINK_THERE && w->settled && !peer.up)
		ask_later(w);
	return news != LINK_GONE && !(news == LINK_THERE && w->home != LINK_NO_NSID && peer.place.nsid != w->home);
}

static void on_link(evutil_socket_t fd, short what, void *arg)
{
	struct link_watch *w = arg;
	struct datagram d = { .len = 0 };
	int r = 1;

	(void)what;
	for (int i = 0; i < LINK_TURN && r != 0; i++) {
		r = receive((int)fd, &d);
		w->lost = w->lost || r == -ENOBUFS;
		if (r > 0 && !take(w, &d)) {
			event_del(w->ev);
			event_del(w->again);
			w->config.gone(w->config.arg);
			return;
		}
	}
	/* Once it has overflowed, a socket takes nothing more, answers neither, before all is read. */
	if (r == 0 && (w->lost || (w->settled && w->n_suspects > 0 && !w->open)))
		ask(w);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct link_watch *w = arg;

	(void)fd, (void)what;
	if (!w->open)
		ask(w);
}

struct link_watch *link_watch_new(struct event_base *base, const struct link_watch_config *config)
{
	struct link_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->config = *config;
	w->home = LINK_NO_NSID;
	w->ev = event_new(base, config->fd, EV_READ | EV_PERSIST, on_link, w);
	w->again = evtimer_new(base, on_again, w);
	if (!w->ev || !w->again || event_add(w->ev, NULL) < 0) {
		link_watch_free(w);
		return NULL;
	}
	return w;
}

void link_watch_settle(struct link_watch *w)
{
	w->settled = true;
	w->n_been = 0;
	w->lost = true; /* until the question is on its way */
	ask(w);
}

void link_watch_free(struct link_watch *w)
{
	if (w && w->ev)
		event_free(w->ev);
	if (w && w->again)
		event_free(w->again);
	free(w);
}
