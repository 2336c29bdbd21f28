/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a container's own program has begun: until then, the processes in its namespaces are the runtime's. */
#ifndef SANDBOX_NET_DOCKER_PROGRAM_H
#define SANDBOX_NET_DOCKER_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether there is a process in the network namespace with this device and inode that is not known to be the runtime's: whose root directory is
 * another than ours, and whose name is none that runc gives itself between taking that root and running the program.
 */
bool program_begun(uint64_t dev, uint64_t ino);

#endif
