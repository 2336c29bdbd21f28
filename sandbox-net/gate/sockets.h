/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of G that the proxy works with (enum handoff_fd). */
#ifndef SANDBOX_NET_SOCKETS_H
#define SANDBOX_NET_SOCKETS_H

struct err;

/*
 * Opens all sockets but HANDOFF_GUEST in the present network namespace, CLOEXEC and
 * non-blocking, as enum handoff_fd describes them. Needs CAP_NET_ADMIN over it.
 * Returns 0; or -1 with every fds[i] closed and -1.
 */
int sockets_open(int *fds, struct err *err);

/*
 * Opens HANDOFF_GUEST, CLOEXEC and non-blocking: a packet socket of the link with
 * index `gw` that gets ARP, neighbour solicitations and DHCP of the guest, and nothing else, by a
 * filter that can't be taken off again. Returns 0; or -1 with *fd closed and -1.
 */
int sockets_open_guest(int gw, int *fd, struct err *err);

/* Closes what is open of fds[0 … HANDOFF_FDS-1] and sets all to -1. */
void sockets_close(int *fds);

#endif
