/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS over TCP. Queries are answered in order as they complete; what the
 * event loop should watch is one function of the two queues (interest()).
 *
 * Bounds: DNS_TCP_CLIENTS_MAX connections; one query (DNS_TCP_QUERY_MAX) in
 * and OUT_HIGH bytes of answers out, above which nothing is read or answered
 * until the client takes some; DNS_TCP_IDLE_S from one complete query to the
 * next, so that a byte now and then does not hold a place.
 */
#include "proxy/dns/dns_tcp.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/reader.h"
#include "proxy/dns/dns_server.h"

#define LENGTH_SIZE 2
#define IN_MAX	    (LENGTH_SIZE + DNS_TCP_QUERY_MAX)
#define OUT_HIGH    (16 * 1024)
#define OUT_MAX	    (OUT_HIGH + LENGTH_SIZE + DNS_REPLY_MAX)

struct connection {
	LIST_ENTRY(connection) link;
	struct dns_tcp *tcp;
	struct dns_client client;
	int fd;
	short watched; /* what `ev` waits for */
	bool eof;      /* the client sends no more */
	bool recorded; /* there is a record of this connection */
	struct bytes in, out;
	struct event ev, idle;
};

struct dns_tcp {
	struct event_base *base;
	const struct dns_reply_env *env;
	LIST_HEAD(connections, connection) connections;
	size_t n;
};

/* The one way out. `why` stands on record if nothing else does; half a query always does. */
static void connection_end(struct connection *c, enum reason why)
{
	if (bytes_len(&c->in) > 0)
		dns_reply_deny(c->tcp->env, &c->client, REASON_DNS_MALFORMED);
	else if (!c->recorded)
		dns_reply_deny(c->tcp->env, &c->client, why);
	if (c->watched)
		event_del(&c->ev);
	event_del(&c->idle);
	/* The listener set SO_LINGER {1,0}: without the FIN first, close() would be a reset that voids the last answers. */
	shutdown(c->fd, SHUT_WR);
	close(c->fd);
	bytes_free(&c->in);
	bytes_free(&c->out);
	LIST_REMOVE(c, link);
	c->tcp->n--;
	free(c);
}

static short interest(const struct connection *c)
{
	short what = 0;

	if (!c->eof && bytes_len(&c->out) < OUT_HIGH)
		what |= EV_READ;
	if (bytes_len(&c->out) > 0)
		what |= EV_WRITE;
	return what;
}

static void on_event(evutil_socket_t fd, short what, void *arg);

static int watch(struct connection *c)
{
	short what = interest(c);

	if (what == c->watched)
		return 0;
	if (c->watched)
		event_del(&c->ev);
	c->watched = 0;
	event_assign(&c->ev, c->tcp->base, c->fd, (short)(what | EV_PERSIST), on_event, c);
	if (event_add(&c->ev, NULL) < 0)
		return -ENOMEM;
	c->watched = what;
	return 0;
}

static void restart_idle(struct connection *c)
{
	const struct timeval idle = { .tv_sec = DNS_TCP_IDLE_S };

	event_add(&c->idle, &idle);
}

/* The next whole query. Returns 1; 0 when there is none yet; -EMSGSIZE when its length is above the limit. */
static int next_query(const struct connection *c, struct reader *query)
{
	struct reader r = reader_over(bytes_data(&c->in), bytes_len(&c->in));
	size_t len;

	if (r.left < LENGTH_SIZE)
		return 0;
	len = reader_u16(&r);
	if (len > DNS_TCP_QUERY_MAX)
		return -EMSGSIZE;
	if (r.left < len)
		return 0;
	*query = reader_take(&r, len);
	return 1;
}

/* Answers the queries that are whole, while there is room. Returns 0; or -errno when the connection is of no use. */
static int answer_queries(struct connection *c)
{
	uint8_t out[LENGTH_SIZE + DNS_REPLY_MAX];
	struct reader query;
	int r = 0;

	while (bytes_len(&c->out) < OUT_HIGH && (r = next_query(c, &query)) == 1) {
		size_t n = dns_reply(c->tcp->env, &c->client, query.p, query.left, out + LENGTH_SIZE, DNS_REPLY_MAX);

		c->recorded = true;
		bytes_consume(&c->in, LENGTH_SIZE + query.left);
		restart_idle(c);
		/* What gets no answer is no query: nor will what follows be. */
		if (n == 0)
			return -EBADMSG;
		out[0] = (uint8_t)(n >> 8);
		out[1] = (uint8_t)n;
		r = bytes_append(&c->out, out, LENGTH_SIZE + n, OUT_MAX);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* Answers and sends until one of both has to wait. Returns 0, 1 when the conversation is over, or -errno. */
static int serve(struct connection *c)
{
	struct reader query;
	ssize_t left;
	int r;

	do {
		r = answer_queries(c);
		if (r < 0)
			return r;
		left = bytes_send(&c->out, c->fd);
		if (left < 0)
			return (int)left;
	} while (left == 0 && next_query(c, &query) != 0);
	return c->eof && left == 0;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	int r = 0;

	if (what & EV_READ) {
		ssize_t n = bytes_recv(&c->in, fd, IN_MAX, IN_MAX);

		if (n == 0)
			c->eof = true;
		else if (n < 0 && n != -EAGAIN && n != -ENOBUFS)
			r = (int)n;
	}
	if (r == 0)
		r = serve(c);
	if (r == 0)
		r = watch(c);
	if (r != 0)
		connection_end(c, REASON_CLIENT_GONE);
}

static void on_idle(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	connection_end(arg, REASON_HELLO_TIMEOUT);
}

struct dns_tcp *dns_tcp_new(struct event_base *base, const struct dns_reply_env *env)
{
	struct dns_tcp *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->base = base;
	t->env = env;
	LIST_INIT(&t->connections);
	return t;
}

void dns_tcp_free(struct dns_tcp *t)
{
	if (!t)
		return;
	while (!LIST_EMPTY(&t->connections))
		connection_end(LIST_FIRST(&t->connections), REASON_CLIENT_GONE);
	free(t);
}

void dns_tcp_accept(struct dns_tcp *t, int fd, const struct dns_client *client)
{
	struct connection *c = t->n < DNS_TCP_CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	const int on = 1;

	if (!c) {
		dns_reply_deny(t->env, client,
			       t->n < DNS_TCP_CLIENTS_MAX ? REASON_INTERNAL_ERROR : REASON_LIMIT_CONNECTIONS);
		close(fd);
		return;
	}
	/* Pipelined answers go out as they come. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->tcp = t;
	c->fd = fd;
	c->client = *client;
	evtimer_assign(&c->idle, t->base, on_idle, c);
	LIST_INSERT_HEAD(&t->connections, c, link);
	t->n++;
	restart_idle(c);
	if (watch(c) < 0)
		connection_end(c, REASON_INTERNAL_ERROR);
}
