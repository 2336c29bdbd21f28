/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gate's DNS answers and records for each kind of question.
 *
 * links: proxy/dns/dns_server.c proxy/dns/dns_tcp.c proxy/dns/dns_reply.c proxy/dns/dns_map.c
 * links: proxy/wire/dns_msg.c proxy/wire/dns_answer.c
 * links: rules/builder.c rules/limits.c rules/entry.c rules/hint.c rules/match.c rules/names.c rules/arrange.c rules/sort.c rules/pattern.c rules/policy.c
 * links: rules/print.c rules/reason.c rules/rule.c rules/special.c rules/store.c
 * links: base/addr.c base/bytes.c base/clock.c base/err.c base/name.c base/prefix.c
 * links: tests/unit/dns_bench.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proxy/dns/dns_map.h"
#include "proxy/dns/dns_reply.h"
#include "proxy/wire/dns_msg.h"
#include "rules/policy.h"
#include "tests/unit/dns_bench.h"

static struct bench_message reply_to(struct bench *f, const struct bench_message *q)
{
	struct dns_client client = { .src = bench_src, .dst = bench_dst };
	struct bench_message m = { .len = 0 };

	m.len = dns_reply(&f->env, &client, q->b, q->len, m.b, DNS_REPLY_MAX);
	return m;
}

/* The data at the end of an answer without an OPT. */
static void ends_in(const struct bench_message *m, const void *p, size_t n)
{
	assert_true(m->len >= n);
	assert_memory_equal(m->b + m->len - n, p, n);
}

static bool contains(const struct bench_message *m, const char *text)
{
	return memmem(m->b, m->len, text, strlen(text)) != NULL;
}

static struct bench_message ask(struct bench *f, const char *name, uint16_t type, int options)
{
	struct bench_message q = bench_query(name, type, options);

	return reply_to(f, &q);
}

static void test_allowed(void **state)
{
	static const uint8_t v4[] = { 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1 };
	static const uint8_t v6[] = { 0,    28,	  0,	1,    0,    0, 0, 60, 0, 16,  0xfd, 0x6e, 0x65,
				      0x74, 0x67, 0x61, 0x50, 0x00, 0, 0, 0,  0, 198, 18,   0,	  1 };
	struct bench *f = *state;
	struct bench_message m = ask(f, "oK.TeSt", DNS_TYPE_A, PLAIN);

	bench_has_header(&m, DNS_NOERROR, 1, 0);
	ends_in(&m, v4, sizeof(v4));
	assert_true(contains(&m, "oK\x04TeSt"));
	bench_recorded(f, "0 ok.test A allow rule");

	m = ask(f, "ok.test", DNS_TYPE_AAAA, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	ends_in(&m, v6, sizeof(v6));
	bench_recorded(f, "0 ok.test AAAA allow rule");

	/* A name that is allowed on some port, one under a wildcard, one with an underscore. */
	m = ask(f, "db.ok2.test", DNS_TYPE_A, PLAIN);
	ends_in(&m, "\xc6\x12\x00\x02", 4);
	bench_recorded(f, "0 db.ok2.test A allow rule");
	m = ask(f, "a_b.wild.test", DNS_TYPE_A, PLAIN);
	ends_in(&m, "\xc6\x12\x00\x03", 4);
	bench_recorded(f, "0 a_b.wild.test A allow rule");
}

/* No key for an encrypted hello, no mail exchanger, no text: but an answer at once. */
static void test_other_types(void **state)
{
	static const uint16_t types[] = { DNS_TYPE_HTTPS, DNS_TYPE_SVCB, DNS_TYPE_SRV, DNS_TYPE_TXT,
					  DNS_TYPE_NS,	  DNS_TYPE_SOA,	 15,	       5,
					  DNS_TYPE_PTR };
	struct bench *f = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct bench_message m = ask(f, "ok.test", types[i], OPT);

		bench_has_header(&m, DNS_NOERROR, 0, 1);
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
	} types[] = { { 0, "TYPE0" },	  { 10, "NULL" },  { 41, "OPT" },
		      { 128, "TYPE128" }, { 251, "IXFR" }, { 252, "AXFR" } };
	struct bench *f = *state;
	struct bench_message m;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		char line[64];

		m = ask(f, "ok.test", types[i].type, OPT);
		bench_has_header(&m, DNS_REFUSED, 0, 0);
		assert_true(contains(&m, "dns_type"));
		snprintf(line, sizeof(line), "0 ok.test %s deny dns_type", types[i].text);
		bench_recorded(f, line);
	}
	/* ANY is empty, but on record; 127 and 256 are ordinary. */
	m = ask(f, "ok.test", DNS_TYPE_ANY, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 0, 1);
	bench_recorded(f, "0 ok.test ANY deny dns_type");
	ask(f, "ok.test", 127, PLAIN);
	bench_recorded(f, "0 ok.test TYPE127 allow rule");
	ask(f, "ok.test", 256, PLAIN);
	bench_recorded(f, "0 ok.test URI allow rule");
}

static void test_denied(void **state)
{
	static const uint16_t types[] = { DNS_TYPE_A, DNS_TYPE_AAAA, DNS_TYPE_TXT, DNS_TYPE_HTTPS, DNS_TYPE_ANY };
	struct bench *f = *state;
	struct bench_message m;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		m = ask(f, "secret123.bad.test", types[i], OPT);
		bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
		/* Extended DNS Error 17. */
		assert_non_null(memmem(m.b, m.len, "\x00\x0f\x00\x0d\x00\x11not_allowed", 17));
		assert_int_equal(f->audit.n, 1);
		assert_non_null(strstr(f->audit.lines[0], " deny not_allowed"));
		f->audit.n = 0;
	}
	m = ask(f, "bad.test", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	assert_false(contains(&m, "not_allowed"));
	bench_recorded(f, "0 bad.test A deny not_allowed");
	ask(f, "no.wild.test", DNS_TYPE_A, PLAIN);
	bench_recorded(f, "0 no.wild.test A deny denied_by_rule");
	ask(f, "wild.test.bad.test", DNS_TYPE_A, PLAIN);
	bench_recorded(f, "0 wild.test.bad.test A deny not_allowed");
	m = ask(f, "localhost", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 localhost A deny not_allowed");
	assert_null(dns_map_name(f->env.map, &(struct addr){ ADDR_V4, { 198, 18, 0, 1 } }));
}

/* RFC 8020: NXDOMAIN for an ancestor would mean that nothing is below it. */
static void test_ancestors(void **state)
{
	static const char *const ancestors[] = { "er.name.test", "name.test", "test", "wild.test", "ok2.test" };
	struct bench *f = *state;
	struct bench_message m;

	for (size_t i = 0; i < sizeof(ancestors) / sizeof(ancestors[0]); i++) {
		char line[64];

		m = ask(f, ancestors[i], DNS_TYPE_A, PLAIN);
		bench_has_header(&m, DNS_NOERROR, 0, 1);
		snprintf(line, sizeof(line), "0 %s A deny not_allowed", ancestors[i]);
		bench_recorded(f, line);
	}
	m = ask(f, "", DNS_TYPE_NS, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 0, 1);
	bench_recorded(f, "0 raw:. NS deny not_allowed");
}

static void test_bad_names(void **state)
{
	struct bench *f = *state;
	struct bench_message m = ask(f, "ok.te st", DNS_TYPE_A, PLAIN);
	struct bench_message q = bench_query("ok.test", DNS_TYPE_A, PLAIN);

	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 raw:ok.te\\032st A deny bad_name");
	ask(f, "127.1", DNS_TYPE_A, PLAIN);
	bench_recorded(f, "0 raw:127.1 A deny bad_name");
	ask(f, "10.0.0.1", DNS_TYPE_A, PLAIN);
	bench_recorded(f, "0 raw:10.0.0.1 A deny bad_name");
	/* One label "ok.test": not the name with two. */
	q.b[12] = 7;
	q.b[15] = '.';
	m = reply_to(f, &q);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 raw:ok\\046test A deny bad_name");
	/* A NUL inside. */
	q = bench_query("okxtest.wild.test", DNS_TYPE_A, PLAIN);
	q.b[15] = 0;
	reply_to(f, &q);
	bench_recorded(f, "0 raw:ok\\000test.wild.test A deny bad_name");
}

static void test_ptr(void **state)
{
	struct bench *f = *state;
	struct bench_message m;

	ask(f, "a.wild.test", DNS_TYPE_A, PLAIN);
	f->audit.n = 0;
	m = ask(f, "1.0.18.198.in-addr.arpa", DNS_TYPE_PTR, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	ends_in(&m,
		"\x01"
		"a\x04wild\x04test",
		13);
	bench_recorded(f, "0 a.wild.test PTR allow rule");
	m = ask(f, "1.0.0.0.2.1.6.c.0.0.0.0.0.0.0.0.0.0.0.5.1.6.7.6.4.7.5.6.e.6.d.f.ip6.arpa", DNS_TYPE_PTR, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	bench_recorded(f, "0 a.wild.test PTR allow rule");
	m = ask(f, "2.0.18.198.in-addr.arpa", DNS_TYPE_PTR, PLAIN);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 2.0.18.198.in-addr.arpa PTR deny not_allowed");
	m = ask(f, "1.0.18.198.in-addr.arpa", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 1.0.18.198.in-addr.arpa A deny not_allowed");
}

static void test_odd_queries(void **state)
{
	struct bench *f = *state;
	struct bench_message q = bench_query("ok.test", DNS_TYPE_A, CHAOS);
	struct bench_message m = reply_to(f, &q);

	bench_has_header(&m, DNS_REFUSED, 0, 0);
	bench_recorded(f, "0 ok.test A deny dns_type");
	m = ask(f, "ok.test", DNS_TYPE_A, OPT | VERSION1);
	bench_has_header(&m, 0, 0, 0);
	/* The upper bits of BADVERS are in the OPT. */
	assert_int_equal(m.b[m.len - 6], 1);
	bench_recorded(f, "0 ok.test A deny dns_malformed");
	/* Opcode 4, NOTIFY; two questions; QR; a header cut short. */
	q = bench_query("ok.test", DNS_TYPE_A, PLAIN);
	q.b[2] = 0x21;
	m = reply_to(f, &q);
	assert_int_equal(m.b[3] & 15, DNS_NOTIMP);
	assert_int_equal(f->audit.n, 1);
	f->audit.n = 0;
	q = bench_query("ok.test", DNS_TYPE_A, PLAIN);
	q.b[5] = 2;
	m = reply_to(f, &q);
	bench_has_header(&m, DNS_FORMERR, 0, 0);
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
	bench_recorded(f, "0 - - deny dns_malformed");
}

/* What can't be recorded is not answered. */
static void test_log_unavailable(void **state)
{
	struct bench *f = *state;
	struct bench_message m;

	f->audit.error = -ENOSPC;
	m = ask(f, "ok.test", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_SERVFAIL, 0, 0);
	m = ask(f, "bad.test", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_SERVFAIL, 0, 0);
	f->audit.error = 0;
	m = ask(f, "ok.test", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
}

static void test_limit_names(void **state)
{
	struct bench *f = *state;
	struct bench_message m;
	struct addr a;

	for (unsigned i = 0; i < DNS_MAP_MAX; i++) {
		struct name n;

		n.len = (uint8_t)snprintf(n.s, sizeof(n.s), "n%u.wild.test", i);
		assert_int_equal(dns_map_addr(f->env.map, &n, -1, ADDR_V4, &a), 0);
	}
	m = ask(f, "one-more.wild.test", DNS_TYPE_A, OPT);
	bench_has_header(&m, DNS_SERVFAIL, 0, 0);
	assert_true(contains(&m, "limit_names"));
	bench_recorded(f, "0 one-more.wild.test A deny limit_names");
	m = ask(f, "n7.wild.test", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
}

static void test_audit_mode(void **state)
{
	struct bench *f = *state;
	struct policy *enforce = f->policy;
	struct bench_message m;

	f->policy = bench_policy(true);
	f->env.policy = f->policy;
	m = ask(f, "bad.test", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	bench_recorded(f, "0 bad.test A allow audit_mode");
	m = ask(f, "localhost", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 localhost A deny not_allowed");
	m = ask(f, "x.localhost", DNS_TYPE_A, PLAIN);
	bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	bench_recorded(f, "0 x.localhost A deny not_allowed");
	ask(f, "xlocalhost", DNS_TYPE_A, PLAIN);
	bench_recorded(f, "0 xlocalhost A allow audit_mode");
	ask(f, "no.wild.test", DNS_TYPE_A, PLAIN);
	bench_recorded(f, "0 no.wild.test A deny denied_by_rule");
	policy_free(f->policy);
	f->policy = enforce;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_allowed),	    TEST(test_other_types), TEST(test_meta_types), TEST(test_denied),
		TEST(test_ancestors),	    TEST(test_bad_names),   TEST(test_ptr),	   TEST(test_odd_queries),
		TEST(test_log_unavailable), TEST(test_limit_names), TEST(test_audit_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
