/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of docker and podman, which are asked for no more than a number. */
#ifndef SANDBOX_NET_CONTAINER_H
#define SANDBOX_NET_CONTAINER_H

#include <sys/types.h>

struct err;

/*
 * The first process of a container, as `docker inspect` or `podman inspect` tells it: `program` from /usr/bin, or else as PATH
 * finds it. Returns 0; -1 also for one that does not run.
 */
int container_pid(const char *program, const char *name, pid_t *pid, struct err *err);

#endif
