/* SPDX-License-Identifier: Apache-2.0 */
/* The fake name server. Questions come from c-ares and are taken to be well-formed: this is no model of a parser. */
#include "tests/unit/fake_dns.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define MSG_MAX	  65535
#define HEADER	  12
#define TYPE_A	  1
#define TYPE_AAAA 28
#define STREAMS	  16

struct message {
	size_t len;
	uint8_t b[MSG_MAX];
};

struct stream {
	struct fake_dns *f;
	struct event *ev;
	int fd;
};

struct late {
	struct fake_dns *f;
	struct event *ev;
	struct sockaddr_in to;
	struct message m;
};

struct fake_dns {
	struct event_base *base;
	const struct fake_entry *entries;
	struct sockaddr_in self;
	int udp, tcp;
	struct event *udp_ev, *tcp_ev;
	struct stream streams[STREAMS];
	struct late late;
	unsigned asked;
};

static void put(struct message *m, const void *p, size_t n)
{
	if (m->len + n > MSG_MAX)
		abort();
	memcpy(m->b + m->len, p, n);
	m->len += n;
}

static void put16(struct message *m, unsigned v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(m, b, 2);
}

static void put_name(struct message *m, const char *name)
{
	while (*name) {
		uint8_t n = (uint8_t)strcspn(name, ".");

		put(m, &n, 1);
		put(m, name, n);
		name += n + (name[n] == '.');
	}
	put(m, "", 1);
}

static void put_record(struct message *m, const char *owner, unsigned type, unsigned ttl, const void *data, size_t n)
{
	put_name(m, owner);
	put16(m, type);
	put16(m, 1);
	put16(m, 0);
	put16(m, ttl);
	put16(m, (unsigned)n);
	put(m, data, n);
	if (++m->b[7] == 0)
		m->b[6]++;
}

static void put_cname(struct message *m, const char *owner, const char *target)
{
	static struct message data;

	data.len = 0;
	put_name(&data, target);
	put_record(m, owner, 5, 0, data.b, data.len);
}

static void put_addresses(struct message *m, const char *owner, const char *const *list, unsigned type, unsigned ttl)
{
	for (size_t i = 0; i < 8 && list[i]; i++) {
		struct addr a;

		if (addr_parse(list[i], strlen(list[i]), &a))
			abort();
		put_record(m, owner, type, ttl, a.b, addr_size(&a));
	}
}

/* The dotted name and the type of a question; returns the bytes of header and question. */
static size_t read_question(const uint8_t *p, char name[256], unsigned *type)
{
	size_t at = HEADER;
	size_t n = 0;

	while (p[at]) {
		memcpy(name + n, p + at + 1, p[at]);
		n += p[at];
		name[n++] = '.';
		at += p[at] + 1u;
	}
	name[n ? n - 1 : 0] = '\0';
	*type = p[at + 2];
	return at + 5;
}

static const struct fake_entry *find(const struct fake_dns *f, const char *name)
{
	const struct fake_entry *e;

	for (e = f->entries; e->name; e++)
		if (strcasecmp(e->name, name) == 0)
			break;
	return e;
}

static void put_chain(struct message *m, const struct fake_entry *e, char owner[256])
{
	for (unsigned i = 0; i < e->value; i++) {
		char target[256];

		snprintf(target, sizeof(target), "_x.%u.chain.test", i);
		put_cname(m, owner, target);
		snprintf(owner, 256, "%s", target);
	}
}

static void put_many(struct message *m, const char *owner, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t a[4] = { 9, 0, (uint8_t)(i >> 8), (uint8_t)i };

		put_record(m, owner, TYPE_A, 0, a, 4);
	}
}

/* Header, question and what the entry says. */
static void answer(const struct fake_dns *f, const uint8_t *query, bool tcp, struct message *m)
{
	char name[256];
	char owner[256];
	unsigned type;
	size_t len = read_question(query, name, &type);
	const struct fake_entry *e = find(f, name);

	m->len = 0;
	put(m, query, len);
	memset(m->b + 6, 0, 6);
	m->b[2] |= 0x80;
	m->b[3] = 0x80;
	snprintf(owner, sizeof(owner), "%s", name);
	if (!e->name) {
		m->b[3] |= 3;
		return;
	}
	if (e->how == FAKE_RCODE)
		m->b[3] |= (uint8_t)e->value;
	if (!tcp && e->how >= FAKE_TRUNCATED && e->how <= FAKE_TCP_DRIP) {
		m->b[2] |= 0x02;
		return;
	}
	if (e->how == FAKE_TRUNCATED && type == TYPE_A)
		put_many(m, owner, e->value);
	if (e->how == FAKE_CHAIN)
		put_chain(m, e, owner);
	for (int i = 0; e->how == FAKE_LOOP && i < 50; i++) {
		put_cname(m, name, "y.loop.test");
		put_cname(m, "y.loop.test", name);
	}
	put_addresses(m, owner, type == TYPE_A ? e->a : e->aaaa, type, e->ttl);
}

static void send_udp(const struct fake_dns *f, const struct message *m, const struct sockaddr_in *to)
{
	if (sendto(f->udp, m->b, m->len, 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
		abort();
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	struct late *l = arg;

	(void)fd;
	(void)what;
	send_udp(l->f, &l->m, &l->to);
}

/* What is sent before the right answer, or instead of it (then it returns false). */
static bool misbehave(struct fake_dns *f, const struct fake_entry *e, unsigned type, struct message *m,
		      const struct sockaddr_in *to)
{
	struct timeval wait = { .tv_usec = (int)e->value * 1000 };
	struct message bad = *m;

	switch (e->how) {
	case FAKE_DROP:
		return false;
	case FAKE_DROP_AAAA:
		return type == TYPE_A;
	case FAKE_SLOW_AAAA:
		if (type != TYPE_AAAA)
			return true;
		f->late.m = *m;
		f->late.to = *to;
		event_add(f->late.ev, &wait);
		return false;
	case FAKE_WRONG_ID:
		bad.b[0] ^= 0x55;
		break;
	case FAKE_WRONG_QUESTION:
		bad.b[HEADER + 1] ^= 0x01;
		break;
	case FAKE_EMPTY_FIRST:
		bad.len = 0;
		break;
	case FAKE_GARBAGE:
		memset(m->b + 6, 0xff, 6);
		memset(m->b + m->len, 0xc0, 100);
		m->len += 100;
		return true;
	case FAKE_OVERSIZED:
		memset(m->b + m->len, 0, 8192);
		m->len = 8192;
		return true;
	case FAKE_TWICE:
		send_udp(f, &bad, to);
		break;
	default:
		return true;
	}
	send_udp(f, &bad, to);
	return true;
}

static void on_udp(evutil_socket_t fd, short what, void *arg)
{
	static struct message m;
	struct fake_dns *f = arg;
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	uint8_t query[2048];
	char name[256];
	unsigned type;
	ssize_t n = recvfrom(fd, query, sizeof(query), 0, (struct sockaddr *)&from, &from_len);

	(void)what;
	if (n < HEADER)
		return;
	f->asked++;
	read_question(query, name, &type);
	answer(f, query, false, &m);
	if (misbehave(f, find(f, name), type, &m, &from))
		send_udp(f, &m, &from);
}

static void stream_close(struct stream *s)
{
	if (!s->ev)
		return;
	event_free(s->ev);
	close(s->fd);
	s->ev = NULL;
}

static void on_stream(evutil_socket_t fd, short what, void *arg)
{
	static struct message m;
	struct stream *s = arg;
	uint8_t query[2048];
	uint8_t len[2];
	char name[256];
	unsigned type;
	ssize_t n = recv(fd, query, sizeof(query), 0);
	const struct fake_entry *e;

	(void)what;
	/* Each of c-ares's questions is one segment on loopback, or several whole ones. */
	for (ssize_t at = 0; at + 2 < n; at += 2 + (query[at] << 8 | query[at + 1])) {
		read_question(query + at + 2, name, &type);
		e = find(s->f, name);
		if (e->how == FAKE_TCP_CLOSES) {
			n = 0;
			break;
		}
		answer(s->f, query + at + 2, true, &m);
		len[0] = (uint8_t)(m.len >> 8);
		len[1] = (uint8_t)m.len;
		if (send(fd, len, 2, MSG_NOSIGNAL) != 2 ||
		    send(fd, m.b, e->how == FAKE_TCP_DRIP ? m.len / 2 : m.len, MSG_NOSIGNAL) < 0)
			abort();
	}
	if (n <= 0)
		stream_close(s);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct fake_dns *f = arg;
	struct stream *s = f->streams;

	(void)what;
	while (s->ev)
		if (++s == f->streams + STREAMS)
			abort();
	s->f = f;
	s->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	s->ev = event_new(f->base, s->fd, EV_READ | EV_PERSIST, on_stream, s);
	event_add(s->ev, NULL);
}

struct fake_dns *fake_dns_new(struct event_base *base, const struct fake_entry *entries)
{
	struct fake_dns *f = calloc(1, sizeof(*f));
	socklen_t len = sizeof(f->self);
	int sndbuf = 1 << 18;

	if (!f)
		abort();
	f->base = base;
	f->entries = entries;
	f->self.sin_family = AF_INET;
	f->self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	f->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	f->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(f->tcp, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	/* The kernel picks the TCP port; the same number is then free for UDP but for very bad luck. */
	if (bind(f->tcp, (struct sockaddr *)&f->self, len) || getsockname(f->tcp, (struct sockaddr *)&f->self, &len) ||
	    bind(f->udp, (struct sockaddr *)&f->self, len) || listen(f->tcp, 16))
		abort();
	f->udp_ev = event_new(base, f->udp, EV_READ | EV_PERSIST, on_udp, f);
	f->tcp_ev = event_new(base, f->tcp, EV_READ | EV_PERSIST, on_accept, f);
	f->late.f = f;
	f->late.ev = event_new(base, -1, 0, on_late, &f->late);
	event_add(f->udp_ev, NULL);
	event_add(f->tcp_ev, NULL);
	return f;
}

void fake_dns_free(struct fake_dns *f)
{
	for (size_t i = 0; i < STREAMS; i++)
		stream_close(&f->streams[i]);
	event_free(f->udp_ev);
	event_free(f->tcp_ev);
	event_free(f->late.ev);
	close(f->udp);
	close(f->tcp);
	free(f);
}

struct endpoint fake_dns_endpoint(const struct fake_dns *f)
{
	struct endpoint e;

	endpoint_from_sockaddr((const struct sockaddr *)&f->self, &e);
	return e;
}

unsigned fake_dns_asked(const struct fake_dns *f)
{
	return f->asked;
}
