/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who of those whose /proc/PID/ns the caller may not read is in a network namespace. The kernel shows it to nobody of a process whose
 * program its user can't read, to that user and whoever is root in his user namespaces neither; but which sockets its network has, it
 * shows to everybody.
 */
#ifndef SANDBOX_NET_HIDDEN_H
#define SANDBOX_NET_HIDDEN_H

#include <stdbool.h>
#include <stdint.h>

struct err;

struct hidden {
	int fd; /* a socket in the namespace */
	uint64_t inode;
};

/* For the namespace of this descriptor, -1: the caller's own. The socket is the caller's to close. Returns 0 or -1. */
int hidden_open(struct hidden *h, int netns, struct err *err);

/*
 * Whether a process or a thread (by its name in a directory of /proc) is in there. False with errno as of open(2) when that can't be found
 * out, EACCES when it is not in there.
 */
bool hidden_is_in(const struct hidden *h, int dir, const char *name);

#endif
