/* SPDX-License-Identifier: Apache-2.0 */
/* The bench: real policy, map, messages and loop; the audit log is its own. */
#include "tests/unit/dns_bench.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "proxy/audit/audit.h"
#include "proxy/dns/dns_map.h"
#include "proxy/dns/dns_server.h"
#include "rules/policy.h"

const struct endpoint bench_src = { { ADDR_V4, { 10, 200, 0, 2 } }, 40000 };
const struct endpoint bench_dst = { { ADDR_V4, { 1, 1, 1, 1 } }, 53 };

/* "conn door host-or-raw qtype verdict reason" */
int audit_decision(struct audit *a, const struct audit_decision *d)
{
	const struct verdict *v = d->verdict;

	if (a->quiet)
		return 0;
	assert_true(a->n < BENCH_RECORDS_MAX);
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

void bench_recorded(struct bench *f, const char *line)
{
	assert_int_equal(f->audit.n, 1);
	assert_string_equal(f->audit.lines[0], line);
	f->audit.n = 0;
}

void bench_add(struct bench_message *m, const void *p, size_t n)
{
	assert_true(m->len + n <= sizeof(m->b));
	memcpy(m->b + m->len, p, n);
	m->len += n;
}

/* `name` dotted, with no way to write a dot in a label; "" is the root. */
struct bench_message bench_query(const char *name, uint16_t type, int options)
{
	static const uint8_t opt[] = { 0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0 };
	struct bench_message m = { .len = 12, .b = { 0x12, 0x34, 0x01, 0, 0, 1 } };
	uint8_t tail[4] = { (uint8_t)(type >> 8), (uint8_t)type, 0, options & CHAOS ? 3 : 1 };

	while (*name) {
		uint8_t n = (uint8_t)strcspn(name, ".");

		bench_add(&m, &n, 1);
		bench_add(&m, name, n);
		name += n + (name[n] == '.');
	}
	bench_add(&m, "", 1);
	bench_add(&m, tail, 4);
	if (options & OPT) {
		m.b[11] = 1;
		bench_add(&m, opt, sizeof(opt));
		if (options & VERSION1)
			m.b[m.len - 5] = 1;
	}
	return m;
}

/* Header of an answer: rcode and the numbers of answer and authority records. */
void bench_has_header(const struct bench_message *m, int rcode, int answers, int authorities)
{
	assert_true(m->len >= 12);
	assert_memory_equal(m->b, "\x12\x34\x81", 3);
	assert_int_equal(m->b[3], 0x80 | rcode);
	assert_int_equal(m->b[7], answers);
	assert_int_equal(m->b[9], authorities);
}

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

struct policy *bench_policy(bool audit)
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

int bench_set_up(void **state)
{
	struct bench *f = calloc(1, sizeof(*f));
	struct dns_server_config config;

	f->base = event_base_new();
	f->policy = bench_policy(false);
	f->env = (struct dns_reply_env){ f->policy, &f->audit, dns_map_new() };
	f->udp4 = bind_udp(AF_INET, &f->port4);
	f->udp6 = bind_udp(AF_INET6, &f->port6);
	config = (struct dns_server_config){ f->base, f->policy, &f->audit, f->env.map, f->udp4, f->udp6, NULL, NULL };
	f->server = dns_server_new(&config);
	assert_non_null(f->server);
	*state = f;
	return 0;
}

int bench_tear_down(void **state)
{
	struct bench *f = *state;

	dns_server_free(f->server);
	close(f->udp4);
	close(f->udp6);
	dns_map_free(f->env.map);
	policy_free(f->policy);
	event_base_free(f->base);
	free(f);
	return 0;
}
