/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate's DNS: what it answers and records for each kind of question, and
 * how it serves UDP and TCP on loopback. Policy, map and messages are the real
 * ones; the audit log is the test's own.
 *
 * links: proxy/dns/dns_server.c proxy/dns/dns_tcp.c proxy/dns/dns_reply.c proxy/dns/dns_map.c
 * links: proxy/wire/dns_msg.c proxy/wire/dns_answer.c
 * links: rules/builder.c rules/entry.c rules/hint.c rules/match.c rules/names.c rules/pattern.c rules/policy.c
 * links: rules/print.c rules/reason.c rules/rule.c rules/special.c rules/store.c
 * links: base/addr.c base/bytes.c base/clock.c base/err.c base/name.c base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "proxy/audit/audit.h"
#include "proxy/dns/dns_map.h"
#include "proxy/dns/dns_reply.h"
#include "proxy/dns/dns_server.h"
#include "proxy/wire/dns_msg.h"
#include "rules/policy.h"

#define RECORDS_MAX 128

struct audit {
	unsigned n;
	char lines[RECORDS_MAX][1400];
	int error;
	bool quiet; /* count nothing */
};

struct fixture {
	struct event_base *base;
	struct audit audit;
	struct policy *policy;
	struct dns_reply_env env;
	struct dns_server *server;
	int udp4, udp6;
	uint16_t port4, port6;
};

/* "conn door host-or-raw qtype verdict reason" */
int audit_decision(struct audit *a, const struct audit_decision *d)
{
	const struct verdict *v = d->verdict;

	if (a->quiet)
		return 0;
	assert_true(a->n < RECORDS_MAX);
	assert_int_equal(d->door, DOOR_DNS);
	assert_int_equal(d->request->proto, PROTO_DNS);
	assert_int_equal(d->request->port, 0);
	if (v->host) {
		assert_ptr_equal(v->host, d->request->names[NAME_FROM_DNS]);
		assert_int_equal(v->name_from, NAME_FROM_DNS);
	}
	snprintf(a->lines[a->n++], sizeof(a->lines[0]), "%u %s%.*s %s %s %s", (unsigned)d->conn,
		 v->host ? v->host->s : (d->raw_name ? "raw:" : "-"), (int)(v->host ? 0 : d->raw_name_len),
		 d->raw_name ? (const char *)d->raw_name : "", d->qtype ? d->qtype : "-", v->allow ? "allow" : "deny",
		 reason_word(v->reason));
	return a->error;
}

static void recorded(struct fixture *f, const char *line)
{
	assert_int_equal(f->audit.n, 1);
	assert_string_equal(f->audit.lines[0], line);
	f->audit.n = 0;
}

/* ---- messages ---- */

struct message {
	size_t len;
	uint8_t b[4200];
};

enum { PLAIN = 0, OPT = 1, VERSION1 = 2, CHAOS = 4 };

static void add(struct message *m, const void *p, size_t n)
{
	assert_true(m->len + n <= sizeof(m->b));
	memcpy(m->b + m->len, p, n);
	m->len += n;
}

/* `name` dotted, with no way to write a dot in a label; "" is the root. */
static struct message query(const char *name, uint16_t type, int options)
{
	static const uint8_t opt[] = { 0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0 };
	struct message m = { .len = 12, .b = { 0x12, 0x34, 0x01, 0, 0, 1 } };
	uint8_t tail[4] = { (uint8_t)(type >> 8), (uint8_t)type, 0, options & CHAOS ? 3 : 1 };

	while (*name) {
		uint8_t n = (uint8_t)strcspn(name, ".");

		add(&m, &n, 1);
		add(&m, name, n);
		name += n + (name[n] == '.');
	}
	add(&m, "", 1);
	add(&m, tail, 4);
	if (options & OPT) {
		m.b[11] = 1;
		add(&m, opt, sizeof(opt));
		if (options & VERSION1)
			m.b[m.len - 5] = 1;
	}
	return m;
}

static const struct endpoint client_src = { { ADDR_V4, { 10, 200, 0, 2 } }, 40000 };
static const struct endpoint client_dst = { { ADDR_V4, { 1, 1, 1, 1 } }, 53 };

static struct message reply_to(struct fixture *f, const struct message *q)
{
	struct dns_client client = { .src = client_src, .dst = client_dst };
	struct message m = { .len = 0 };

	m.len = dns_reply(&f->env, &client, q->b, q->len, m.b, DNS_REPLY_MAX);
	return m;
}

/* Header of an answer: rcode and the numbers of answer and authority records. */
static void has_header(const struct message *m, int rcode, int answers, int authorities)
{
	assert_true(m->len >= 12);
	assert_memory_equal(m->b, "\x12\x34\x81", 3);
	assert_int_equal(m->b[3], 0x80 | rcode);
	assert_int_equal(m->b[7], answers);
	assert_int_equal(m->b[9], authorities);
}

/* The data at the end of an answer without an OPT. */
static void ends_in(const struct message *m, const void *p, size_t n)
{
	assert_true(m->len >= n);
	assert_memory_equal(m->b + m->len - n, p, n);
}

static bool contains(const struct message *m, const char *text)
{
	return memmem(m->b, m->len, text, strlen(text)) != NULL;
}

static struct message ask(struct fixture *f, const char *name, uint16_t type, int options)
{
	struct message q = query(name, type, options);

	return reply_to(f, &q);
}

/* ---- set-up ---- */

static int bind_udp(int family, uint16_t *port)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };
	socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int on = 1;
	struct endpoint e;

	if (family == AF_INET) {
		setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof(on));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &on, sizeof(on));
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&ss, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	endpoint_from_sockaddr((struct sockaddr *)&ss, &e);
	*port = e.port;
	return fd;
}

static struct policy *build_policy(bool audit)
{
	static const char *const allow[] = { "ok.test", "*.wild.test", "db.ok2.test:5432", "deep.er.name.test" };
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;

	for (size_t i = 0; i < sizeof(allow) / sizeof(allow[0]); i++)
		if (policy_builder_allow(b, allow[i], &err))
			fail_msg("%s", err.text);
	if (policy_builder_deny(b, "no.wild.test", &err))
		fail_msg("%s", err.text);
	policy_builder_audit(b, audit);
	p = policy_build(b, &err);
	if (!p)
		fail_msg("%s", err.text);
	policy_builder_free(b);
	return p;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct dns_server_config config;

	f->base = event_base_new();
	f->policy = build_policy(false);
	f->env = (struct dns_reply_env){ f->policy, &f->audit, dns_map_new() };
	f->udp4 = bind_udp(AF_INET, &f->port4);
	f->udp6 = bind_udp(AF_INET6, &f->port6);
	config = (struct dns_server_config){ f->base, f->policy, &f->audit, f->env.map, f->udp4, f->udp6 };
	f->server = dns_server_new(&config);
	assert_non_null(f->server);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	dns_server_free(f->server);
	close(f->udp4);
	close(f->udp6);
	dns_map_free(f->env.map);
	policy_free(f->policy);
	event_base_free(f->base);
	free(f);
	return 0;
}

/* ---- what is answered ---- */

static void test_allowed(void **state)
{
	static const uint8_t v4[] = { 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1 };
	static const uint8_t v6[] = { 0,    28,	  0,	1,    0,    0, 0, 60, 0, 16,  0xfd, 0x6e, 0x65,
				      0x74, 0x67, 0x61, 0x50, 0x00, 0, 0, 0,  0, 198, 18,   0,	  1 };
	struct fixture *f = *state;
	struct message m = ask(f, "oK.TeSt", DNS_TYPE_A, PLAIN);

	has_header(&m, DNS_NOERROR, 1, 0);
	ends_in(&m, v4, sizeof(v4));
	assert_true(contains(&m, "oK\x04TeSt"));
	recorded(f, "0 ok.test A allow rule");

	m = ask(f, "ok.test", DNS_TYPE_AAAA, PLAIN);
	has_header(&m, DNS_NOERROR, 1, 0);
	ends_in(&m, v6, sizeof(v6));
	recorded(f, "0 ok.test AAAA allow rule");

	/* A name that is allowed on some port, one under a wildcard, one with an underscore. */
	m = ask(f, "db.ok2.test", DNS_TYPE_A, PLAIN);
	ends_in(&m, "\xc6\x12\x00\x02", 4);
	recorded(f, "0 db.ok2.test A allow rule");
	m = ask(f, "a_b.wild.test", DNS_TYPE_A, PLAIN);
	ends_in(&m, "\xc6\x12\x00\x03", 4);
	recorded(f, "0 a_b.wild.test A allow rule");
}

/* No key for an encrypted hello, no mail exchanger, no text: but an answer at once. */
static void test_other_types(void **state)
{
	static const uint16_t types[] = { DNS_TYPE_HTTPS, DNS_TYPE_SVCB, DNS_TYPE_SRV, DNS_TYPE_TXT,
					  DNS_TYPE_NS,	  DNS_TYPE_SOA,	 15,	       5,
					  DNS_TYPE_PTR };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct message m = ask(f, "ok.test", types[i], OPT);

		has_header(&m, DNS_NOERROR, 0, 1);
		/* An OPT without an EDE: nothing was filtered. */
		ends_in(&m, "\0\0\x29\x04\xd0\0\0\0\0\0\0", 11);
		assert_non_null(strstr(f->audit.lines[0], " allow rule"));
		assert_int_equal(f->audit.n, 1);
		f->audit.n = 0;
	}
}

static void test_meta_types(void **state)
{
	static const struct {
		uint16_t type;
		const char *text;
	} types[] = { { 0, "TYPE0" },  { 10, "NULL" },	{ 41, "OPT" }, { 128, "TYPE128" },
		      { 251, "IXFR" }, { 252, "AXFR" }, { 255, "ANY" } };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct message m = ask(f, "ok.test", types[i].type, OPT);
		char line[64];

		has_header(&m, DNS_REFUSED, 0, 0);
		assert_true(contains(&m, "dns_type"));
		snprintf(line, sizeof(line), "0 ok.test %s deny dns_type", types[i].text);
		recorded(f, line);
	}
	/* 127 and 256 are ordinary. */
	ask(f, "ok.test", 127, PLAIN);
	recorded(f, "0 ok.test TYPE127 allow rule");
	ask(f, "ok.test", 256, PLAIN);
	recorded(f, "0 ok.test URI allow rule");
}

static void test_denied(void **state)
{
	static const uint16_t types[] = { DNS_TYPE_A, DNS_TYPE_AAAA, DNS_TYPE_TXT, DNS_TYPE_HTTPS, DNS_TYPE_ANY };
	struct fixture *f = *state;
	struct message m;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		m = ask(f, "secret123.bad.test", types[i], OPT);
		has_header(&m, DNS_NXDOMAIN, 0, 1);
		/* Extended DNS Error 17. */
		assert_non_null(memmem(m.b, m.len, "\x00\x0f\x00\x0d\x00\x11not_allowed", 17));
		assert_int_equal(f->audit.n, 1);
		assert_non_null(strstr(f->audit.lines[0], " deny not_allowed"));
		f->audit.n = 0;
	}
	m = ask(f, "bad.test", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	assert_false(contains(&m, "not_allowed"));
	recorded(f, "0 bad.test A deny not_allowed");
	ask(f, "no.wild.test", DNS_TYPE_A, PLAIN);
	recorded(f, "0 no.wild.test A deny denied_by_rule");
	ask(f, "wild.test.bad.test", DNS_TYPE_A, PLAIN);
	recorded(f, "0 wild.test.bad.test A deny not_allowed");
	m = ask(f, "localhost", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 localhost A deny not_allowed");
	assert_null(dns_map_name(f->env.map, &(struct addr){ ADDR_V4, { 198, 18, 0, 1 } }));
}

/* RFC 8020: NXDOMAIN for an ancestor would mean that nothing is below it. */
static void test_ancestors(void **state)
{
	static const char *const ancestors[] = { "er.name.test", "name.test", "test", "wild.test", "ok2.test" };
	struct fixture *f = *state;
	struct message m;

	for (size_t i = 0; i < sizeof(ancestors) / sizeof(ancestors[0]); i++) {
		char line[64];

		m = ask(f, ancestors[i], DNS_TYPE_A, PLAIN);
		has_header(&m, DNS_NOERROR, 0, 1);
		snprintf(line, sizeof(line), "0 %s A deny not_allowed", ancestors[i]);
		recorded(f, line);
	}
	m = ask(f, "", DNS_TYPE_NS, PLAIN);
	has_header(&m, DNS_NOERROR, 0, 1);
	recorded(f, "0 raw:. NS deny not_allowed");
}

static void test_bad_names(void **state)
{
	struct fixture *f = *state;
	struct message m = ask(f, "ok.te st", DNS_TYPE_A, PLAIN);
	struct message q = query("ok.test", DNS_TYPE_A, PLAIN);

	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 raw:ok.te\\032st A deny bad_name");
	ask(f, "127.1", DNS_TYPE_A, PLAIN);
	recorded(f, "0 raw:127.1 A deny bad_name");
	ask(f, "10.0.0.1", DNS_TYPE_A, PLAIN);
	recorded(f, "0 raw:10.0.0.1 A deny bad_name");
	/* One label "ok.test": not the name with two. */
	q.b[12] = 7;
	q.b[15] = '.';
	m = reply_to(f, &q);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 raw:ok\\046test A deny bad_name");
	/* A NUL inside. */
	q = query("okxtest.wild.test", DNS_TYPE_A, PLAIN);
	q.b[15] = 0;
	reply_to(f, &q);
	recorded(f, "0 raw:ok\\000test.wild.test A deny bad_name");
}

static void test_ptr(void **state)
{
	struct fixture *f = *state;
	struct message m;

	ask(f, "a.wild.test", DNS_TYPE_A, PLAIN);
	f->audit.n = 0;
	m = ask(f, "1.0.18.198.in-addr.arpa", DNS_TYPE_PTR, PLAIN);
	has_header(&m, DNS_NOERROR, 1, 0);
	ends_in(&m,
		"\x01"
		"a\x04wild\x04test",
		13);
	recorded(f, "0 a.wild.test PTR allow rule");
	m = ask(f, "1.0.0.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.5.1.6.7.6.4.7.5.6.e.6.d.f.ip6.arpa", DNS_TYPE_PTR, PLAIN);
	has_header(&m, DNS_NOERROR, 1, 0);
	recorded(f, "0 a.wild.test PTR allow rule");
	m = ask(f, "2.0.18.198.in-addr.arpa", DNS_TYPE_PTR, PLAIN);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 2.0.18.198.in-addr.arpa PTR deny not_allowed");
	m = ask(f, "1.0.18.198.in-addr.arpa", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 1.0.18.198.in-addr.arpa A deny not_allowed");
}

static void test_odd_queries(void **state)
{
	struct fixture *f = *state;
	struct message q = query("ok.test", DNS_TYPE_A, CHAOS);
	struct message m = reply_to(f, &q);

	has_header(&m, DNS_REFUSED, 0, 0);
	recorded(f, "0 ok.test A deny dns_type");
	m = ask(f, "ok.test", DNS_TYPE_A, OPT | VERSION1);
	has_header(&m, 0, 0, 0);
	/* The upper bits of BADVERS are in the OPT. */
	assert_int_equal(m.b[m.len - 6], 1);
	recorded(f, "0 ok.test A deny dns_malformed");
	/* Opcode 4, NOTIFY; two questions; QR; a header cut short. */
	q = query("ok.test", DNS_TYPE_A, PLAIN);
	q.b[2] = 0x21;
	m = reply_to(f, &q);
	assert_int_equal(m.b[3] & 15, DNS_NOTIMP);
	assert_int_equal(f->audit.n, 1);
	f->audit.n = 0;
	q = query("ok.test", DNS_TYPE_A, PLAIN);
	q.b[5] = 2;
	m = reply_to(f, &q);
	has_header(&m, DNS_FORMERR, 0, 0);
	assert_non_null(strstr(f->audit.lines[0], "deny dns_malformed"));
	f->audit.n = 0;
	q.b[2] = 0x81;
	m = reply_to(f, &q);
	assert_int_equal(m.len, 0);
	assert_non_null(strstr(f->audit.lines[0], "deny dns_malformed"));
	f->audit.n = 0;
	q.len = 1;
	m = reply_to(f, &q);
	assert_int_equal(m.len, 0);
	recorded(f, "0 - - deny dns_malformed");
}

/* What can't be recorded is not answered. */
static void test_log_unavailable(void **state)
{
	struct fixture *f = *state;
	struct message m;

	f->audit.error = -ENOSPC;
	m = ask(f, "ok.test", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_SERVFAIL, 0, 0);
	m = ask(f, "bad.test", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_SERVFAIL, 0, 0);
	f->audit.error = 0;
	m = ask(f, "ok.test", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NOERROR, 1, 0);
}

static void test_limit_names(void **state)
{
	struct fixture *f = *state;
	struct message m;
	struct addr a;

	for (unsigned i = 0; i < DNS_MAP_MAX; i++) {
		struct name n;

		n.len = (uint8_t)snprintf(n.s, sizeof(n.s), "n%u.wild.test", i);
		assert_int_equal(dns_map_addr(f->env.map, &n, ADDR_V4, &a), 0);
	}
	m = ask(f, "one-more.wild.test", DNS_TYPE_A, OPT);
	has_header(&m, DNS_SERVFAIL, 0, 0);
	assert_true(contains(&m, "limit_names"));
	recorded(f, "0 one-more.wild.test A deny limit_names");
	m = ask(f, "n7.wild.test", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NOERROR, 1, 0);
}

static void test_audit_mode(void **state)
{
	struct fixture *f = *state;
	struct policy *enforce = f->policy;
	struct message m;

	f->policy = build_policy(true);
	f->env.policy = f->policy;
	m = ask(f, "bad.test", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NOERROR, 1, 0);
	recorded(f, "0 bad.test A allow audit_mode");
	m = ask(f, "localhost", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 localhost A deny not_allowed");
	m = ask(f, "x.localhost", DNS_TYPE_A, PLAIN);
	has_header(&m, DNS_NXDOMAIN, 0, 1);
	recorded(f, "0 x.localhost A deny not_allowed");
	ask(f, "xlocalhost", DNS_TYPE_A, PLAIN);
	recorded(f, "0 xlocalhost A allow audit_mode");
	ask(f, "no.wild.test", DNS_TYPE_A, PLAIN);
	recorded(f, "0 no.wild.test A deny denied_by_rule");
	policy_free(f->policy);
	f->policy = enforce;
}

/* ---- how it is served ---- */

static void turn(struct fixture *f)
{
	struct timeval tv = { .tv_usec = 5000 };

	event_base_loopexit(f->base, &tv);
	event_base_dispatch(f->base);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Runs the loop until something is there to be read. */
static void await(struct fixture *f, int fd)
{
	for (int i = 0; i < 1000 && !readable(fd); i++)
		turn(f);
	assert_true(readable(fd));
}

static void udp_exchange(struct fixture *f, const char *server, uint16_t port)
{
	struct message q = query("ok.test", DNS_TYPE_A, PLAIN);
	struct endpoint to = { .port = port }, from;
	struct sockaddr_storage ss;
	socklen_t len;
	struct message m;
	int fd;

	assert_int_equal(addr_parse(server, strlen(server), &to.addr), 0);
	len = endpoint_to_sockaddr(&to, &ss);
	fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(fd, q.b, q.len, 0, (struct sockaddr *)&ss, len), q.len);
	await(f, fd);
	m.len = (size_t)recvfrom(fd, m.b, sizeof(m.b), 0, (struct sockaddr *)&ss, &len);
	has_header(&m, DNS_NOERROR, 1, 0);
	/* It comes from where it was asked. */
	endpoint_from_sockaddr((struct sockaddr *)&ss, &from);
	assert_true(addr_equal(&from.addr, &to.addr));
	assert_int_equal(from.port, to.port);
	close(fd);
	recorded(f, "0 ok.test A allow rule");
}

static void test_udp(void **state)
{
	struct fixture *f = *state;

	udp_exchange(f, "127.0.0.1", f->port4);
	udp_exchange(f, "127.0.0.2", f->port4);
	udp_exchange(f, "127.4.5.6", f->port4);
	udp_exchange(f, "::1", f->port6);
}

/* A burst is taken in portions; the loop has its turns between them. */
static void test_udp_burst(void **state)
{
	struct fixture *f = *state;
	struct message q = query("ok.test", DNS_TYPE_A, PLAIN);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(f->port4);
	for (int i = 0; i < DNS_UDP_BURST + 5; i++)
		assert_int_equal(sendto(fd, q.b, q.len, 0, (struct sockaddr *)&to, sizeof(to)), q.len);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(f->audit.n, DNS_UDP_BURST);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(f->audit.n, DNS_UDP_BURST + 5);
	/* A datagram longer than any query. */
	f->audit.n = 0;
	q.len = sizeof(q.b);
	assert_int_equal(sendto(fd, q.b, q.len, 0, (struct sockaddr *)&to, sizeof(to)), q.len);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	recorded(f, "0 raw:ok.test A deny dns_malformed");
	close(fd);
}

/* A TCP connection on loopback, its server end taken over as the listener of the gate leaves it. */
static int tcp_connect(struct fixture *f, uint64_t conn)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int small = 8192;
	int server;

	/* So that both directions are soon full. */
	setsockopt(l, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(l, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(bind(l, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	server = accept4(l, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	close(l);
	setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	dns_server_tcp(f->server, server, conn, &client_src, &client_dst);
	return fd;
}

static void frame(struct message *stream, const struct message *q)
{
	uint8_t len[2] = { (uint8_t)(q->len >> 8), (uint8_t)q->len };

	add(stream, len, 2);
	add(stream, q->b, q->len);
}

static void read_exactly(struct fixture *f, int fd, uint8_t *buf, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r;

		await(f, fd);
		r = recv(fd, buf + at, n - at, 0);
		assert_true(r > 0);
		at += (size_t)r;
	}
}

/* The next answer on a stream. */
static struct message read_answer(struct fixture *f, int fd)
{
	struct message m = { .len = 0 };
	uint8_t len[2];

	read_exactly(f, fd, len, 2);
	m.len = (size_t)(len[0] << 8 | len[1]);
	assert_true(m.len <= DNS_REPLY_MAX);
	read_exactly(f, fd, m.b, m.len);
	return m;
}

static void at_end(struct fixture *f, int fd)
{
	uint8_t b;

	await(f, fd);
	assert_int_equal(recv(fd, &b, 1, 0), 0);
	close(fd);
}

/* Several queries at once, then one a byte at a time, then half-close: every answer arrives, then the end. */
static void test_tcp(void **state)
{
	struct fixture *f = *state;
	struct message a = query("ok.test", DNS_TYPE_A, PLAIN), b = query("bad.test", DNS_TYPE_A, PLAIN);
	struct message stream = { .len = 0 };
	int fd = tcp_connect(f, 9);
	struct message m;

	for (int i = 0; i < 3; i++) {
		frame(&stream, &a);
		frame(&stream, &b);
	}
	assert_int_equal(send(fd, stream.b, stream.len, 0), stream.len);
	for (int i = 0; i < 3; i++) {
		m = read_answer(f, fd);
		has_header(&m, DNS_NOERROR, 1, 0);
		m = read_answer(f, fd);
		has_header(&m, DNS_NXDOMAIN, 0, 1);
	}
	assert_int_equal(f->audit.n, 6);
	assert_string_equal(f->audit.lines[4], "9 ok.test A allow rule");
	assert_string_equal(f->audit.lines[5], "9 bad.test A deny not_allowed");
	f->audit.n = 0;
	stream.len = 0;
	frame(&stream, &a);
	for (size_t i = 0; i < stream.len; i++) {
		assert_int_equal(f->audit.n, 0);
		assert_int_equal(send(fd, stream.b + i, 1, 0), 1);
		turn(f);
	}
	m = read_answer(f, fd);
	has_header(&m, DNS_NOERROR, 1, 0);
	recorded(f, "9 ok.test A allow rule");
	/* The last query and the end of the stream come together. */
	assert_int_equal(send(fd, stream.b, stream.len, 0), stream.len);
	shutdown(fd, SHUT_WR);
	m = read_answer(f, fd);
	has_header(&m, DNS_NOERROR, 1, 0);
	at_end(f, fd);
	recorded(f, "9 ok.test A allow rule");
}

/* A client that asks and never reads: bounded, and served to the end when it does read. */
static void test_tcp_slow_reader(void **state)
{
	struct fixture *f = *state;
	struct message q = query("ok.test", DNS_TYPE_A, PLAIN);
	struct message stream = { .len = 0 };
	int fd = tcp_connect(f, 9);
	size_t sent = 0, received = 0, at = 0;

	f->audit.quiet = true;
	frame(&stream, &q);
	/* Until nothing moves any more: both directions are full. */
	for (int idle = 0; idle < 5;) {
		ssize_t n = send(fd, stream.b + at, stream.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			at += (size_t)n;
			idle = 0;
			if (at == stream.len) {
				at = 0;
				sent++;
			}
			if (sent % 64)
				continue;
		} else {
			idle++;
		}
		turn(f);
		if (sent > 1000000)
			fail_msg("it reads without bound");
	}
	/* The rest of the last one, while answers are taken. */
	while (received < sent) {
		struct message m = read_answer(f, fd);
		ssize_t n = at ? send(fd, stream.b + at, stream.len - at, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

		has_header(&m, DNS_NOERROR, 1, 0);
		received++;
		if (n > 0 && (at += (size_t)n) == stream.len) {
			at = 0;
			sent++;
		}
	}
	assert_int_equal(at, 0);
	shutdown(fd, SHUT_WR);
	at_end(f, fd);
}

static void test_tcp_no_query(void **state)
{
	static const char half[] = { 0, 100, 1, 2, 3 };
	static const char huge[] = { (char)0xff, (char)0xff, 1, 2, 3 };
	static const char empty[] = { 0, 0 };
	struct fixture *f = *state;
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	int fd = tcp_connect(f, 9);

	shutdown(fd, SHUT_WR);
	at_end(f, fd);
	recorded(f, "9 - - deny client_gone");

	fd = tcp_connect(f, 10);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	for (int i = 0; i < 100 && f->audit.n == 0; i++)
		turn(f);
	recorded(f, "10 - - deny client_gone");

	fd = tcp_connect(f, 11);
	assert_int_equal(send(fd, half, sizeof(half), 0), sizeof(half));
	shutdown(fd, SHUT_WR);
	at_end(f, fd);
	recorded(f, "11 - - deny dns_malformed");

	fd = tcp_connect(f, 12);
	assert_int_equal(send(fd, huge, sizeof(huge), 0), sizeof(huge));
	await(f, fd);
	close(fd);
	recorded(f, "12 - - deny dns_malformed");

	fd = tcp_connect(f, 13);
	assert_int_equal(send(fd, empty, sizeof(empty), 0), sizeof(empty));
	await(f, fd);
	close(fd);
	recorded(f, "13 - - deny dns_malformed");
}

static void test_tcp_limit(void **state)
{
	struct fixture *f = *state;
	struct message q = query("ok.test", DNS_TYPE_A, PLAIN), m;
	struct message stream = { .len = 0 };
	int fds[DNS_TCP_CLIENTS_MAX + 1];
	uint8_t b;

	for (int i = 0; i <= DNS_TCP_CLIENTS_MAX; i++)
		fds[i] = tcp_connect(f, 100 + (unsigned)i);
	recorded(f, "164 - - deny limit_connections");
	await(f, fds[DNS_TCP_CLIENTS_MAX]);
	assert_int_equal(recv(fds[DNS_TCP_CLIENTS_MAX], &b, 1, 0), -1);
	close(fds[DNS_TCP_CLIENTS_MAX]);
	/* The others still work, and one that ends makes room. */
	frame(&stream, &q);
	assert_int_equal(send(fds[5], stream.b, stream.len, 0), stream.len);
	m = read_answer(f, fds[5]);
	has_header(&m, DNS_NOERROR, 1, 0);
	shutdown(fds[5], SHUT_WR);
	at_end(f, fds[5]);
	fds[5] = tcp_connect(f, 200);
	f->audit.n = 0;
	/* Each of them leaves a record, also at the end of the job. */
	dns_server_free(f->server);
	assert_int_equal(f->audit.n, DNS_TCP_CLIENTS_MAX);
	assert_non_null(strstr(f->audit.lines[0], " deny client_gone"));
	for (int i = 0; i < DNS_TCP_CLIENTS_MAX; i++)
		close(fds[i]);
	f->server = dns_server_new(
		&(struct dns_server_config){ f->base, f->policy, &f->audit, f->env.map, f->udp4, f->udp6 });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_allowed),	 TEST(test_other_types), TEST(test_meta_types),
		TEST(test_denied),	 TEST(test_ancestors),	 TEST(test_bad_names),
		TEST(test_ptr),		 TEST(test_odd_queries), TEST(test_log_unavailable),
		TEST(test_limit_names),	 TEST(test_audit_mode),	 TEST(test_udp),
		TEST(test_udp_burst),	 TEST(test_tcp),	 TEST(test_tcp_slow_reader),
		TEST(test_tcp_no_query), TEST(test_tcp_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
