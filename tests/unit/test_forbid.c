/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What seccomp profiles permit when the calls that lead past a gate are taken out.
 * links: sandbox-net/oci/forbid.c base/err.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/oci/config.h"

#define ABOVE (1ull << 32) /* a bit that the kernel does not look at */

#define RULE(action, names, args) "{'action': 'SCMP_ACT_" action "', 'names': [" names "], 'args': [" args "]}"
#define ARG(op, value)		  "{'index': 0, 'op': 'SCMP_CMP_" op "', 'value': " value "}"
#define SECOND(op, value)	  "{'index': 1, 'op': 'SCMP_CMP_" op "', 'value': " value "}"

static json_t *config;

/* `rules`: NULL for no profile at all. Quotes are single ones. */
static void forbid(const char *fallback, const char *rules)
{
	struct err err;
	json_error_t error;
	char *text;

	config = json_pack("{s:{}}", "linux");
	if (rules) {
		text = strdup(rules);
		assert_non_null(text);
		for (char *c = text; (c = strchr(c, '\'')); c++)
			*c = '"';
		assert_int_equal(json_object_set_new(json_object_get(config, "linux"), "seccomp",
						     json_pack("{s:s, s:o}", "defaultAction", fallback, "syscalls",
							       json_loads(text, 0, &error))),
				 0);
		free(text);
	}
	assert_int_equal(config_forbid_calls(config, &err), 0);
	/* podman's hook, and then the runtime. */
	assert_int_equal(config_forbid_calls(config, &err), 0);
}

static int done(void **state)
{
	(void)state;
	json_decref(config);
	config = NULL;
	return 0;
}

/* As the filter compares: all 64 bits. */
static bool holds(const json_t *arg, uint64_t first)
{
	const char *op = json_string_value(json_object_get(arg, "op")) + strlen("SCMP_CMP_");
	const uint64_t value = (uint64_t)json_integer_value(json_object_get(arg, "value"));
	const uint64_t second = (uint64_t)json_integer_value(json_object_get(arg, "valueTwo"));
	const uint64_t is = json_integer_value(json_object_get(arg, "index")) == 0 ? first : SOCK_STREAM;

	return (strcmp(op, "NE") == 0 && is != value) || (strcmp(op, "EQ") == 0 && is == value) ||
	       (strcmp(op, "LT") == 0 && is < value) || (strcmp(op, "LE") == 0 && is <= value) ||
	       (strcmp(op, "GT") == 0 && is > value) || (strcmp(op, "GE") == 0 && is >= value) ||
	       (strcmp(op, "MASKED_EQ") == 0 && (is & value) == second);
}

static bool matches(const json_t *rule, const char *call, uint64_t first)
{
	const json_t *item;
	bool named = false;
	size_t i;

	json_array_foreach(json_object_get(rule, "names"), i, item) named =
		named || strcmp(json_string_value(item), call) == 0;
	json_array_foreach(json_object_get(rule, "args"), i, item) named = named && holds(item, first);
	return named;
}

static bool is_permitted(const char *call, uint64_t first)
{
	const json_t *profile = json_object_get(json_object_get(config, "linux"), "seccomp"), *rule;
	const char *fallback = json_string_value(json_object_get(profile, "defaultAction"));
	size_t i;

	json_array_foreach(json_object_get(profile, "syscalls"), i, rule)
	{
		assert_true(json_array_size(json_object_get(rule, "names")) > 0);
		if (matches(rule, call, first))
			return strcmp(json_string_value(json_object_get(rule, "action")), "SCMP_ACT_ALLOW") == 0;
	}
	return strcmp(fallback, "SCMP_ACT_ALLOW") == 0;
}

static void check(bool sockets)
{
	static const char *const others[] = { "io_uring_setup", "io_uring_enter", "add_key",
					      "request_key",	"keyctl",	  "socketcall" };

	assert_int_equal(is_permitted("socket", AF_INET), sockets);
	assert_int_equal(is_permitted("socket", AF_NETLINK), sockets);
	assert_false(is_permitted("socket", AF_VSOCK));
	assert_false(is_permitted("socket", AF_VSOCK | ABOVE));
	assert_false(is_permitted("socket", AF_VSOCK | 1ull << 63));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(is_permitted(others[i], 0));
	assert_true(is_permitted("read", 0));
}

static void none(void **state)
{
	(void)state;
	forbid(NULL, NULL);
	check(true);
}

static void permits_by_name(void **state)
{
	(void)state;
	forbid("SCMP_ACT_ERRNO",
	       "[" RULE("ALLOW", "'read', 'socket', 'keyctl', 'socketcall', 'io_uring_enter'", "") "]");
	check(true);
}

/* As docker's newer profiles are. */
static void permits_but_vsock(void **state)
{
	(void)state;
	forbid("SCMP_ACT_ERRNO", "[" RULE("ALLOW", "'read'", "") ", " RULE("ALLOW", "'socket'", ARG("NE", "40")) "]");
	check(true);
}

/* What held for some calls holds for no others afterwards. */
static void permits_some(void **state)
{
	(void)state;
	forbid("SCMP_ACT_ERRNO",
	       "[" RULE("ALLOW", "'read'", "") ", " RULE("ALLOW", "'socket'", SECOND("EQ", "7")) ", " RULE(
		       "ALLOW", "'socket'", ARG("GT", "40")) "]");
	check(false);
	assert_false(is_permitted("socket", AF_VSOCK + 1));
}

static void forbids_by_name(void **state)
{
	static const char *const conditions[] = { "EQ", "GE", "LE" };

	for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions); i++) {
		char rules[256];

		snprintf(rules, sizeof(rules),
			 "[" RULE("ERRNO", "'keyctl'", "") ", " RULE("ERRNO", "'socket'", ARG("%s", "%d")) "]",
			 conditions[i], strcmp(conditions[i], "LE") == 0 ? AF_UNSPEC : AF_VSOCK);
		forbid("SCMP_ACT_ALLOW", rules);
		check(true);
		done(state);
	}
	forbid("SCMP_ACT_ALLOW", "[" RULE("ERRNO", "'socket'", "") "]");
	check(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(none, done),
		cmocka_unit_test_teardown(permits_by_name, done),
		cmocka_unit_test_teardown(permits_but_vsock, done),
		cmocka_unit_test_teardown(permits_some, done),
		cmocka_unit_test_teardown(forbids_by_name, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
