/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox-net oci-hook: called by the runtime when the container's namespaces
 * are made and nothing of it has run (OCI runtime specification, createRuntime). At this moment
 * the process in S is the runtime's own and has every capability; what the container will have stands in its config.json.
 *
 * It is called again when the container is deleted (poststop): its gate ends then, though what its sockets have to send still may keep its
 * network namespace.
 *
 * An ordinary user's podman calls the hook in a user namespace where nothing can be built; then root's service is asked.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/oci/choice.h"
#include "sandbox-net/oci/complain.h"
#include "sandbox-net/oci/config.h"
#include "sandbox-net/oci/connect.h"
#include "sandbox-net/oci/oci.h"
#include "sandbox-net/oci/place.h"
#include "sandbox-net/oci/request.h"

static const char help[] =
	"usage: sandbox-net oci-hook [--permits DIR] [--choose NAME] [--accept-risk RISK] [netgate's options] <STATE\n"
	"\n"
	"An OCI createRuntime hook: gives the container a gate as its only network, or keeps it from starting.\n"
	"As a poststop hook it ends the gate.\n"
	"The annotations dev.netgate.allow, dev.netgate.policy and dev.netgate.job choose from what DIR permits\n"
	"(default: " CHOICE_DIRECTORY "; see policy.md). Without any, DIR/default.yaml counts.\n"
	"\n"
	"  --permits DIR         the administrator's policies\n"
	"  --choose NAME         of these NAME.yaml: the container may narrow it, and choose no other\n"
	"  --accept-risk RISK    net-admin: also for a container that may have CAP_NET_ADMIN or CAP_SYS_ADMIN\n"
	"  --help                this text\n"
	"\n"
	"Any other option is netgate's, such as --log FILE or --max-upload SIZE.\n";

struct hook {
	json_t *state, *config;
	struct choice choice;
	char pid[16];
	char id[ATTACH_NAME_MAX + 8]; /* made fit for a name */
	char to[ATTACH_TO_MAX];
	struct vet_known known;
	bool ended; /* a poststop hook */
};

/* A container's id as a sandbox's name. */
static int take_id(struct hook *h, struct err *err)
{
	const char *id = json_string_value(json_object_get(h->state, "id"));

	if (!id || !*id)
		return err_set(err, "the state has no \"id\"");
	snprintf(h->to, sizeof(h->to), "container %.64s", id);
	snprintf(h->id, sizeof(h->id), "%.*s", ATTACH_NAME_MAX, id);
	for (char *c = h->id; *c; c++)
		if (!isascii(*c) || !(isalnum(*c) || *c == '-' || *c == '_' || (*c == '.' && c > h->id)))
			*c = '_';
	return 0;
}

static int read_made(struct hook *h, const char *status, struct err *err)
{
	const json_int_t pid = json_integer_value(json_object_get(h->state, "pid"));
	const char *bundle = json_string_value(json_object_get(h->state, "bundle"));
	char path[PATH_MAX];

	if (pid <= 1 || pid > INT32_MAX || !status || !bundle)
		return err_set(err, "the state lacks \"pid\", \"status\" or \"bundle\": this is no createRuntime hook");
	/* runc says "creating", crun "created"; what runs already may have used a network. */
	if (strcmp(status, "creating") != 0 && strcmp(status, "created") != 0)
		return err_set(err, "the container is \"%s\" already; call this as a createRuntime hook", status);
	snprintf(h->pid, sizeof(h->pid), "%lld", (long long)pid);
	if (snprintf(path, sizeof(path), "%s/config.json", bundle) >= (int)sizeof(path))
		return err_set(err, "the bundle's path is too long");
	h->config = config_load(path, err);
	if (!h->config)
		return -1;
	h->known = config_process(h->config);
	return 0;
}

static int read_state(struct hook *h, struct err *err)
{
	const char *status;

	h->state = config_read(STDIN_FILENO, "the container's state on stdin", err);
	if (!h->state || take_id(h, err) || choice_read(json_object_get(h->state, "annotations"), &h->choice, err))
		return -1;
	status = json_string_value(json_object_get(h->state, "status"));
	h->ended = status && strcmp(status, "stopped") == 0;
	return h->ended ? 0 : read_made(h, status, err);
}

static int end(const struct hook *h, struct err *err)
{
	if (!place_is_host())
		return request_end(h->id, &h->choice, err);
	connect_end(h->id, &h->choice);
	return 0;
}

static int run(struct hook *h, const char *permits, struct attach_options *o, struct err *err)
{
	bool alone;

	if (read_state(h, err))
		return -1;
	if (h->ended)
		return end(h, err);
	/* With the capability, it may have interfaces of its own, and could remove the rules that make the gate's the only one. */
	alone = !(h->known.caps >> CAP_NET_ADMIN & 1);
	if (!place_is_host())
		return request_service(h->pid, h->id, &h->choice, alone, err);
	/* Of its last life, if nobody has told of its end. */
	connect_end(h->id, &h->choice);
	o->kind = TARGET_PID;
	o->what = h->pid;
	o->name = h->id;
	o->to = h->to;
	o->known = &h->known;
	o->alone = alone;
	return connect_container(o, &h->choice, permits, err);
}

int oci_hook_main(int argc, char **argv)
{
	static struct attach_options options;
	struct hook h = { 0 };
	struct err err = { "" };
	int rc = -1;

	if (hook_options_parse(argc, argv, false, &options, &err) == 0) {
		if (options.help) {
			fputs(help, stdout);
			return 0;
		}
		rc = run(&h, options.permits ? options.permits : CHOICE_DIRECTORY, &options, &err);
	}
	json_decref(h.state);
	json_decref(h.config);
	return rc ? complain(&err) : 0;
}
