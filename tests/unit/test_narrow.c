/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a policy: never more than the policy, and with all that comes with its rules.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/reason.c rules/policy_yaml.c rules/policy_text.c rules/narrow.c
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
#include "rules/match.h"
#include "rules/policy.h"

static const char permit[] = "version: 1\n"
			     "allow:\n"
			     "  - api.test\n"
			     "  - \"*.wild.test\"\n"
			     "  - .zone.test:443/tcp\n"
			     "  - {host: db.test, ports: [5432, 5433], addresses: [10.2.0.0/16]}\n"
			     "  - {cidr: 203.0.113.0/24, ports: [8443]}\n"
			     "  - {cidr: 203.0.113.0/25, ports: [22]}\n"
			     "  - both.test:80\n"
			     "  - both.test:443\n"
			     "deny:\n"
			     "  - bad.wild.test\n"
			     "  - 203.0.113.7/32\n"
			     "  - api.test:80\n"
			     "limits:\n"
			     "  upload: 1MiB\n"
			     "  names: 5\n";

static void add_file(struct policy_builder *b, const char *path, const char *yaml)
{
	FILE *f = fmemopen((void *)yaml, strlen(yaml), "r");
	struct err err = { "" };

	if (policy_builder_yaml(b, f, path, &err))
		fail_msg("%s", err.text);
	fclose(f);
}

static struct policy *load(const char *yaml)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;

	add_file(b, "permit.yaml", yaml);
	p = policy_build(b, &err);
	policy_builder_free(b);
	if (!p)
		fail_msg("%s", err.text);
	return p;
}

/* The canonical text of what is left of a policy; or "error: …". To be freed. */
static char *narrowed_from(const char *yaml, const char *const *entries, size_t n)
{
	struct policy *from = load(yaml), *p = NULL;
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	char *text = NULL;
	size_t len;

	if (!policy_builder_narrow(b, from, entries, n, &err))
		p = policy_build(b, &err);
	policy_builder_free(b);
	policy_free(from); /* nothing is borrowed from it */
	if (p) {
		FILE *out = open_memstream(&text, &len);

		assert_int_equal(policy_print(p, out), 0);
		fclose(out);
	} else if (asprintf(&text, "error: %s", err.text) < 0) {
		fail();
	}
	policy_free(p);
	return text;
}

static char *narrowed(const char *const *entries, size_t n)
{
	return narrowed_from(permit, entries, n);
}

#define DENIALS \
	"deny:\n" \
	"  - api.test:80\n" \
	"  - bad.wild.test\n" \
	"  - 203.0.113.7/32\n"
#define REST DENIALS "limits:\n  upload: 1MiB\n  names: 5\n"

static void assert_narrowed(const char *entry, const char *want)
{
	char *text = narrowed(&entry, 1);

	if (!strstr(text, want))
		fail_msg("%s gives:\n%s\nand not:\n%s", entry, text, want);
	if (strncmp(want, "error", 5) != 0 && !strstr(text, "upload: 1MiB"))
		fail_msg("%s loses the limits:\n%s", entry, text);
	if (strncmp(want, "error", 5) != 0 && !strstr(text, "bad.wild.test"))
		fail_msg("%s loses the denials:\n%s", entry, text);
	free(text);
}

static void permitted(void **state)
{
	(void)state;
	assert_narrowed("api.test", "allow:\n  - api.test\ndeny");
	assert_narrowed("api.test:443", "allow:\n  - api.test:443\ndeny");
	assert_narrowed("API.test.", "allow:\n  - api.test\ndeny");
	assert_narrowed("a.wild.test", "allow:\n  - a.wild.test\ndeny");
	assert_narrowed("*.b.wild.test:80", "allow:\n  - \"*.b.wild.test:80\"\ndeny");
	assert_narrowed("*.wild.test", "allow:\n  - \"*.wild.test\"\ndeny");
	assert_narrowed(".zone.test:443", "allow:\n  - .zone.test:443\ndeny");
	assert_narrowed("zone.test:443/tcp", "allow:\n  - zone.test:443/tcp\ndeny");
	assert_narrowed("203.0.113.64/26:8443", "203.0.113.64/26");
	assert_narrowed("203.0.113.1:8443", "203.0.113.1/32:8443");
	assert_narrowed("203.0.113.7/32:8443", "203.0.113.7/32"); /* and denied, as there */
	/* Ports that different rules give. */
	assert_narrowed("both.test", "allow:\n  - both.test\ndeny");
	/* What the rule has beside its name comes along. */
	assert_narrowed("db.test:5432", "10.2.0.0/16");
}

static void refused(void **state)
{
	(void)state;
	assert_narrowed("other.test", "error: \"other.test\" is not permitted");
	assert_narrowed("wild.test", "error: \"wild.test\" is not permitted");
	assert_narrowed(".wild.test", "error: \".wild.test\" is not permitted");
	assert_narrowed("*.api.test", "error: \"*.api.test\" is not permitted");
	assert_narrowed("*.test!", "error: \"*.test!\" is not permitted");
	assert_narrowed("*!", "error: \"*!\" is not permitted");
	assert_narrowed("notapi.test", "error: \"notapi.test\" is not permitted");
	assert_narrowed("api.test:22", "error: \"api.test:22\": port 22 is not permitted; other ports of it are");
	assert_narrowed("api.test:443/tcp", "error: \"api.test:443/tcp\": port 443/tcp is not permitted");
	assert_narrowed(
		"zone.test",
		"error: \"zone.test\": port 80 is not permitted; without a port, it stands for 80 and 443: name");
	assert_narrowed("db.test:5434", "error: \"db.test:5434\": port 5434 is not permitted");
	assert_narrowed("203.0.112.0/23:8443", "error: \"203.0.112.0/23:8443\" is not permitted");
	assert_narrowed("203.0.113.0/24:443", "error: \"203.0.113.0/24:443\": port 443 is not permitted");
	assert_narrowed("203.0.113.0/24:22", "error: \"203.0.113.0/24:22\": port 22 is not permitted");
	assert_narrowed("0.0.0.0/0:8443", "error: ");
	assert_narrowed("api.test\nallow: x", "error: ");
	assert_narrowed("", "error: ");
}

static void assert_chosen(const char *rules, const char *entry, const char *want)
{
	char *yaml, *text;

	assert_true(asprintf(&yaml, "version: 1\nallow:\n%s", rules) > 0);
	text = narrowed_from(yaml, &entry, 1);
	if (!strstr(text, want))
		fail_msg("%s of\n%s gives:\n%s\nand not:\n%s", entry, rules, text, want);
	free(text);
	free(yaml);
}

#define WIDE(more)  "  - {host: \"*.a.test\", ports: [22" more "\n"
#define HOST(more)  "  - {host: b.a.test, ports: [22" more "\n"
#define ADDRS(n)    "], addresses: [10." n ".0.0/16]}"
#define TEXT(ports) "    ports: [22" ports "]\n"
#define ADDR(n)	    "    addresses: [10." n ".0.0/16]\n"
#define LIMIT	    "], limits: {upload: 1kB}}"

/* What is left decides by the rule that decides in the whole policy. */
static void chosen_as_in_the_whole(void **state)
{
	(void)state;
	/* A host that has other addresses than those around it. */
	assert_chosen(WIDE(ADDRS("1")) HOST(ADDRS("2")), "*.a.test:22",
		      "  - host: \"*.a.test\"\n" TEXT("") ADDR("1") "  - host: b.a.test\n" TEXT("") ADDR("2"));
	/* The wider rule decides since it gives more: any bytes, and then addresses. */
	assert_chosen(WIDE("/tcp" LIMIT) HOST("]}"), "b.a.test:22", "  - host: b.a.test\n" TEXT("") "    limits:");
	assert_chosen(WIDE("/tcp]}") HOST(ADDRS("1")), "b.a.test:22", "allow:\n  - b.a.test:22\ndeny");
	assert_chosen(WIDE(ADDRS("1")) HOST("]}"), "*.a.test:22",
		      "allow:\n  - host: \"*.a.test\"\n" TEXT("") ADDR("1") "deny");
	/* The host decides since it gives more, which the entry does not want: nothing that is left would say so. */
	assert_chosen(WIDE(ADDRS("1")) HOST("/tcp]}"), "*.a.test:22",
		      "error: \"*.a.test:22\": port 22 is permitted in");
	assert_chosen(WIDE(ADDRS("1")) HOST("/tcp]}"), "b.a.test:22", "allow:\n  - b.a.test:22\ndeny");
	assert_chosen(WIDE("]}") HOST("/tcp]}"), "*.a.test:22", "  - \"*.a.test:22\"\n");
	/* The name itself has a rule of its own, and is asked for or not. */
	assert_chosen(WIDE("]}") "  - {host: a.test, ports: [22" LIMIT "\n", "*.a.test:22",
		      "allow:\n  - \"*.a.test:22\"\ndeny");
	assert_chosen("  - {host: .test!, ports: [22" ADDRS("1") "\n  - {host: a.test, ports: [22" ADDRS("2") "\n",
		      ".a.test:22",
		      "  - host: a.test\n" TEXT("") ADDR("2") "  - host: \"*.a.test\"\n" TEXT("") ADDR("1"));
	assert_chosen("  - {host: .test!, ports: [22" ADDRS("1") "\n" WIDE(ADDRS("2")), ".a.test:22",
		      "allow:\n  - host: a.test\n" TEXT("") ADDR("1") "  - host: \"*.a.test\"\n" TEXT("")
			      ADDR("2") "deny");
	/* Nothing is left for the wider rule, or other parts of the name for each port. */
	assert_chosen("  - {host: .test!, ports: [22" ADDRS("1") "\n  - {host: a.test, ports: [22" ADDRS("2") "\n" WIDE(
			      ADDRS("3")),
		      ".a.test:22",
		      "allow:\n  - host: a.test\n" TEXT("") ADDR("2") "  - host: \"*.a.test\"\n" TEXT("")
			      ADDR("3") "deny");
	assert_chosen(
		"  - {host: .test!, ports: [80, 443" ADDRS("1") "\n  - {host: a.test, ports: [443" ADDRS("2") "\n",
		".a.test",
		"allow:\n  - host: a.test\n    ports: [443]\n" ADDR(
			"2") "  - host: \"*.a.test\"\n    ports: [443]\n" ADDR("1") "  - host: .a.test\n    ports: "
										    "[80]\n" ADDR("1") "deny");
}

static void several_and_none(void **state)
{
	const char *const good[] = { "api.test", "x.wild.test" }, *const bad[] = { "api.test", "evil.test", "no.test" };
	char *text = narrowed(good, 2);

	(void)state;
	assert_non_null(strstr(text, "allow:\n  - api.test\n  - x.wild.test\n" REST));
	free(text);
	text = narrowed(bad, 3);
	assert_string_equal(text, "error: \"evil.test\" is not permitted");
	free(text);
	text = narrowed(NULL, 0);
	assert_non_null(strstr(text, "allow: []\n"));
	assert_non_null(strstr(text, REST));
	free(text);
}

/* Of several rules that permit it, the one that would decide is taken. */
static void the_rule_that_decides(void **state)
{
	static const char several[] = "  - a.x.test\n"
				      "  - {host: \"*.x.test\", addresses: [10.2.0.0/16]}\n"
				      "  - {host: b.x.test, addresses: [10.3.0.0/16]}\n"
				      "  - \"*.y.test\"\n"
				      "  - {host: c.y.test, addresses: [10.4.0.0/16]}\n"
				      "  - d.test\n"
				      "  - {host: d.test, limits: {upload: 5B}}\n"
				      "  - {host: e.test, limits: {upload: 6B}}\n"
				      "  - e.test\n";

	(void)state;
	assert_chosen(several, "a.x.test", "allow:\n  - host: a.x.test\n    addresses: [10.2.0.0/16]\ndeny");
	assert_chosen(several, "b.x.test", "allow:\n  - host: b.x.test\n    addresses: [10.3.0.0/16]\ndeny");
	assert_chosen(several, "c.y.test", "allow:\n  - host: c.y.test\n    addresses: [10.4.0.0/16]\ndeny");
	assert_chosen(several, "d.test", "allow:\n  - host: d.test\n    limits: {upload: 5B}\ndeny");
	assert_chosen(several, "e.test", "allow:\n  - host: e.test\n    limits: {upload: 6B}\ndeny");
}

/* Rules with limits come along even with all names there are; those that are repeated, once. */
static void limits_below_everything(void **state)
{
	static const char every[] = "  - \"*!\"\n"
				    "  - {host: a.test, limits: {upload: 5B}}\n"
				    "  - {host: a.test, limits: {upload: 5B}}\n";

	(void)state;
	assert_chosen(every, "*!", "allow:\n  - \"*!\"\n  - host: a.test\n    limits: {upload: 5B}\ndeny");
}

/* A label that is of no file, and one of the second. */
static void labels_of_flags_and_files(void **state)
{
	const char *const entries[] = { "flag.test", "one.test", "two.test" };
	static const char *const labels[] = { "--allow flag.test", "one.yaml:2", "two.yaml:3" };
	struct policy_builder *all = policy_builder_new(), *b = policy_builder_new();
	struct request request = { .proto = PROTO_TLS, .port = 443 };
	char label[POLICY_RULE_LABEL_MAX];
	struct policy *from, *p;
	struct err err = { "" };
	struct name name;

	(void)state;
	assert_int_equal(policy_builder_allow(all, "flag.test", &err), 0);
	add_file(all, "one.yaml", "version: 1\nallow: [one.test]\n");
	add_file(all, "two.yaml", "version: 1\n\nallow: [two.test]\n");
	from = policy_build(all, &err);
	add_file(b, "own.yaml", "version: 1\n");
	assert_int_equal(policy_builder_narrow(b, from, entries, 3, &err), 0);
	p = policy_build(b, &err);
	assert_non_null(p);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(name_canonical(entries[i], strlen(entries[i]), &name), 0);
		request.names[NAME_FROM_SNI] = &name;
		assert_string_equal(policy_rule_label(p, match(p, &request).rule, label), labels[i]);
	}
	policy_free(p);
	policy_free(from);
	policy_builder_free(all);
	policy_builder_free(b);
}

static void labels_are_those_of_the_file(void **state)
{
	const char *const entries[] = { "sub.wild.test" };
	struct policy *from = load(permit), *p;
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct name name;
	struct request request = { .proto = PROTO_TLS, .port = 443, .names = { [NAME_FROM_SNI] = &name } };
	char label[POLICY_RULE_LABEL_MAX];
	struct verdict v;

	(void)state;
	assert_int_equal(policy_builder_narrow(b, from, entries, 1, &err), 0);
	policy_free(from);
	p = policy_build(b, &err);
	policy_builder_free(b);
	assert_non_null(p);
	assert_int_equal(name_canonical("sub.wild.test", 13, &name), 0);
	v = match(p, &request);
	assert_true(v.allow);
	assert_string_equal(policy_rule_label(p, v.rule, label), "permit.yaml:4");
	assert_int_equal(name_canonical("bad.wild.test", 13, &name), 0);
	v = match(p, &request);
	assert_false(v.allow);
	assert_string_equal(policy_rule_label(p, v.rule, label), "permit.yaml:12");
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permitted),
		cmocka_unit_test(refused),
		cmocka_unit_test(chosen_as_in_the_whole),
		cmocka_unit_test(several_and_none),
		cmocka_unit_test(the_rule_that_decides),
		cmocka_unit_test(limits_below_everything),
		cmocka_unit_test(labels_of_flags_and_files),
		cmocka_unit_test(labels_are_those_of_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
