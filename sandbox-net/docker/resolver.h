/* SPDX-License-Identifier: Apache-2.0 */
/* Docker's own name server, which a container asks at 127.0.0.11: whether it would ask on from the host's network namespace. */
#ifndef SANDBOX_NET_DOCKER_RESOLVER_H
#define SANDBOX_NET_DOCKER_RESOLVER_H

#include <jansson.h>

struct err;

/* Where dockerd finds the host's name servers: the first, or the second in its place where the first has systemd-resolved's stub alone. */
#define RESOLVER_USUAL	 "/etc/resolv.conf"
#define RESOLVER_SYSTEMD "/run/systemd/resolve/resolv.conf"

/*
 * `options`: those of a CreateEndpoint request, in which docker says what name servers were given for the container (--dns) or for all of
 * them ("dns" in daemon.json, or dockerd's --dns). `usual`, `systemd`: paths of the two files. Returns 0 where docker's server can't ask from the host; else
 * -1 with the reason.
 */
int resolver_check(const json_t *options, const char *usual, const char *systemd, struct err *err);

#endif
