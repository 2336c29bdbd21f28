/* SPDX-License-Identifier: Apache-2.0 */
/* What a process may do to a network, by its capabilities. */
#ifndef SANDBOX_NET_CAPS_H
#define SANDBOX_NET_CAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/capability.h>

/* To change links and rules; or to enter a namespace, and then do that. */
#define CAPS_DANGEROUS (UINT64_C(1) << CAP_NET_ADMIN | UINT64_C(1) << CAP_SYS_ADMIN)

struct caps {
	uint64_t has;  /* bits as in capability.h */
	uint64_t may;  /* that it has or may gain */
	bool filtered; /* by seccomp */
};

/*
 * Reads those of a process or thread from its directory in /proc. What it may gain: by executing a file, its bounding and its
 * inheritable set; nothing where it has no_new_privs. What is not said there it has. False when it has ended.
 */
bool caps_read(int dir, struct caps *caps);

#endif
