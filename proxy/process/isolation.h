/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy gives up, in two stages, all that it does not need. What it still
 * works with arrived as descriptors before.
 *
 * Stage 1, isolation_drop_privileges(): no capability, no supplementary
 * group, as root another uid (nobody; its own where a user namespace has no such uid); no_new_privs; not traceable, no core file.
 *   should:  everything that needs no privilege
 *   mustn't: read a root-owned file, change a rule, a route, a log that it doesn't hold
 * Stage 2, isolation_seccomp(): only the system calls of a relay.
 *   should:  accept, TCP and UDP sockets of IPv4 and IPv6, read, write, splice, memory, clocks
 *   mustn't: open any path, create another kind of socket, execute, fork, trace, map executable memory
 * A path that is opened all the same is refused with EACCES; anything else ends the process.
 */
#ifndef PROXY_PROCESS_ISOLATION_H
#define PROXY_PROCESS_ISOLATION_H

#include <stdbool.h>

struct err;

/* True when there is a uid and a gid of nobody to become: in a user namespace of a single uid there is none. */
bool isolation_can_be_nobody(void);

/* Stage 1. Returns 0 or -1; after an error the process must end. */
int isolation_drop_privileges(struct err *err);
/* Stage 2, after stage 1. Returns 0 or -1; after an error the process must end. */
int isolation_seccomp(struct err *err);

#endif
