/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies in YAML: what loads, and for everything else the exact place and a
 * message that says what to write. A file that fails leaves the builder as it was.
 *
 * links: rules/entry.c rules/pattern.c rules/store.c rules/builder.c rules/limits.c rules/names.c rules/arrange.c rules/sort.c rules/policy.c rules/special.c
 * links: rules/rule.c rules/print.c rules/match.c rules/reason.c rules/policy_yaml.c rules/policy_text.c
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

#include "base/err.h"
#include "rules/policy.h"
#include "rules/policy_text.h"

static int load(struct policy_builder *b, const char *text, size_t len, struct err *err)
{
	FILE *f = len ? fmemopen((void *)text, len, "r") : fopen("/dev/null", "r");
	int rc;

	assert_non_null(f);
	rc = policy_builder_yaml(b, f, "p.yaml", err);
	fclose(f);
	return rc;
}

/* The canonical text of what the YAML says. */
static void assert_loads(const char *text, const char *canonical)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	char *printed = NULL;
	struct policy *p;
	size_t len;
	FILE *out;

	if (load(b, text, strlen(text), &err))
		fail_msg("%s\n%s", text, err.text);
	p = policy_build(b, &err);
	assert_non_null(p);
	out = open_memstream(&printed, &len);
	assert_int_equal(policy_print(p, out), 0);
	fclose(out);
	assert_string_equal(printed, canonical);
	free(printed);
	policy_free(p);
	policy_builder_free(b);
}

static void assert_refused_bytes(const char *text, size_t len, const char *place, const char *says)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	struct policy *p;

	if (load(b, text, len, &err) == 0)
		fail_msg("accepted: %s", text);
	if (strncmp(err.text, place, strlen(place)) != 0 || err.text[strlen(place)] != ':')
		fail_msg("not at %s: %s", place, err.text);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" is not in: %s", says, err.text);
	/* Nothing of it counts, not even the mode. */
	p = policy_build(b, &err);
	assert_int_equal(policy_size(p), 0);
	assert_false(policy_is_audit(p));
	policy_free(p);
	policy_builder_free(b);
}

static void assert_refused(const char *text, const char *place, const char *says)
{
	assert_refused_bytes(text, strlen(text), place, says);
}

#define NOTHING "version: 1\nmode: enforce\nallow: []\ndeny: []\n"

static void empty_files(void **state)
{
	(void)state;
	assert_loads("", NOTHING);
	assert_loads("\n\n", NOTHING);
	assert_loads("# nothing yet\n", NOTHING);
	assert_loads("---\n", NOTHING);
	assert_loads("\xef\xbb\xbfversion: 1\n", NOTHING);
	assert_loads("version: 1\n", NOTHING);
	assert_loads("version: 1\r\nmode: enforce\r\n", NOTHING);
	assert_loads("version: 1\nallow:\ndeny:\n", NOTHING);
	assert_loads("version: 1\nallow: []\ndeny: []\n", NOTHING);
}

static void a_whole_policy(void **state)
{
	(void)state;
	assert_loads("# of the nightly build\n"
		     "version: 1\n"
		     "mode: audit\n"
		     "allow:\n"
		     "  - api.example.com               # TLS on 443, HTTP on 80\n"
		     "  - \"*.pythonhosted.org\"\n"
		     "  - '.example.net'\n"
		     "  - github.com:22\n"
		     "  - b\303\274cher.example:443/tcp\n"
		     "  - host: db.corp.example\n"
		     "    ports: [5432, 443/tcp]\n"
		     "    addresses: [10.2.0.0/16, 10.9.9.9]\n"
		     "  - cidr: 203.0.113.0/24\n"
		     "    ports:\n"
		     "      - 8443\n"
		     "  - \"[2001:db8::]/32:443\"\n"
		     "deny:\n"
		     "  - telemetry.example.com\n"
		     "  - {cidr: \"fd00::/8\"}\n"
		     "  - {host: x.example.com, ports: [25]}\n",
		     "version: 1\n"
		     "mode: audit\n"
		     "allow:\n"
		     "  - api.example.com\n"
		     "  - host: db.corp.example\n"
		     "    ports: [443/tcp, 5432]\n"
		     "    addresses: [10.2.0.0/16, 10.9.9.9/32]\n"
		     "  - .example.net\n"
		     "  - github.com:22\n"
		     "  - \"*.pythonhosted.org\"\n"
		     "  - xn--bcher-kva.example:443/tcp\n"
		     "  - 203.0.113.0/24:8443\n"
		     "  - \"[2001:db8::]/32:443\"\n"
		     "deny:\n"
		     "  - telemetry.example.com\n"
		     "  - x.example.com:25\n"
		     "  - \"fd00::/8\"\n");
	assert_loads("{version: 1, allow: [a.test, {host: b.test, ports: [1]}]}",
		     "version: 1\nmode: enforce\nallow:\n  - a.test\n  - b.test:1\ndeny: []\n");
	assert_loads("allow: [a.test]\nversion: \"1\"\n", "version: 1\nmode: enforce\nallow:\n  - a.test\ndeny: []\n");
}

static void refused_shapes(void **state)
{
	(void)state;
	assert_refused("allow: [a.test]\n", "p.yaml:1:1", "begin the policy with version: 1");
	assert_refused("version: 2\n", "p.yaml:1:10", "\"2\": this netgate knows only version 1; write version: 1");
	assert_refused("version: 1.0\n", "p.yaml:1:10", "write version: 1");
	assert_refused("version: [1]\n", "p.yaml:1:10", "write version: 1");
	assert_refused("version: 1\nmode: on\n", "p.yaml:2:7", "\"on\": not a mode; write mode: enforce");
	assert_refused("version: 1\nmode: audit\nlimit: {}\n", "p.yaml:3:1",
		       "\"limit\": unknown key; known: version, mode, allow, deny, limits");
	assert_refused("version: 1\nallow: [a.test]\nallow: [b.test]\n", "p.yaml:3:1", "for the second time");
	assert_refused("version: 1\nversion: 1\n", "p.yaml:2:1", "for the second time");
	assert_refused("version: 1\nallow: a.test\n", "p.yaml:2:8", "a list belongs here");
	assert_refused("version: 1\nallow: {host: a.test}\n", "p.yaml:2:8", "a list belongs here");
	assert_refused("version: 1\nallow: ~\n", "p.yaml:2:8", "a list belongs here");
	assert_refused("version: 1\nallow: \"\"\n", "p.yaml:2:8", "a list belongs here");
	assert_refused("version: 1\nallow:\n  - - a.test\n", "p.yaml:3:5", "a list inside the list");
	assert_refused("version: 1\nallow:\n  - [a.test]\n", "p.yaml:3:5", "a list inside the list");
	assert_refused("version: 1\nallow:\n  -\n", "p.yaml:3:4", "an empty entry");
	assert_refused("- a.test\n", "p.yaml:1:1", "a policy begins with");
	assert_refused("a.test\n", "p.yaml:1:1", "a policy begins with");
	assert_refused("{[a]: b}\n", "p.yaml:1:2", "a key belongs here");
	assert_refused("version: 1\n---\nversion: 1\n", "p.yaml:2:1", "one policy a file");
	assert_refused("version: 1\n...\n---\n", "p.yaml:3:1", "one policy a file");
	assert_refused("version: 1\nallow: [a.test\n", "p.yaml:3:1", "not YAML");
	assert_refused("version: 1\n\tallow: []\n", "p.yaml:2:1", "not YAML");
}

static void limits(void **state)
{
	(void)state;
	assert_loads("version: 1\nlimits:\n", NOTHING);
	assert_loads("version: 1\nlimits: {}\n", NOTHING);
	assert_loads("version: 1\nlimits: {duration: 120m, idle: 3600s, names: 200, rate: 50/s, connections: 256, "
		     "upload: 20480KiB}\n",
		     NOTHING "limits:\n  upload: 20MiB\n  connections: 256\n  rate: 50/s\n  names: 200\n  idle: 1h\n"
			     "  duration: 2h\n");
	assert_refused("version: 1\nlimits: 20MiB\n", "p.yaml:2:9", "write upload: 20MiB");
	assert_refused("version: 1\nlimits: [20MiB]\n", "p.yaml:2:9", "write upload: 20MiB");
	assert_refused("version: 1\nlimits:\n  uploads: 1MiB\n", "p.yaml:3:3",
		       "\"uploads\": unknown key; known: upload, connections, rate, names, idle, duration, memory, "
		       "pids, cpus");
	assert_refused("version: 1\nlimits:\n  upload: 20\n", "p.yaml:3:11", "\"20\": not a size; write bytes");
	assert_refused("version: 1\nlimits:\n  upload: [20MiB]\n", "p.yaml:3:11", "write one limit");
	assert_refused("version: 1\nlimits:\n  names: 0\n", "p.yaml:3:10", "\"0\": not a number of names");
	assert_refused("version: 1\nlimits:\n  names: 1\n  names: 2\n", "p.yaml:4:3", "for the second time");
	assert_refused("version: 1\nlimits:\n  [names]: 1\n", "p.yaml:3:3", "a key belongs here");
}

/* Of several values the smallest counts, whether a flag or a file says it; of a file that fails, none. */
static void limits_of_several(void **state)
{
	static const char wide[] = "version: 1\nlimits: {upload: 2MiB, names: 7}\n";
	static const char narrow[] = "version: 1\nlimits: {upload: 1MiB, rate: 9/s}\n";
	static const char bad[] = "version: 1\nlimits: {upload: 1B, names: 1, idle: 1s}\nnonsense: 1\n";
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	const struct limits *l;
	struct policy *p;

	(void)state;
	assert_int_equal(policy_builder_limit(b, LIMIT_NAMES, "8", &err), 0);
	assert_int_equal(policy_builder_limit(b, LIMIT_RATE, "5/s", &err), 0);
	assert_int_equal(policy_builder_limit(b, LIMIT_IDLE, "never", &err), -1);
	assert_int_equal(load(b, wide, strlen(wide), &err), 0);
	assert_int_equal(load(b, narrow, strlen(narrow), &err), 0);
	assert_int_equal(load(b, bad, strlen(bad), &err), -1);
	p = policy_build(b, &err);
	l = policy_limits(p);
	assert_int_equal(l->max[LIMIT_UPLOAD], 1 << 20);
	assert_int_equal(l->max[LIMIT_NAMES], 7);
	assert_int_equal(l->max[LIMIT_RATE], 5);
	assert_int_equal(l->max[LIMIT_IDLE], 0);
	assert_int_equal(l->max[LIMIT_CONNECTIONS], 0);
	policy_free(p);
	policy_builder_free(b);
}

static void refused_yaml_features(void **state)
{
	(void)state;
	assert_refused("version: 1\nallow: &all [a.test]\ndeny: *all\n", "p.yaml:2:8", "no YAML anchors");
	assert_refused("version: 1\nallow: [&a a.test]\n", "p.yaml:2:9", "no YAML anchors");
	assert_refused("&p {version: 1}\n", "p.yaml:1:1", "no YAML anchors");
	assert_refused("%YAML 1.1\n%YAML 1.1\n---\n", "p.yaml:2:1", "not YAML (found duplicate %YAML directive);");
	assert_refused("version: !!int 1\n", "p.yaml:1:10", "anchors and tags");
	assert_refused("version: 1\nallow: [! a.test]\n", "p.yaml:2:9", "anchors and tags");
	assert_refused("version: 1\nallow: !!seq []\n", "p.yaml:2:8", "anchors and tags");
	assert_refused("version: 1\nallow:\n  - !<x> {host: a.test}\n", "p.yaml:3:5", "anchors and tags");
	assert_refused("version: 1\nallow:\n  - <<: {host: a.test}\n", "p.yaml:3:5", "\"<<\": unknown key");
	/* What a person forgets most often. */
	assert_refused("version: 1\nallow:\n  - *.example.com\n", "p.yaml:3:5", "write wildcards in quotes");
	assert_refused("version: 1\nallow:\n  - *com\n", "p.yaml:3:5", "write wildcards in quotes");
	assert_refused("version: 1\nallow:\n  - [2001:db8::]/32:443\n", "p.yaml:3:15",
		       "quote what has special characters (such as an IPv6 address)");
	assert_refused("version: 1\nallow:\n  - [2001:db8]/32:443\n", "p.yaml:3:5", "in quotes if it begins with [");
	assert_refused("version: 1\nallow:\n  - github.com: 22\n", "p.yaml:3:5", "HOST:PORT has no space in it");
}

static void refused_rules(void **state)
{
	(void)state;
	assert_refused("version: 1\nallow:\n  - {}\n", "p.yaml:3:5", "either a host or a cidr");
	assert_refused("version: 1\nallow:\n  - ports: [1]\n", "p.yaml:3:5", "either a host or a cidr");
	assert_refused("version: 1\nallow:\n  - {host: a.test, cidr: 8.0.0.0/8, ports: [1]}\n", "p.yaml:3:5",
		       "either a host or a cidr");
	assert_refused("version: 1\nallow:\n  - {cidr: 8.0.0.0/8}\n", "p.yaml:3:5", "add ports: [443]");
	assert_refused("version: 1\nallow:\n  - {cidr: 8.0.0.0/8, ports: [1], addresses: [10.0.0.0/8]}\n", "p.yaml:3:5",
		       "addresses belong to a host");
	assert_refused("version: 1\nallow:\n  - {host: a.test, host: b.test}\n", "p.yaml:3:20", "for the second time");
	assert_refused("version: 1\nallow:\n  - {host: a.test, port: 22}\n", "p.yaml:3:20", "\"port\": unknown key");
	assert_refused("version: 1\nallow:\n  - {host: a.test, upload: 1MiB}\n", "p.yaml:3:20",
		       "\"upload\": unknown key");
	assert_refused("version: 1\nallow:\n  - {host: [a.test]}\n", "p.yaml:3:12", "write one host");
	assert_refused("version: 1\nallow:\n  - {host: 203.0.113.7}\n", "p.yaml:3:12", "cidr: 203.0.113.7/32");
	assert_refused("version: 1\nallow:\n  - {host: \"::1\"}\n", "p.yaml:3:12", "cidr: \"::1/128\"");
	assert_refused("version: 1\nallow:\n  - {host: \"[::1]\"}\n", "p.yaml:3:12", "cidr: \"::1/128\"");
	assert_refused("version: 1\nallow:\n  - {host: \"[a.test\"}\n", "p.yaml:3:12", "only letters");
	assert_refused("version: 1\nallow:\n  - {host: \"a.test:22\"}\n", "p.yaml:3:12",
		       "\"a.test:22\": host: takes no port; add ports: [22]");
	assert_refused("version: 1\nallow:\n  - {host: \"*.com\"}\n", "p.yaml:3:12", "write \"*.com!\"");
	assert_refused("version: 1\nallow:\n  - {host: a.test, ports: 22}\n", "p.yaml:3:27",
		       "write ports: [443, 5432]");
	assert_refused("version: 1\nallow:\n  - {host: a.test, ports: []}\n", "p.yaml:3:28", "or leave the key out");
	assert_refused("version: 1\nallow:\n  - {host: a.test, ports: [[1]]}\n", "p.yaml:3:28", "a single value");
	assert_refused("version: 1\nallow:\n  - {host: a.test, ports: [1, 0]}\n", "p.yaml:3:31", "\"0\": not a port");
	assert_refused("version: 1\nallow:\n  - {host: a.test, ports: [443/udp]}\n", "p.yaml:3:28", "not a port");
	assert_refused("version: 1\nallow:\n  - {host: a.test, ports: [1-9]}\n", "p.yaml:3:28", "not a port");
	assert_refused("version: 1\nallow:\n  - {host: a.test, addresses: [10.0.0.1/8]}\n", "p.yaml:3:32",
		       "write 10.0.0.0/8");
	assert_refused("version: 1\nallow:\n  - {host: a.test, addresses: [b.test]}\n", "p.yaml:3:32",
		       "not an address prefix");
	assert_refused("version: 1\nallow:\n  - {cidr: a.test, ports: [1]}\n", "p.yaml:3:12", "not an address prefix");
	assert_refused("version: 1\nallow:\n  - {cidr: a.test/8, ports: [1]}\n", "p.yaml:3:12",
		       "not an address prefix");
	assert_refused("version: 1\ndeny:\n  - {host: a.test, addresses: [10.0.0.0/8]}\n", "p.yaml:3:20",
		       "a deny has no addresses");
	assert_refused("version: 1\ndeny:\n  - {host: a.test, ports: [443/tcp]}\n", "p.yaml:3:28", "write 443");
}

/* Each entry that is not one stops the load and is named. */
static void refused_entries(void **state)
{
	(void)state;
	assert_refused("version: 1\nmode: audit\nallow:\n  - ok.test\n  - \"a b\"\n", "p.yaml:5:5", "\"a\\x20b\"");
	assert_refused("version: 1\nallow:\n  - ok.test\n  - \"a\\nb\"\n", "p.yaml:4:5", "\"a\\x0ab\"");
	assert_refused("version: 1\nallow:\n  - \"a\\0.test\"\n", "p.yaml:3:5", "\"a\\x00.test\"");
	assert_refused("version: 1\nallow:\n  - ok.test#x\n", "p.yaml:3:5", "\"ok.test#x\"");
	assert_refused("version: 1\nallow:\n  - 'a\"b'\n", "p.yaml:3:5", "\"a\\x22b\"");
	assert_refused("version: 1\nallow:\n  - \"*.\"\n", "p.yaml:3:5", "\"*.\"");
	assert_refused("version: 1\nallow:\n  - \"*.com\"\n", "p.yaml:3:5", "\"*.com\"");
	assert_refused("version: 1\nallow:\n  - a*b\n", "p.yaml:3:5", "\"a*b\"");
	assert_refused("version: 1\nallow:\n  - \"(a|b).test\"\n", "p.yaml:3:5", "\"(a|b).test\"");
	assert_refused("version: 1\nallow:\n  - ok.test\n    bad.test\n", "p.yaml:3:5", "\"ok.test\\x20bad.test\"");
	assert_refused("version: 1\nallow:\n  - |\n    ok.test\n    bad.test\n", "p.yaml:3:5",
		       "\"ok.test\\x0abad.test\\x0a\"");
	assert_refused("version: 1\nallow:\n  - true.\xc3\xa4\xe2\x80\xae.test\n", "p.yaml:3:5", "IDNA refuses");
}

static void refused_bytes(void **state)
{
	static const char zero[] = "version: 1\nallow:\n  - a\0.test\n";
	static const char utf16[] = "\xff\xfev\0e\0r\0";

	(void)state;
	assert_refused_bytes(zero, sizeof(zero) - 1, "p.yaml:3:6", "a byte that is not text");
	assert_refused_bytes(utf16, sizeof(utf16) - 1, "p.yaml:1:1", "UTF-8");
	assert_refused("version: 1\n# caf\xe9\n", "p.yaml:2:6", "write the policy in UTF-8");
	assert_refused("version: 1\n# \xc3\xa9 \xc0\xaf\n", "p.yaml:2:5", "UTF-8");
	assert_refused("version: 1\n# \xed\xa0\x80\n", "p.yaml:2:3", "UTF-8");
	assert_refused("version: 1\n# \xf4\x90\x80\x80\n", "p.yaml:2:3", "UTF-8");
	assert_refused("version: 1\n# \xe0\x80\xaf\n", "p.yaml:2:3", "UTF-8");
	assert_refused("version: 1\n# \x1b[2J\n", "p.yaml:2:3", "control characters");
	assert_refused("version: 1\n# \x7f\n", "p.yaml:2:3", "control characters");
	assert_refused("version: 1\n# \xe2\x82", "p.yaml:2:3", "ends inside a character");
	assert_loads("version: 1\n# \xe2\x82\xac \xf0\x9f\x98\x80\n", NOTHING);
	/* Characters that are text, but not YAML. */
	assert_refused("version: 1\n# \xc2\x80\n", "p.yaml:1:1",
		       "control characters are not allowed; write plain text");
}

/* "[", `n` times the item between commas, "]". To be freed. */
static char *list_of(const char *before, const char *item, size_t n, const char *after)
{
	size_t size = strlen(before) + n * (strlen(item) + 1) + strlen(after) + 3, len;
	char *text = malloc(size);

	assert_non_null(text);
	len = (size_t)snprintf(text, size, "%s[", before);
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", i ? "," : "", item);
	snprintf(text + len, size - len, "]%s", after);
	return text;
}

static void too_much_in_one_rule(void **state)
{
	static const char host[] = "version: 1\nallow:\n- host: a.test\n";
	static const struct {
		const char *key, *item, *says;
		size_t most;
	} lists[] = {
		{ "  ports: ", "7", "more than 65535 ports in one rule", 65535 },
		{ "  addresses: ", "10.0.0.0/8", "more than 1024 addresses in one rule; use shorter prefixes", 1024 },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct policy_builder *b = policy_builder_new();
		struct err err = { "" };
		char before[128], *text;

		snprintf(before, sizeof(before), "%s%s", host, lists[i].key);
		text = list_of(before, lists[i].item, lists[i].most, "\n");
		assert_int_equal(load(b, text, strlen(text), &err), 0);
		free(text);
		policy_builder_free(b);
		text = list_of(before, lists[i].item, lists[i].most + 1, "\n");
		assert_refused(text, "p.yaml:4", lists[i].says);
		free(text);
	}
}

static void deep_nesting(void **state)
{
	char text[4096] = "version: 1\nallow: ";

	(void)state;
	memset(text + strlen(text), '[', 4000);
	assert_refused(text, "p.yaml:2:9", "a list inside the list");
}

/* An endless file, of which just enough is read. */
static ssize_t endless(void *cookie, char *buf, size_t len)
{
	size_t *n = cookie;

	memset(buf, '\n', len);
	*n += len;
	return (ssize_t)len;
}

static ssize_t failing(void *cookie, char *buf, size_t len)
{
	(void)cookie, (void)buf, (void)len;
	errno = EISDIR;
	return -1;
}

static void files_that_cannot_be_read(void **state)
{
	struct policy_builder *b = policy_builder_new();
	struct err err = { "" };
	size_t n = 0;
	FILE *f = fopencookie(&n, "r", (cookie_io_functions_t){ .read = endless });

	(void)state;
	assert_int_equal(policy_builder_yaml(b, f, "big.yaml", &err), -1);
	assert_non_null(strstr(err.text, "larger than 64 MB"));
	assert_in_range(n, POLICY_TEXT_MAX, POLICY_TEXT_MAX + (1 << 20));
	fclose(f);
	f = fopencookie(NULL, "r", (cookie_io_functions_t){ .read = failing });
	assert_int_equal(policy_builder_yaml(b, f, "folder", &err), -1);
	assert_string_equal(err.text, "folder: Is a directory");
	fclose(f);
	policy_builder_free(b);
}

/* A bad file after a good one takes nothing of the good one away. */
static void a_bad_file_changes_nothing(void **state)
{
	static const char bad[] =
		"version: 1\nmode: audit\nallow:\n  - {host: b.test, ports: [1, 2], addresses: [10.0.0.0/8]}\n"
		"  - c.test:9\n  - 8.0.0.0/8:1\ndeny: [a.test]\nlimits: {names: 1}\nnonsense: {}\n";
	struct policy_builder *b = policy_builder_new();
	char one[POLICY_DIGEST_STRLEN], two[POLICY_DIGEST_STRLEN];
	struct err err = { "" };
	struct policy *p;

	(void)state;
	assert_int_equal(policy_builder_allow(b, "a.test", &err), 0);
	assert_int_equal(policy_builder_allow(b, "z.test:9", &err), 0);
	p = policy_build(b, &err);
	policy_digest(p, one);
	policy_free(p);
	assert_int_equal(policy_builder_allow(b, "a.test", &err), 0);
	assert_int_equal(load(b, bad, strlen(bad), &err), -1);
	assert_int_equal(policy_builder_allow(b, "z.test:9", &err), 0);
	p = policy_build(b, &err);
	assert_string_equal(policy_digest(p, two), one);
	assert_int_equal(policy_size(p), 2);
	policy_free(p);
	policy_builder_free(b);
}

/* Every beginning of a policy either loads or says where it stops making sense. */
static void truncations(void **state)
{
	static const char text[] = "version: 1\nmode: audit\nallow:\n  - \"*.b\303\274.example:443/tcp\"\n"
				   "  - {host: a.test, ports: [1, 443/tcp], addresses: [10.0.0.0/8, \"fd00::/8\"]}\n"
				   "deny: [{cidr: 10.0.0.0/8}]\n";

	(void)state;
	for (size_t len = 1; len < sizeof(text); len++) {
		struct policy_builder *b = policy_builder_new();
		struct err err = { "" };

		if (load(b, text, len, &err))
			assert_memory_equal(err.text, "p.yaml:", 7);
		policy_builder_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_files),
		cmocka_unit_test(a_whole_policy),
		cmocka_unit_test(refused_shapes),
		cmocka_unit_test(limits),
		cmocka_unit_test(limits_of_several),
		cmocka_unit_test(refused_yaml_features),
		cmocka_unit_test(refused_rules),
		cmocka_unit_test(refused_entries),
		cmocka_unit_test(refused_bytes),
		cmocka_unit_test(too_much_in_one_rule),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(files_that_cannot_be_read),
		cmocka_unit_test(a_bad_file_changes_nothing),
		cmocka_unit_test(truncations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
