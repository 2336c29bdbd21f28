/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what a person reads: the summary and the --verbose lines.
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/unit/audit_bench.h"

#define SNI NAME_FROM_SNI

/* A connection that ended before its dial did. */
static void unmade(struct audit_bench *b, const char *host, const char *dst)
{
	struct audit_close c = { .conn = 9, .ms = 12, .end = CLOSE_JOB_ENDED, .unmade = true };

	c.host = audit_bench_name(host);
	c.dst = audit_bench_endpoint(dst);
	assert_int_equal(audit_close(b->audit, &c), 0);
}

static void close_conn(struct audit_bench *b, uint64_t conn, const char *host, const char *dst, uint64_t up,
		       uint64_t down, enum close_end end)
{
	struct audit_close c = { .conn = conn, .up = up, .down = down, .ms = 12, .end = end };

	c.host = audit_bench_name(host);
	c.dst = audit_bench_endpoint(dst);
	assert_int_equal(audit_close(b->audit, &c), 0);
}

static void drop(struct audit_bench *b, const char *proto, const char *dst, uint16_t port, enum reason reason,
		 uint64_t count)
{
	struct audit_drop d = { .proto = proto, .port = port, .reason = reason, .count = count, .bytes = 40 * count };

	if (dst)
		d.dst = audit_bench_endpoint(dst).addr;
	assert_int_equal(audit_drop(b->audit, &d), 0);
}

static void drop_quic(struct audit_bench *b, const char *dst, const char *name, uint64_t count)
{
	struct audit_drop d = {
		.proto = "udp", .port = 443, .reason = REASON_QUIC, .count = count, .bytes = 1228 * count
	};

	d.dst = audit_bench_endpoint(dst).addr;
	d.quic_name = audit_bench_name(name);
	assert_int_equal(audit_drop(b->audit, &d), 0);
}

static void nothing(void **state)
{
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_string_equal(audit_bench_summary(&b), "");
	audit_bench_close(&b);
}

static void all_kinds(void **state)
{
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	for (uint64_t conn = 1; conn <= 3; conn++) {
		audit_bench_decide(&b, 0, PROTO_DNS, "api.example.com", NAME_FROM_DNS, "10.200.0.1:53", REASON_RULE);
		audit_bench_decide(&b, conn, PROTO_TLS, "api.example.com", SNI, "198.18.0.1:443", REASON_RULE);
		close_conn(&b, conn, "api.example.com", "198.18.0.1:443", 400, 17000, CLOSE_CLIENT);
	}
	audit_bench_decide(&b, 0, PROTO_DNS, "idle.example.com", NAME_FROM_DNS, "10.200.0.1:53", REASON_RULE);
	/* AAAA and A of a name, then the connection all the same, to an address of the sandbox's own choice. */
	audit_bench_decide(&b, 0, PROTO_DNS, "evil.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 0, PROTO_DNS, "evil.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 4, PROTO_TLS, "evil.test", SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 5, PROTO_TLS, "evil.test", SNI, "192.0.2.1:8443", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 0, PROTO_DNS, "lookup.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 6, PROTO_ANY, NULL, SNI, "[2a0f:1ab::1]:22", REASON_NO_NAME);
	drop(&b, "udp", "8.8.8.8", 53, REASON_UDP, 1);
	drop(&b, "icmp", "1.1.1.1", 0, REASON_ICMP, 2);
	drop(&b, "icmp", "1.1.1.1", 0, REASON_ICMP, 2);
	drop_quic(&b, "8.8.8.8", "example.com", 2);
	drop_quic(&b, "2a0f:1ab::1", "example.com", 1);
	drop_quic(&b, "8.8.8.8", NULL, 1);
	drop(&b, NULL, NULL, 0, REASON_UDP, 1000);
	drop(&b, "tcp", NULL, 0, REASON_HALF_OPEN, 7);
	assert_string_equal(
		audit_bench_summary(&b),
		"netgate: allowed  api.example.com:443         3 connections         1.2 kB up, 51 kB down\n"
		"netgate: allowed  idle.example.com            1 lookup              no connection\n"
		"netgate: denied   evil.test:443               1 attempt, 2 lookups  not_allowed   to allow: "
		"--allow evil.test\n"
		"netgate: denied   evil.test:8443              1 attempt             not_allowed   to allow: "
		"--allow evil.test:8443\n"
		"netgate: denied   lookup.test                 1 lookup              not_allowed   to allow: "
		"--allow lookup.test\n"
		"netgate: denied   [2a0f:1ab::1]:22            1 attempt             no_name       to allow: "
		"--allow '[2a0f:1ab::1]:22'\n"
		"netgate: denied   8.8.8.8:53/udp              1 packet              udp\n"
		"netgate: denied   1.1.1.1/icmp                4 packets             icmp\n"
		"netgate: denied   example.com:443/udp (QUIC)  3 packets             quic\n"
		"netgate: denied   8.8.8.8:443/udp             1 packet              quic\n"
		"netgate: denied   (further packets)           1000 packets          udp\n"
		"netgate: denied   (half-open connections)     7 packets             half_open\n");
	audit_bench_close(&b);
}

static void failures(void **state)
{
	struct endpoint none = { .port = 0 }, peer = audit_bench_endpoint("10.2.0.5:443");
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	audit_dial(b.audit, 1, audit_bench_name("gone.test"), &none, REASON_DNS_FAILED, "NXDOMAIN");
	close_conn(&b, 1, "gone.test", "198.18.0.1:443", 0, 0, CLOSE_CONNECT_FAILED);
	audit_dial(b.audit, 2, audit_bench_name("inner.test"), &peer, REASON_PRIVATE_ADDRESS, "10.0.0.0/8 private-use");
	close_conn(&b, 2, "inner.test", "198.18.0.2:443", 0, 0, CLOSE_CONNECT_FAILED);
	/* One address refused, the other did not answer: the second says more, in whichever order they come. */
	audit_dial(b.audit, 3, audit_bench_name("mixed.test"), &peer, REASON_CONNECT_FAILED, "ECONNREFUSED");
	audit_dial(b.audit, 3, audit_bench_name("mixed.test"), &peer, REASON_PRIVATE_ADDRESS, "10.0.0.0/8 private-use");
	close_conn(&b, 3, "mixed.test", "198.18.0.3:443", 0, 0, CLOSE_CONNECT_FAILED);
	/* A failed address does not matter where another one answered. */
	audit_dial(b.audit, 4, audit_bench_name("two.test"), &peer, REASON_CONNECT_FAILED, "ETIMEDOUT");
	audit_dial(b.audit, 4, audit_bench_name("two.test"), &peer, REASON_CONNECTED, NULL);
	close_conn(&b, 4, "two.test", "198.18.0.4:443", 1, 2, CLOSE_UPSTREAM);
	audit_dial(b.audit, 6, audit_bench_name("cut.test"), &peer, REASON_DENIED_BY_RULE, "--deny 10.0.0.0/8");
	close_conn(&b, 6, "cut.test", "198.18.0.5:443", 0, 0, CLOSE_CONNECT_FAILED);
	/* An address rule. */
	audit_dial(b.audit, 5, NULL, &peer, REASON_CONNECT_FAILED, "EHOSTUNREACH");
	close_conn(&b, 5, NULL, "10.2.0.5:443", 0, 0, CLOSE_CONNECT_FAILED);
	unmade(&b, "slow.test", "198.18.0.6:443");
	assert_string_equal(
		audit_bench_summary(&b),
		"netgate: failed   gone.test:443   1 connection  dns_failed (NXDOMAIN)\n"
		"netgate: failed   mixed.test:443  1 connection  connect_failed (10.2.0.5:443, ECONNREFUSED)\n"
		"netgate: allowed  two.test:443    1 connection  1 B up, 2 B down\n"
		"netgate: failed   10.2.0.5:443    1 connection  connect_failed (10.2.0.5:443, EHOSTUNREACH)\n"
		"netgate: gave up  slow.test:443   1 connection  client_gone (before it was connected)\n"
		"netgate: denied   inner.test:443  1 attempt     private_address (10.2.0.5:443, 10.0.0.0/8 "
		"private-use)   to allow: in a policy, host: inner.test with addresses: [10.2.0.5/32]\n"
		"netgate: denied   cut.test:443    1 attempt     denied_by_rule (10.2.0.5:443, --deny 10.0.0.0/8)\n");
	audit_bench_close(&b);
}

static void audit_mode(void **state)
{
	struct request request = { .proto = PROTO_ANY, .port = 5432 };
	struct verdict verdict = { .allow = true, .reason = REASON_AUDIT_MODE, .would = REASON_NO_NAME };
	struct audit_decision no_name = { .conn = 4, .request = &request, .verdict = &verdict };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	audit_bench_decide(&b, 0, PROTO_DNS, "new.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_AUDIT_MODE);
	audit_bench_decide(&b, 1, PROTO_TLS, "new.test", SNI, "198.18.0.1:443", REASON_AUDIT_MODE);
	close_conn(&b, 1, "new.test", "198.18.0.1:443", 1, 1, CLOSE_CLIENT);
	audit_bench_decide(&b, 2, PROTO_TLS, "new.test", SNI, "198.18.0.1:443", REASON_AUDIT_MODE);
	close_conn(&b, 2, "new.test", "198.18.0.1:443", 1, 1, CLOSE_CLIENT);
	audit_bench_decide(&b, 3, PROTO_TLS, "gone.test", SNI, "198.18.0.2:443", REASON_AUDIT_MODE);
	no_name.dst = audit_bench_endpoint("51.15.0.7:5432");
	request.dst = no_name.dst.addr;
	assert_int_equal(audit_decision(b.audit, &no_name), 0);
	close_conn(&b, 4, NULL, "51.15.0.7:5432", 3, 0, CLOSE_CLIENT);
	assert_string_equal(audit_bench_summary(&b), "netgate: would deny  new.test:443    2 connections, 1 lookup  "
						     "not_allowed (2 B up, 2 B down)   to allow: "
						     "--allow new.test\n"
						     "netgate: would deny  gone.test:443   1 attempt                "
						     "not_allowed                      to allow: "
						     "--allow gone.test\n"
						     "netgate: would deny  51.15.0.7:5432  1 connection             "
						     "no_name (3 B up, 0 B down)       to allow: "
						     "--allow 51.15.0.7:5432\n");
	audit_bench_close(&b);
}

/* Names that could not be made canonical are shown escaped: no byte of the sandbox's reaches the terminal. */
static void hostile_names(void **state)
{
	static const char raw[] = "\x1b]0;owned\x07\r\nnetgate: allowed  \\x41";
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	struct verdict verdict = { .reason = REASON_BAD_NAME };
	struct audit_decision d = { .conn = 1, .request = &request, .verdict = &verdict };
	struct audit_bench b;
	const char *text;

	(void)state;
	audit_bench_open(&b, "j", true);
	d.dst = audit_bench_endpoint("192.0.2.1:443");
	d.raw_name = raw;
	d.raw_name_len = sizeof(raw) - 1;
	d.alpn = "\x1b[31m";
	assert_int_equal(audit_decision(b.audit, &d), 0);
	text = audit_bench_summary(&b);
	assert_string_equal(text, "netgate: denied  \"\\x1b]0;owned\\x07\\x0d\\x0anetgate: allowed  \\\\x41\":443"
				  "  1 attempt  bad_name\n");
	assert_string_equal(audit_bench_verbose(&b),
			    "netgate: deny  tls \"\\x1b]0;owned\\x07\\x0d\\x0anetgate: allowed  \\\\x41\" "
			    "at 192.0.2.1:443 bad_name\n");
	audit_bench_close(&b);
}

/* A name that was looked up has no row of its own where another says more. */
static void looked_up(void **state)
{
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	audit_bench_decide(&b, 0, PROTO_DNS, "ok.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_RULE);
	audit_bench_decide(&b, 1, PROTO_ANY, "ok.test", NAME_FROM_DNS, "198.18.0.1:22", REASON_PORT_NOT_ALLOWED);
	audit_bench_decide(&b, 0, PROTO_DNS, "other.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_RULE);
	audit_bench_decide(&b, 2, PROTO_ANY, "other.test", NAME_FROM_DNS, "198.18.0.2:443", REASON_CLIENT_GONE);
	assert_string_equal(audit_bench_summary(&b),
			    "netgate: denied   ok.test:22      1 attempt  port_not_allowed   to "
			    "allow: --allow ok.test:22\n"
			    "netgate: gave up  other.test:443  1 attempt  client_gone\n");
	audit_bench_close(&b);
}

/* The rule that denies; and the one that is only near. */
static void rules(void **state)
{
	const struct name *host = audit_bench_name("ok.test");
	struct policy_rule rule = { .label = "--deny ok.test:80" };
	struct request request = { .proto = PROTO_HTTP, .port = 80, .names = { [NAME_FROM_HOST] = host } };
	struct verdict verdict = { .reason = REASON_DENIED_BY_RULE, .rule = &rule, .host = host };
	struct audit_decision d = { .conn = 1, .request = &request, .verdict = &verdict };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", true);
	verdict.name_from = NAME_FROM_HOST;
	assert_int_equal(audit_decision(b.audit, &d), 0);
	rule.label = "--allow ok.test";
	request.port = 8080;
	verdict.reason = REASON_PORT_NOT_ALLOWED;
	assert_int_equal(audit_decision(b.audit, &d), 0);
	assert_string_equal(
		audit_bench_verbose(&b),
		"netgate: deny  http ok.test:80 (host) denied_by_rule by --deny ok.test:80\n"
		"netgate: deny  http ok.test:8080 (host) port_not_allowed (nearest rule: --allow ok.test)\n");
	assert_string_equal(
		audit_bench_summary(&b),
		"netgate: denied  ok.test:80    1 attempt  denied_by_rule (--deny ok.test:80)\n"
		"netgate: denied  ok.test:8080  1 attempt  port_not_allowed   to allow: --allow ok.test:8080\n");
	audit_bench_close(&b);
}

/* Data carried out in names: one row, whatever the names are; five of a domain are still shown one by one. */
static void names_below(void **state)
{
	struct audit_bench b;
	char host[64];

	(void)state;
	audit_bench_open(&b, "j", false);
	for (int i = 0; i < 5000; i++) {
		snprintf(host, sizeof(host), "n%d.x%d.evil.test", i, i % 3);
		for (int j = 0; j < 2; j++)
			audit_bench_decide(&b, 0, PROTO_DNS, host, NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
		if (i % 1000 == 0)
			audit_bench_decide(&b, 1, PROTO_TLS, host, SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	}
	for (int i = 0; i < 5; i++) {
		snprintf(host, sizeof(host), "n%d.few.test", i);
		audit_bench_decide(&b, 0, PROTO_DNS, host, NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	}
	audit_bench_decide(&b, 0, PROTO_DNS, "evil.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	assert_string_equal(audit_bench_summary(&b),
			    "netgate: denied  5000 names below evil.test  5 attempts, 10000 lookups  not_allowed\n"
			    "netgate: denied  n0.few.test                 1 lookup                   not_allowed   to "
			    "allow: --allow n0.few.test\n"
			    "netgate: denied  n1.few.test                 1 lookup                   not_allowed   to "
			    "allow: --allow n1.few.test\n"
			    "netgate: denied  n2.few.test                 1 lookup                   not_allowed   to "
			    "allow: --allow n2.few.test\n"
			    "netgate: denied  n3.few.test                 1 lookup                   not_allowed   to "
			    "allow: --allow n3.few.test\n"
			    "netgate: denied  n4.few.test                 1 lookup                   not_allowed   to "
			    "allow: --allow n4.few.test\n"
			    "netgate: denied  evil.test                   1 lookup                   not_allowed   to "
			    "allow: --allow evil.test\n");
	audit_bench_close(&b);
}

static void many_rows(void **state)
{
	struct audit_bench b;
	const char *text;
	size_t rows = 0;
	char host[32];

	(void)state;
	audit_bench_open(&b, "j", false);
	for (int i = 0; i < 600; i++) {
		snprintf(host, sizeof(host), "n%d.test", i);
		for (int j = 0; j < 2; j++)
			audit_bench_decide(&b, 1, PROTO_TLS, host, SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	}
	text = audit_bench_summary(&b);
	assert_non_null(strstr(text, "n29.test:443"));
	assert_null(strstr(text, "n30.test:443"));
	assert_non_null(strstr(text, "netgate: and 570 more that were denied (see the log)\n"));
	for (; *text; text++)
		rows += *text == '\n';
	assert_int_equal(rows, 31);
	audit_bench_close(&b);
}

/* A denial by a limit, the record's value of it in `limit`. */
static void deny_limit(struct audit_bench *b, enum door door, const char *host, enum reason reason,
		       const struct policy_rule *rule, const char *limit)
{
	struct request request = { .proto = door == DOOR_DNS ? PROTO_DNS : PROTO_TLS, .port = 443 };
	struct verdict verdict = { .reason = reason, .rule = rule, .host = audit_bench_name(host) };
	struct audit_decision d = { .conn = 1, .door = door, .request = &request, .verdict = &verdict };
	json_t *record;

	d.dst = audit_bench_endpoint("198.18.0.1:443");
	assert_int_equal(audit_decision(b->audit, &d), 0);
	record = audit_bench_last(b);
	if (limit)
		assert_string_equal(json_string_value(json_object_get(record, "limit")), limit);
	else
		assert_null(json_object_get(record, "limit"));
	json_decref(record);
}

/* Which limit it was, its value, and whose; nothing where no policy set it. */
static void limits_met(void **state)
{
	static const struct policy_rule limited = { .label = "policy.yaml:4", .limited = true },
					plain = { .label = "policy.yaml:5" };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", true);
	b.policy.limits.max[LIMIT_UPLOAD] = 20 << 20;
	b.policy.limits.max[LIMIT_CONNECTIONS] = 9;
	b.policy.rule_limits.max[LIMIT_CONNECTIONS] = 4;
	b.policy.rule_limits.max[LIMIT_RATE] = 5;
	b.policy.rule_limits.max[LIMIT_NAMES] = 3;
	deny_limit(&b, DOOR_TRANSPARENT, "up.test", REASON_LIMIT_UPLOAD, NULL, "20MiB");
	deny_limit(&b, DOOR_TRANSPARENT, "open.test", REASON_LIMIT_CONNECTIONS, &limited, "4");
	deny_limit(&b, DOOR_TRANSPARENT, "rate.test", REASON_LIMIT_RATE, &limited, "5/s");
	deny_limit(&b, DOOR_TRANSPARENT, "many.test", REASON_LIMIT_NAMES, NULL, NULL);
	deny_limit(&b, DOOR_DNS, "look.test", REASON_LIMIT_NAMES, &limited, "3");
	deny_limit(&b, DOOR_DNS, "dns.test", REASON_LIMIT_CONNECTIONS, NULL, NULL);
	deny_limit(&b, DOOR_TRANSPARENT, "other.test", REASON_PORT_NOT_ALLOWED, &plain, NULL);
	assert_string_equal(
		audit_bench_summary(&b),
		"netgate: denied  up.test:443     1 attempt  limit_upload (upload: 20MiB of the job)\n"
		"netgate: denied  open.test:443   1 attempt  limit_connections (connections: 4 of policy.yaml:4)\n"
		"netgate: denied  rate.test:443   1 attempt  limit_rate (rate: 5/s of policy.yaml:4)\n"
		"netgate: denied  many.test:443   1 attempt  limit_names\n"
		"netgate: denied  look.test       1 lookup   limit_names (names: 3 of policy.yaml:4)\n"
		"netgate: denied  dns.test        1 lookup   limit_connections\n"
		"netgate: denied  other.test:443  1 attempt  port_not_allowed   to allow: "
		"--allow other.test:443\n");
	assert_non_null(
		strstr(audit_bench_verbose(&b),
		       "netgate: deny  tls open.test:443 (sni) limit_connections (connections: 4 of policy.yaml:4)\n"));
	audit_bench_close(&b);
}

static void verbose_lines(void **state)
{
	struct endpoint peer = audit_bench_endpoint("93.184.215.14:443"), none = { .port = 0 };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", true);
	audit_bench_decide(&b, 0, PROTO_DNS, "api.example.com", NAME_FROM_DNS, "10.200.0.1:53", REASON_RULE);
	audit_bench_decide(&b, 1, PROTO_TLS, "api.example.com", SNI, "198.18.0.1:443", REASON_RULE);
	audit_dial(b.audit, 1, audit_bench_name("api.example.com"), &peer, REASON_CONNECTED, NULL);
	audit_dial(b.audit, 1, audit_bench_name("api.example.com"), &none, REASON_DNS_FAILED, "time\nout");
	close_conn(&b, 1, "api.example.com", "198.18.0.1:443", 812, 51233, CLOSE_CLIENT);
	audit_bench_decide(&b, 2, PROTO_ANY, NULL, SNI, "192.0.2.1:22", REASON_NO_NAME);
	audit_bench_decide(&b, 3, PROTO_TLS, "new.test", SNI, "192.0.2.1:443", REASON_AUDIT_MODE);
	drop(&b, "udp", "8.8.8.8", 53, REASON_UDP, 1);
	drop(&b, "icmp", "8.8.8.8", 0, REASON_ICMP, 2);
	drop_quic(&b, "8.8.8.8", "example.com", 2);
	drop(&b, NULL, NULL, 0, REASON_MALFORMED, 3);
	assert_string_equal(audit_bench_verbose(&b),
			    "netgate: allow dns api.example.com A by policy.yaml:4\n"
			    "netgate: allow tls api.example.com:443 (sni) by policy.yaml:4\n"
			    "netgate: dial  api.example.com 93.184.215.14:443 connected\n"
			    "netgate: dial  api.example.com dns_failed (time\\x0aout)\n"
			    "netgate: close api.example.com:443 812 B up, 51 kB down, 12 ms, client\n"
			    "netgate: deny  tcp 192.0.2.1:22 no_name\n"
			    "netgate: allow tls new.test:443 (sni) audit_mode (would be not_allowed)\n"
			    "netgate: drop  udp 8.8.8.8:53, 1 packet\n"
			    "netgate: drop  icmp 8.8.8.8, 2 packets\n"
			    "netgate: drop  udp example.com:443 (quic) at 8.8.8.8:443 quic, 2 packets\n"
			    "netgate: drop  malformed, 3 packets\n");
	audit_bench_close(&b);
}

/* A terminal that takes nothing never holds the gate up; how many lines it missed is said later. */
static void stopped_terminal(void **state)
{
	static char junk[65536];
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", true);
	while (write(b.verbose[1], junk, sizeof(junk)) > 0)
		continue;
	/* A blocking descriptor, as a terminal is: if a line were written, this would hang. */
	assert_int_equal(fcntl(b.verbose[1], F_SETFL, 0), 0);
	for (int i = 0; i < 3; i++)
		drop(&b, "udp", "8.8.8.8", 53, REASON_UDP, 1);
	while (read(b.verbose[0], junk, sizeof(junk)) > 0)
		continue;
	drop(&b, "udp", "8.8.8.8", 53, REASON_UDP, 1);
	drop(&b, "udp", "8.8.8.8", 54, REASON_UDP, 1);
	assert_string_equal(audit_bench_verbose(&b), "netgate: (3 lines not shown)\n"
						     "netgate: drop  udp 8.8.8.8:53, 1 packet\n"
						     "netgate: drop  udp 8.8.8.8:54, 1 packet\n");
	audit_bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),    cmocka_unit_test(all_kinds),     cmocka_unit_test(failures),
		cmocka_unit_test(audit_mode), cmocka_unit_test(hostile_names), cmocka_unit_test(many_rows),
		cmocka_unit_test(looked_up),  cmocka_unit_test(rules),	       cmocka_unit_test(names_below),
		cmocka_unit_test(limits_met), cmocka_unit_test(verbose_lines), cmocka_unit_test(stopped_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
