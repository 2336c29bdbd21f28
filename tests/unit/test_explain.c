/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netgate explain: each way to ask, what is printed, and that the way out it shows is one.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/hint.c rules/reason.c rules/explain.c
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

static const char policy_text[] = "version: 1\n"
				  "allow:\n"
				  "  - api.example.com\n"
				  "  - \"*.pythonhosted.org:443\"\n"
				  "  - github.com:22\n"
				  "  - raw.example.com:443/tcp\n"
				  "  - host: db.corp.example\n"
				  "    ports: [5432]\n"
				  "    addresses: [10.2.0.0/16, \"fd00::/8\"]\n"
				  "  - 203.0.113.0/24:8443\n"
				  "deny:\n"
				  "  - bad.pythonhosted.org\n";

static struct policy *make_policy(bool audit)
{
	struct policy_builder *b = policy_builder_new();
	FILE *f = fmemopen((void *)policy_text, strlen(policy_text), "r");
	struct err err = { "" };
	struct policy *p;

	assert_int_equal(policy_builder_yaml(b, f, "p.yaml", &err), 0);
	fclose(f);
	assert_int_equal(policy_builder_allow(b, "b\303\274cher.example:443", &err), 0);
	if (audit)
		policy_builder_audit(b, true);
	p = policy_build(b, &err);
	policy_builder_free(b);
	return p;
}

static void assert_explains(const struct policy *p, const char *what, int rc, const char *wanted)
{
	struct err err = { "" };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int got = explain(p, what, out, &err);

	fclose(out);
	if (got < 0)
		fail_msg("%s: %s", what, err.text);
	assert_string_equal(text, wanted);
	assert_int_equal(got, rc);
	free(text);
}

static void assert_not_understood(const struct policy *p, const char *what, const char *says)
{
	struct err err = { "" };
	FILE *out = fopen("/dev/null", "w");

	if (explain(p, what, out, &err) != -1)
		fail_msg("understood: %s", what);
	fclose(out);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" is not in: %s", says, err.text);
}

#define API "       rule p.yaml:3: api.example.com\n"

static void names(void **state)
{
	struct policy *p = make_policy(false);

	(void)state;
	assert_explains(p, "api.example.com", 0,
			"allow  api.example.com:443 (tls)\n" API "allow  api.example.com:80 (http)\n" API);
	assert_explains(p, "API.example.com.:443", 0, "allow  api.example.com:443 (tls)\n" API);
	assert_explains(p, "https://api.example.com/v1?q=http://x@y", 0, "allow  api.example.com:443 (tls)\n" API);
	assert_explains(p, "http://api.example.com", 0, "allow  api.example.com:80 (http)\n" API);
	assert_explains(p, "api.example.com:80", 0, "allow  api.example.com:80 (http)\n" API);
	assert_explains(p, "HTTPS://api.example.com:443#x", 0, "allow  api.example.com:443 (tls)\n" API);
	assert_explains(p, "http://api.example.com:443/", 1,
			"deny   api.example.com:443 (http)  not_tls\n"
			"       nearest rule p.yaml:3: api.example.com\n"
			"       to allow it: --allow api.example.com:443/tcp   or under allow: in a policy: - "
			"api.example.com:443/tcp\n");
	assert_explains(p, "ssh://github.com/x.git", 0,
			"allow  github.com:22 (tcp)\n       rule p.yaml:5: github.com:22\n");
	assert_explains(p, "ssh://git@github.com/x.git", 0,
			"allow  github.com:22 (tcp)\n       rule p.yaml:5: github.com:22\n");
	assert_explains(p, "https://evil.example:x@api.example.com@api.example.com:443/@evil.example", 0,
			"allow  api.example.com:443 (tls)\n" API);
	assert_explains(p, "x.pythonhosted.org", 0,
			"allow  x.pythonhosted.org:443 (tls)\n"
			"       rule p.yaml:4: *.pythonhosted.org:443\n"
			"deny   x.pythonhosted.org:80 (http)  port_not_allowed\n"
			"       nearest rule p.yaml:4: *.pythonhosted.org:443\n"
			"       to allow it: --allow x.pythonhosted.org:80   or under allow: in a policy: - "
			"x.pythonhosted.org:80\n");
	assert_explains(p, "raw.example.com:443", 0,
			"allow  raw.example.com:443 (tls)  any bytes: /tcp\n"
			"       rule p.yaml:6: raw.example.com:443/tcp\n");
	assert_explains(p, "postgres://db.corp.example/x", 0,
			"allow  db.corp.example:5432 (tcp)\n"
			"       rule p.yaml:7: db.corp.example:5432\n"
			"       may resolve into 10.2.0.0/16, fd00::/8, besides public addresses\n");
	assert_explains(p, "b\303\274cher.example:443", 0,
			"allow  xn--bcher-kva.example:443 (tls)\n"
			"       rule --allow xn--bcher-kva.example:443\n");
	assert_explains(
		p, "evil.example:22", 1,
		"deny   evil.example:22 (tcp)  not_allowed\n"
		"       to allow it: --allow evil.example:22   or under allow: in a policy: - evil.example:22\n");
	assert_explains(p, "https://bad.pythonhosted.org", 1,
			"deny   bad.pythonhosted.org:443 (tls)  denied_by_rule\n"
			"       denied by p.yaml:12: bad.pythonhosted.org\n"
			"       a deny always wins: to allow this, take that rule out\n");
	policy_free(p);
}

static void addresses(void **state)
{
	struct policy *p = make_policy(false);

	(void)state;
	assert_explains(p, "203.0.113.9:8443", 0,
			"allow  203.0.113.9:8443 (tcp)\n       rule p.yaml:10: 203.0.113.0/24:8443\n");
	assert_explains(p, "https://203.0.113.9:8443/", 0,
			"allow  203.0.113.9:8443 (tls)\n       rule p.yaml:10: 203.0.113.0/24:8443\n");
	assert_explains(p, "51.15.0.8:22", 1,
			"deny   51.15.0.8:22 (tcp)  no_name\n"
			"       to allow it: --allow 51.15.0.8:22   or under allow: in a policy: - 51.15.0.8:22\n");
	assert_explains(p, "https://[2a00:1450::1]/", 1,
			"deny   [2a00:1450::1]:443 (tls)  no_name\n"
			"       to allow it: --allow '[2a00:1450::1]:443'   or under allow: in a policy: - "
			"\"[2a00:1450::1]:443\"\n");
	assert_explains(p, "2a00:1450::1", 1,
			"deny   [2a00:1450::1]:443 (tls)  no_name\n"
			"       to allow it: --allow '[2a00:1450::1]:443'   or under allow: in a policy: - "
			"\"[2a00:1450::1]:443\"\n"
			"deny   [2a00:1450::1]:80 (http)  no_name\n"
			"       to allow it: --allow '[2a00:1450::1]:80'   or under allow: in a policy: - "
			"\"[2a00:1450::1]:80\"\n");
	policy_free(p);
}

#define UDP_NEVER \
	"       UDP is never let through, whatever a policy allows; look-ups are answered by netgate's own name\n" \
	"       server, and QUIC clients fall back to TCP\n"

static void udp(void **state)
{
	struct policy *p = make_policy(true);

	(void)state;
	assert_explains(p, "udp://api.example.com:53", 1, "deny   api.example.com:53 (udp)  udp\n" UDP_NEVER);
	assert_explains(p, "UDP://203.0.113.9:8443/x", 1, "deny   203.0.113.9:8443 (udp)  udp\n" UDP_NEVER);
	assert_explains(p, "udp://api.example.com", 1, "deny   api.example.com (udp)  udp\n" UDP_NEVER);
	assert_explains(p, "udp://203.0.113.9", 1, "deny   203.0.113.9 (udp)  udp\n" UDP_NEVER);
	assert_explains(p, "udp://[2001:db8::1]", 1, "deny   2001:db8::1 (udp)  udp\n" UDP_NEVER);
	assert_explains(p, "quic://api.example.com:443", 1, "deny   api.example.com:443 (udp)  quic\n" UDP_NEVER);
	policy_free(p);
}

/* What a connection to the loopback is about, whether a rule allows it or not. */
static void the_sandbox_itself(void **state)
{
	struct policy *p = make_policy(false);
	static const char itself[] =
		"       localhost and 127.0.0.0/8 are the sandbox itself; to reach a service of this "
		"host, give it another name with addresses: [127.0.0.1/32]\n";
	char wanted[512];

	(void)state;
	snprintf(wanted, sizeof(wanted), "deny   localhost:8080 (tcp)  not_allowed\n%s", itself);
	assert_explains(p, "localhost:8080", 1, wanted);
	snprintf(wanted, sizeof(wanted), "deny   127.0.0.1:8080 (tcp)  no_name\n%s", itself);
	assert_explains(p, "127.0.0.1:8080", 1, wanted);
	snprintf(wanted, sizeof(wanted), "deny   [::1]:443 (tls)  no_name\ndeny   [::1]:80 (http)  no_name\n%s",
		 itself);
	assert_explains(p, "::1", 1, wanted);
	policy_free(p);
}

static void audit(void **state)
{
	struct policy *p = make_policy(true);

	(void)state;
	assert_explains(
		p, "evil.example:22", 0,
		"allow  evil.example:22 (tcp)  audit_mode; enforced it would be not_allowed\n"
		"       to allow it: --allow evil.example:22   or under allow: in a policy: - evil.example:22\n");
	policy_free(p);
}

static void not_understood(void **state)
{
	struct policy *p = make_policy(false);

	(void)state;
	assert_not_understood(p, "", "no host name");
	assert_not_understood(p, "a b", "only letters");
	assert_not_understood(p, "a.test:0", "a port from 1 to 65535");
	assert_not_understood(p, "a.test:65536", "a port from 1 to 65535");
	assert_not_understood(p, "a.test:", "a port from 1 to 65535");
	assert_not_understood(p, "*.example.com", "only letters");
	assert_not_understood(p, "[a.test]:443", "only letters");
	assert_not_understood(p, "[203.0.113.7]", "brackets are for IPv6");
	assert_not_understood(p, "[a.test]", "brackets are for IPv6");
	assert_not_understood(p, "https://ok.test@/", "no host name");
	assert_not_understood(p, "gopher://ok.test/", "no port that netgate knows");
	assert_not_understood(p, "http://bad.test\\.ok.test/", "only letters");
	assert_not_understood(p, "http://bad.test%2f.ok.test/", "only letters");
	assert_not_understood(p, "http://2130706433/", "as an IP address");
	assert_not_understood(p, "203.0.113.0/24", "only letters");
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(addresses),
		cmocka_unit_test(udp),	 cmocka_unit_test(the_sandbox_itself),
		cmocka_unit_test(audit), cmocka_unit_test(not_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
