/* SPDX-License-Identifier: Apache-2.0 */
/* A container that joins a network: from its gate to the container that has it. */
#ifndef SANDBOX_NET_DOCKER_JOIN_H
#define SANDBOX_NET_DOCKER_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attach.h"
#include "base/layout.h"
#include "sandbox-net/gate/gate.h"

struct err;

#define JOIN_GATE_OPTIONS_MAX 512
#define JOIN_START_MS	      60000 /* for the container's program to begin */

struct join_request {
	struct gate_layout layout;
	bool ipv6;		       /* docker gives an IPv6 address, too */
	char link[GATE_LINK_NAME_MAX]; /* what the link is called until docker moves it */
	char sandbox_key[256];	       /* the path at which docker makes the container's network namespace */
	char job[ATTACH_NAME_MAX + 8];
	char name[ATTACH_NAME_MAX + 8]; /* of the sandbox */
	char to[ATTACH_TO_MAX];		/* what it is, for a person */
	uint32_t risks;
	char *gate[JOIN_GATE_OPTIONS_MAX + 1]; /* netgate's options */
	size_t n_gate;
	const char *log; /* the file among them; NULL: netgate chooses one */
};

/* The job of an endpoint's gate, from its id alone. */
void join_job(char job[static ATTACH_NAME_MAX + 8], const char *endpoint);

/* The name of its link until docker moves it. */
void join_link(char link[static GATE_LINK_NAME_MAX], const char *endpoint);

/*
 * Builds the gate, and calls `ready` when it is in force and docker can move the link. Then waits for that, completes what docker
 * leaves undone, and looks whether the container has no other way out. Returns 0 when all that is done; -1 from the first
 * error on: then the gate is gone, and so is the container, unless it ran before. For a process of its own.
 */
int join_run(const struct join_request *r, void (*ready)(void *arg), void *arg, struct err *err);

/* Starts a netgate with these options and ends it, and removes its log, for whoever wants to know whether it would start. Returns 0 or -1. For a process of its own. */
int join_rehearse(const struct join_request *r, struct err *err);

/* Frees netgate's options. */
void join_free_options(struct join_request *r);

#endif
