/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is kept in files: the netgates that wait are asked (base/attach.h),
 * and an attachment is known again by what it is called there, which names network, container and interface.
 */
#include "sandbox-net/cni/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/cni/policy.h"
#include "sandbox-net/cni/result.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/oci/connect.h"

/* ---- finding it ---- */

struct search {
	const char *to;
	bool found;
	char job[ATTACH_NAME_MAX + 8];
	struct attach_msg item;
};

static int is_it(void *arg, const struct jobs_entry *entry)
{
	struct search *s = arg;

	if (!entry->sandbox || strcmp(entry->sandbox->to, s->to) != 0)
		return 0;
	s->found = true;
	s->item = *entry->sandbox;
	snprintf(s->job, sizeof(s->job), "%s", entry->job);
	return 1;
}

/* In the job of its own; or, if the pod chose one that waits for several, in any. Returns 0; -1 when its netgate does not answer. */
static int find(const struct cni_call *c, struct search *s, struct err *err)
{
	*s = (struct search){ .to = c->to };
	if (jobs_visit(c->job, is_it, s, err) < 0)
		return -1;
	return !s->found && jobs_visit_all(CLIENT_WAIT_MS, is_it, NULL, s, err) < 0 ? -1 : 0;
}

static int has_any(void *arg, const struct jobs_entry *entry)
{
	*(bool *)arg = entry->sandbox;
	return 1;
}

/* ---- ADD ---- */

#define VALUE_SHOWN 64 /* bytes of it */

static enum cni_code unsupported(const char *key, const json_t *value, const char *why, struct err *err)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);

	/* With the value, as section 5 of the specification demands. */
	err_set(err, "\"%.64s\": %.*s: %s", key, VALUE_SHOWN, text ? text : "?", why);
	free(text);
	return CNI_UNSUPPORTED_FIELD;
}

/* A member of which nobody knows, "denny" perhaps, is not passed over: less would be denied than was meant. */
static enum cni_code check_members(const json_t *config, struct err *err)
{
	/* Sections 1 and 2 of the specification; then policy_of_config()'s. */
	static const char *const known[] = { "cniVersion", "name",    "type",	       "capabilities", "args",
					     "ipMasq",	   "dns",     "runtimeConfig", "prevResult",   "allow",
					     "policy",	   "permits", "options",       "acceptRisk" };
	static const char reserved[] = "cni.dev/";
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)config, key, value)
	{
		size_t i = 0;

		if (strcmp(key, "ipam") == 0)
			return unsupported(key, value, "every sandbox behind a gate has the same addresses", err);
		while (i < sizeof(known) / sizeof(*known) && strcmp(key, known[i]) != 0)
			i++;
		if (i == sizeof(known) / sizeof(*known) && strncmp(key, reserved, strlen(reserved)) != 0)
			return unsupported(key, value, "there is no such member", err);
	}
	return CNI_OK;
}

static enum cni_code read_network(const struct cni_call *c, struct attach_options *o, const char **permits,
				  struct err *err)
{
	enum cni_code code = check_members(c->config, err);

	if (code != CNI_OK)
		return code;
	return policy_of_config(c->config, o, permits, err) ? CNI_BAD_CONFIG : CNI_OK;
}

static enum cni_code give_gate(const struct cni_call *c, struct attach_options *o, struct err *err)
{
	struct choice choice;
	const char *permits;
	enum cni_code code = read_network(c, o, &permits, err);

	if (code != CNI_OK)
		return code;
	if (choice_read(c->asked, &choice, err))
		return CNI_BAD_CONFIG;
	if (!permits && json_object_size(c->asked) > 0) {
		err_set(err, "the pod asks for a policy, and this network's configuration has no \"permits\"");
		return CNI_BAD_CONFIG;
	}
	return (permits ? connect_container(o, &choice, permits, err) : attach_sandbox(o, err)) ? CNI_NOT_ATTACHED
												: CNI_OK;
}

enum cni_code cni_add(const struct cni_call *c, struct err *err)
{
	static struct attach_options options;
	struct attach_options *o = &options;
	enum cni_code code;

	*o = (struct attach_options){ .kind = TARGET_NETNS, .what = c->netns, .link = c->ifname, .quiet = true };
	o->job = c->job;
	o->name = c->name;
	o->to = c->to;
	if (access(c->netns, F_OK)) {
		err_set_errno(err, errno, "%s", c->netns);
		return CNI_UNKNOWN_CONTAINER;
	}
	code = give_gate(c, o, err);
	if (code != CNI_OK)
		return code;
	if (cni_print_result(c, err)) {
		struct err ignored = { "" };

		(void)cni_del(c, &ignored);
		return CNI_IO_FAILURE;
	}
	return CNI_OK;
}

/* ---- CHECK ---- */

static enum cni_code check_namespace(const struct cni_call *c, const struct attach_msg *item, int netns,
				     struct err *err)
{
	struct gate_plan plan;
	struct stat st;

	gate_plan_usual(&plan);
	snprintf(plan.link, sizeof(plan.link), "%s", c->ifname);
	if (fstat(netns, &st) || st.st_dev != item->dev || st.st_ino != item->ino) {
		err_set(err, "the gate is that of another network namespace");
		return CNI_NOT_ATTACHED;
	}
	return gate_check(netns, &plan, err) ? CNI_NOT_ATTACHED : CNI_OK;
}

enum cni_code cni_check(const struct cni_call *c, struct err *err)
{
	struct search s;
	enum cni_code code;
	int netns;

	if (cni_check_result(c, json_object_get(c->config, "prevResult"), err))
		return CNI_BAD_CONFIG;
	if (find(c, &s, err))
		return CNI_TRY_LATER;
	if (!s.found) {
		err_set(err, "there is no gate for it");
		return CNI_NOT_ATTACHED;
	}
	netns = open(c->netns, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (netns < 0) {
		err_set_errno(err, errno, "%s", c->netns);
		return CNI_UNKNOWN_CONTAINER;
	}
	code = check_namespace(c, &s.item, netns, err);
	close(netns);
	return code;
}

/* ---- DEL ---- */

enum cni_code cni_del(const struct cni_call *c, struct err *err)
{
	bool others = false;
	struct search s;

	if (find(c, &s, err))
		return CNI_TRY_LATER;
	if (s.found)
		return jobs_detach(s.job, s.item.name, err) ? CNI_TRY_LATER : CNI_OK;
	/* An ADD that was killed leaves a gate behind that waits for nobody. */
	if (jobs_visit(c->job, has_any, &others, err) < 0)
		return CNI_TRY_LATER;
	if (!others) {
		struct err gone = { "" };

		(void)jobs_detach(c->job, "", &gone);
	}
	return CNI_OK;
}

/* ---- GC ---- */

struct collection {
	const struct cni_call *call;
	const json_t *valid;
	struct err *err;
	bool failed;
};

static bool is_valid(const struct collection *g, const char *to)
{
	char text[ATTACH_TO_MAX];
	size_t i;
	json_t *one;

	json_array_foreach(g->valid, i, one)
	{
		const char *container = json_string_value(json_object_get(one, "containerID"));
		const char *ifname = json_string_value(json_object_get(one, "ifname"));

		if (container && ifname && cni_describe(text, g->call->network, container, ifname) == 0 &&
		    strcmp(text, to) == 0)
			return true;
	}
	return false;
}

static int collect(void *arg, const struct jobs_entry *entry)
{
	const struct attach_msg *item = entry->sandbox;
	struct collection *g = arg;
	char ours[ATTACH_TO_MAX];
	int len = snprintf(ours, sizeof(ours), "cni %s ", g->call->network);

	if (item && strncmp(item->to, ours, (size_t)len) == 0 && !is_valid(g, item->to) &&
	    jobs_detach(entry->job, item->name, g->err))
		g->failed = true;
	return 0;
}

enum cni_code cni_gc(const struct cni_call *c, struct err *err)
{
	struct collection g = { .call = c, .err = err };

	g.valid = json_object_get(c->config, "cni.dev/valid-attachments");
	/* Without a list, all would go. */
	if (!json_is_array(g.valid)) {
		err_set(err, "the configuration has no list \"cni.dev/valid-attachments\"");
		return CNI_BAD_CONFIG;
	}
	return jobs_visit_all(CLIENT_WAIT_MS, collect, NULL, &g, err) < 0 || g.failed ? CNI_TRY_LATER : CNI_OK;
}

/* ---- STATUS ---- */

/* The policy, the log, the directory of sockets: whatever an ADD needs is tried out, for a pod that asks for nothing. */
enum cni_code cni_status(const struct cni_call *c, struct err *err)
{
	static struct attach_options options;
	const char *permits;
	char job[32];
	enum cni_code code = read_network(c, &options, &permits, err);

	if (code != CNI_OK)
		return code;
	snprintf(job, sizeof(job), "cni-status-%d", (int)getpid());
	options.job = job;
	return connect_rehearse(&options, permits, err) ? CNI_UNAVAILABLE : CNI_OK;
}
