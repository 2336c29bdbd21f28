/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command may use of the machine, as a whole: each limit is held by a cgroup of version 2 where one can be
 * had, else of version 1, else by setrlimit(2) as far as that does it. In order:
 *
 *   launcher   resources_make()     while it still has its privilege
 *   init       resources_enter()    first of all, so that everything in the sandbox is in there, and nothing can leave:
 *                                   the root of the sandbox's cgroup namespace is then this cgroup
 *              resources_set_rlimits()
 *   launcher   resources_end()      when init is gone
 */
#ifndef SANDBOX_NET_RESOURCES_H
#define SANDBOX_NET_RESOURCES_H

#include "base/resource.h"
#include "sandbox-net/resources/cgroup.h"

#define RESOURCES_NOTE_MAX 256

struct resources {
	uint64_t max[RESOURCE_COUNT];		     /* 0: no limit */
	enum resource_holder holder[RESOURCE_COUNT]; /* who holds the command to it */
	struct cgroup groups[RESOURCE_COUNT];
	int group_of[RESOURCE_COUNT]; /* index into groups; -1: none */
	int n_groups;
	char note[RESOURCES_NOTE_MAX]; /* what the summary must say; "": nothing */
};

/*
 * Makes what holds a command of `uid` to the limits in `max` (bytes, processes, thousandths of a processor; 0: none).
 * Returns 0; or -1 when one of them can't be had at all, with nothing left behind.
 */
int resources_make(struct resources *r, const uint64_t max[static RESOURCE_COUNT], unsigned uid, struct err *err);

/* In init: moves the caller into the cgroups and a cgroup namespace, and closes them. Returns 0 or -1. */
int resources_enter(struct resources *r, struct err *err);

/*
 * In init, as the command's user: the limits that setrlimit(2) holds. `own`: how many processes of netgate's are in S's
 * user namespace and count too. Returns 0 or -1.
 */
int resources_set_rlimits(const struct resources *r, unsigned own, struct err *err);

/* When everything in the sandbox is gone: says what happened at the limits and removes the cgroups. Twice does no harm. */
void resources_end(struct resources *r, struct resource_hits *hits);

#endif
