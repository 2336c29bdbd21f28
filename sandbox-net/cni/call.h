/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the plugin: what a runtime asks for, as far as it can be meant. */
#ifndef SANDBOX_NET_CNI_CALL_H
#define SANDBOX_NET_CNI_CALL_H

#include <jansson.h>

#include "base/attach.h"
#include "sandbox-net/oci/choice.h"

struct err;

#define CNI_ID_MAX	128 /* bytes of a container's id */
#define CNI_NETWORK_MAX 80  /* and of a network's name */

/* Error codes of the specification, section 2; from 100 on they are a plugin's own. */
enum cni_code {
	CNI_OK = 0,
	CNI_BAD_VERSION = 1,
	CNI_UNSUPPORTED_FIELD = 2,
	CNI_UNKNOWN_CONTAINER = 3,
	CNI_BAD_ENVIRONMENT = 4,
	CNI_IO_FAILURE = 5,
	CNI_UNDECODABLE = 6,
	CNI_BAD_CONFIG = 7,
	CNI_TRY_LATER = 11,
	CNI_UNAVAILABLE = 50, /* STATUS: no ADD can succeed */
	CNI_NOT_ATTACHED = 100
};

enum cni_command { CNI_ADD, CNI_CHECK, CNI_DEL, CNI_GC, CNI_STATUS, CNI_VERSION, CNI_COMMANDS };

struct cni_call {
	enum cni_command command;
	const char *container, *netns, *ifname; /* NULL where the command has none */
	json_t *config;				/* owned */
	const char *version, *network;		/* in the configuration; `network` is NULL for VERSION and STATUS */
	json_t *asked;				/* what comes with the pod, by the names of choice.h; owned */
	char job[ATTACH_NAME_MAX + 8];		/* of its gate, */
	char name[ATTACH_NAME_MAX + 8];		/* of the sandbox, */
	char to[ATTACH_TO_MAX];			/* and how it is known again: "cni NETWORK ID INTERFACE" */
};

/*
 * Fills in a zeroed call from the environment and stdin. Returns CNI_OK, or the code of an error; cni_call_free() in either
 * case. `version` is set as soon as it is known.
 */
enum cni_code cni_call_read(struct cni_call *c, struct err *err);
void cni_call_free(struct cni_call *c);

/* The versions of the specification, oldest first, and a NULL. */
extern const char *const cni_versions[];

/* How many of them are older than this one, or -1. */
int cni_version_rank(const char *version);

/* What an attachment of this network is known by. Returns 0; -1 when it does not fit. */
int cni_describe(char to[static ATTACH_TO_MAX], const char *network, const char *container, const char *ifname);

#endif
