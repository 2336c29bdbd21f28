/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that no container behind a gate needs. A profile that permits by
 * name loses those names; one that forbids by name gets them; without a profile there is one of these alone. Never are
 * there two rules that say different things about one call, which libseccomp refuses, and no rule permits more than before.
 *
 * i386's socketcall(2) keeps its arguments in memory, where no filter looks: it goes as a whole, by a rule of its own, since libseccomp
 * makes one that permits it of each that permits socket(2). i386 programs have had socket(2) itself since Linux 4.3.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sandbox-net/oci/config.h"

#define FAMILY_BITS 0xffffffffLL /* of a system call's argument, those that make an int */

static const char *const forbidden[] = { "io_uring_setup", "io_uring_enter", "io_uring_register", "add_key",
					 "request_key",	   "keyctl",	     "socketcall" };

static bool is_forbidden(const char *name)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
		if (strcmp(name, forbidden[i]) == 0)
			return true;
	return false;
}

/* What is not a refusal permits, or lets somebody outside permit it (SCMP_ACT_NOTIFY, SCMP_ACT_TRACE). */
static bool is_permitting(const char *action)
{
	static const char *const refusals[] = { "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
						"SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP" };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals) && action; i++)
		if (strcmp(action, refusals[i]) == 0)
			return false;
	return true;
}

/*
 * Whether one condition of socket(2) keeps AF_VSOCK out. The kernel takes the lower half of the argument alone, a filter compares all of it:
 * what is not 40 there may be AF_VSOCK with other bits above.
 */
static bool condition_excludes_vsock(const json_t *arg)
{
	const char *op = json_string_value(json_object_get(arg, "op"));
	const json_int_t value = json_integer_value(json_object_get(arg, "value"));
	const json_int_t second = json_integer_value(json_object_get(arg, "valueTwo"));

	if (!op || json_integer_value(json_object_get(arg, "index")) != 0)
		return false;
	return (strcmp(op, "SCMP_CMP_EQ") == 0 && (value & FAMILY_BITS) != AF_VSOCK) ||
	       (strcmp(op, "SCMP_CMP_LT") == 0 && value <= AF_VSOCK) ||
	       (strcmp(op, "SCMP_CMP_LE") == 0 && value < AF_VSOCK) ||
	       (strcmp(op, "SCMP_CMP_MASKED_EQ") == 0 && (value & FAMILY_BITS & (second ^ AF_VSOCK)) != 0);
}

/* Whether a rule's conditions keep it out. Several on one argument are alternatives to some runtimes: then they don't. */
static bool excludes_vsock(const json_t *args)
{
	bool excluded = false;
	unsigned seen = 0;
	const json_t *arg;
	size_t i;

	json_array_foreach(args, i, arg)
	{
		const json_int_t index = json_integer_value(json_object_get(arg, "index"));

		if (index < 0 || index > 5 || seen >> index & 1)
			return false;
		seen |= 1u << index;
		excluded = excluded || condition_excludes_vsock(arg);
	}
	return excluded;
}

/* Whether a rule holds for all families up to AF_VSOCK: it has no conditions, or the one that newer profiles have for AF_VSOCK. */
static bool holds_for_all_below(const json_t *args)
{
	const json_t *arg = json_array_get(args, 0);
	const char *op = json_string_value(json_object_get(arg, "op"));

	return json_array_size(args) == 0 || (json_array_size(args) == 1 && op && strcmp(op, "SCMP_CMP_NE") == 0 &&
					      json_integer_value(json_object_get(arg, "index")) == 0 &&
					      json_integer_value(json_object_get(arg, "value")) >= AF_VSOCK);
}

/*
 * Takes the forbidden names out of one rule, and socket(2) where AF_VSOCK is among what it permits. *socket: it permitted
 * all families up to that one, and so may be replaced by a rule for those below.
 */
static void prune(json_t *rule, bool *socket)
{
	json_t *names = json_object_get(rule, "names");
	const json_t *args = json_object_get(rule, "args");

	for (size_t i = json_array_size(names); i-- > 0;) {
		const char *name = json_string_value(json_array_get(names, i));
		const bool vsock = name && strcmp(name, "socket") == 0 && !excludes_vsock(args);

		*socket = *socket || (vsock && holds_for_all_below(args));
		if (vsock || (name && is_forbidden(name)))
			json_array_remove(names, i);
	}
}

/* Prunes what permits. True when socket(2) of all families up to AF_VSOCK was permitted. */
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

/* Whether a rule with these conditions holds for every call; or, of socket(2), for AF_VSOCK whatever the bits above it are. */
static bool covers(const json_t *args, const char *call)
{
	const json_t *arg = json_array_get(args, 0);
	const char *op = json_string_value(json_object_get(arg, "op"));

	if (json_array_size(args) == 0)
		return true;
	return strcmp(call, "socket") == 0 && json_array_size(args) == 1 && op &&
	       strcmp(op, "SCMP_CMP_MASKED_EQ") == 0 && json_integer_value(json_object_get(arg, "index")) == 0 &&
	       json_integer_value(json_object_get(arg, "value")) == FAMILY_BITS &&
	       json_integer_value(json_object_get(arg, "valueTwo")) == AF_VSOCK;
}

/* Whether some rule forbids a call altogether; or, of socket(2), AF_VSOCK. */
static bool forbids(const json_t *rules, const char *call)
{
	const json_t *rule, *name;
	size_t i, k;

	json_array_foreach(rules, i, rule)
	{
		const json_t *names = json_object_get(rule, "names");

		if (is_permitting(json_string_value(json_object_get(rule, "action"))) ||
		    !covers(json_object_get(rule, "args"), call))
			continue;
		json_array_foreach(names, k, name)
		{
			if (json_is_string(name) && strcmp(json_string_value(name), call) == 0)
				return true;
		}
	}
	return false;
}

/* In place of one that permits socket(2). Of the families above AF_VSOCK none is of use behind a gate. */
static json_t *permit_below_vsock(void)
{
	return json_pack("{s:[s], s:s, s:[{s:i, s:i, s:s}]}", "names", "socket", "action", "SCMP_ACT_ALLOW", "args",
			 "index", 0, "value", AF_VSOCK, "op", "SCMP_CMP_LT");
}

static json_t *refuse_vsock(void)
{
	return json_pack("{s:[s], s:s, s:i, s:[{s:i, s:I, s:i, s:s}]}", "names", "socket", "action", "SCMP_ACT_ERRNO",
			 "errnoRet", EPERM, "args", "index", 0, "value", (json_int_t)FAMILY_BITS, "valueTwo", AF_VSOCK,
			 "op", "SCMP_CMP_MASKED_EQ");
}

/* For a profile whose default refuses. A rule that says the same as the default would be left out: it gets another number. */
static json_t *refuse_socketcall(const json_t *profile)
{
	const json_t *number = json_object_get(profile, "defaultErrnoRet");
	const bool same = json_is_integer(number) && json_integer_value(number) == ENOSYS;

	return json_pack("{s:[s], s:s, s:i}", "names", "socketcall", "action", "SCMP_ACT_ERRNO", "errnoRet",
			 same ? EPERM : ENOSYS);
}

/* For a profile whose default permits: these calls fail with EPERM. */
static int forbid(json_t *rules)
{
	json_t *names = json_array();
	int failed = 0;

	for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
		if (!forbids(rules, forbidden[i]))
			failed |= json_array_append_new(names, json_string(forbidden[i]));
	if (json_array_size(names) > 0)
		failed |= json_array_append_new(rules, json_pack("{s:O, s:s, s:i}", "names", names, "action",
								 "SCMP_ACT_ERRNO", "errnoRet", EPERM));
	json_decref(names);
	return forbids(rules, "socket") ? failed : failed | json_array_append_new(rules, refuse_vsock());
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
	if ((prune_all(rules) && json_array_append_new(rules, permit_below_vsock())) ||
	    json_array_append_new(rules, refuse_socketcall(profile)))
		return err_set(err, "out of memory");
	return 0;
}
