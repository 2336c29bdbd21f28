/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. What a runtime may ask for is narrow (section 2 of the
 * specification): anything that is not of its shape is an error, before anything is done.
 */
#include "sandbox-net/cni/call.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/cni/args.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/oci/object.h"

const char *const cni_versions[] = { "0.4.0", "1.0.0", "1.1.0", NULL };

#define NAME_WHOLE_MAX 512
#define NAME_HASH      17 /* '-' and 16 hexadecimal digits */
#define FROM_1_1       2  /* rank of the version that brought GC and STATUS */

/* What a command needs, and from which version on there is one. */
static const struct {
	const char *name;
	bool attachment; /* CNI_CONTAINERID and CNI_IFNAME, a network */
	bool netns;	 /* CNI_NETNS */
	bool network;
	int from;
} commands[CNI_COMMANDS] = {
	[CNI_ADD] = { "ADD", true, true, true, 0 },
	[CNI_CHECK] = { "CHECK", true, true, true, 0 },
	[CNI_DEL] = { "DEL", true, false, true, 0 },
	[CNI_GC] = { "GC", false, false, true, FROM_1_1 },
	[CNI_STATUS] = { "STATUS", false, false, false, FROM_1_1 },
	[CNI_VERSION] = { "VERSION", false, false, false, 0 },
};

int cni_version_rank(const char *version)
{
	for (int i = 0; version && cni_versions[i]; i++)
		if (strcmp(version, cni_versions[i]) == 0)
			return i;
	return -1;
}

static enum cni_code fail(enum cni_code code, int rc)
{
	return rc ? code : CNI_OK;
}

/* ---- the environment ---- */

/* As the specification has the names of networks and containers: [a-zA-Z0-9][a-zA-Z0-9_.-]* */
static bool is_name(const char *text, size_t max)
{
	return text && isalnum((unsigned char)*text) && isascii(*text) && strlen(text) <= max &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

/* As the kernel has them. Printable ASCII only: it becomes part of texts. */
static bool is_interface(const char *text)
{
	if (!text || !*text || strlen(text) >= GATE_LINK_NAME_MAX || strcmp(text, ".") == 0 ||
	    strcmp(text, "..") == 0 || strcmp(text, "lo") == 0)
		return false;
	for (; *text; text++)
		if (*text <= ' ' || *text > '~' || *text == '/' || *text == ':')
			return false;
	return true;
}

static int read_environment(struct cni_call *c, struct err *err)
{
	const char *command = getenv("CNI_COMMAND");

	c->command = 0;
	while (command && c->command < CNI_COMMANDS && strcmp(command, commands[c->command].name) != 0)
		c->command++;
	if (!command || c->command == CNI_COMMANDS)
		return err_set(err, "CNI_COMMAND: ADD, CHECK, DEL, GC, STATUS or VERSION; this is a CNI plugin, which "
				    "a container runtime calls");
	if (!commands[c->command].attachment)
		return 0;
	c->container = getenv("CNI_CONTAINERID");
	c->ifname = getenv("CNI_IFNAME");
	c->netns = getenv("CNI_NETNS");
	if (!is_name(c->container, CNI_ID_MAX))
		return err_set(err, "CNI_CONTAINERID: 1 to %d letters, digits, '_', '.' and '-'", CNI_ID_MAX);
	if (!is_interface(c->ifname))
		return err_set(err, "CNI_IFNAME: the name of an interface");
	if (commands[c->command].netns && (!c->netns || c->netns[0] != '/'))
		return err_set(err, "CNI_NETNS: the path of a network namespace");
	return 0;
}

/* ---- the configuration ---- */

/* All but what comes from the pod, which must not be able to hold up its own end: of that, only what is read is checked. */
static int check_texts(const json_t *config, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)config, key, value)
	{
		if (strcmp(key, "runtimeConfig") != 0 && object_has_nul(value))
			return err_set(err, "the network's configuration on stdin: a text with a NUL in it");
	}
	return 0;
}

static enum cni_code read_config(struct cni_call *c, struct err *err)
{
	int rank;

	c->config = object_read(STDIN_FILENO, "the network's configuration on stdin", err);
	if (!c->config || check_texts(c->config, err))
		return CNI_UNDECODABLE;
	c->version = json_string_value(json_object_get(c->config, "cniVersion"));
	if (c->command == CNI_VERSION)
		return CNI_OK;
	rank = cni_version_rank(c->version);
	if (rank < commands[c->command].from) {
		err_set(err, "cniVersion %s: %s", c->version ? c->version : "is missing",
			rank < 0 ? "0.4.0, 1.0.0 and 1.1.0 are supported" : "this command came with 1.1.0");
		c->version = NULL;
		return CNI_BAD_VERSION;
	}
	if (!commands[c->command].network)
		return CNI_OK;
	c->network = json_string_value(json_object_get(c->config, "name"));
	if (!is_name(c->network, CNI_NETWORK_MAX)) {
		err_set(err, "\"name\": 1 to %d letters, digits, '_', '.' and '-'", CNI_NETWORK_MAX);
		return CNI_BAD_CONFIG;
	}
	return CNI_OK;
}

/* ---- what comes with the pod ---- */

/* The annotations of this object that are ours. */
static int take_annotations(json_t *asked, const json_t *annotations, struct err *err)
{
	static const char *const keys[] = { CHOICE_ALLOW, CHOICE_POLICY, CHOICE_JOB };

	if (choice_check_keys(annotations, err))
		return -1;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const json_t *value = json_object_get(annotations, keys[i]);

		if (value && !json_is_string(value))
			return err_set(err, "%s: not a text", keys[i]);
		if (value && strlen(json_string_value(value)) != json_string_length(value))
			return err_set(err, "%s: not a text", keys[i]);
		if (value && cni_ask(asked, keys[i], json_string_value(value), err))
			return -1;
	}
	return 0;
}

static enum cni_code read_pod(struct cni_call *c, struct cni_args *args, struct err *err)
{
	const json_t *config = json_object_get(c->config, "runtimeConfig");

	c->asked = json_object();
	if (!c->asked)
		return fail(CNI_IO_FAILURE, err_set(err, "out of memory"));
	if (cni_args_parse(getenv("CNI_ARGS"), args, c->asked, err))
		return CNI_BAD_ENVIRONMENT;
	return fail(CNI_BAD_CONFIG,
		    take_annotations(c->asked, json_object_get(config, "io.kubernetes.cri.pod-annotations"), err) ||
			    take_annotations(c->asked, json_object_get(config, "netgate"), err));
}

/* ---- names ---- */

int cni_describe(char to[static ATTACH_TO_MAX], const char *network, const char *container, const char *ifname)
{
	return snprintf(to, ATTACH_TO_MAX, "cni %s %s %s", network, container, ifname) < ATTACH_TO_MAX ? 0 : -1;
}

/* FNV-1a, 64 bits (draft-eastlake-fnv): tells names apart that are alike in all that fits. */
static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3;
	return h;
}

/* Of what does not fit, the end is a hash of all; what may not be in a name is '-'. */
__attribute__((format(printf, 2, 3))) static void make_name(char name[static ATTACH_NAME_MAX + 8], const char *fmt, ...)
{
	char whole[NAME_WHOLE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(whole, sizeof(whole), fmt, ap);
	va_end(ap);
	if (strlen(whole) > ATTACH_NAME_MAX)
		snprintf(whole + ATTACH_NAME_MAX - NAME_HASH, NAME_HASH + 1, "-%016llx",
			 (unsigned long long)hash(whole));
	snprintf(name, ATTACH_NAME_MAX + 1, "%s", whole);
	for (char *c = name; *c; c++)
		if (!isascii(*c) || !(isalnum(*c) || *c == '-' || *c == '_' || (*c == '.' && c > name)))
			*c = '-';
}

static int name_all(struct cni_call *c, const struct cni_args *args, struct err *err)
{
	make_name(c->job, "cni-%s-%s", c->ifname, c->container);
	if (args->pod && *args->pod && args->pod_namespace && *args->pod_namespace)
		make_name(c->name, "%s.%s", args->pod_namespace, args->pod);
	else
		make_name(c->name, "%s", args->pod && *args->pod ? args->pod : c->container);
	return cni_describe(c->to, c->network, c->container, c->ifname) ? err_set(err, "the names are too long") : 0;
}

enum cni_code cni_call_read(struct cni_call *c, struct err *err)
{
	static struct cni_args args;
	enum cni_code code;

	if (read_environment(c, err))
		return CNI_BAD_ENVIRONMENT;
	code = read_config(c, err);
	if (code != CNI_OK || !commands[c->command].attachment)
		return code;
	/* What is to be gone, or to be there, does not depend on what the pod asks for: its end must not fail on that. */
	if (c->command == CNI_ADD)
		code = read_pod(c, &args, err);
	return code != CNI_OK ? code : fail(CNI_BAD_CONFIG, name_all(c, &args, err));
}

void cni_call_free(struct cni_call *c)
{
	json_decref(c->asked);
	json_decref(c->config);
}
