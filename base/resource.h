/* SPDX-License-Identifier: Apache-2.0 */
/* What a command may use of the machine, and what holds it to that: words that launcher, monitor and proxy share. */
#ifndef BASE_RESOURCE_H
#define BASE_RESOURCE_H

#include <stdint.h>

enum resource {
	RESOURCE_MEMORY, /* bytes */
	RESOURCE_PIDS,	 /* processes and threads */
	RESOURCE_CPUS,	 /* thousandths of a processor */
	RESOURCE_COUNT
};

enum resource_holder {
	HOLDER_NONE, /* there is no limit */
	HOLDER_CGROUP2,
	HOLDER_CGROUP1,
	HOLDER_RLIMIT, /* setrlimit(2) in each process */
	HOLDER_COUNT
};

/* How often a limit was met. */
struct resource_hits {
	uint64_t oom_kills;	/* processes that the kernel killed at the memory limit */
	uint64_t forks_refused; /* processes and threads that could not be made */
};

#endif
