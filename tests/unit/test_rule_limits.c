/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of single rules: how they are written and written back, which rule's
 * count, what is refused, and that rules without any take no more room for them.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/hint.c rules/reason.c rules/explain.c rules/warnings.c
 * links: rules/policy_yaml.c rules/policy_text.c rules/narrow.c base/addr.c base/prefix.c base/name.c base/err.c
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
#include "rules/explain.h"
#include "rules/match.h"
#include "rules/policy_rep.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BEGIN	 "version: 1\nallow:\n"

/* NULL with the message in `err`. */
static struct policy *load(const char *text, struct err *err)
{
	struct policy_builder *b = policy_builder_new();
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	struct policy *p = policy_builder_yaml(b, f, "p.yaml", err) ? NULL : policy_build(b, err);

	fclose(f);
	policy_builder_free(b);
	return p;
}

static struct policy *policy_of(const char *text)
{
	struct err err = { "" };
	struct policy *p = load(text, &err);

	if (!p)
		fail_msg("%s", err.text);
	return p;
}

static void assert_refused(const char *text, const char *says)
{
	struct err err = { "" };

	if (load(text, &err))
		fail_msg("accepted: %s", text);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" is not in: %s", says, err.text);
}

/* The limits of the rule that decides; "" for a rule without any, "denied" for a denial. */
static const char *limits_for(const struct policy *p, const char *host, uint16_t port, enum proto proto)
{
	static char text[LIMITS_ALL_MAX];
	struct request request = { .proto = proto, .port = port };
	struct verdict v;
	struct name name;
	int which;

	assert_int_equal(name_canonical(host, strlen(host), &name), 0);
	request.names[NAME_FROM_DNS] = &name;
	v = match(p, &request);
	which = policy_rule_limited(v.rule);
	if (!v.allow)
		return "denied";
	return which < 0 ? "" : limits_text(policy_rule_limits(p, (size_t)which), text);
}

static char *text_of(const struct policy *p)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(policy_print(p, f), 0);
	fclose(f);
	return text;
}

/* Every way to write them, and the one way that they are written back: each rule with limits for itself. */
static void canonical_text(void **state)
{
	static const char wanted[] = "version: 1\nmode: enforce\nallow:\n"
				     "  - a.ex.test\n"
				     "  - host: a.ex.test\n    ports: [22]\n    limits: {connections: 2}\n"
				     "  - host: a.ex.test\n    ports: [23]\n    limits: {connections: 2}\n"
				     "  - host: db.ex.test\n    ports: [5432]\n    addresses: [10.2.0.0/16]\n    "
				     "limits: {upload: 1MiB, idle: 30s}\n"
				     "  - host: \"*.ex.test\"\n    limits: {upload: 20MB, connections: 4, rate: 5/s, "
				     "names: 3, idle: 1m30s}\n"
				     "  - cidr: 203.0.113.0/24\n    ports: [8443]\n    limits: {rate: 1/s}\n"
				     "deny: []\n"
				     "limits:\n  upload: 1GiB\n";
	struct policy *p = policy_of(BEGIN "  - {host: a.ex.test, limits: {connections: 2}, ports: [23]}\n"
					   "  - host: \"*.ex.test\"\n"
					   "    limits:\n"
					   "      rate: 5/s\n"
					   "      names: 3\n"
					   "      idle: 90\n"
					   "      upload: 20000kB\n"
					   "      connections: 4\n"
					   "  - {cidr: 203.0.113.0/24, ports: [8443], limits: {rate: 1/s}}\n"
					   "  - {host: a.ex.test, ports: [22], limits: {connections: 2}}\n"
					   "  - {host: a.ex.test, limits: }\n"
					   "  - {host: a.ex.test, limits: {}}\n"
					   "  - {host: db.ex.test, ports: [5432], addresses: [10.2.0.0/16], limits: "
					   "{upload: 1024KiB, idle: 30s}}\n"
					   "  - {host: a.ex.test, ports: [22], limits: {connections: 2}}\n"
					   "limits: {upload: 1GiB}\n");
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN];
	char *text = text_of(p);
	struct policy *again;

	(void)state;
	assert_string_equal(text, wanted);
	assert_int_equal(policy_size(p), 6);
	again = policy_of(text);
	assert_string_equal(policy_digest(p, one), policy_digest(again, two));
	free(text);
	policy_free(again);
	again = policy_of(BEGIN "  - {host: a.ex.test, ports: [22], limits: {connections: 3}}\n");
	assert_string_not_equal(one, policy_digest(again, two));
	policy_free(again);
	policy_free(p);
}

/* Rules that differ by their ports alone are in the order of these. */
static void canonical_order(void **state)
{
	struct policy *p = policy_of(BEGIN "  - {host: a.ex.test, ports: [25, 23, 26], limits: {connections: 2}}\n"
					   "  - {host: a.ex.test, ports: [24, 27], limits: {connections: 2}}\n"
					   "  - {host: a.ex.test, ports: [28, 22], limits: {connections: 2}}\n");
	char *text = text_of(p);

	(void)state;
	assert_string_equal(text, "version: 1\nmode: enforce\nallow:\n"
				  "  - host: a.ex.test\n    ports: [22, 28]\n    limits: {connections: 2}\n"
				  "  - host: a.ex.test\n    ports: [24, 27]\n    limits: {connections: 2}\n"
				  "  - host: a.ex.test\n    ports: [23, 25, 26]\n    limits: {connections: 2}\n"
				  "deny: []\n");
	free(text);
	policy_free(p);
}

static void which_rule_counts(void **state)
{
	struct policy *p = policy_of(BEGIN "  - a.ex.test\n"
					   "  - {host: a.ex.test, limits: {upload: 1B}}\n"
					   "  - {host: \"*.ex.test\", limits: {upload: 2B}}\n"
					   "  - free.ex.test\n"
					   "  - {host: many.ex.test, ports: [1], limits: {upload: 3B}}\n"
					   "  - {host: many.ex.test, ports: [2], limits: {upload: 4B}}\n"
					   "  - {host: any.ex.test, limits: {upload: 5B}}\n"
					   "  - any.ex.test:443/tcp\n"
					   "  - {host: db.ex.test, limits: {upload: 6B}}\n"
					   "  - {host: db.ex.test, addresses: [10.0.0.0/8]}\n"
					   "  - {host: turned.ex.test, limits: {upload: 7B}}\n"
					   "  - turned.ex.test\n"
					   "deny: [no.ex.test]\n");
	struct addr a;

	(void)state;
	/* Of two for the same name the one with limits, wherever it stands. */
	assert_string_equal(limits_for(p, "a.ex.test", 443, PROTO_TLS), "upload: 1B");
	assert_string_equal(limits_for(p, "turned.ex.test", 443, PROTO_TLS), "upload: 7B");
	assert_string_equal(limits_for(p, "x.ex.test", 443, PROTO_TLS), "upload: 2B");
	assert_string_equal(limits_for(p, "x.ex.test", 0, PROTO_DNS), "upload: 2B");
	/* The more specific one first, so that a rule without limits is an exception to those of a wildcard. */
	assert_string_equal(limits_for(p, "free.ex.test", 443, PROTO_TLS), "");
	assert_string_equal(limits_for(p, "many.ex.test", 1, PROTO_ANY), "upload: 3B");
	assert_string_equal(limits_for(p, "many.ex.test", 2, PROTO_ANY), "upload: 4B");
	assert_string_equal(limits_for(p, "many.ex.test", 443, PROTO_TLS), "upload: 2B");
	/* What gives most decides before all that. */
	assert_string_equal(limits_for(p, "any.ex.test", 443, PROTO_TLS), "");
	assert_string_equal(limits_for(p, "any.ex.test", 80, PROTO_HTTP), "upload: 5B");
	assert_string_equal(limits_for(p, "db.ex.test", 443, PROTO_TLS), "");
	assert_string_equal(limits_for(p, "no.ex.test", 443, PROTO_TLS), "denied");
	assert_int_equal(policy_rule_limits_count(p), 7);
	assert_int_equal(policy_rule_limited(NULL), -1);
	policy_free(p);

	p = policy_of(BEGIN "  - 203.0.113.0/24:1\n"
			    "  - {cidr: 203.0.113.0/24, ports: [1], limits: {rate: 7/s}}\n"
			    "  - {cidr: 203.0.0.0/16, ports: [1], limits: {rate: 8/s}}\n"
			    "  - 203.0.113.9/32:1\n");
	for (int i = 7; i <= 9; i++) {
		static const char *const addrs[] = { "203.0.113.1", "203.0.9.9", "203.0.113.9" };
		struct request request = { .proto = PROTO_ANY, .port = 1 };
		int which;

		assert_int_equal(addr_parse(addrs[i - 7], strlen(addrs[i - 7]), &a), 0);
		request.dst = a;
		which = policy_rule_limited(match(p, &request).rule);
		assert_int_equal(which < 0 ? 9 : (int)policy_rule_limits(p, (size_t)which)->max[LIMIT_RATE], i);
	}
	policy_free(p);
}

static void refused(void **state)
{
	(void)state;
	assert_refused("version: 1\ndeny:\n  - {host: a.ex.test, limits: {upload: 1B}}\n",
		       "p.yaml:3:23: a deny lets nothing");
	assert_refused(BEGIN "  - {host: a.ex.test, limits: {names: 2}}\n", "p.yaml:3:5: names counts those below");
	assert_refused(BEGIN "  - {cidr: 192.0.2.0/24, ports: [1], limits: {names: 2}}\n", "names counts those below");
	assert_refused(BEGIN "  - {host: a.ex.test, limits: {duration: 1h}}\n",
		       "\"duration\": unknown key; known: upload, connections, rate, names, idle");
	assert_refused(BEGIN "  - {host: a.ex.test, limits: {rate: 5}}\n", "p.yaml:3:38: \"5\": not a rate");
	assert_refused(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s, rate: 5/s}}\n", "second time");
	assert_refused(BEGIN "  - {host: a.ex.test, limits: 5/s}\n", "limits go on lines of their own");
	assert_refused(BEGIN "  - {limits: {rate: 5/s}, limits: {}}\n", "second time");
	/* Whose would count? */
	assert_refused(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n  - {host: a.ex.test, ports: [443], limits: "
			     "{rate: 6/s}}\n",
		       "p.yaml:4: p.yaml:3 has other limits for the same host and port");
	assert_refused(BEGIN "  - {host: .a.ex.test, limits: {rate: 5/s}}\n  - b.ex.test\n"
			     "  - {host: \"*.a.ex.test\", limits: {rate: 5/s}}\n",
		       "p.yaml:5: p.yaml:3 has other limits");
	assert_refused(BEGIN "  - {cidr: 192.0.2.0/24, ports: [1], limits: {rate: 5/s}}\n"
			     "  - {cidr: 192.0.2.0/24, ports: [1, 2], limits: {rate: 5/s}}\n",
		       "has other limits");
	policy_free(policy_of(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n"
				    "  - {host: \"*.a.ex.test\", limits: {rate: 6/s}}\n"));
}

static void too_many(void **state)
{
	static char text[128 * (POLICY_LIMITED_MAX + 2)] = BEGIN;
	size_t len = strlen(text);
	struct policy *p;

	(void)state;
	for (int i = 0; i <= POLICY_LIMITED_MAX; i++) {
		if (i == POLICY_LIMITED_MAX) {
			p = policy_of(text);
			assert_int_equal(policy_rule_limits_count(p), POLICY_LIMITED_MAX);
			policy_free(p);
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"  - {host: h%d.ex.test, limits: {upload: 1B}}\n", i);
	}
	assert_refused(text, "p.yaml:1027:5: more than 1024 rules with limits of their own");
}

/* A file that fails takes its limits with it. */
static void rolled_back(void **state)
{
	static const char bad[] = BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n  - nothing:\n";
	static const char good[] = BEGIN "  - {host: b.ex.test, limits: {rate: 6/s}}\n  - c.ex.test\n";
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;
	FILE *f = fmemopen((void *)bad, strlen(bad), "r");

	(void)state;
	assert_int_equal(policy_builder_yaml(b, f, "bad.yaml", &err), -1);
	fclose(f);
	f = fmemopen((void *)good, strlen(good), "r");
	assert_int_equal(policy_builder_yaml(b, f, "good.yaml", &err), 0);
	fclose(f);
	p = policy_build(b, &err);
	assert_int_equal(policy_rule_limits_count(p), 1);
	assert_string_equal(limits_for(p, "b.ex.test", 443, PROTO_TLS), "rate: 6/s");
	assert_string_equal(limits_for(p, "c.ex.test", 443, PROTO_TLS), "");
	policy_free(p);
	policy_builder_free(b);
}

/* A part of a policy: never more than its limits allow, and what comes of one rule shares them. */
static void narrowed(void **state)
{
	static const char *const entries[] = { "a.x.ex.test", "a.x.ex.test:443", "b.x.ex.test:80",
					       "*.y.ex.test", "*.ex.test",	 "192.0.2.0/25:1" };
	struct policy *from = policy_of(BEGIN "  - {host: \"*.ex.test\", limits: {upload: 1B}}\n"
					      "  - {host: tight.ex.test, ports: [443, 22], limits: {upload: 2B}}\n"
					      "  - {host: a.x.ex.test, limits: {upload: 3B}}\n"
					      "  - free.ex.test\n"
					      "  - {cidr: 192.0.2.0/24, ports: [1], limits: {rate: 4/s}}\n"
					      "  - {cidr: 192.0.2.64/26, ports: [1], limits: {rate: 5/s}}\n"
					      "  - {cidr: 192.0.2.128/26, ports: [1], limits: {rate: 6/s}}\n");
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p = NULL;
	char *text;

	(void)state;
	if (!policy_builder_narrow(b, from, entries, COUNT(entries), &err))
		p = policy_build(b, &err);
	policy_builder_free(b);
	policy_free(from);
	if (!p)
		fail_msg("%s", err.text);
	text = text_of(p);
	assert_string_equal(text, "version: 1\nmode: enforce\nallow:\n"
				  "  - host: a.x.ex.test\n    ports: [443]\n    limits: {upload: 3B}\n"
				  "  - host: a.x.ex.test\n    limits: {upload: 3B}\n"
				  "  - host: b.x.ex.test\n    ports: [80]\n    limits: {upload: 1B}\n"
				  "  - host: \"*.ex.test\"\n    limits: {upload: 1B}\n"
				  "  - free.ex.test\n"
				  "  - host: tight.ex.test\n    ports: [443]\n    limits: {upload: 2B}\n"
				  "  - host: \"*.y.ex.test\"\n    limits: {upload: 1B}\n"
				  "  - cidr: 192.0.2.0/25\n    ports: [1]\n    limits: {rate: 4/s}\n"
				  "  - cidr: 192.0.2.64/26\n    ports: [1]\n    limits: {rate: 5/s}\n"
				  "deny: []\n");
	free(text);
	/* Three names under one rule's limits are no more than that rule had. */
	assert_int_equal(policy_rule_limits_count(p), 5);
	assert_string_equal(limits_for(p, "tight.ex.test", 443, PROTO_TLS), "upload: 2B");
	assert_string_equal(limits_for(p, "a.x.ex.test", 443, PROTO_TLS), "upload: 3B");
	/* An exception stays one. */
	assert_string_equal(limits_for(p, "free.ex.test", 443, PROTO_TLS), "");
	policy_free(p);
}

static void take_warning(void *arg, const char *text)
{
	strncat(arg, text, 2000);
	strncat(arg, "\n", 2);
}

/* What has limits of its own is needed although something wider covers it, and the other way round. */
static void warnings(void **state)
{
	static char got[8192];
	struct policy *p = policy_of(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s, upload: 1GB}}\n"
					   "  - \"*.ex.test\"\n"
					   "  - b.ex.test\n"
					   "  - {host: \"*.test.ex.test\", limits: {names: 3}}\n"
					   "  - c.test.ex.test\n"
					   "  - {host: a.ex.test, limits: {rate: 5/s, upload: 1GB}}\n"
					   "  - {host: d.ex.test, limits: {rate: 5/s}}\n"
					   "deny: [d.ex.test]\n"
					   "limits: {upload: 1GB, rate: 6/s}\n");

	(void)state;
	got[0] = '\0';
	policy_warnings(p, true, take_warning, got);
	assert_string_equal(
		got,
		"p.yaml:3: a.ex.test: its limit of upload 1GB does nothing: the whole job may have no more than 1GB\n"
		"p.yaml:5: b.ex.test: never needed: p.yaml:4 (*.ex.test) covers it\n"
		"p.yaml:7: c.test.ex.test: never needed: p.yaml:4 (*.ex.test) covers it\n"
		"p.yaml:8: a.ex.test: never needed: p.yaml:3 (a.ex.test) covers it\n"
		"p.yaml:9: d.ex.test: never used: p.yaml:10 (d.ex.test) denies all of it\n");
	policy_free(p);
}

static void assert_explained(const char *text, const char *what, const char *says)
{
	struct policy *p = policy_of(text);
	struct err err = { "" };
	char *said = NULL;
	size_t len;
	FILE *out = open_memstream(&said, &len);

	assert_int_equal(explain(p, what, out, &err), 0);
	fclose(out);
	assert_string_equal(said, says);
	free(said);
	policy_free(p);
}

static void explained(void **state)
{
	(void)state;
	assert_explained(BEGIN "  - {host: a.ex.test, ports: [22], limits: {upload: 1MiB, idle: 30s}}\n",
			 "a.ex.test:22",
			 "allow  a.ex.test:22 (tcp)\n"
			 "       rule p.yaml:3: a.ex.test:22\n"
			 "       within its limits: upload: 1MiB, idle: 30s\n");
}

/* Limits lie apart: rules around them are found, and are as large as ever. */
static void room(void **state)
{
	static const char *const hosts[] = { "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh" };
	char text[4096] = BEGIN, line[128], host[64];
	size_t plain = 0, limited = 0;
	struct policy *p;

	(void)state;
	for (size_t i = 0; i < COUNT(hosts); i++) {
		snprintf(line, sizeof(line), "  - {host: %s.ex.test, limits: {upload: %zuB}}\n  - x%s.ex.test\n",
			 hosts[i], i + 1, hosts[i]);
		strncat(text, line, sizeof(text) - strlen(text) - 1);
	}
	p = policy_of(text);
	for (size_t i = 0; i < COUNT(hosts); i++) {
		snprintf(host, sizeof(host), "%s.ex.test", hosts[i]);
		snprintf(line, sizeof(line), "upload: %zuB", i + 1);
		assert_string_equal(limits_for(p, host, 443, PROTO_TLS), line);
		snprintf(host, sizeof(host), "x%s.ex.test", hosts[i]);
		assert_string_equal(limits_for(p, host, 443, PROTO_TLS), "");
	}
	for (size_t i = 0; i < p->store.n_rules; i++) {
		const struct policy_rule *r = rule_at(p, p->given[i]);
		size_t words = rule_words(r), name = (offsetof(struct policy_rule, tail) + r->name_len + 1 + 3) / 4;

		assert_int_equal(words, name + (r->flags & RULE_LIMITED ? 1 : 0));
		*(r->flags & RULE_LIMITED ? &limited : &plain) += 1;
	}
	assert_int_equal(limited, COUNT(hosts));
	assert_int_equal(plain, COUNT(hosts));
	policy_free(p);
	p = policy_of(BEGIN "  - a.ex.test\n");
	assert_null(p->store.limits);
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(canonical_order), cmocka_unit_test(too_many),
		cmocka_unit_test(canonical_text),  cmocka_unit_test(which_rule_counts),
		cmocka_unit_test(refused),	   cmocka_unit_test(rolled_back),
		cmocka_unit_test(warnings),	   cmocka_unit_test(explained),
		cmocka_unit_test(narrowed),	   cmocka_unit_test(room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
