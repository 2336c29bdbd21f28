/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that no container behind a gate needs. A profile that permits by
 * name loses those names; one that forbids by name gets them; without a profile there is one of these alone. Never are
 * there two rules that say different things about one call, which libseccomp refuses, and no rule permits more than before.
 *
 * A rule that permits socket(2) with AF_VSOCK among its families is replaced by rules for those below, which permit what it did of them:
 * profiles have several such rules, none of which says it all (podman's: any family but with protocol 9, any protocol but with AF_NETLINK).
 * Each gets a condition on the family more, or in place of the one it has; for libseccomp takes one on an argument only. Runtimes make
 * a rule with more than one on some argument into as many rules as it has conditions, and so it is done here.
 *
 * i386's socketcall(2) keeps its arguments in memory, where no filter looks: it goes as a whole, by a rule of its own, since libseccomp
 * makes one for it of each for socket(2), without the condition on the family. The first rule, since libseccomp passes over those that a
 * rule without conditions has decided, and else refuses what two of them say. i386 programs have had socket(2) itself since Linux 4.3.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sandbox-net/oci/config.h"
#include "sandbox-net/oci/wide.h"

#define FAMILY_BITS 0xffffffffULL /* of a system call's argument, those that make an int */

static const char *const forbidden[] = { "io_uring_setup", "io_uring_enter", "io_uring_register", "add_key",
					 "request_key",	   "keyctl",	     "socketcall" };

/*
 * crun's own annotations, which podman takes from images: a filter in the profile's place; somebody who decides, in the profile's place, what it
 * asks about, and libraries that crun loads for that; another program in the place of what execs the container's.
 */
static const char *const overriding[] = { "run.oci.seccomp_bpf_data", "run.oci.seccomp.receiver",
					  "run.oci.seccomp.plugins", "run.oci.handler" };

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

/* A condition's number as the runtimes read it: 64 bits without a sign, 0 where there is none. */
static uint64_t number(const json_t *arg, const char *name)
{
	const json_t *value = json_object_get(arg, name);

	if (json_is_string(value) && strncmp(json_string_value(value), WIDE_MARK, sizeof(WIDE_MARK) - 1) == 0)
		return strtoull(json_string_value(value) + sizeof(WIDE_MARK) - 1, NULL, 10);
	return (uint64_t)json_integer_value(value);
}

static bool is_op(const json_t *arg, const char *op)
{
	const char *is = json_string_value(json_object_get(arg, "op"));

	return is && strcmp(is, op) == 0;
}

static bool is_on_family(const json_t *arg)
{
	return number(arg, "index") == 0;
}

/*
 * Whether a condition on the family keeps AF_VSOCK out. The kernel takes the lower half of the argument alone, a filter compares all of it:
 * what is not 40 there may be AF_VSOCK with other bits above.
 */
static bool excludes_vsock(const json_t *arg)
{
	const uint64_t value = number(arg, "value"), second = number(arg, "valueTwo");

	return (is_op(arg, "SCMP_CMP_EQ") && (value & FAMILY_BITS) != AF_VSOCK) ||
	       (is_op(arg, "SCMP_CMP_LT") && value <= AF_VSOCK) || (is_op(arg, "SCMP_CMP_LE") && value < AF_VSOCK) ||
	       (is_op(arg, "SCMP_CMP_MASKED_EQ") && (value & FAMILY_BITS & (second ^ AF_VSOCK)) != 0);
}

/* Whether a condition holds for a family. One that is not understood holds for none. */
static bool holds(const json_t *arg, uint64_t family)
{
	const uint64_t value = number(arg, "value"), second = number(arg, "valueTwo");

	return (is_op(arg, "SCMP_CMP_NE") && family != value) || (is_op(arg, "SCMP_CMP_EQ") && family == value) ||
	       (is_op(arg, "SCMP_CMP_LT") && family < value) || (is_op(arg, "SCMP_CMP_LE") && family <= value) ||
	       (is_op(arg, "SCMP_CMP_GT") && family > value) || (is_op(arg, "SCMP_CMP_GE") && family >= value) ||
	       (is_op(arg, "SCMP_CMP_MASKED_EQ") && (family & value) == second);
}

/* Whether a rule's action is for a call of this name. */
static bool is_for(const json_t *rule, const char *call)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(rule, "names"), i, name)
	{
		if (json_is_string(name) && strcmp(json_string_value(name), call) == 0)
			return true;
	}
	return false;
}

/* Whether a rule that refuses socket(2) has to do with this family: one that permits it by its number would stand against it. */
static bool is_refused(const json_t *rules, uint64_t family)
{
	const json_t *rule, *arg;
	size_t i, k;

	json_array_foreach(rules, i, rule)
	{
		if (is_permitting(json_string_value(json_object_get(rule, "action"))) || !is_for(rule, "socket"))
			continue;
		json_array_foreach(json_object_get(rule, "args"), k, arg)
		{
			if (is_on_family(arg) && holds(arg, family))
				return true;
		}
	}
	return false;
}

static json_t *condition(uint64_t family, const char *op)
{
	return json_pack("{s:i, s:I, s:s}", "index", 0, "value", (json_int_t)family, "op", op);
}

/* Appends a rule that does what `rule` does, for socket(2) under the conditions `rest` and `family` (taken over). Returns 0 or -1. */
static int append_socket(json_t *rules, json_t *rule, const json_t *rest, json_t *family)
{
	json_t *copy = json_copy(rule), *args = json_copy((json_t *)rest);

	if (json_array_append_new(args, family) | json_object_set_new(copy, "names", json_pack("[s]", "socket")) |
	    json_object_set_new(copy, "args", args)) {
		json_decref(copy);
		return -1;
	}
	return json_array_append_new(rules, copy);
}

/* Appends what `rule` permits of socket(2) below AF_VSOCK where all of `args` hold, each of which is on another argument. Returns 0 or -1. */
static int permit_below(json_t *rules, json_t *rule, const json_t *args)
{
	json_t *rest = json_array(), *family = NULL, *arg;
	int failed = 0;
	size_t i;

	json_array_foreach(args, i, arg)
	{
		if (is_on_family(arg))
			family = arg;
		else
			failed |= json_array_append(rest, arg);
	}
	if (!family)
		failed |= append_socket(rules, rule, rest, condition(AF_VSOCK, "SCMP_CMP_LT"));
	else if (excludes_vsock(family))
		failed |= append_socket(rules, rule, rest, json_incref(family));
	for (uint64_t f = 0; family && !excludes_vsock(family) && f < AF_VSOCK; f++)
		if (holds(family, f) && !is_refused(rules, f))
			failed |= append_socket(rules, rule, rest, condition(f, "SCMP_CMP_EQ"));
	json_decref(rest);
	return failed;
}

/* Whether several conditions are on one argument: alternatives, then, all of them. */
static bool are_alternatives(const json_t *args)
{
	uint64_t seen = 0;
	const json_t *arg;
	size_t i;

	json_array_foreach(args, i, arg)
	{
		const uint64_t bit = UINT64_C(1) << (number(arg, "index") & 63);

		if (seen & bit)
			return true;
		seen |= bit;
	}
	return false;
}

/* Appends what takes the place of a rule that permits socket(2). Returns 0 or -1. */
static int replace_socket(json_t *rules, json_t *rule)
{
	json_t *args = json_object_get(rule, "args"), *arg;
	int failed = 0;
	size_t i;

	if (!are_alternatives(args))
		return permit_below(rules, rule, args);
	json_array_foreach(args, i, arg)
	{
		json_t *one = json_pack("[O]", arg);

		failed |= permit_below(rules, rule, one);
		json_decref(one);
	}
	return failed;
}

/* Takes the forbidden names out of what permits, and AF_VSOCK out of what socket(2) is permitted. Returns 0; or -1 when memory is out. */
static int prune(json_t *rules)
{
	int failed = 0;

	for (size_t i = json_array_size(rules); i-- > 0;) {
		json_t *rule = json_array_get(rules, i), *names = json_object_get(rule, "names");

		if (!is_permitting(json_string_value(json_object_get(rule, "action"))))
			continue;
		if (is_for(rule, "socket"))
			failed |= replace_socket(rules, rule);
		for (size_t k = json_array_size(names); k-- > 0;) {
			const char *name = json_string_value(json_array_get(names, k));

			if (name && (is_forbidden(name) || strcmp(name, "socket") == 0))
				json_array_remove(names, k);
		}
		/* A rule without names is an error to the runtimes. */
		if (json_array_size(names) == 0)
			json_array_remove(rules, i);
	}
	return failed;
}

/* Whether a rule with these conditions holds for every call; or, of socket(2), from AF_VSOCK on, so that bits above it don't matter. */
static bool covers(const json_t *args, const char *call)
{
	const json_t *arg = json_array_get(args, 0);

	if (json_array_size(args) == 0)
		return true;
	return strcmp(call, "socket") == 0 && json_array_size(args) == 1 && is_on_family(arg) &&
	       is_op(arg, "SCMP_CMP_GE") && number(arg, "value") <= AF_VSOCK;
}

/* Whether some rule forbids a call altogether; or, of socket(2), all families from AF_VSOCK on. */
static bool forbids(const json_t *rules, const char *call)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		if (!is_permitting(json_string_value(json_object_get(rule, "action"))) && is_for(rule, call) &&
		    covers(json_object_get(rule, "args"), call))
			return true;
	}
	return false;
}

/* Of the families above AF_VSOCK none is of use behind a gate. */
static json_t *refuse_vsock(void)
{
	return json_pack("{s:[s], s:s, s:i, s:[o]}", "names", "socket", "action", "SCMP_ACT_ERRNO", "errnoRet", EPERM,
			 "args", condition(AF_VSOCK, "SCMP_CMP_GE"));
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
		failed |= json_array_insert_new(
			rules, 0,
			json_pack("{s:O, s:s, s:i}", "names", names, "action", "SCMP_ACT_ERRNO", "errnoRet", EPERM));
	json_decref(names);
	return forbids(rules, "socket") ? failed : failed | json_array_append_new(rules, refuse_vsock());
}

int config_forbid_calls(json_t *config, struct err *err)
{
	json_t *section = json_object_get(config, "linux"), *profile = json_object_get(section, "seccomp"), *rules;
	const char *fallback;

	if (!json_is_object(section))
		return err_set(err, "config.json: no \"linux\" in it");
	for (size_t i = 0; i < sizeof(overriding) / sizeof(*overriding); i++)
		(void)json_object_del(json_object_get(config, "annotations"), overriding[i]);
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
	if (prune(rules) ||
	    (is_permitting(fallback) ? forbid(rules) : json_array_insert_new(rules, 0, refuse_socketcall(profile))))
		return err_set(err, "out of memory");
	return 0;
}

/* Whether what a rule permits of socket(2) leaves AF_VSOCK out. */
static bool leaves_out_vsock(const json_t *rule)
{
	const json_t *args = json_object_get(rule, "args"), *arg;
	size_t i, n = 0;

	json_array_foreach(args, i, arg) n += is_on_family(arg) && excludes_vsock(arg);
	return n > 0 && (n == json_array_size(args) || !are_alternatives(args));
}

bool config_forbids_vsock(const json_t *config)
{
	const json_t *profile = json_object_get(json_object_get(config, "linux"), "seccomp"), *rule;
	const json_t *rules = json_object_get(profile, "syscalls");
	size_t i;

	for (i = 0; i < sizeof(overriding) / sizeof(*overriding); i++)
		if (json_object_get(json_object_get(config, "annotations"), overriding[i]))
			return false;
	json_array_foreach(rules, i, rule)
	{
		if (is_permitting(json_string_value(json_object_get(rule, "action"))) && is_for(rule, "socket") &&
		    !leaves_out_vsock(rule))
			return false;
	}
	return forbids(rules, "socketcall") &&
	       (!is_permitting(json_string_value(json_object_get(profile, "defaultAction"))) ||
		forbids(rules, "socket"));
}
