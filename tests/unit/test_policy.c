/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy as an object: sizes, labels, the canonical text and its digest,
 * exemptions, and what it warns about.
 *
 * Size: one table of cases a rule of the language; a split would only scatter them.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/reason.c rules/warnings.c rules/policy_yaml.c rules/policy_text.c
 * links: base/addr.c base/prefix.c base/name.c base/err.c
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "base/err.h"
#include "rules/match.h"
#include "rules/policy_rep.h"
#include "rules/sort.h"
#include "rules/special.h"

/* A policy from flags ("+allow", "-deny", "audit") and one YAML text (starts with "version"). Ends with NULL. */
static struct policy *policy_of(const char *const *flags)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;
	int rc = 0;

	for (; *flags && rc == 0; flags++) {
		if (**flags == '+') {
			rc = policy_builder_allow(b, *flags + 1, &err);
		} else if (**flags == '-') {
			rc = policy_builder_deny(b, *flags + 1, &err);
		} else if (**flags == 'a') {
			policy_builder_audit(b, true);
		} else {
			FILE *f = fmemopen((void *)*flags, strlen(*flags), "r");

			rc = policy_builder_yaml(b, f, "p.yaml", &err);
			fclose(f);
		}
	}
	p = rc ? NULL : policy_build(b, &err);
	policy_builder_free(b);
	if (!p)
		fail_msg("%s", err.text);
	return p;
}

#define POLICY(...) policy_of((const char *const[]){ __VA_ARGS__, NULL })

/* The canonical text; to be freed. */
static char *text_of(const struct policy *p)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(policy_print(p, f), 0);
	fclose(f);
	return text;
}

/* The printed policy, and that it loads back to itself. */
static void assert_text(const struct policy *p, const char *wanted)
{
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN];
	char *text = text_of(p);
	struct policy *again;

	assert_string_equal(text, wanted);
	again = POLICY(text);
	assert_string_equal(policy_digest(p, one), policy_digest(again, two));
	assert_int_equal(policy_is_audit(again), policy_is_audit(p));
	policy_free(again);
	free(text);
}

static void canonical_text(void **state)
{
	struct policy *p =
		POLICY("+github.com:22", "+_srv.example.com", "+B.example.com.", "+*.example.com", "+.example.com",
		       "+example.com", "+a.example.com:443", "+a.example.com:80", "+c.example.com:443/tcp", "+*.com!",
		       "+203.0.113.0/24:8443", "+203.0.113.7:443", "+203.0.113.7:80", "+[2001:db8::]/32:22/tcp",
		       "+203.0.113.7:443/tcp", "-x.example.com", "-y.example.com:25", "-y.example.com:26",
		       "-z.example.com:25", "-z.example.com", "-10.0.0.0/8", "-2001:db8::/32", "-*");

	(void)state;
	assert_text(p, "version: 1\n"
		       "mode: enforce\n"
		       "allow:\n"
		       "  - _srv.example.com\n"
		       "  - a.example.com\n"
		       "  - b.example.com\n"
		       "  - c.example.com:443/tcp\n"
		       "  - \"*.com!\"\n"
		       "  - example.com\n"
		       "  - \"*.example.com\"\n"
		       "  - .example.com\n"
		       "  - github.com:22\n"
		       "  - 203.0.113.0/24:8443\n"
		       "  - cidr: 203.0.113.7/32\n"
		       "    ports: [80, 443/tcp]\n"
		       "  - \"[2001:db8::]/32:22/tcp\"\n"
		       "deny:\n"
		       "  - \"*\"\n"
		       "  - x.example.com\n"
		       "  - host: y.example.com\n"
		       "    ports: [25, 26]\n"
		       "  - z.example.com\n"
		       "  - 10.0.0.0/8\n"
		       "  - \"2001:db8::/32\"\n");
	policy_free(p);
}

static void canonical_mappings(void **state)
{
	struct policy *p =
		POLICY("version: 1\n"
		       "mode: audit\n"
		       "allow:\n"
		       "  - {host: db.example, ports: [5432], addresses: [10.2.0.0/16, \"fd00::/8\", 10.2.0.0/16]}\n"
		       "  - {host: db.example, addresses: [\"fd00::/8\", 10.2.0.0/16]}\n"
		       "  - {host: db.example, addresses: [10.3.0.1]}\n"
		       "  - {host: web.example, addresses: [10.3.0.1/32]}\n"
		       "  - {host: \"*!\", ports: [443, 22, 443/tcp]}\n"
		       "  - {cidr: \"2001:db8::/32\", ports: [2, 1]}\n"
		       "  - {host: xn--bcher-kva.example, ports: [80, 443]}\n");

	(void)state;
	assert_text(p, "version: 1\n"
		       "mode: audit\n"
		       "allow:\n"
		       "  - host: \"*!\"\n"
		       "    ports: [22, 443/tcp]\n"
		       "  - host: db.example\n"
		       "    addresses: [10.3.0.1/32]\n"
		       "  - host: db.example\n"
		       "    ports: [80, 443, 5432]\n"
		       "    addresses: [10.2.0.0/16, \"fd00::/8\"]\n"
		       "  - host: web.example\n"
		       "    addresses: [10.3.0.1/32]\n"
		       "  - xn--bcher-kva.example\n"
		       "  - cidr: \"2001:db8::/32\"\n"
		       "    ports: [1, 2]\n"
		       "deny: []\n");
	policy_free(p);
}

/* Nothing is lost in silence, whether there is a buffer or not. */
static void no_room_for_the_text(void **state)
{
	static const int modes[] = { _IOFBF, _IONBF };
	struct policy *p = POLICY("+a.test");

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		FILE *full = fopen("/dev/full", "w");

		assert_non_null(full);
		assert_int_equal(setvbuf(full, NULL, modes[i], BUFSIZ), 0);
		assert_int_equal(policy_print(p, full), -ENOSPC);
		fclose(full);
	}
	policy_free(p);
}

static void empty_text(void **state)
{
	struct policy *p = policy_of((const char *const[]){ NULL });

	(void)state;
	assert_text(p, "version: 1\nmode: enforce\nallow: []\ndeny: []\n");
	policy_free(p);
}

/* The digest is what sha256sum says of the text, is the same for the same policy in other words, and no other. */
static void digests(void **state)
{
	struct policy *p = POLICY("+a.example.com", "+b.example.com:22", "-c.example.com", "+d.example.com:80",
				  "+d.example.com:443");
	struct policy *same = POLICY("version: 1\nmode: enforce\ndeny: [C.example.com]\nallow:\n  - d.example.com.\n"
				     "  - {host: b.example.com, ports: [22]}\n  - a.example.com\n  - a.example.com\n");
	struct policy *other = POLICY("+a.example.com", "+b.example.com:22", "-c.example.com", "+d.example.com:80");
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN], hex[3];
	unsigned char sum[EVP_MAX_MD_SIZE];
	char *text = text_of(p);
	unsigned len;

	(void)state;
	assert_int_equal(EVP_Digest(text, strlen(text), sum, &len, EVP_sha256(), NULL), 1);
	policy_digest(p, one);
	for (size_t i = 0; i < 32; i++) {
		snprintf(hex, sizeof(hex), "%02x", sum[i]);
		assert_memory_equal(one + 2 * i, hex, 2);
	}
	assert_int_equal(strlen(one), 64);
	assert_string_equal(one, policy_digest(same, two));
	assert_string_not_equal(one, policy_digest(other, two));
	free(text);
	policy_free(p);
	policy_free(same);
	policy_free(other);
}

static void sizes_and_modes(void **state)
{
	struct policy *p = POLICY("+a.test", "+a.test", "+A.test.", "-b.test", "+a.test:22", "+203.0.113.0/24:1",
				  "+203.0.113.0/24:1");
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	FILE *f;

	(void)state;
	assert_int_equal(policy_size(p), 4);
	assert_false(policy_is_audit(p));
	policy_free(p);

	/* What the command line says wins over the file, and the stricter file over the other. */
	p = POLICY("version: 1\nmode: audit\n");
	assert_true(policy_is_audit(p));
	policy_free(p);
	p = POLICY("version: 1\nmode: enforce\n", "audit");
	assert_true(policy_is_audit(p));
	policy_free(p);
	p = POLICY("version: 1\nmode: enforce\n", "version: 1\nmode: audit\n");
	assert_false(policy_is_audit(p));
	policy_free(p);
	f = fmemopen((void *)"version: 1\nmode: audit\n", 23, "r");
	assert_int_equal(policy_builder_yaml(b, f, "p.yaml", &err), 0);
	fclose(f);
	policy_builder_audit(b, false);
	p = policy_build(b, &err);
	assert_false(policy_is_audit(p));
	policy_free(p);

	/* The builder is empty now. */
	p = policy_build(b, &err);
	assert_int_equal(policy_size(p), 0);
	policy_free(p);
	policy_builder_free(b);
	policy_builder_free(NULL);
	policy_free(NULL);
}

static const struct policy_rule *rule_for(const struct policy *p, const char *host, uint16_t port)
{
	struct request request = { .proto = PROTO_ANY, .port = port };
	struct name name;

	assert_int_equal(name_canonical(host, strlen(host), &name), 0);
	request.names[NAME_FROM_DNS] = &name;
	return match(p, &request).rule;
}

static void labels(void **state)
{
	struct policy *p = POLICY("version: 1\nallow:\n\n  - a.test:1\n  - host: b.test\n    ports: [1, 2/tcp]\n"
				  "deny: [c.test:1, d.test]\n",
				  "+E.test:1/tcp", "-*.f.test", "+*!:1");
	char buf[POLICY_RULE_LABEL_MAX];
	char entry[POLICY_ENTRY_MAX];

	(void)state;
	assert_string_equal(policy_rule_label(p, rule_for(p, "a.test", 1), buf), "p.yaml:4");
	assert_string_equal(policy_rule_label(p, rule_for(p, "b.test", 2), buf), "p.yaml:5");
	assert_string_equal(rule_entry(p, rule_for(p, "b.test", 2), entry), "b.test:1,2/tcp");
	assert_string_equal(policy_rule_label(p, rule_for(p, "c.test", 1), buf), "p.yaml:7");
	assert_string_equal(policy_rule_label(p, rule_for(p, "e.test", 1), buf), "--allow e.test:1/tcp");
	assert_string_equal(policy_rule_label(p, rule_for(p, "x.f.test", 1), buf), "--deny *.f.test");
	assert_string_equal(policy_rule_label(p, rule_for(p, "x.g.test", 1), buf), "--allow *!:1");
	assert_string_equal(policy_rule_label(p, NULL, buf), "");
	policy_free(p);
}

/* An entry of many ports is cut, and a label is never longer than its room. */
static void entries_of_many_ports(void **state)
{
	char text[2000] = "version: 1\nallow:\n- host: a.test\n  ports: [10000";
	char entry[POLICY_ENTRY_MAX];
	struct policy *p;

	(void)state;
	for (int i = 1; i < 100; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %d%s", 10000 + i, i < 99 ? "" : "]\n");
	p = POLICY(text);
	rule_entry(p, rule_for(p, "a.test", 10000), entry);
	assert_int_equal(strlen(entry), POLICY_ENTRY_MAX - 1);
	assert_memory_equal(entry, "a.test:10000,10001,", 19);
	assert_memory_equal(entry + 307, "10050,10051,", 12);
	policy_free(p);
}

static void long_labels_keep_their_beginning(void **state)
{
	char flag[255] = "+", host[254] = "", buf[POLICY_RULE_LABEL_MAX];
	struct policy *p;

	(void)state;
	for (size_t i = 0; i < sizeof(host) - 1; i++)
		host[i] = i % 64 == 63 ? '.' : 'a';
	memcpy(flag + 1, host, sizeof(host));
	p = POLICY("version: 1\n", flag);
	policy_rule_label(p, rule_for(p, host, 443), buf);
	assert_int_equal(strlen(buf), POLICY_RULE_LABEL_MAX - 1);
	assert_memory_equal(buf, "--allow ", 8);
	assert_memory_equal(buf + 8, host, POLICY_RULE_LABEL_MAX - 9);
	policy_free(p);
}

static void long_paths_keep_their_end(void **state)
{
	struct policy_builder *b = policy_builder_new();
	char buf[POLICY_RULE_LABEL_MAX], path[600];
	struct err err = { "" };
	struct policy *p;
	FILE *f = fmemopen((void *)"version: 1\nallow: [a.test]\n", 27, "r");

	(void)state;
	memset(path, 'd', sizeof(path));
	memcpy(path + sizeof(path) - 10, "/p\x7f\nl.yml", 10);
	assert_int_equal(policy_builder_yaml(b, f, path, &err), 0);
	fclose(f);
	p = policy_build(b, &err);
	policy_rule_label(p, rule_for(p, "a.test", 1), buf);
	assert_true(strlen(buf) > 200);
	assert_string_equal(buf + strlen(buf) - 11, "/p??l.yml:2");
	policy_free(p);
	policy_builder_free(b);
}

static void assert_exempt(const struct policy *p, const struct policy_rule *rule, const char *addr, bool wanted)
{
	struct addr a;

	assert_int_equal(addr_parse(addr, strlen(addr), &a), 0);
	if (policy_rule_exempts(p, rule, &a) != wanted)
		fail_msg("%s", addr);
}

static const struct policy_rule *rule_for_addr(const struct policy *p, const char *addr, uint16_t port)
{
	struct request request = { .proto = PROTO_ANY, .port = port };

	assert_int_equal(addr_parse(addr, strlen(addr), &request.dst), 0);
	return match(p, &request).rule;
}

static void exemptions(void **state)
{
	struct policy *p =
		POLICY("version: 1\n"
		       "allow:\n"
		       "  - {host: db.test, ports: [1], addresses: [10.2.0.0/16, 192.0.2.77, \"fd00::/8\"]}\n"
		       "  - {host: wide.test, ports: [1], addresses: [0.0.0.0/0, \"::/0\", 8.0.0.0/6]}\n"
		       "  - plain.test:1\n"
		       "  - 10.0.0.0/8:1\n"
		       "  - 0.0.0.0/0:2\n"
		       "  - 169.0.0.0/8:3\n"
		       "  - 1.2.3.0/24:4\n"
		       "deny: [\"10.9.0.0/16:1\"]\n");
	const struct policy_rule *r = rule_for(p, "db.test", 1);

	(void)state;
	assert_exempt(p, r, "10.2.3.4", true);
	assert_exempt(p, r, "10.3.3.4", false);
	assert_exempt(p, r, "192.0.2.77", true);
	assert_exempt(p, r, "fd00::1", true);
	assert_exempt(p, r, "fe80::1", false);
	assert_exempt(p, r, "169.254.169.254", false);
	/* A range that is only wide opens nothing. */
	r = rule_for(p, "wide.test", 1);
	assert_exempt(p, r, "10.2.3.4", false);
	assert_exempt(p, r, "169.254.169.254", false);
	assert_exempt(p, r, "127.0.0.1", false);
	assert_exempt(p, r, "8.8.8.8", false);
	assert_exempt(p, r, "::1", false);
	assert_exempt(p, rule_for(p, "plain.test", 1), "10.2.3.4", false);
	/* An address rule means its own prefix. */
	assert_exempt(p, rule_for_addr(p, "10.1.1.1", 1), "10.1.1.1", true);
	assert_exempt(p, rule_for_addr(p, "10.1.1.1", 1), "11.1.1.1", false);
	assert_exempt(p, rule_for_addr(p, "10.1.1.1", 2), "10.1.1.1", false);
	assert_exempt(p, rule_for_addr(p, "169.254.169.254", 3), "169.254.169.254", false);
	assert_exempt(p, rule_for_addr(p, "169.1.1.1", 3), "169.1.1.1", true);
	assert_exempt(p, rule_for_addr(p, "1.2.3.4", 4), "1.2.3.4", true);
	/* A deny opens nothing, and no rule neither. */
	r = rule_for_addr(p, "10.9.1.1", 1);
	assert_non_null(r);
	assert_exempt(p, r, "10.9.1.1", false);
	assert_exempt(p, NULL, "10.9.1.1", false);
	policy_free(p);
}

/* A rule with `addresses:` decides before one without, so that neither the order nor a wildcard takes them away. */
static void addresses_decide(void **state)
{
	struct policy *p = POLICY("+db.test:1",
				  "version: 1\nallow: [{host: \"*.test!\", ports: [1], addresses: [10.2.0.0/16]}]\n");
	char buf[POLICY_RULE_LABEL_MAX];

	(void)state;
	assert_string_equal(policy_rule_label(p, rule_for(p, "db.test", 1), buf), "p.yaml:2");
	assert_exempt(p, rule_for(p, "db.test", 1), "10.2.3.4", true);
	policy_free(p);
}

static void too_many_rules_for_one_name(void **state)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	char text[64];

	(void)state;
	for (unsigned i = 1; i <= POLICY_CHAIN_MAX + 1; i++) {
		snprintf(text, sizeof(text), "a.test:%u", i);
		assert_int_equal(policy_builder_allow(b, text, &err), 0);
		assert_int_equal(policy_builder_allow(b, text, &err), 0);
	}
	assert_null(policy_build(b, &err));
	assert_string_equal(err.text,
			    "--allow a.test:257: more than 256 rules for one host or prefix; put its ports in "
			    "one rule: \"ports: [...]\"");
	policy_builder_free(b);
}

static void too_many_rules(void **state)
{
	struct policy_builder *b = policy_builder_new();
	struct rule_store *s = builder_store(b);
	struct err err = { "" };

	(void)state;
	assert_int_equal(policy_builder_allow(b, "a.test", &err), 0);
	s->n_rules = POLICY_RULES_MAX;
	assert_int_equal(policy_builder_allow(b, "b.test", &err), -1);
	assert_memory_equal(err.text, "more than 4194304 rules in one policy, or names too long", 56);
	s->n_rules = 1;
	s->n_words = POLICY_BYTES_MAX / 4;
	err.text[0] = '\0';
	assert_int_equal(policy_builder_allow(b, "b.test", &err), -1);
	assert_memory_equal(err.text, "more than 4194304 rules in one policy, or names too long", 56);
	policy_builder_free(b);
}

/* What rules say beside their names is stored once, also where a few kinds alternate. */
static void shared_terms(void **state)
{
	static const char *const ports[] = { "", ":22", ":443/tcp" };
	struct policy_builder *b = policy_builder_new();
	char entry[64], text[POLICY_ENTRY_MAX];
	struct err err = { "" };
	struct policy *p;

	(void)state;
	for (size_t i = 0; i < 30; i++) {
		snprintf(entry, sizeof(entry), "a%zu.test%s", i, ports[i % 3]);
		assert_int_equal(policy_builder_allow(b, entry, &err), 0);
	}
	p = policy_build(b, &err);
	assert_non_null(p);
	assert_int_equal(p->store.n_terms, 3);
	assert_int_equal(p->store.n_ports, 4);
	for (size_t i = 0; i < 30; i++) {
		snprintf(entry, sizeof(entry), "a%zu.test%s", i, ports[i % 3]);
		assert_string_equal(rule_entry(p, rule_at(p, p->given[i]), text), entry);
	}
	policy_free(p);
	policy_builder_free(b);
}

static void too_many_files(void **state)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	FILE *f = fopen("/dev/null", "r");

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < POLICY_SOURCES_MAX; i++)
		assert_int_equal(policy_builder_yaml(b, f, "p.yaml", &err), 0);
	assert_int_equal(policy_builder_yaml(b, f, "p.yaml", &err), -1);
	assert_string_equal(err.text, "more than 1024 policy files");
	fclose(f);
	policy_builder_free(b);
}

static void a_large_policy(void **state)
{
	const unsigned n = 100000;
	struct policy_builder *b = policy_builder_new();
	char label[POLICY_RULE_LABEL_MAX], text[64], wanted[80];
	struct err err = { "" };
	struct policy *p;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "h%u.test:22", i);
		assert_int_equal(policy_builder_allow(b, text, &err), 0);
	}
	p = policy_build(b, &err);
	policy_builder_free(b);
	assert_int_equal(policy_size(p), n);
	for (unsigned i = 0; i < n; i += 999) {
		snprintf(text, sizeof(text), "h%u.test", i);
		snprintf(wanted, sizeof(wanted), "--allow %s:22", text);
		assert_string_equal(policy_rule_label(p, rule_for(p, text, 22), label), wanted);
	}
	assert_null(rule_for(p, "h100000.test", 22));
	policy_free(p);
}

/* Of a name of any length, each suffix is found and has the hash that it has by itself. */
static void suffixes(void **state)
{
	const struct name_table t = { .key = { 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9 } };
	char name[NAME_LEN_MAX + 1];
	struct name_suffixes s;

	(void)state;
	for (size_t label = 1; label <= NAME_LABEL_MAX; label++) {
		for (size_t len = 1; len <= NAME_LEN_MAX; len++) {
			size_t n = 1;

			for (size_t i = 0; i < len; i++)
				name[i] = (i + 1) % (label + 1) == 0 && i + 1 < len ? '.' : (char)('a' + i % 26);
			name[len] = '\0';
			names_cut(&t, name, len, &s);
			for (size_t i = len; i-- > 0;) {
				if (i > 0 && name[i - 1] != '.')
					continue;
				assert_true(n < s.n);
				assert_int_equal(s.start[n], i);
				assert_int_equal(s.hash[n], names_hash(&t, name + i, len - i));
				n++;
			}
			assert_int_equal(s.n, n);
			assert_int_equal(s.start[0], len);
			assert_int_equal(s.hash[0], names_hash(&t, name, 0));
		}
	}
}

/* Whether the upper halves of few keys are the same, or of many, or of all: sorted, and equal ones in the order they had. */
static void sorting(void **state)
{
	static const struct {
		size_t n;
		uint32_t upper, lower; /* different ones */
	} cases[] = { { 0, 1, 1 },     { 1, 1, 1 },	 { 2, 1, 2 },	     { 500, 1, 300 },
		      { 500, 400, 1 }, { 5000, 400, 9 }, { 5000, 20, 70000 } };
	struct sort_item items[5000];
	uint32_t random = 1;

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		for (uint32_t i = 0; i < cases[c].n; i++) {
			random = random * 1664525 + 1013904223;
			items[i] = (struct sort_item){ { (random >> 8) % cases[c].upper * 0x1000193,
							 (random >> 4) % cases[c].lower * 0x10001 },
						       i };
		}
		assert_int_equal(sort_items(items, cases[c].n), 0);
		for (size_t i = 1; i < cases[c].n; i++) {
			const struct sort_item *x = &items[i - 1], *y = &items[i];
			uint64_t a = (uint64_t)x->key[0] << 32 | x->key[1], b = (uint64_t)y->key[0] << 32 | y->key[1];

			assert_true(a < b || (a == b && x->rule < y->rule));
		}
	}
}

#define WARNINGS_MAX 8192

/* Warnings, one a line. */
static void collect(void *arg, const char *text)
{
	char *all = arg;
	size_t len = strlen(all);

	snprintf(all + len, WARNINGS_MAX - len, "%s\n", text);
}

static void assert_warnings(struct policy *p, size_t n, const char *wanted)
{
	char all[WARNINGS_MAX] = "";

	assert_int_equal(policy_warnings(p, true, collect, all), n);
	assert_string_equal(all, wanted);
	policy_free(p);
}

static void no_warnings(void **state)
{
	(void)state;
	assert_warnings(policy_of((const char *const[]){ NULL }), 0, "");
	assert_warnings(POLICY("+api.example.com", "+*.pythonhosted.org", "+github.com:22",
			       "-telemetry.pythonhosted.org", "+api.example.com:8443", "+8.8.4.0/24:443", "-10.0.0.0/8",
			       "-*.com:25", "+.b.example.com"),
			0, "");
}

static void warnings_of_width(void **state)
{
	(void)state;
	assert_warnings(POLICY("+*!"), 1,
			"--allow *!: allows every name there is; what the sandbox sends can go to anybody\n");
	assert_warnings(
		POLICY("version: 1\nallow: [\"*.com!\"]\n"), 1,
		"p.yaml:2: *.com!: covers a whole public suffix; anyone can get a name below it and receive what "
		"the sandbox sends\n");
	assert_warnings(POLICY("+0.0.0.0/0:443"), 1,
			"--allow 0.0.0.0/0:443: 0.0.0.0/0 is very wide; private and local addresses in it are still "
			"refused, name those by prefixes of their own\n");
	assert_warnings(
		POLICY("+10.1.0.0/16:5432"), 1,
		"--allow 10.1.0.0/16:5432: opens 10.1.0.0/16, which is in 10.0.0.0/8 (private-use); netgate will "
		"dial it\n");
	assert_warnings(POLICY("+172.0.0.0/8:5432"), 1,
			"--allow 172.0.0.0/8:5432: 172.0.0.0/8 includes 172.16.0.0/12 (private-use), which is still "
			"refused; name it by a prefix of its own\n");
	assert_warnings(
		POLICY("version: 1\nallow: [{host: m.test, addresses: [169.254.169.254]}]\n"), 1,
		"p.yaml:2: m.test: opens 169.254.169.254/32, which is in 169.254.0.0/16 (link-local, where clouds "
		"keep their metadata service); netgate will dial it\n");
	assert_warnings(
		POLICY("+ns.test:53", "+dot.test:853"), 2,
		"--allow ns.test:53: port 53 is for DNS; a resolver there answers, and receives, any name past "
		"netgate's own\n"
		"--allow dot.test:853: port 853 is for DNS; a resolver there answers, and receives, any name past "
		"netgate's own\n");
}

/* Before a run nothing is said of what is there on purpose. */
static void warnings_of_mistakes_only(void **state)
{
	struct policy *p = policy_of((const char *const[]){ "+*!:99", "+*.com!:99", "+10.2.0.5:22", "+0.0.0.0/0:22",
							    "+10.0.0.0/7:22", "+192.0.0.0/23:22", NULL });
	char all[WARNINGS_MAX] = "";

	(void)state;
	policy_warnings(p, false, collect, all);
	assert_null(strstr(all, "opens "));
	assert_null(strstr(all, "can go to anybody"));
	assert_null(strstr(all, "public suffix;"));
	assert_non_null(strstr(all, "--allow 0.0.0.0/0:22: 0.0.0.0/0 is very wide"));
	assert_non_null(strstr(all, "which is still refused"));
	policy_free(p);
}

static void warnings_of_useless_rules(void **state)
{
	(void)state;
	assert_warnings(POLICY("+*.a.test", "+b.a.test"), 1,
			"--allow b.a.test: never needed: --allow *.a.test covers it\n");
	assert_warnings(POLICY("+b.a.test", "+b.a.test"), 1,
			"--allow b.a.test: never needed: --allow b.a.test covers it\n");
	assert_warnings(POLICY("version: 1\nallow:\n  - .a.test\n  - \"*.a.test\"\n  - a.test\n"), 2,
			"p.yaml:4: *.a.test: never needed: p.yaml:3 (.a.test) covers it\n"
			"p.yaml:5: a.test: never needed: p.yaml:3 (.a.test) covers it\n");
	/* Another port, other addresses, "/tcp": all of that is something more. */
	assert_warnings(POLICY("+*.a.test", "+b.a.test:22", "+c.a.test:443/tcp"), 0, "");
	assert_warnings(POLICY("+b.a.test:443/tcp", "+b.a.test:443"), 1,
			"--allow b.a.test:443: never needed: --allow b.a.test:443/tcp covers it\n");
	assert_warnings(POLICY("+*.a.test:443/tcp", "+b.a.test:443/tcp"), 1,
			"--allow b.a.test:443/tcp: never needed: --allow *.a.test:443/tcp covers it\n");
	/* The later one has a port more. */
	assert_warnings(POLICY("version: 1\nallow:\n  - a.test:443\n  - {host: a.test, ports: [443, 22]}\n"), 1,
			"p.yaml:3: a.test:443: never needed: p.yaml:4 (a.test:22,443) covers it\n");
	/* A prefix that begins with the same address is not the wider one. */
	assert_warnings(POLICY("+8.8.0.0/16:443", "+8.8.0.0/24:443"), 1,
			"--allow 8.8.0.0/24:443: never needed: --allow 8.8.0.0/16:443 covers it\n");
	assert_warnings(POLICY("+b.a.test", "-*.a.test"), 1,
			"--allow b.a.test: never used: --deny *.a.test denies all of it\n");
	assert_warnings(POLICY("+*.a.test", "-b.a.test"), 0, "");
	assert_warnings(POLICY("+b.a.test:22", "-b.a.test:22"), 1,
			"--allow b.a.test:22: never used: --deny b.a.test:22 denies all of it\n");
	assert_warnings(POLICY("+b.a.test", "-b.a.test:443"), 0, "");
	assert_warnings(POLICY("-a.test", "-.a.test", "-a.test:22"), 2,
			"--deny a.test: never needed: --deny .a.test covers it\n"
			"--deny a.test:22: never needed: --deny a.test covers it\n");
	assert_warnings(POLICY("+8.8.0.0/16:443", "+8.8.8.0/24:443", "+8.8.8.0/24:22", "-8.8.8.8", "+8.8.8.8:22"), 2,
			"--allow 8.8.8.0/24:443: never needed: --allow 8.8.0.0/16:443 covers it\n"
			"--allow 8.8.8.8/32:22: never used: --deny 8.8.8.8/32 denies all of it\n");
	assert_warnings(POLICY("+b.a.test", "-b.a.test", "-*.a.test"), 2,
			"--allow b.a.test: never used: --deny b.a.test denies all of it\n"
			"--deny b.a.test: never needed: --deny *.a.test covers it\n");
}

/* Of two rules for one name, one is too much only when the other has all its addresses, too. */
static void warnings_of_rules_with_addresses(void **state)
{
#define RULE(addresses) "  - {host: a.test, addresses: [" addresses "]}\n"
#define HEAD		"version: 1\nallow:\n"
#define OPENS(line) \
	"p.yaml:" line ": a.test: opens 10.1.0.0/16, which is in 10.0.0.0/8 (private-use); netgate will dial it\n"
	(void)state;
	assert_warnings(POLICY(HEAD RULE("10.1.0.0/16") RULE("10.1.0.0/16")), 2,
			OPENS("3") "p.yaml:4: a.test: never needed: p.yaml:3 (a.test) covers it\n");
	assert_warnings(POLICY(HEAD RULE("10.1.0.0/16") RULE("10.1.0.0/16, 1.2.3.0/24")), 3,
			OPENS("3") "p.yaml:3: a.test: never needed: p.yaml:4 (a.test) covers it\n" OPENS("4"));
	assert_warnings(POLICY(HEAD RULE("1.2.3.0/24") RULE("1.2.3.0/25")), 1,
			"p.yaml:4: a.test: never needed: p.yaml:3 (a.test) covers it\n");
	assert_warnings(POLICY(HEAD RULE("1.2.3.0/24") RULE("1.2.4.0/24")), 0, "");
#undef RULE
#undef HEAD
#undef OPENS
}

/* Two rules that say the same in other words: only the later one is too much. */
static void warnings_of_equal_rules(void **state)
{
	(void)state;
	assert_warnings(POLICY("version: 1\nallow:\n"
			       "  - {host: a.test, addresses: [8.8.0.0/16]}\n"
			       "  - {host: a.test, addresses: [8.8.0.0/16, 8.8.8.0/24]}\n"),
			1, "p.yaml:4: a.test: never needed: p.yaml:3 (a.test) covers it\n");
}

static void warnings_of_localhost(void **state)
{
#define ITSELF \
	"localhost and 127.0.0.0/8 are the sandbox itself; to reach a service of this host, give it another name " \
	"with " \
	"addresses: [127.0.0.1/32]\n"
	(void)state;
	assert_warnings(POLICY("+localhost:80"), 1, "--allow localhost:80: " ITSELF);
	assert_warnings(POLICY("+db.localhost"), 1, "--allow db.localhost: " ITSELF);
	assert_warnings(POLICY("+127.0.0.1:8080"), 1, "--allow 127.0.0.1/32:8080: " ITSELF);
	assert_warnings(POLICY("+[::1]:8080"), 1, "--allow [::1]/128:8080: " ITSELF);
	assert_warnings(POLICY("+notlocalhost", "-localhost", "-127.0.0.1"), 0, "");
	assert_warnings(
		POLICY("version: 1\nallow:\n  - {host: a.test, addresses: [127.0.0.1/32]}\n"), 1,
		"p.yaml:3: a.test: opens 127.0.0.1/32, which is in 127.0.0.0/8 (loopback); netgate will dial it\n");
}

static void special_ranges(void **state)
{
	static const char *const special[][2] = {
		{ "0.0.0.0/8", "this network" },
		{ "10.0.0.0/8", "private-use" },
		{ "100.64.0.0/10", "shared address space" },
		{ "127.0.0.0/8", "loopback" },
		{ "169.254.0.0/16", "link-local, where clouds keep their metadata service" },
		{ "172.16.0.0/12", "private-use" },
		{ "192.0.0.0/24", "IETF protocol assignments" },
		{ "192.0.2.0/24", "documentation" },
		{ "192.88.99.0/24", "6to4 relay anycast" },
		{ "192.168.0.0/16", "private-use" },
		{ "198.18.0.0/15", "benchmarking, from which the gate's DNS answers" },
		{ "198.51.100.0/24", "documentation" },
		{ "203.0.113.0/24", "documentation" },
		{ "224.0.0.0/4", "multicast" },
		{ "240.0.0.0/4", "reserved" },
		{ "::/96", "loopback, unspecified and IPv4-compatible" },
		{ "::ffff:0:0/96", "IPv4-mapped" },
		{ "64:ff9b::/96", "IPv4 through NAT64" },
		{ "64:ff9b:1::/48", "IPv4 through NAT64" },
		{ "100::/64", "discard-only" },
		{ "2001::/23", "IETF protocol assignments" },
		{ "2001:db8::/32", "documentation" },
		{ "2002::/16", "6to4" },
		{ "3fff::/20", "documentation" },
		{ "5f00::/16", "segment routing" },
		{ "fc00::/7", "unique local" },
		{ "fe80::/10", "link-local" },
		{ "fec0::/10", "site-local" },
		{ "ff00::/8", "multicast" },
	};
	struct prefix p, wider;
	struct addr last;

	(void)state;
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
		assert_int_equal(prefix_parse(special[i][0], strlen(special[i][0]), &p), 0);
		assert_string_equal(special_within(&p)->purpose, special[i][1]);
		last = p.addr;
		for (size_t bit = p.len; bit < addr_size(&last) * 8; bit++)
			last.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		assert_string_equal(special_of(&last)->purpose, special[i][1]);
		/* One bit shorter, it is in no range, but has this one in it. */
		wider = p;
		wider.len--;
		wider.addr.b[wider.len / 8] &= (uint8_t) ~(0x80 >> wider.len % 8);
		assert_non_null(special_overlap(&wider));
	}
	assert_int_equal(addr_parse("8.8.8.8", 7, &last), 0);
	assert_null(special_of(&last));
	assert_int_equal(addr_parse("2606:4700::1111", 15, &last), 0);
	assert_null(special_of(&last));
}

static void warnings_of_resolvers(void **state)
{
	(void)state;
	assert_warnings(
		POLICY("+dns.google", "+*.quad9.net", "-dns10.quad9.net", "-dns11.quad9.net", "-dns9.quad9.net"), 2,
		"--allow dns.google: dns.google is a public DNS-over-HTTPS resolver; through it any name can be "
		"looked up unseen\n"
		"--allow *.quad9.net: dns.quad9.net is a public DNS-over-HTTPS resolver; through it any name can be "
		"looked up unseen\n");
	assert_warnings(POLICY("+dns.google:22"), 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(canonical_text),
		cmocka_unit_test(canonical_mappings),
		cmocka_unit_test(no_room_for_the_text),
		cmocka_unit_test(empty_text),
		cmocka_unit_test(digests),
		cmocka_unit_test(sizes_and_modes),
		cmocka_unit_test(labels),
		cmocka_unit_test(entries_of_many_ports),
		cmocka_unit_test(long_labels_keep_their_beginning),
		cmocka_unit_test(long_paths_keep_their_end),
		cmocka_unit_test(exemptions),
		cmocka_unit_test(addresses_decide),
		cmocka_unit_test(too_many_rules_for_one_name),
		cmocka_unit_test(too_many_rules),
		cmocka_unit_test(shared_terms),
		cmocka_unit_test(suffixes),
		cmocka_unit_test(sorting),
		cmocka_unit_test(too_many_files),
		cmocka_unit_test(a_large_policy),
		cmocka_unit_test(no_warnings),
		cmocka_unit_test(warnings_of_width),
		cmocka_unit_test(warnings_of_useless_rules),
		cmocka_unit_test(warnings_of_mistakes_only),
		cmocka_unit_test(warnings_of_rules_with_addresses),
		cmocka_unit_test(warnings_of_equal_rules),
		cmocka_unit_test(warnings_of_resolvers),
		cmocka_unit_test(special_ranges),
		cmocka_unit_test(warnings_of_localhost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
