/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose limits hold where several rules let a request through: what explain and the warnings say of it.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/hint.c rules/reason.c rules/explain.c rules/warnings.c
 * links: rules/policy_yaml.c rules/policy_text.c base/addr.c base/prefix.c base/name.c base/err.c
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
#include "rules/policy.h"

#define BEGIN "version: 1\nallow:\n"
#define LABEL "012345678901234567890123456789012345678901234567890123456789abc"

static struct policy *policy_of(const char *text)
{
	struct policy_builder *b = policy_builder_new();
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	struct err err = { "" };
	struct policy *p = policy_builder_yaml(b, f, "p.yaml", &err) ? NULL : policy_build(b, &err);

	fclose(f);
	policy_builder_free(b);
	if (!p)
		fail_msg("%s", err.text);
	return p;
}

static void take_warning(void *arg, const char *text)
{
	strncat(arg, text, 2000);
	strncat(arg, "\n", 2);
}

/* Limits that another rule takes away by giving more; not by one that is more specific, or gives as much. */
static void warned_of_more(void **state)
{
	static char got[8192];
	struct policy *p = policy_of(
		BEGIN
		"  - {host: a.ex.test, limits: {rate: 5/s}}\n"
		"  - a.ex.test:443/tcp\n"
		"  - {host: \"*.b.test\", ports: [22], limits: {rate: 5/s}}\n"
		"  - {host: \"*.c.b.test\", ports: [22], addresses: [10.2.0.0/16]}\n"
		"  - {host: x.c.test, ports: [22], limits: {rate: 5/s}}\n"
		"  - {host: \"*.c.test\", ports: [22], addresses: [10.2.0.0/16], limits: {rate: 9/s}}\n"
		"  - {cidr: 203.0.113.0/24, ports: [22, 23], limits: {rate: 5/s}}\n"
		"  - 203.0.0.0/16:23/tcp\n"
		"  - 203.0.113.0/28:22/tcp\n"
		"  - {host: \"*!\", ports: [25], limits: {rate: 5/s}}\n"
		"  - {host: \"*." LABEL "." LABEL "." LABEL "."
		"a123456789012345678901234567890123456789012345678901234567\", ports: [25], limits: {rate: 5/s}}\n"
		"  - {host: .d.test, ports: [22], limits: {rate: 5/s}}\n"
		"  - {host: d.test, ports: [22], addresses: [10.2.0.0/16]}\n");

	(void)state;
	got[0] = '\0';
	policy_warnings(p, true, take_warning, got);
	assert_non_null(strstr(
		got, "p.yaml:3: a.ex.test: its limits do not hold on port 443: p.yaml:4 (a.ex.test:443/tcp) gives "
		     "more and decides there\n"));
	assert_non_null(strstr(
		got, "p.yaml:7: x.c.test:22: its limits do not hold on port 22: p.yaml:8 (*.c.test:22) gives more "
		     "and decides there\n"));
	assert_non_null(strstr(got, "p.yaml:9: 203.0.113.0/24:22,23: its limits do not hold on port 23: p.yaml:10 "
				    "(203.0.0.0/16:23/tcp) gives more and decides there\n"));
	assert_non_null(strstr(got, "p.yaml:14: .d.test:22: its limits do not hold on port 22: p.yaml:15"));
	assert_null(strstr(got, "*!:25: its limits"));
	assert_null(strstr(got, "p.yaml:5: *.b.test:22: its limits"));
	assert_null(strstr(got, "hold on port 22: p.yaml:11"));
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

/* Whose limits hold where several rules have some or give more: explain says it, and names those that don't. */
static void explained_of_several(void **state)
{
	(void)state;
	assert_explained(
		BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n  - {host: '*.ex.test', limits: {upload: 1MiB}}\n",
		"a.ex.test:443",
		"allow  a.ex.test:443 (tls)\n"
		"       rule p.yaml:3: a.ex.test\n"
		"       within its limits: rate: 5/s\n"
		"       not within those of p.yaml:4: upload: 1MiB\n");
	assert_explained(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n  - a.ex.test:443/tcp\n", "a.ex.test:443",
			 "allow  a.ex.test:443 (tls)  any bytes: /tcp\n"
			 "       rule p.yaml:4: a.ex.test:443/tcp\n"
			 "       not within those of p.yaml:3: rate: 5/s\n");
	assert_explained(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n"
			       "  - {host: '*.ex.test', addresses: [10.2.0.0/16]}\n",
			 "a.ex.test:80",
			 "allow  a.ex.test:80 (http)\n"
			 "       rule p.yaml:4: *.ex.test\n"
			 "       may resolve into 10.2.0.0/16, besides public addresses\n"
			 "       not within those of p.yaml:3: rate: 5/s\n");
	/* The rule's own port, protocol and names, and nothing else. */
	assert_explained(BEGIN
			 "  - {host: a.ex.test, limits: {rate: 5/s}}\n  - {host: '*.ex.test', ports: [22, 443/tcp]}\n"
			 "  - {host: ex.test, ports: [22], limits: {rate: 5/s}}\n",
			 "a.ex.test:22",
			 "allow  a.ex.test:22 (tcp)\n"
			 "       rule p.yaml:4: *.ex.test:22,443/tcp\n");
	assert_explained(BEGIN "  - {host: a.ex.test, limits: {rate: 5/s}}\n"
			       "  - {host: .ex.test, ports: [443/tcp], addresses: [10.2.0.0/16], limits: {rate: 9/s}}\n"
			       "  - {host: '*.test!', ports: [443/tcp], limits: {rate: 7/s}}\n",
			 "ssh://a.ex.test:443",
			 "allow  a.ex.test:443 (tcp)  any bytes: /tcp\n"
			 "       rule p.yaml:4: .ex.test:443/tcp\n"
			 "       may resolve into 10.2.0.0/16, besides public addresses\n"
			 "       within its limits: rate: 9/s\n"
			 "       not within those of p.yaml:5: rate: 7/s\n");
	assert_explained(BEGIN
			 "  - {cidr: 203.0.113.0/24, ports: [22], limits: {rate: 5/s}}\n  - 203.0.0.0/16:22/tcp\n",
			 "203.0.113.1:22",
			 "allow  203.0.113.1:22 (tcp)  any bytes: /tcp\n"
			 "       rule p.yaml:4: 203.0.0.0/16:22/tcp\n"
			 "       not within those of p.yaml:3: rate: 5/s\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warned_of_more),
		cmocka_unit_test(explained_of_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
