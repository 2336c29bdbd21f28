/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision: which names, ports, protocols and addresses a policy lets
 * through, which rule says so, and what would change it.
 *
 * Size: one table of cases a rule of the language; a split would only scatter them.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/hint.c rules/reason.c
 * links: base/addr.c base/prefix.c base/name.c base/err.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "rules/hint.h"
#include "rules/match.h"
#include "rules/policy.h"

/* A policy from flags: "+entry" allows, "-entry" denies, "audit" sets the mode. Ends with NULL. */
static struct policy *policy_of(const char *const *flags)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;
	int rc = 0;

	for (; *flags && rc == 0; flags++) {
		if (**flags == '+')
			rc = policy_builder_allow(b, *flags + 1, &err);
		else if (**flags == '-')
			rc = policy_builder_deny(b, *flags + 1, &err);
		else
			policy_builder_audit(b, true);
	}
	p = rc ? NULL : policy_build(b, &err);
	policy_builder_free(b);
	if (!p)
		fail_msg("%s", err.text);
	return p;
}

#define POLICY(...) policy_of((const char *const[]){ __VA_ARGS__, NULL })

static struct name name_of(const char *text)
{
	struct name n;

	if (name_canonical(text, strlen(text), &n))
		fail_msg("not a name: %s", text);
	return n;
}

static struct addr addr_of(const char *text)
{
	struct addr a;

	if (addr_parse(text, strlen(text), &a))
		fail_msg("not an address: %s", text);
	return a;
}

/* The verdict on one name seen as SNI, Host or by DNS, as the protocol has it. */
static struct verdict ask(const struct policy *p, const char *host, uint16_t port, enum proto proto)
{
	static struct name name;
	struct request request = { .proto = proto, .port = port };

	name = name_of(host);
	request.names[proto == PROTO_TLS    ? NAME_FROM_SNI
		      : proto == PROTO_HTTP ? NAME_FROM_HOST
					    : NAME_FROM_DNS] = &name;
	return match(p, &request);
}

static struct verdict ask_addr(const struct policy *p, const char *addr, uint16_t port, enum proto proto)
{
	struct request request = { .proto = proto, .port = port, .dst = addr_of(addr) };

	return match(p, &request);
}

#define assert_reason(v, r) assert_string_equal(reason_word((v).reason), reason_word(REASON_##r))

static void assert_rule(const struct policy *p, const struct verdict *v, const char *label)
{
	char buf[POLICY_RULE_LABEL_MAX];

	assert_string_equal(policy_rule_label(p, v->rule, buf), label);
}

struct question {
	const char *host;
	uint16_t port;
	enum proto proto;
	enum reason reason;
	const char *rule;
};

static void check(const struct policy *p, const struct question *q, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct verdict v = ask(p, q[i].host, q[i].port, q[i].proto);
		char label[POLICY_RULE_LABEL_MAX];

		policy_rule_label(p, v.rule, label);
		if (v.reason != q[i].reason || v.allow != (q[i].reason == REASON_RULE) || strcmp(label, q[i].rule) != 0)
			fail_msg("%s:%u %s: %s %s, by \"%s\"", q[i].host, q[i].port, proto_word(q[i].proto),
				 v.allow ? "allow" : "deny", reason_word(v.reason), label);
		assert_non_null(v.host);
		assert_string_equal(v.host->s, name_of(q[i].host).s);
	}
}

#define CHECK(p, ...) \
	check(p, (const struct question[]){ __VA_ARGS__ }, \
	      sizeof((const struct question[]){ __VA_ARGS__ }) / sizeof(struct question))

static void an_empty_policy_allows_nothing(void **state)
{
	struct policy *p = policy_of((const char *const[]){ NULL });
	struct verdict v;

	(void)state;
	CHECK(p, { "ok.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "ok.test", 80, PROTO_HTTP, REASON_NOT_ALLOWED, "" },
	      { "ok.test", 0, PROTO_DNS, REASON_NOT_ALLOWED, "" },
	      { "ok.test", 22, PROTO_ANY, REASON_NOT_ALLOWED, "" });
	v = ask_addr(p, "192.0.2.1", 443, PROTO_TLS);
	assert_false(v.allow);
	assert_reason(v, NO_NAME);
	assert_int_equal(policy_size(p), 0);
	assert_false(match_port_used(p, 443));
	policy_free(p);
}

static void ports_and_protocols(void **state)
{
	struct policy *p = POLICY("+ok.test", "+ssh.test:22", "+tls.test:443", "+web.test:80", "+raw.test:443/tcp",
				  "+raw.test:9000/tcp");

	(void)state;
	CHECK(p, { "ok.test", 443, PROTO_TLS, REASON_RULE, "--allow ok.test" },
	      { "ok.test", 80, PROTO_HTTP, REASON_RULE, "--allow ok.test" },
	      { "ok.test", 443, PROTO_HTTP, REASON_NOT_TLS, "--allow ok.test" },
	      { "ok.test", 443, PROTO_ANY, REASON_NOT_TLS, "--allow ok.test" },
	      { "ok.test", 80, PROTO_TLS, REASON_NOT_HTTP, "--allow ok.test" },
	      { "ok.test", 80, PROTO_ANY, REASON_NOT_HTTP, "--allow ok.test" },
	      { "ok.test", 22, PROTO_ANY, REASON_PORT_NOT_ALLOWED, "--allow ok.test" },
	      { "ok.test", 8443, PROTO_TLS, REASON_PORT_NOT_ALLOWED, "--allow ok.test" },
	      { "ok.test", 0, PROTO_TLS, REASON_PORT_NOT_ALLOWED, "--allow ok.test" },
	      { "ok.test", 0, PROTO_DNS, REASON_RULE, "--allow ok.test" },
	      { "ssh.test", 22, PROTO_ANY, REASON_RULE, "--allow ssh.test:22" },
	      { "ssh.test", 22, PROTO_TLS, REASON_RULE, "--allow ssh.test:22" },
	      { "ssh.test", 22, PROTO_HTTP, REASON_RULE, "--allow ssh.test:22" },
	      { "ssh.test", 443, PROTO_TLS, REASON_PORT_NOT_ALLOWED, "--allow ssh.test:22" },
	      { "ssh.test", 0, PROTO_DNS, REASON_RULE, "--allow ssh.test:22" },
	      { "tls.test", 443, PROTO_TLS, REASON_RULE, "--allow tls.test:443" },
	      { "tls.test", 443, PROTO_ANY, REASON_NOT_TLS, "--allow tls.test:443" },
	      { "tls.test", 80, PROTO_HTTP, REASON_PORT_NOT_ALLOWED, "--allow tls.test:443" },
	      { "web.test", 80, PROTO_HTTP, REASON_RULE, "--allow web.test:80" },
	      { "web.test", 443, PROTO_TLS, REASON_PORT_NOT_ALLOWED, "--allow web.test:80" },
	      { "raw.test", 443, PROTO_ANY, REASON_RULE, "--allow raw.test:443/tcp" },
	      { "raw.test", 443, PROTO_TLS, REASON_RULE, "--allow raw.test:443/tcp" },
	      { "raw.test", 443, PROTO_HTTP, REASON_RULE, "--allow raw.test:443/tcp" },
	      { "raw.test", 9000, PROTO_ANY, REASON_RULE, "--allow raw.test:9000/tcp" });
	assert_true(ask(p, "raw.test", 443, PROTO_ANY).any_bytes);
	assert_true(ask(p, "raw.test", 9000, PROTO_ANY).any_bytes);
	assert_false(ask(p, "ssh.test", 22, PROTO_ANY).any_bytes);
	assert_false(ask(p, "ok.test", 443, PROTO_TLS).any_bytes);
	assert_true(match_port_used(p, 443) && match_port_used(p, 80) && match_port_used(p, 22));
	assert_true(match_port_used(p, 9000));
	assert_false(match_port_used(p, 23));
	assert_false(match_port_used(p, 0));
	policy_free(p);
}

static void label_boundaries(void **state)
{
	struct policy *p = POLICY("+ok.test", "+*.wild.test", "+.both.test", "+intranet");

	(void)state;
	CHECK(p, { "ok.test", 443, PROTO_TLS, REASON_RULE, "--allow ok.test" },
	      { "OK.test.", 443, PROTO_TLS, REASON_RULE, "--allow ok.test" },
	      { "notok.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "bad-ok.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "sub.ok.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "ok.test.bad.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" }, { "k.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "wild.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "xwild.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "a.wild.test", 443, PROTO_TLS, REASON_RULE, "--allow *.wild.test" },
	      { "d.c.b.a.wild.test", 443, PROTO_TLS, REASON_RULE, "--allow *.wild.test" },
	      { "a.wild.test.bad.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "both.test", 443, PROTO_TLS, REASON_RULE, "--allow .both.test" },
	      { "b.a.both.test", 443, PROTO_TLS, REASON_RULE, "--allow .both.test" },
	      { "notboth.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "intranet", 443, PROTO_TLS, REASON_RULE, "--allow intranet" },
	      { "intranet.bad.test", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" },
	      { "bad.intranet", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" });
	policy_free(p);
}

static void deny_beats_allow(void **state)
{
	struct policy *p = POLICY("+*.wild.test", "-x.wild.test", "-*.y.wild.test", "+a.y.wild.test",
				  "-p.wild.test:443", "+exact.test", "-.exact.test", "+z.wild.test:22");

	(void)state;
	CHECK(p, { "a.wild.test", 443, PROTO_TLS, REASON_RULE, "--allow *.wild.test" },
	      { "x.wild.test", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny x.wild.test" },
	      { "X.wild.test.", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny x.wild.test" },
	      { "x.wild.test", 9999, PROTO_ANY, REASON_DENIED_BY_RULE, "--deny x.wild.test" },
	      { "x.wild.test", 0, PROTO_DNS, REASON_DENIED_BY_RULE, "--deny x.wild.test" },
	      { "sub.x.wild.test", 443, PROTO_TLS, REASON_RULE, "--allow *.wild.test" },
	      { "y.wild.test", 443, PROTO_TLS, REASON_RULE, "--allow *.wild.test" },
	      { "a.y.wild.test", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny *.y.wild.test" },
	      { "p.wild.test", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny p.wild.test:443" },
	      { "p.wild.test", 80, PROTO_HTTP, REASON_RULE, "--allow *.wild.test" },
	      { "p.wild.test", 0, PROTO_DNS, REASON_RULE, "--allow *.wild.test" },
	      { "exact.test", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny .exact.test" },
	      { "z.wild.test", 443, PROTO_TLS, REASON_RULE, "--allow *.wild.test" },
	      { "z.wild.test", 22, PROTO_ANY, REASON_RULE, "--allow z.wild.test:22" });
	policy_free(p);
}

static void every_name_allowed_on_purpose(void **state)
{
	struct policy *p = POLICY("+*!", "-bad.test", "-*.com", "-203.0.113.0/24");

	(void)state;
	CHECK(p, { "any.example", 443, PROTO_TLS, REASON_RULE, "--allow *!" },
	      { "single", 80, PROTO_HTTP, REASON_RULE, "--allow *!" },
	      { "bad.test", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny bad.test" },
	      { "example.com", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny *.com" },
	      { "any.example", 22, PROTO_ANY, REASON_PORT_NOT_ALLOWED, "--allow *!" });
	assert_reason(ask_addr(p, "192.0.2.1", 443, PROTO_TLS), NO_NAME);
	policy_free(p);
	p = POLICY("+ok.test", "-*");
	CHECK(p, { "ok.test", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny *" });
	policy_free(p);
}

/* DNS answers a name unless each port that it is given is denied. */
static void lookups(void **state)
{
	struct policy *p =
		POLICY("+one.test:22", "-one.test:22", "+two.test", "-two.test:443", "-*.test:80", "+more.test",
		       "+more.test:25", "-more.test:443", "+*.w.test:25", "-a.w.test:25", "+three.test:443",
		       "-three.test:443", "+*.three.test:22", "+four.test", "-four.test:443", "-four.test");

	(void)state;
	CHECK(p, { "one.test", 0, PROTO_DNS, REASON_DENIED_BY_RULE, "--deny one.test:22" },
	      { "two.test", 0, PROTO_DNS, REASON_DENIED_BY_RULE, "--deny two.test:443" },
	      { "two.test", 80, PROTO_HTTP, REASON_DENIED_BY_RULE, "--deny *.test:80" },
	      { "more.test", 0, PROTO_DNS, REASON_RULE, "--allow more.test" },
	      { "more.test", 25, PROTO_ANY, REASON_RULE, "--allow more.test:25" },
	      { "a.w.test", 0, PROTO_DNS, REASON_DENIED_BY_RULE, "--deny a.w.test:25" },
	      { "b.w.test", 0, PROTO_DNS, REASON_RULE, "--allow *.w.test:25" },
	      /* The other port is not its own, but that of the names below it. */
	      { "three.test", 0, PROTO_DNS, REASON_DENIED_BY_RULE, "--deny three.test:443" },
	      { "x.three.test", 0, PROTO_DNS, REASON_RULE, "--allow *.three.test:22" },
	      { "four.test", 0, PROTO_DNS, REASON_DENIED_BY_RULE, "--deny four.test" },
	      { "none.test", 0, PROTO_DNS, REASON_NOT_ALLOWED, "" });
	policy_free(p);
}

/* The widest grant decides, and among equals the most specific rule, then the first. */
static void which_rule_decides(void **state)
{
	struct policy *p =
		POLICY("+*.a.test", "+b.a.test", "+.b.a.test", "+c.a.test:443", "+*.a.test:8443/tcp", "+c.a.test:8443");

	(void)state;
	CHECK(p, { "x.a.test", 443, PROTO_TLS, REASON_RULE, "--allow *.a.test" },
	      { "b.a.test", 443, PROTO_TLS, REASON_RULE, "--allow b.a.test" },
	      { "x.b.a.test", 443, PROTO_TLS, REASON_RULE, "--allow .b.a.test" },
	      { "c.a.test", 443, PROTO_TLS, REASON_RULE, "--allow c.a.test:443" },
	      { "c.a.test", 80, PROTO_HTTP, REASON_RULE, "--allow *.a.test" },
	      { "c.a.test", 8443, PROTO_ANY, REASON_RULE, "--allow *.a.test:8443/tcp" });
	policy_free(p);
}

static void several_names(void **state)
{
	struct policy *p = POLICY("+a.test", "+b.test:443/tcp", "+c.test:443/tcp", "-d.test");
	struct name a = name_of("a.test"), b = name_of("b.test"), c = name_of("c.test"), d = name_of("d.test"),
		    x = name_of("x.test");
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	struct verdict v;

	(void)state;
	request.names[NAME_FROM_DNS] = &a;
	request.names[NAME_FROM_CONNECT] = &b;
	v = match(p, &request);
	assert_true(v.allow);
	assert_ptr_equal(v.host, &b);
	assert_int_equal(v.name_from, NAME_FROM_CONNECT);
	assert_rule(p, &v, "--allow b.test:443/tcp");
	assert_false(v.any_bytes);

	request.names[NAME_FROM_DNS] = &c;
	v = match(p, &request);
	assert_true(v.allow);
	assert_true(v.any_bytes);

	request.names[NAME_FROM_SNI] = &a;
	v = match(p, &request);
	assert_true(v.allow);
	assert_ptr_equal(v.host, &a);
	assert_int_equal(v.name_from, NAME_FROM_SNI);

	request.names[NAME_FROM_CONNECT] = &x;
	request.names[NAME_FROM_DNS] = &d;
	v = match(p, &request);
	assert_false(v.allow);
	assert_reason(v, NOT_ALLOWED);
	assert_ptr_equal(v.host, &x);
	assert_int_equal(v.name_from, NAME_FROM_CONNECT);
	assert_null(v.rule);

	/* A name that was seen decides alone: an address rule does not help it. */
	policy_free(p);
	p = POLICY("+192.0.2.1:443");
	request = (struct request){ .proto = PROTO_TLS, .port = 443, .dst = addr_of("192.0.2.1") };
	assert_true(match(p, &request).allow);
	request.names[NAME_FROM_SNI] = &x;
	assert_reason(match(p, &request), NOT_ALLOWED);
	policy_free(p);
}

static void addresses(void **state)
{
	struct policy *p = POLICY("+203.0.113.0/24:8443", "+203.0.113.7:443", "-203.0.113.9", "-203.0.113.10:8443",
				  "+[2001:db8::]/32:22", "+198.51.100.0/24:80/tcp", "-2001:db8:1::/48");
	struct verdict v = ask_addr(p, "203.0.113.7", 8443, PROTO_ANY);

	(void)state;
	assert_true(v.allow);
	assert_null(v.host);
	assert_rule(p, &v, "--allow 203.0.113.0/24:8443");
	v = ask_addr(p, "203.0.113.7", 443, PROTO_TLS);
	assert_true(v.allow);
	assert_rule(p, &v, "--allow 203.0.113.7/32:443");
	v = ask_addr(p, "203.0.113.7", 443, PROTO_ANY);
	assert_reason(v, NOT_TLS);
	assert_false(v.allow);
	v = ask_addr(p, "203.0.113.8", 443, PROTO_TLS);
	assert_reason(v, PORT_NOT_ALLOWED);
	v = ask_addr(p, "203.0.114.7", 8443, PROTO_TLS);
	assert_reason(v, NO_NAME);
	v = ask_addr(p, "203.0.113.9", 8443, PROTO_TLS);
	assert_reason(v, DENIED_BY_RULE);
	assert_rule(p, &v, "--deny 203.0.113.9/32");
	v = ask_addr(p, "203.0.113.10", 8443, PROTO_TLS);
	assert_reason(v, DENIED_BY_RULE);
	v = ask_addr(p, "2001:db8::5", 22, PROTO_ANY);
	assert_true(v.allow);
	assert_rule(p, &v, "--allow [2001:db8::]/32:22");
	v = ask_addr(p, "2001:db8:1::5", 22, PROTO_ANY);
	assert_rule(p, &v, "--deny 2001:db8:1::/48");
	v = ask_addr(p, "198.51.100.1", 80, PROTO_ANY);
	assert_true(v.allow && v.any_bytes);
	assert_reason(ask_addr(p, "203.0.113.7", 0, PROTO_TLS), NO_NAME);
	assert_reason(ask_addr(p, "203.0.113.7", 0, PROTO_DNS), NO_NAME);
	policy_free(p);
}

static void denied_addresses_of_any_name(void **state)
{
	struct policy *p = POLICY("+*!", "-203.0.113.0/24", "-198.51.100.1:443", "-2002:cb00:7106::/48");
	const struct policy_rule *rule = NULL;
	char label[POLICY_RULE_LABEL_MAX];
	struct addr a;

	(void)state;
	a = addr_of("203.0.113.5");
	assert_true(policy_denies_addr(p, &a, 22, &rule));
	assert_string_equal(policy_rule_label(p, rule, label), "--deny 203.0.113.0/24");
	a = addr_of("198.51.100.1");
	assert_true(policy_denies_addr(p, &a, 443, NULL));
	assert_false(policy_denies_addr(p, &a, 80, &rule));
	assert_null(rule);
	/* The same addresses by way of IPv6. */
	a = addr_of("::ffff:203.0.113.5");
	assert_true(policy_denies_addr(p, &a, 443, NULL));
	a = addr_of("64:ff9b::203.0.113.5");
	assert_true(policy_denies_addr(p, &a, 443, NULL));
	a = addr_of("2002:cb00:7105::1");
	assert_true(policy_denies_addr(p, &a, 443, NULL));
	/* Denied itself, as well as the one in it: its own rule says so. */
	a = addr_of("2002:cb00:7106::1");
	assert_true(policy_denies_addr(p, &a, 443, &rule));
	assert_string_equal(policy_rule_label(p, rule, label), "--deny 2002:cb00:7106::/48");
	a = addr_of("64:ff9b::203.0.114.5");
	assert_false(policy_denies_addr(p, &a, 443, NULL));
	policy_free(p);
}

static void audit_mode(void **state)
{
	struct policy *p = POLICY("audit", "+ok.test", "-bad.test", "-203.0.113.0/24");
	struct name ok = name_of("ok.test"), other = name_of("other.test"), bad = name_of("bad.test");
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	struct verdict v;

	(void)state;
	v = ask(p, "ok.test", 443, PROTO_TLS);
	assert_true(v.allow);
	assert_reason(v, RULE);
	assert_int_equal(v.would, REASON_NONE);
	v = ask(p, "other.test", 443, PROTO_TLS);
	assert_true(v.allow);
	assert_reason(v, AUDIT_MODE);
	assert_int_equal(v.would, REASON_NOT_ALLOWED);
	assert_null(v.rule);
	v = ask(p, "ok.test", 22, PROTO_ANY);
	assert_true(v.allow);
	assert_int_equal(v.would, REASON_PORT_NOT_ALLOWED);
	assert_null(v.rule);
	v = ask(p, "ok.test", 443, PROTO_ANY);
	assert_false(v.allow);
	assert_reason(v, NOT_TLS);
	v = ask(p, "bad.test", 443, PROTO_TLS);
	assert_false(v.allow);
	assert_reason(v, DENIED_BY_RULE);
	v = ask_addr(p, "192.0.2.1", 443, PROTO_TLS);
	assert_true(v.allow);
	assert_int_equal(v.would, REASON_NO_NAME);
	assert_null(v.host);
	v = ask_addr(p, "203.0.113.1", 443, PROTO_TLS);
	assert_false(v.allow);
	v = ask_addr(p, "192.0.2.1", 0, PROTO_DNS);
	assert_false(v.allow);

	/* The first name is fine, the second only in audit mode, the third is denied. */
	request.names[NAME_FROM_SNI] = &ok;
	request.names[NAME_FROM_CONNECT] = &other;
	v = match(p, &request);
	assert_true(v.allow);
	assert_reason(v, AUDIT_MODE);
	assert_int_equal(v.would, REASON_NOT_ALLOWED);
	assert_ptr_equal(v.host, &ok);
	assert_null(v.rule);
	request.names[NAME_FROM_DNS] = &bad;
	v = match(p, &request);
	assert_false(v.allow);
	assert_reason(v, DENIED_BY_RULE);
	assert_ptr_equal(v.host, &bad);
	assert_true(match_port_used(p, 9999));
	policy_free(p);
}

static void assert_ancestor(const struct policy *p, const char *name, bool wanted)
{
	struct name n = name_of(name);

	if (match_is_ancestor(p, &n) != wanted)
		fail_msg("%s", name);
}

static void ancestors(void **state)
{
	struct policy *p = POLICY("+api.v1.example.com", "+*.wild.test", "+.both.org", "-x.wild.test", "-*.y.wild.test",
				  "+gone.net", "-.gone.net", "-only.denied.info", "+203.0.113.7:443");

	(void)state;
	assert_ancestor(p, "v1.example.com", true);
	assert_ancestor(p, "example.com", true);
	assert_ancestor(p, "com", true);
	assert_ancestor(p, "api.v1.example.com", false);
	assert_ancestor(p, "v2.example.com", false);
	assert_ancestor(p, "xample.com", false);
	assert_ancestor(p, "test", true);
	assert_ancestor(p, "wild.test", true);
	assert_ancestor(p, "org", true);
	assert_ancestor(p, "both.org", true);
	/* x is denied, names below it are not; of y nothing is left. */
	assert_ancestor(p, "x.wild.test", true);
	assert_ancestor(p, "y.wild.test", false);
	assert_ancestor(p, "a.y.wild.test", false);
	/* What is denied as a whole has no ancestors. */
	assert_ancestor(p, "net", false);
	assert_ancestor(p, "denied.info", false);
	assert_ancestor(p, "info", false);
	assert_ancestor(p, "example", false);
	policy_free(p);
}

/* The order in which names come must not matter to the table. */
static void ancestors_in_any_order(void **state)
{
	static const char *const names[] = { "+a.b.c.d", "+b.c.d", "+c.d", "-e.c.d", "+x.e.c.d", "-f.g" };
	size_t n = sizeof(names) / sizeof(*names);

	(void)state;
	for (size_t first = 0; first < n; first++) {
		const char *flags[8] = { NULL };
		struct policy *p;

		for (size_t i = 0; i < n; i++)
			flags[i] = names[(first + i) % n];
		p = policy_of(flags);
		CHECK(p, { "a.b.c.d", 443, PROTO_TLS, REASON_RULE, "--allow a.b.c.d" },
		      { "b.c.d", 443, PROTO_TLS, REASON_RULE, "--allow b.c.d" },
		      { "c.d", 443, PROTO_TLS, REASON_RULE, "--allow c.d" },
		      { "e.c.d", 443, PROTO_TLS, REASON_DENIED_BY_RULE, "--deny e.c.d" },
		      { "x.e.c.d", 443, PROTO_TLS, REASON_RULE, "--allow x.e.c.d" },
		      { "d", 443, PROTO_TLS, REASON_NOT_ALLOWED, "" });
		assert_ancestor(p, "d", true);
		assert_ancestor(p, "e.c.d", true);
		assert_ancestor(p, "b.c.d", true);
		assert_ancestor(p, "a.b.c.d", false);
		assert_ancestor(p, "g", false);
		policy_free(p);
	}
}

/* Names of 127 labels and of 253 bytes, and those that differ from them in one byte. */
static void longest_names(void **state)
{
	char labels[254], bytes[254], entry[260];
	struct policy *p;

	(void)state;
	for (size_t i = 0; i < 253; i++) {
		labels[i] = i % 2 ? '.' : 'a';
		bytes[i] = i % 64 == 63 ? '.' : 'b';
	}
	labels[253] = bytes[253] = '\0';
	snprintf(entry, sizeof(entry), "+%s", labels);
	p = policy_of((const char *const[]){ entry, "+*.b.test", "+a.a", NULL });
	assert_true(ask(p, labels, 443, PROTO_TLS).allow);
	assert_reason(ask(p, bytes, 443, PROTO_TLS), NOT_ALLOWED);
	assert_reason(ask(p, labels + 2, 443, PROTO_TLS), NOT_ALLOWED);
	assert_ancestor(p, labels + 2, true);
	assert_ancestor(p, "a", true);
	labels[0] = 'b';
	assert_reason(ask(p, labels, 443, PROTO_TLS), NOT_ALLOWED);
	memcpy(labels + 245, ".b.test", sizeof(".b.test"));
	assert_true(ask(p, labels, 443, PROTO_TLS).allow);
	policy_free(p);
}

#define MANY 250000 /* a table of more than 8 MiB, which is laid out for huge pages */

/* Each of many names is found, whatever the table's random key, and nothing else is. */
static void many_names(void **state)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;
	char text[64];

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%sh%u.d%u.example.com", i % 10 ? "" : "*.", i, i % 97);
		assert_int_equal(policy_builder_allow(b, text, &err), 0);
	}
	p = policy_build(b, &err);
	assert_non_null(p);
	assert_int_equal(policy_size(p), MANY);
	for (unsigned i = 0; i < MANY + 1000; i += 7) {
		snprintf(text, sizeof(text), "h%u.d%u.example.com", i, i % 97);
		assert_int_equal(ask(p, text, 443, PROTO_TLS).allow, i < MANY && i % 10 != 0);
		snprintf(text, sizeof(text), "x.h%u.d%u.example.com", i, i % 97);
		assert_int_equal(ask(p, text, 443, PROTO_TLS).allow, i < MANY && i % 10 == 0);
	}
	policy_free(p);
	policy_builder_free(b);
}

/*
 * The same question, answered slowly by reading the flags one by one: no table,
 * no ancestors, no early end.
 */
static enum reason slow_answer(const char *const *flags, const char *host, uint16_t port, enum proto proto)
{
	enum proto wanted = port == 443 ? PROTO_TLS : port == 80 ? PROTO_HTTP : PROTO_ANY;
	bool denied = false, allowed = false, wrong = false, near = false;

	for (; *flags; flags++) {
		char pattern[64];
		const char *colon = strchr(*flags, ':');
		const char *suffix = pattern;
		unsigned rule_port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
		bool raw = strstr(*flags, "/tcp") != NULL, covers;
		size_t n = strlen(host), s;

		snprintf(pattern, sizeof(pattern), "%.*s", (int)strcspn(*flags + 1, ":!"), *flags + 1);
		if (*pattern == '*')
			suffix++;
		s = strlen(suffix);
		/* ".x" is the apex or below; "*.x" only below; "*" is all. */
		covers = n > s && strcmp(host + n - s, suffix) == 0 && (*suffix == '.' || s == 0);
		covers |= *pattern == '.' && strcmp(host, pattern + 1) == 0;
		if (*pattern != '*' && *pattern != '.')
			covers = strcmp(host, pattern) == 0;
		if (!covers)
			continue;
		if (**flags == '-')
			denied |= rule_port == 0 || rule_port == port;
		else if (rule_port == 0 ? port != 80 && port != 443 : rule_port != port)
			near = true;
		else if (raw || wanted == PROTO_ANY || wanted == proto)
			allowed = true;
		else
			wrong = true;
	}
	return denied	 ? REASON_DENIED_BY_RULE
	       : allowed ? REASON_RULE
	       : wrong	 ? (port == 443 ? REASON_NOT_TLS : REASON_NOT_HTTP)
	       : near	 ? REASON_PORT_NOT_ALLOWED
			 : REASON_NOT_ALLOWED;
}

static unsigned pick(uint32_t *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 16) % n;
}

/* A name of one to four labels out of three. */
static void random_name(uint32_t *state, char *out)
{
	unsigned labels = 1 + pick(state, 4);

	for (unsigned i = 0; i < labels; i++) {
		*out++ = "abc"[pick(state, 3)];
		*out++ = i + 1 < labels ? '.' : '\0';
	}
}

/* Some thousand small policies of few names, so that everything lies above, below and beside everything else. */
static void agrees_with_the_slow_answer(void **state)
{
	static const uint16_t ports[] = { 443, 80, 22 };
	static const char *const port_texts[] = { "", ":443", ":80", ":22", ":443/tcp", ":22/tcp" };
	static const char *const prefixes[] = { "", "*.", "." };
	uint32_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		char texts[8][64], host[16];
		const char *flags[9] = { NULL };
		unsigned n = 1 + pick(&seed, 8);
		struct policy *p;

		for (unsigned i = 0; i < n; i++) {
			bool deny = pick(&seed, 3) == 0;
			unsigned wild = pick(&seed, 3);

			random_name(&seed, host);
			if (pick(&seed, 20) == 0)
				wild = 1, host[0] = '\0';
			snprintf(texts[i], sizeof(texts[i]), "%c%s%s%s%s", deny ? '-' : '+',
				 *host ? prefixes[wild] : "*", host, wild ? "!" : "",
				 port_texts[pick(&seed, deny ? 4 : 6)]);
			flags[i] = texts[i];
		}
		p = policy_of(flags);
		for (unsigned i = 0; i < 30; i++) {
			uint16_t port = ports[pick(&seed, 3)];
			enum proto proto = (enum proto)pick(&seed, PROTO_DNS);
			struct verdict v;

			random_name(&seed, host);
			v = ask(p, host, port, proto);
			if (v.reason != slow_answer(flags, host, port, proto))
				fail_msg("round %u: %s:%u %s is %s, not %s", round, host, port, proto_word(proto),
					 reason_word(v.reason), reason_word(slow_answer(flags, host, port, proto)));
		}
		policy_free(p);
	}
}

static void assert_hint(const struct policy *p, const struct request *request, const char *wanted)
{
	struct verdict v = match(p, request);
	char buf[HINT_MAX];

	assert_ptr_equal(match_hint(request, &v, buf, sizeof(buf)), buf);
	assert_string_equal(buf, wanted);
}

/* A hint is right when the flag that it names allows the request. */
static void hints(void **state)
{
	static const struct {
		const char *host, *addr;
		uint16_t port;
		enum proto proto;
		const char *hint;
	} cases[] = {
		{ "x.test", NULL, 443, PROTO_TLS, "--allow x.test" },
		{ "x.test", NULL, 80, PROTO_HTTP, "--allow x.test" },
		{ "x.test", NULL, 0, PROTO_DNS, "--allow x.test" },
		{ "x.test", NULL, 22, PROTO_ANY, "--allow x.test:22" },
		{ "x.test", NULL, 8443, PROTO_TLS, "--allow x.test:8443" },
		{ "x.test", NULL, 443, PROTO_ANY, "--allow x.test:443/tcp" },
		{ "x.test", NULL, 443, PROTO_HTTP, "--allow x.test:443/tcp" },
		{ "x.test", NULL, 80, PROTO_TLS, "--allow x.test:80/tcp" },
		{ "ok.test", NULL, 443, PROTO_ANY, "--allow ok.test:443/tcp" },
		{ "ok.test", NULL, 80, PROTO_ANY, "--allow ok.test:80/tcp" },
		{ "ok.test", NULL, 22, PROTO_ANY, "--allow ok.test:22" },
		{ "ssh.test", NULL, 443, PROTO_TLS, "--allow ssh.test:443" },
		{ NULL, "51.15.0.7", 443, PROTO_TLS, "--allow 51.15.0.7:443" },
		{ NULL, "51.15.0.7", 5432, PROTO_ANY, "--allow 51.15.0.7:5432" },
		{ NULL, "2a00:1450::1", 443, PROTO_ANY, "--allow '[2a00:1450::1]:443/tcp'" },
		{ NULL, "51.15.0.8", 25, PROTO_ANY, "--allow 51.15.0.8:25" },
		{ NULL, "169.254.169.254", 80, PROTO_HTTP, "" },
		{ NULL, "10.0.0.1", 22, PROTO_ANY, "" },
		{ "_http._tcp.x.test", NULL, 0, PROTO_DNS, "" },
		{ "1.0.0.10.in-addr.arpa", NULL, 0, PROTO_DNS, "" },
		{ "bad.test", NULL, 443, PROTO_TLS, "" },
		{ "x.test", NULL, 0, PROTO_ANY, "" },
		{ NULL, "51.15.0.7", 0, PROTO_ANY, "" },
		{ NULL, "51.15.0.7", 443, PROTO_DNS, "" },
		{ "ok.test", NULL, 443, PROTO_TLS, "" },
	};
	struct policy *p = POLICY("+ok.test", "+ssh.test:22", "-bad.test", "+51.15.0.8:22");
	struct verdict v = { .reason = REASON_BAD_NAME };
	struct request none = { .proto = PROTO_TLS, .port = 443 };
	char buf[HINT_MAX] = "x";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct request request = { .proto = cases[i].proto, .port = cases[i].port };
		struct policy *with;
		struct name name;
		char flag[300];

		if (cases[i].host) {
			name = name_of(cases[i].host);
			request.names[NAME_FROM_CONNECT] = &name;
		} else {
			request.dst = addr_of(cases[i].addr);
		}
		assert_hint(p, &request, cases[i].hint);
		if (!*cases[i].hint)
			continue;
		snprintf(flag, sizeof(flag), "+%s", cases[i].hint + strlen("--allow "));
		if (flag[1] == '\'') { /* as a shell would take it off */
			memmove(flag + 1, flag + 2, strlen(flag + 1));
			flag[strlen(flag) - 1] = '\0';
		}
		with = POLICY("+ok.test", "+ssh.test:22", "-bad.test", flag);
		assert_true(match(with, &request).allow);
		policy_free(with);
	}
	assert_string_equal(match_hint(&none, &v, buf, sizeof(buf)), "");
	assert_hint(p, &none, "");
	policy_free(p);
}

/* For what the guard refuses, where the range is one that people use for themselves. */
static void hints_of_addresses(void **state)
{
	static const struct {
		const char *addr;
		uint16_t port;
		const char *hint;
	} cases[] = {
		{ "10.1.2.3", 443, "in a policy, host: x.test with addresses: [10.1.2.3/32]" },
		{ "192.168.7.1", 80, "in a policy, host: x.test with addresses: [192.168.7.1/32]" },
		{ "127.0.0.1", 5432, "in a policy, host: x.test with ports: [5432], addresses: [127.0.0.1/32]" },
		{ "100.64.0.1", 443, "in a policy, host: x.test with addresses: [100.64.0.1/32]" },
		{ "fd00::1", 443, "in a policy, host: x.test with addresses: [\"fd00::1/128\"]" },
		{ "::1", 443, "in a policy, host: x.test with addresses: [\"::1/128\"]" },
		{ "169.254.169.254", 80, "" },
		{ "100.100.100.200", 80, "" },
		{ "192.0.0.192", 80, "" },
		{ "fd00:ec2::254", 80, "" },
		{ "fe80::1", 443, "" },
		{ "168.63.129.16", 443, "" },
		{ "8.8.8.8", 443, "" },
		{ "::2", 443, "" },
	};
	struct name host = name_of("x.test");
	char buf[HINT_ADDRESSES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct endpoint peer = { .addr = addr_of(cases[i].addr), .port = cases[i].port };

		assert_string_equal(hint_addresses(&host, &peer, buf), cases[i].hint);
	}
}

static void hints_in_audit_mode(void **state)
{
	struct policy *p = POLICY("audit", "+ok.test");
	struct name ok = name_of("ok.test"), other = name_of("other.test");
	struct request request = { .proto = PROTO_TLS, .port = 443 };

	(void)state;
	request.names[NAME_FROM_SNI] = &other;
	assert_hint(p, &request, "--allow other.test");
	request.names[NAME_FROM_SNI] = &ok;
	assert_hint(p, &request, "");
	request.names[NAME_FROM_CONNECT] = &other;
	assert_hint(p, &request, "");
	policy_free(p);
}

static void words(void **state)
{
	(void)state;
	assert_string_equal(reason_word(REASON_RULE), "rule");
	assert_string_equal(reason_word(REASON_CONNECT_FAILED), "connect_failed");
	assert_string_equal(reason_word(REASON_NONE), "none");
	assert_string_equal(reason_word(REASON_COUNT), "none");
	assert_string_equal(proto_word(PROTO_ANY), "tcp");
	assert_string_equal(proto_word(PROTO_DNS), "dns");
	assert_string_equal(name_from_word(NAME_FROM_SNI), "sni");
	assert_string_equal(name_from_word(NAME_FROM_DNS), "dns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_policy_allows_nothing),
		cmocka_unit_test(ports_and_protocols),
		cmocka_unit_test(label_boundaries),
		cmocka_unit_test(deny_beats_allow),
		cmocka_unit_test(every_name_allowed_on_purpose),
		cmocka_unit_test(lookups),
		cmocka_unit_test(which_rule_decides),
		cmocka_unit_test(several_names),
		cmocka_unit_test(addresses),
		cmocka_unit_test(denied_addresses_of_any_name),
		cmocka_unit_test(audit_mode),
		cmocka_unit_test(ancestors),
		cmocka_unit_test(ancestors_in_any_order),
		cmocka_unit_test(longest_names),
		cmocka_unit_test(many_names),
		cmocka_unit_test(agrees_with_the_slow_answer),
		cmocka_unit_test(hints),
		cmocka_unit_test(hints_of_addresses),
		cmocka_unit_test(hints_in_audit_mode),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
