/* SPDX-License-Identifier: Apache-2.0 */
/* Which socket has these addresses: the kernel's sock_diag(7), asked about one socket at a time. */
#ifndef PROXY_PROCESS_SOCKDIAG_H
#define PROXY_PROCESS_SOCKDIAG_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define SOCKDIAG_MAX 512 /* bytes that any request or answer fits into */

struct sockdiag_query {
	uint8_t protocol;	       /* IPPROTO_TCP or IPPROTO_UDP */
	struct endpoint local, remote; /* as the socket has them; of one family */
	uint32_t ifindex;	       /* that it may be bound to; 0: only sockets that are not bound to a link */
	uint32_t seq;
};

/* A NETLINK_SOCK_DIAG socket of the caller's network namespace, which it keeps alive. Returns it, or -errno. */
int sockdiag_open(void);

/*
 * The inode of the socket, the number in /proc/PID/fd's "socket:[N]". Never
 * waits. Returns 0; -ENOENT when there is no such socket, or only what is left of one that nobody holds any more; other -errno.
 */
int sockdiag_inode(int fd, const struct sockdiag_query *q, uint32_t *inode);

/* Its parts: the request, into SOCKDIAG_MAX bytes aligned for a netlink header; returns its length. */
size_t sockdiag_request(const struct sockdiag_query *q, void *buf);

/* And what the `len` bytes of a datagram answer, likewise aligned. -EAGAIN: nothing of this query; -EBADMSG. */
int sockdiag_answer(const struct sockdiag_query *q, const void *buf, size_t len, uint32_t *inode);

#endif
