/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c-ares inside libevent, and kept on a short lead:
 *
 *  - Every option that c-ares would look up in a file is given, so it reads
 *    none: not resolv.conf, nsswitch.conf, hosts or HOSTALIASES. Questions go
 *    out by ares_query(), which has no search list and no special names.
 *  - Its system calls are ours (ares_set_socket_functions): sockets are
 *    non-blocking and CLOEXEC at birth, a stream never raises SIGPIPE, and a
 *    server that floods us gets RECV_BURST packets a turn, not the whole loop.
 *  - Time-outs are driven by one tick while a question is open, because
 *    ares_timeout() walks through all of them each time it is asked.
 *  - No EDNS: a server that answers FORMERR to it would make c-ares 1.18 fail
 *    the second of two questions. Larger answers come over TCP (RFC 7766).
 *
 * c-ares drops SERVFAIL, NOTIMP and REFUSED to ask the next server, and reports
 * "connection refused" when none is left. The rcode of the packet that it is
 * looking at is therefore remembered, for the record's sake.
 */
#include "proxy/upstream/resolver_channel.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "proxy/upstream/resolver.h"

#define TIMEOUT_MS 1500 /* first try; doubled for the second */
#define TRIES	   2
#define TICK_MS	   100
#define RECV_BURST 64

struct watch {
	struct event *ev; /* NULL: free slot */
	int fd;
};

struct resolver_channel {
	ares_channel ares;
	struct event_base *base;
	struct event *tick;
	size_t open; /* questions */
	struct watch watches[RESOLVER_SOCKETS_MAX];
	unsigned burst; /* packets that may still be read in this turn */
	unsigned rcode; /* of the packet read last; 0 after a failed read */
};

static void process(struct resolver_channel *c, int read_fd, int write_fd)
{
	c->burst = RECV_BURST;
	c->rcode = 0;
	ares_process_fd(c->ares, read_fd, write_fd);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct resolver_channel *c = arg;

	(void)fd;
	(void)what;
	process(c, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	if (c->open == 0)
		event_del(c->tick);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct resolver_channel *c = arg;

	process(c, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
}

/* c-ares says what it wants to know about a socket; neither means that it is about to close it. */
static void on_sock_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	short what = (short)(EV_PERSIST | (readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
	struct resolver_channel *c = arg;
	struct watch *slot = NULL;

	for (size_t i = 0; i < RESOLVER_SOCKETS_MAX; i++) {
		struct watch *w = &c->watches[i];

		if (w->ev && w->fd == fd) {
			event_free(w->ev);
			w->ev = NULL;
		}
		if (!w->ev)
			slot = w;
	}
	if (!slot || (!readable && !writable))
		return;
	/* Out of memory here means that the answer is never read: the question times out. */
	slot->fd = fd;
	slot->ev = event_new(c->base, fd, what, on_ready, c);
	if (slot->ev && event_add(slot->ev, NULL) < 0) {
		event_free(slot->ev);
		slot->ev = NULL;
	}
}

static ares_socket_t sock_open(int family, int type, int protocol, void *arg)
{
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	int one = 1;

	(void)arg;
	if (fd >= 0 && type == SOCK_STREAM)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int sock_close(ares_socket_t fd, void *arg)
{
	(void)arg;
	return close(fd);
}

static int sock_connect(ares_socket_t fd, const struct sockaddr *sa, ares_socklen_t len, void *arg)
{
	(void)arg;
	return connect(fd, sa, len);
}

static ares_ssize_t sock_recv(ares_socket_t fd, void *buf, size_t len, int flags, struct sockaddr *from,
			      ares_socklen_t *from_len, void *arg)
{
	struct resolver_channel *c = arg;
	const uint8_t *p = buf;
	ssize_t n;

	/* Only datagrams are read with an address, and an empty one is no end of anything (CVE-2023-32067). */
	do {
		c->rcode = 0;
		if (c->burst == 0) {
			errno = EAGAIN;
			return -1;
		}
		c->burst--;
		n = recvfrom(fd, buf, len, flags, from, from_len);
	} while (n == 0 && from);
	if (from && n >= HFIXEDSZ)
		c->rcode = p[3] & 0x0f;
	return n;
}

static ares_ssize_t sock_send(ares_socket_t fd, const struct iovec *iov, int n, void *arg)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL);

	(void)arg;
	/*
	 * On a datagram socket this is the refusal of an earlier question, which a
	 * failure now would hide until that one times out. Sent again, both are
	 * refused on reading, and both move on to the next server at once.
	 */
	if (sent < 0 && errno == ECONNREFUSED)
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
	return sent;
}

static const struct ares_socket_functions sock_functions = { sock_open, sock_close, sock_connect, sock_recv,
							     sock_send };

/* The servers, in their binary form: no text that c-ares could read differently. */
static int set_servers(ares_channel ares, const struct endpoint *servers, size_t n)
{
	struct ares_addr_port_node nodes[RESOLVER_SERVERS_MAX];

	memset(nodes, 0, sizeof(nodes));
	for (size_t i = 0; i < n; i++) {
		const struct endpoint *e = &servers[i];

		nodes[i].next = i + 1 < n ? &nodes[i + 1] : NULL;
		nodes[i].family = e->addr.family == ADDR_V4 ? AF_INET : AF_INET6;
		memcpy(&nodes[i].addr, e->addr.b, addr_size(&e->addr));
		nodes[i].udp_port = e->port;
		nodes[i].tcp_port = e->port;
	}
	return ares_set_servers_ports(ares, nodes);
}

static int init_ares(struct resolver_channel *c, const struct endpoint *servers, size_t n)
{
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.ndots = 1,
		.lookups = (char *)"b",
		.sock_state_cb = on_sock_state,
		.sock_state_cb_data = c,
	};
	int status = ares_init_options(&c->ares, &options,
				       ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
					       ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
					       ARES_OPT_SORTLIST | ARES_OPT_SOCK_STATE_CB | ARES_OPT_NOROTATE);

	if (status != ARES_SUCCESS) {
		c->ares = NULL;
		return status;
	}
	ares_set_socket_functions(c->ares, &sock_functions, c);
	return set_servers(c->ares, servers, n);
}

struct resolver_channel *resolver_channel_new(struct event_base *base, const struct endpoint *servers, size_t n,
					      struct err *err)
{
	struct resolver_channel *c;
	int status;

	if (n < 1 || n > RESOLVER_SERVERS_MAX) {
		err_set(err, "1 to %d name servers are needed, not %zu", RESOLVER_SERVERS_MAX, n);
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		err_set_errno(err, ENOMEM, "resolver");
		return NULL;
	}
	c->base = base;
	c->tick = event_new(base, -1, EV_PERSIST, on_tick, c);
	status = c->tick ? init_ares(c, servers, n) : ARES_ENOMEM;
	if (status != ARES_SUCCESS) {
		err_set(err, "resolver: %s", ares_strerror(status));
		resolver_channel_free(c);
		return NULL;
	}
	return c;
}

void resolver_channel_free(struct resolver_channel *c)
{
	if (!c)
		return;
	if (c->ares)
		ares_destroy(c->ares);
	if (c->tick)
		event_free(c->tick);
	free(c);
}

static const char *error_text(const struct resolver_channel *c, int status)
{
	if (status == ARES_ECONNREFUSED && c->rcode == SERVFAIL)
		status = ARES_ESERVFAIL;
	else if (status == ARES_ECONNREFUSED && c->rcode == NOTIMP)
		status = ARES_ENOTIMP;
	else if (status == ARES_ECONNREFUSED && c->rcode == REFUSED)
		status = ARES_EREFUSED;
	switch (status) {
	case ARES_SUCCESS:
	case ARES_ENODATA:
		return "NODATA";
	case ARES_EFORMERR:
		return "FORMERR";
	case ARES_ESERVFAIL:
		return "SERVFAIL";
	case ARES_ENOTFOUND:
		return "NXDOMAIN";
	case ARES_ENOTIMP:
		return "NOTIMP";
	case ARES_EREFUSED:
		return "REFUSED";
	case ARES_ETIMEOUT:
		return "timeout";
	case ARES_EBADRESP:
		return "malformed answer";
	case ARES_ECONNREFUSED:
		return "no name server reachable";
	default:
		return ares_strerror(status);
	}
}

/* Reads the addresses of `family` out of an answer, and the least TTL on the way to them. Returns a c-ares status. */
static int parse_answer(enum addr_family family, const uint8_t *p, int len, struct addr *out, size_t *n, uint32_t *ttl)
{
	struct ares_addrttl v4[RESOLVER_ADDRS_MAX];
	struct ares_addr6ttl v6[RESOLVER_ADDRS_MAX];
	int count = RESOLVER_ADDRS_MAX;
	int status = family == ADDR_V4 ? ares_parse_a_reply(p, len, NULL, v4, &count)
				       : ares_parse_aaaa_reply(p, len, NULL, v6, &count);

	*n = 0;
	if (status != ARES_SUCCESS)
		return status;
	for (int i = 0; i < count; i++) {
		int left = family == ADDR_V4 ? v4[i].ttl : v6[i].ttl; /* c-ares has looked at aliases, too */
		struct addr *a = &out[(*n)++];

		*a = (struct addr){ .family = (uint8_t)family };
		if (family == ADDR_V4)
			memcpy(a->b, &v4[i].ipaddr, 4);
		else
			memcpy(a->b, &v6[i].ip6addr, 16);
		if (left < 0) /* RFC 2181 §8: the highest bit set is 0 */
			left = 0;
		if ((uint32_t)left < *ttl)
			*ttl = (uint32_t)left;
	}
	return ARES_SUCCESS;
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *p, int len)
{
	struct addr addrs[RESOLVER_ADDRS_MAX];
	struct resolver_question *q = arg;
	uint32_t ttl = UINT32_MAX;
	size_t n = 0;

	(void)timeouts;
	q->channel->open--;
	if (status == ARES_SUCCESS)
		status = parse_answer(q->family, p, len, addrs, &n, &ttl);
	if (status != ARES_SUCCESS && status != ARES_ENODATA)
		ttl = 0;
	q->done(q->arg, addrs, n, ttl, n > 0 ? NULL : error_text(q->channel, status));
}

void resolver_channel_ask(struct resolver_channel *c, const char *host, struct resolver_question *q)
{
	const struct timeval tick = { .tv_usec = TICK_MS * 1000 };

	q->channel = c;
	c->rcode = 0;
	if (c->open++ == 0)
		event_add(c->tick, &tick);
	ares_query(c->ares, host, C_IN, q->family == ADDR_V4 ? T_A : T_AAAA, on_answer, q);
}
