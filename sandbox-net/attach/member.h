/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in which network namespace: asked of every process of a host, which may have thousands. */
#ifndef SANDBOX_NET_MEMBER_H
#define SANDBOX_NET_MEMBER_H

#include <stdint.h>

/*
 * The inode of the network namespace in which a process or thread is at this moment. `dir` is a descriptor of /proc or of a
 * process's task directory, `pid` a name in it. 0 with errno when it has ended, or the caller may not look into it.
 */
uint64_t member_network(int dir, const char *pid);

#endif
