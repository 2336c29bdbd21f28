/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of docker and podman, which are asked for a number and for capabilities. */
#ifndef SANDBOX_NET_CONTAINER_H
#define SANDBOX_NET_CONTAINER_H

#include <stdint.h>
#include <sys/types.h>

struct err;

struct container {
	pid_t pid; /* its first process */
	/* At least those that it was given beyond the usual, and so has what is started in it later; bits as in capability.h. */
	uint64_t caps;
};

/*
 * What `docker inspect` or `podman inspect` tells of a container: `program` from /usr/bin, where root alone
 * puts programs, or else as PATH finds it: root does not run what another user put in its way. Returns 0; -1 also for one that does not run.
 */
int container_look(const char *program, const char *name, struct container *c, struct err *err);

#endif
