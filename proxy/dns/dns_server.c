/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP side of the gate's DNS, and the door to the TCP side.
 *
 * The sandbox may ask any address, and expects the answer from there: the
 * sockets are transparent, and each answer carries the query's destination as
 * its source (ip(7), IP_PKTINFO; RFC 3542 §6.2), with no interface, so that
 * the route decides. A turn takes at most DNS_UDP_BURST queries of a socket:
 * a flood of them waits for the other events of the loop, and the kernel
 * drops what does not fit into the socket.
 */
#include "proxy/dns/dns_server.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/dns/dns_reply.h"
#include "proxy/dns/dns_tcp.h"

#define QUERY_MAX 4096 /* a longer datagram is cut, and then malformed */

struct dns_server {
	struct dns_reply_env env;
	struct dns_tcp *tcp;
	void (*asked)(void *arg, const struct endpoint *src, const struct endpoint *dst);
	void *asked_arg;
	struct event *udp4, *udp6;
	uint64_t taken; /* datagrams */
};

/* One datagram with what belongs to it. */
struct datagram {
	struct msghdr msg;
	struct iovec iov;
	struct sockaddr_storage from;
	uint8_t data[QUERY_MAX];
	_Alignas(struct cmsghdr) uint8_t control[256];
};

/* Where the query was sent to. */
static void read_destination(struct datagram *d, struct endpoint *dst)
{
	struct cmsghdr *c;

	*dst = (struct endpoint){ .addr.family = ADDR_NONE };
	for (c = CMSG_FIRSTHDR(&d->msg); c; c = CMSG_NXTHDR(&d->msg, c)) {
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR))
			(void)endpoint_from_sockaddr((const struct sockaddr *)CMSG_DATA(c), dst);
	}
}

/* Makes the control data of the query that of its answer: the same address, now as a source, and nothing else. */
static void turn_round(struct datagram *d)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(&d->msg); c; c = CMSG_NXTHDR(&d->msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info.ipi_spec_dst = info.ipi_addr;
			info.ipi_ifindex = 0;
			memcpy(CMSG_DATA(c), &info, sizeof(info));
			break;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info.ipi6_ifindex = 0;
			memcpy(CMSG_DATA(c), &info, sizeof(info));
			break;
		}
	}
	if (c) {
		d->msg.msg_controllen = CMSG_SPACE(c->cmsg_len - CMSG_LEN(0));
		memmove(d->control, c, c->cmsg_len);
	} else {
		d->msg.msg_controllen = 0;
	}
}

/* Reads and answers one query. Returns false when there is none. */
static bool serve_one(struct dns_server *s, int fd)
{
	struct dns_client client = { .conn = 0 };
	uint8_t out[DNS_REPLY_MAX];
	struct datagram d;
	ssize_t n;

	d.iov = (struct iovec){ d.data, sizeof(d.data) };
	d.msg = (struct msghdr){
		.msg_name = &d.from,
		.msg_namelen = sizeof(d.from),
		.msg_iov = &d.iov,
		.msg_iovlen = 1,
		.msg_control = d.control,
		.msg_controllen = sizeof(d.control),
	};
	n = recvmsg(fd, &d.msg, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR;
	s->taken++;
	if (endpoint_from_sockaddr((const struct sockaddr *)&d.from, &client.src) < 0)
		return true;
	read_destination(&d, &client.dst);
	if (s->asked)
		s->asked(s->asked_arg, &client.src, &client.dst);
	d.iov.iov_base = out;
	d.iov.iov_len = dns_reply(&s->env, &client, d.data, (size_t)n, out, sizeof(out));
	if (d.iov.iov_len == 0)
		return true;
	turn_round(&d);
	/* An answer that can't be sent is lost like any datagram: the client asks again. */
	(void)sendmsg(fd, &d.msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	for (int i = 0; i < DNS_UDP_BURST && serve_one(arg, fd); i++)
		;
}

static struct event *watch(struct event_base *base, int fd, struct dns_server *s)
{
	struct event *ev = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, s);

	if (ev && event_add(ev, NULL) < 0) {
		event_free(ev);
		ev = NULL;
	}
	return ev;
}

struct dns_server *dns_server_new(const struct dns_server_config *config)
{
	struct dns_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->env = (struct dns_reply_env){ .policy = config->policy, .audit = config->audit, .map = config->map };
	s->asked = config->asked;
	s->asked_arg = config->asked_arg;
	s->tcp = dns_tcp_new(config->base, &s->env);
	s->udp4 = watch(config->base, config->udp4, s);
	s->udp6 = watch(config->base, config->udp6, s);
	if (!s->tcp || !s->udp4 || !s->udp6) {
		dns_server_free(s);
		errno = ENOMEM;
		return NULL;
	}
	return s;
}

uint64_t dns_server_taken(const struct dns_server *s)
{
	return s->taken;
}

void dns_server_free(struct dns_server *s)
{
	if (!s)
		return;
	dns_tcp_free(s->tcp);
	if (s->udp4)
		event_free(s->udp4);
	if (s->udp6)
		event_free(s->udp6);
	free(s);
}

void dns_server_tcp(struct dns_server *s, int fd, uint64_t conn, const struct endpoint *src, const struct endpoint *dst)
{
	const struct dns_client client = { .conn = conn, .src = *src, .dst = *dst };

	dns_tcp_accept(s->tcp, fd, &client);
}
