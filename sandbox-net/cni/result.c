/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/cni/result.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/handoff.h"

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

#define ADDRESS4 GATE_SANDBOX4 "/" TEXT(GATE_PLEN4)
#define ADDRESS6 GATE_SANDBOX6 "/" TEXT(GATE_PLEN6)
#define FROM_1_0 1 /* ranks of versions */
#define FROM_1_1 2

/* Takes the object. */
static int print(json_t *object, struct err *err)
{
	int rc = object ? json_dumpf(object, stdout, JSON_COMPACT) : -1;

	json_decref(object);
	return rc || fputc('\n', stdout) == EOF || fflush(stdout) ? err_set(err, "cannot write the result") : 0;
}

/* Takes `value`. */
static json_t *with(json_t *object, const char *key, json_t *value)
{
	if (object && json_object_set_new(object, key, value) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *address(int rank, const char *address, const char *gateway, const char *version)
{
	json_t *ip = json_pack("{s:s, s:s, s:i}", "address", address, "gateway", gateway, "interface", 0);

	return rank < FROM_1_0 ? with(ip, "version", json_string(version)) : ip;
}

int cni_print_result(const struct cni_call *c, struct err *err)
{
	const int rank = cni_version_rank(c->version);
	json_t *link = json_pack("{s:s, s:s, s:s}", "name", c->ifname, "mac", GATE_SANDBOX_MAC, "sandbox", c->netns);

	if (rank >= FROM_1_1)
		link = with(link, "mtu", json_integer(GATE_MTU));
	/* clang-format off */
	return print(json_pack("{s:s, s:[o], s:[o, o], s:[{s:s, s:s}, {s:s, s:s}], s:{s:[s]}}",
			       "cniVersion", c->version,
			       "interfaces", link,
			       "ips", address(rank, ADDRESS4, GATE_ADDR4, "4"), address(rank, ADDRESS6, GATE_ADDR6, "6"),
			       "routes", "dst", "0.0.0.0/0", "gw", GATE_ADDR4, "dst", "::/0", "gw", GATE_ADDR6,
			       "dns", "nameservers", GATE_ADDR4),
		     err);
	/* clang-format on */
}

int cni_print_versions(const char *asked, struct err *err)
{
	json_t *list = json_array();
	const char *const *last = cni_versions;

	for (const char *const *v = cni_versions; *v; v++) {
		(void)json_array_append_new(list, json_string(*v));
		last = v;
	}
	return print(json_pack("{s:s, s:o}", "cniVersion", asked ? asked : *last, "supportedVersions", list), err);
}

void cni_print_error(const char *version, enum cni_code code, const char *text)
{
	const char *const *last = cni_versions;
	struct err err = { "" };

	while (last[1])
		last++;
	(void)print(
		json_pack("{s:s, s:i, s:s}", "cniVersion", version ? version : *last, "code", (int)code, "msg", text),
		&err);
}

/* Whether one of a list's objects has this text. */
static bool has(const json_t *list, const char *key, const char *text)
{
	size_t i;
	json_t *one;

	json_array_foreach(list, i, one)
	{
		const char *value = json_string_value(json_object_get(one, key));

		if (value && strcmp(value, text) == 0)
			return true;
	}
	return false;
}

int cni_check_result(const struct cni_call *c, const json_t *result, struct err *err)
{
	if (!json_is_object(result))
		return err_set(err, "the configuration has no \"prevResult\"");
	if (!has(json_object_get(result, "interfaces"), "name", c->ifname))
		return err_set(err, "the interface %s is not in \"prevResult\"", c->ifname);
	if (!has(json_object_get(result, "ips"), "address", ADDRESS4) ||
	    !has(json_object_get(result, "ips"), "address", ADDRESS6))
		return err_set(err, "the addresses in \"prevResult\" are not " ADDRESS4 " and " ADDRESS6);
	return 0;
}
