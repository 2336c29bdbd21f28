/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network driver for docker (libnetwork's remote driver protocol): each container of such a network gets a gate of its
 * own as its only way out, at the addresses that docker hands out.
 */
#ifndef SANDBOX_NET_DOCKER_H
#define SANDBOX_NET_DOCKER_H

#define DOCKER_FAILED 125

/* sandbox-net docker-driver: serves dockerd until a signal ends it; the gates go on. Returns the exit status. */
int docker_driver_main(int argc, char **argv);

#endif
