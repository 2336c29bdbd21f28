/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of G that the proxy works with (enum handoff_fd). */
#ifndef SANDBOX_NET_SOCKETS_H
#define SANDBOX_NET_SOCKETS_H

struct err;

/*
 * Opens all HANDOFF_FDS sockets in the present network namespace, CLOEXEC and
 * non-blocking, as enum handoff_fd describes them. Needs CAP_NET_ADMIN over it.
 * Returns 0; or -1 with every fds[i] closed and -1.
 */
int sockets_open(int *fds, struct err *err);

/* Closes what is open of fds[0 … HANDOFF_FDS-1] and sets all to -1. */
void sockets_close(int *fds);

#endif
