/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that no container behind a gate needs. A profile that permits by
 * name loses those names; one that forbids by name gets them; without a profile there is one of these alone. Never are
 * there two rules that say different things about one call, which libseccomp refuses.
 */
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sandbox-net/oci/config.h"

#define EPERM_NUMBER 1

static const char *const forbidden[] = { "io_uring_setup", "io_uring_enter", "io_uring_register",
					 "add_key",	   "request_key",    "keyctl" };

static bool is_forbidden(const char *name)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
		if (strcmp(name, forbidden[i]) == 0)
			return true;
	return false;
}

static bool is_permitting(const char *action)
{
	return action && (strcmp(action, "SCMP_ACT_ALLOW") == 0 || strcmp(action, "SCMP_ACT_LOG") == 0);
}

/* Whether a condition of socket(2)'s first argument keeps AF_VSOCK out. */
static bool excludes_vsock(const json_t *args)
{
	const json_t *arg;
	size_t i;

	json_array_foreach(args, i, arg)
	{
		const char *op = json_string_value(json_object_get(arg, "op"));
		const json_int_t value = json_integer_value(json_object_get(arg, "value"));

		if (!op || json_integer_value(json_object_get(arg, "index")) != 0)
			continue;
		if ((strcmp(op, "SCMP_CMP_NE") == 0 && value == AF_VSOCK) ||
		    (strcmp(op, "SCMP_CMP_EQ") == 0 && value != AF_VSOCK) ||
		    (strcmp(op, "SCMP_CMP_LT") == 0 && value <= AF_VSOCK) ||
		    (strcmp(op, "SCMP_CMP_LE") == 0 && value < AF_VSOCK) ||
		    (strcmp(op, "SCMP_CMP_GT") == 0 && value >= AF_VSOCK) ||
		    (strcmp(op, "SCMP_CMP_GE") == 0 && value > AF_VSOCK))
			return true;
	}
	return false;
}

/* Takes the forbidden names out of one rule. *socket: it permitted socket(AF_VSOCK), and no longer does. */
static void prune(json_t *rule, bool *socket)
{
	json_t *names = json_object_get(rule, "names");

	for (size_t i = json_array_size(names); i-- > 0;) {
		const char *name = json_string_value(json_array_get(names, i));
		const bool vsock =
			name && strcmp(name, "socket") == 0 && !excludes_vsock(json_object_get(rule, "args"));

		*socket = *socket || vsock;
		if (vsock || (name && is_forbidden(name)))
			json_array_remove(names, i);
	}
}

/* Prunes what permits. True when socket(AF_VSOCK) was permitted by name. */
static bool prune_all(json_t *rules)
{
	bool socket = false;

	for (size_t i = json_array_size(rules); i-- > 0;) {
		json_t *rule = json_array_get(rules, i);

		if (!is_permitting(json_string_value(json_object_get(rule, "action"))))
			continue;
		prune(rule, &socket);
		/* A rule without names is an error to the runtimes. */
		if (json_array_size(json_object_get(rule, "names")) == 0)
			json_array_remove(rules, i);
	}
	return socket;
}

/* Whether some rule forbids a call altogether; or, of socket(2), AF_VSOCK. */
static bool forbids(const json_t *rules, const char *call)
{
	const json_t *rule, *name;
	size_t i, k;

	json_array_foreach(rules, i, rule)
	{
		const json_t *args = json_object_get(rule, "args");

		if (is_permitting(json_string_value(json_object_get(rule, "action"))) ||
		    (json_array_size(args) > 0 && (strcmp(call, "socket") != 0 || excludes_vsock(args))))
			continue;
		json_array_foreach(json_object_get(rule, "names"), k,
				   name) if (json_is_string(name) &&
					     strcmp(json_string_value(name), call) == 0) return true;
	}
	return false;
}

static json_t *socket_rule(const char *action, const char *op)
{
	return json_pack("{s:[s], s:s, s:[{s:i, s:i, s:s}]}", "names", "socket", "action", action, "args", "index", 0,
			 "value", AF_VSOCK, "op", op);
}

/* For a profile whose default permits: these calls fail with EPERM. */
static int forbid(json_t *rules)
{
	json_t *names = json_array(), *rule;
	int failed = 0;

	for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
		if (!forbids(rules, forbidden[i]))
			failed |= json_array_append_new(names, json_string(forbidden[i]));
	if (json_array_size(names) > 0)
		failed |= json_array_append_new(rules, json_pack("{s:O, s:s, s:i}", "names", names, "action",
								 "SCMP_ACT_ERRNO", "errnoRet", EPERM_NUMBER));
	json_decref(names);
	if (forbids(rules, "socket"))
		return failed;
	rule = socket_rule("SCMP_ACT_ERRNO", "SCMP_CMP_EQ");
	failed |= json_object_set_new(rule, "errnoRet", json_integer(EPERM_NUMBER));
	return failed | json_array_append_new(rules, rule);
}

int config_forbid_calls(json_t *config, struct err *err)
{
	json_t *section = json_object_get(config, "linux"), *profile = json_object_get(section, "seccomp"), *rules;
	const char *fallback;

	if (!json_is_object(section))
		return err_set(err, "config.json: no \"linux\" in it");
	if (!profile || json_is_null(profile)) {
		profile = json_pack("{s:s}", "defaultAction", "SCMP_ACT_ALLOW");
		if (json_object_set_new(section, "seccomp", profile))
			return err_set(err, "out of memory");
	}
	fallback = json_string_value(json_object_get(profile, "defaultAction"));
	rules = json_object_get(profile, "syscalls");
	if (!rules && json_object_set_new(profile, "syscalls", json_array()) == 0)
		rules = json_object_get(profile, "syscalls");
	if (!fallback || !json_is_array(rules))
		return err_set(err, "config.json: the seccomp profile has no default action, or its calls are no list");
	if (is_permitting(fallback)) {
		prune_all(rules);
		return forbid(rules) ? err_set(err, "out of memory") : 0;
	}
	if (prune_all(rules) && json_array_append_new(rules, socket_rule("SCMP_ACT_ALLOW", "SCMP_CMP_NE")))
		return err_set(err, "out of memory");
	return 0;
}
