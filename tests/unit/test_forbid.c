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
#include "sandbox-net/oci/wide.h"

#define ABOVE (1ull << 32) /* a bit that the kernel does not look at */

#define RULE(action, names, args) "{'action': 'SCMP_ACT_" action "', 'names': [" names "], 'args': [" args "]}"
#define ARG(op, value)		  "{'index': 0, 'op': 'SCMP_CMP_" op "', 'value': " value "}"
#define SECOND(op, value)	  "{'index': 1, 'op': 'SCMP_CMP_" op "', 'value': " value "}"
#define PROTOCOL(op, value)	  "{'index': 2, 'op': 'SCMP_CMP_" op "', 'value': " value "}"

static json_t *config;

/* `rules`: NULL for no profile at all. Quotes are single ones. */
static void profile(const char *fallback, const char *rules)
{
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
}

static void forbid(const char *fallback, const char *rules)
{
	struct err err;

	profile(fallback, rules);
	assert_int_equal(config_forbid_calls(config, &err), 0);
	assert_true(config_forbids_vsock(config));
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

static uint64_t number(const json_t *value)
{
	return json_is_string(value) ? strtoull(json_string_value(value) + strlen(WIDE_MARK), NULL, 10)
				     : (uint64_t)json_integer_value(value);
}

/* As the filter compares: all 64 bits. */
static bool holds(const json_t *arg, const uint64_t *args)
{
	const char *op = json_string_value(json_object_get(arg, "op")) + strlen("SCMP_CMP_");
	const uint64_t value = number(json_object_get(arg, "value"));
	const uint64_t second = number(json_object_get(arg, "valueTwo"));
	const uint64_t is = args[json_integer_value(json_object_get(arg, "index"))];

	return (strcmp(op, "NE") == 0 && is != value) || (strcmp(op, "EQ") == 0 && is == value) ||
	       (strcmp(op, "LT") == 0 && is < value) || (strcmp(op, "LE") == 0 && is <= value) ||
	       (strcmp(op, "GT") == 0 && is > value) || (strcmp(op, "GE") == 0 && is >= value) ||
	       (strcmp(op, "MASKED_EQ") == 0 && (is & value) == second);
}

/* As runc and crun do it: several conditions on one argument are alternatives, and so are all that the rule has. */
static bool all_hold(const json_t *conditions, const uint64_t *args)
{
	size_t i, held = 0, of_argument[6] = { 0 };
	bool alternatives = false;
	const json_t *arg;

	json_array_foreach(conditions, i, arg)
	{
		alternatives = ++of_argument[json_integer_value(json_object_get(arg, "index"))] > 1 || alternatives;
		held += holds(arg, args);
	}
	return alternatives ? held > 0 : held == json_array_size(conditions);
}

static bool matches(const json_t *rule, const char *call, const uint64_t *args)
{
	const json_t *item;
	bool named = false;
	size_t i;

	json_array_foreach(json_object_get(rule, "names"), i, item) named =
		named || strcmp(json_string_value(item), call) == 0;
	return named && all_hold(json_object_get(rule, "args"), args);
}

static bool is_permitted_with(const char *call, uint64_t first, uint64_t protocol)
{
	const json_t *seccomp = json_object_get(json_object_get(config, "linux"), "seccomp"), *rule;
	const char *fallback = json_string_value(json_object_get(seccomp, "defaultAction"));
	const uint64_t args[6] = { first, SOCK_STREAM, protocol };
	size_t i;

	json_array_foreach(json_object_get(seccomp, "syscalls"), i, rule)
	{
		assert_true(json_array_size(json_object_get(rule, "names")) > 0);
		if (matches(rule, call, args))
			return strcmp(json_string_value(json_object_get(rule, "action")), "SCMP_ACT_ALLOW") == 0;
	}
	return strcmp(fallback, "SCMP_ACT_ALLOW") == 0;
}

static bool is_permitted(const char *call, uint64_t first)
{
	return is_permitted_with(call, first, 0);
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

#define FAMILIES  48
#define PROTOCOLS 10

/* Of families below AF_VSOCK exactly what was permitted is permitted still; AF_VSOCK is not. */
static void what_was_permitted(void **state)
{
	static const char *const profiles[] = {
		/* podman's of Debian 12, for a container without CAP_AUDIT_WRITE */
		RULE("ERRNO", "'socket'", ARG("EQ", "16") ", " PROTOCOL("EQ", "9")) ", " RULE(
			"ALLOW", "'socket'", PROTOCOL("NE", "9")) ", " RULE("ALLOW", "'socket'", ARG("NE", "16")),
		/* every comparison, alone */
		RULE("ALLOW", "'socket'", ARG("NE", "16")),
		RULE("ALLOW", "'socket'", ARG("NE", "41")),
		RULE("ALLOW", "'socket'", ARG("GT", "5")),
		RULE("ALLOW", "'socket'", ARG("GE", "0")),
		RULE("ALLOW", "'socket'", ARG("LT", "41")),
		RULE("ALLOW", "'socket'", ARG("LE", "40")),
		RULE("ALLOW", "'socket'", ARG("LT", "7")),
		RULE("ALLOW", "'socket'", ARG("EQ", "40")),
		RULE("ALLOW", "'socket'", ARG("EQ", "2")),
		RULE("ALLOW", "'socket'", ARG("MASKED_EQ", "1")),
		RULE("ALLOW", "'socket'", ARG("MASKED_EQ", "2") ", " PROTOCOL("GT", "3")),
		/* numbers that don't fit into 63 bits */
		RULE("ALLOW", "'socket'", ARG("LT", "'" WIDE_MARK "18446744073709551615'")),
		RULE("ALLOW", "'socket'", ARG("NE", "'" WIDE_MARK "18446744073709551615'")),
		RULE("ALLOW", "'socket'", ARG("EQ", "'" WIDE_MARK "9223372036854775848'")),
		RULE("ALLOW", "'socket'", ARG("LT", "-1")),
		/* alternatives */
		RULE("ALLOW", "'socket'", PROTOCOL("EQ", "6") ", " PROTOCOL("EQ", "9")),
		RULE("ALLOW", "'socket'", ARG("LE", "1") ", " ARG("GE", "30")),
		RULE("ALLOW", "'socket'", ARG("EQ", "2") ", " PROTOCOL("EQ", "6") ", " PROTOCOL("EQ", "9")),
		/* of what is refused by its number, nothing is permitted by it */
		RULE("ERRNO", "'socket'", ARG("EQ", "17")) ", " RULE("ALLOW", "'socket'", ARG("NE", "16")),
	};

	for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++) {
		bool before[FAMILIES][PROTOCOLS];
		char rules[1024];

		snprintf(rules, sizeof(rules), "[%s]", profiles[i]);
		profile("SCMP_ACT_ERRNO", rules);
		for (unsigned f = 0; f < FAMILIES; f++)
			for (unsigned p = 0; p < PROTOCOLS; p++)
				before[f][p] = is_permitted_with("socket", f, p);
		done(state);
		forbid("SCMP_ACT_ERRNO", rules);
		for (unsigned f = 0; f < FAMILIES; f++) {
			for (unsigned p = 0; p < PROTOCOLS; p++) {
				const bool now = is_permitted_with("socket", f, p);

				if (now != before[f][p] && (now || f < AF_VSOCK))
					fail_msg("profile %zu: family %u, protocol %u: %d", i, f, p, now);
				assert_false(f == AF_VSOCK && now);
				assert_false(is_permitted_with("socket", AF_VSOCK | (uint64_t)(f + 1) << 32, p));
				assert_false(is_permitted_with("socket", AF_VSOCK | 1ull << 63, p));
			}
		}
		done(state);
	}
}

/* Somebody else's decision stays somebody else's: what goes to a supervisor is not permitted without one. */
static void what_is_asked(void **state)
{
	static const char *const fallbacks[] = { "SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		forbid(fallbacks[i], "[" RULE("NOTIFY", "'socket'", "") ", " RULE("ALLOW", "'read'", "") "]");
		check(false);
		assert_false(is_permitted("socket", AF_VSOCK + 1));
		done(state);
	}
}

/* libseccomp takes no rule for i386's socketcall(2) against another, which it makes of those for socket(2): the refusal is first. */
static void socketcall_is_first(void **state)
{
	static const char *const fallbacks[] = { "SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW" };

	for (size_t i = 0; i < 2; i++) {
		const json_t *rule;

		forbid(fallbacks[i], "[" RULE("ERRNO", "'socket'", ARG("EQ", "16") ", " PROTOCOL("EQ", "9")) ", " RULE(
					     "ALLOW", "'socket'", ARG("NE", "16")) "]");
		rule = json_array_get(
			json_object_get(json_object_get(json_object_get(config, "linux"), "seccomp"), "syscalls"), 0);
		assert_true(matches(rule, "socketcall", (uint64_t[6]){ 0 }));
		assert_string_equal(json_string_value(json_object_get(rule, "action")), "SCMP_ACT_ERRNO");
		done(state);
	}
}

static void forbids_vsock(void **state)
{
	static const struct {
		const char *fallback, *rules;
		bool forbids;
	} cases[] = {
		{ NULL, NULL, false },
		{ "SCMP_ACT_ERRNO", "[" RULE("ALLOW", "'socket'", "") ", " RULE("ERRNO", "'socketcall'", "") "]",
		  false },
		{ "SCMP_ACT_ERRNO", "[" RULE("ALLOW", "'socket'", ARG("EQ", "2")) "]", false },
		{ "SCMP_ACT_ERRNO",
		  "[" RULE("ALLOW", "'socket'", ARG("EQ", "2")) ", " RULE("ERRNO", "'socketcall'", "") "]", true },
		{ "SCMP_ACT_ERRNO",
		  "[" RULE("ALLOW", "'socket'", ARG("NE", "40")) ", " RULE("ERRNO", "'socketcall'", "") "]", false },
		{ "SCMP_ACT_ERRNO",
		  "[" RULE("ALLOW", "'socket'",
			   ARG("LT", "40") ", " PROTOCOL("EQ", "1")) ", " RULE("ERRNO", "'socketcall'", "") "]",
		  true },
		{ "SCMP_ACT_ERRNO",
		  "[" RULE("ALLOW", "'socket'",
			   ARG("LT", "40") ", " PROTOCOL("EQ", "1") ", " PROTOCOL(
				   "EQ", "2")) ", " RULE("ERRNO", "'socketcall'", "") "]",
		  false },
		{ "SCMP_ACT_ALLOW", "[" RULE("ERRNO", "'socketcall'", "") "]", false },
		{ "SCMP_ACT_ALLOW", "[" RULE("ERRNO", "'socketcall', 'socket'", "") "]", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		profile(cases[i].fallback, cases[i].rules);
		assert_int_equal(config_forbids_vsock(config), cases[i].forbids);
		done(state);
	}
}

/* crun's annotations by which what it runs is not what the profile says. */
static void annotations(void **state)
{
	static const char *const overriding[] = { "run.oci.seccomp_bpf_data", "run.oci.seccomp.receiver",
						  "run.oci.seccomp.plugins", "run.oci.handler" };
	struct err err;

	for (size_t i = 0; i < sizeof(overriding) / sizeof(*overriding); i++) {
		json_t *annotations = json_pack("{s:s, s:s}", overriding[i], "x", "run.oci.keep_original_groups", "1");

		forbid("SCMP_ACT_ALLOW", "[]");
		assert_int_equal(json_object_set_new(config, "annotations", annotations), 0);
		assert_false(config_forbids_vsock(config));
		assert_int_equal(config_forbid_calls(config, &err), 0);
		assert_true(config_forbids_vsock(config));
		assert_null(json_object_get(annotations, overriding[i]));
		assert_int_equal(json_object_size(annotations), 1);
		done(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(none, done),
		cmocka_unit_test_teardown(permits_by_name, done),
		cmocka_unit_test_teardown(permits_but_vsock, done),
		cmocka_unit_test_teardown(permits_some, done),
		cmocka_unit_test_teardown(forbids_by_name, done),
		cmocka_unit_test_teardown(what_was_permitted, done),
		cmocka_unit_test_teardown(what_is_asked, done),
		cmocka_unit_test_teardown(socketcall_is_first, done),
		cmocka_unit_test_teardown(forbids_vsock, done),
		cmocka_unit_test_teardown(annotations, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
