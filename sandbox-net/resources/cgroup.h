/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of ours in a cgroup hierarchy, netgate-PID, for one sandbox.
 *
 * Version 1 (each controller a tree of its own): it lies in the launcher's own cgroup. Version 2 (one tree): a cgroup
 * that holds processes can't share controllers out to children, so it lies in the nearest cgroup above that does so
 * already and where the launcher may move processes: with systemd, a slice of the user's own.
 *
 * The directory is locked (flock(2)) as long as its launcher lives. An unlocked one was left behind by a launcher that
 * was killed, and goes when the next one is made beside it.
 */
#ifndef SANDBOX_NET_CGROUP_H
#define SANDBOX_NET_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/resource.h"

#define CGROUP_NAME_MAX 48

struct err;
struct mount_table;

struct cgroup {
	int parent, dir; /* descriptors, CLOEXEC */
	char name[CGROUP_NAME_MAX];
};

/* Where a process is in a hierarchy, as a path in the file system; `top` bytes of it are the hierarchy's mount. */
struct cgroup_place {
	char path[PATH_MAX];
	size_t top;
};

/*
 * Where the process of `proc` (the text of its /proc/PID/cgroup) is in the hierarchy of `controller`; NULL: in that of
 * version 2. Returns false when there is no such hierarchy, or it can't be seen.
 */
bool cgroup_locate(const struct mount_table *t, const char *proc, const char *controller, struct cgroup_place *place);

/*
 * Looks for a cgroup of version 2, from `place` on upwards, that shares out as many as possible of the controllers of
 * the resources in `max` (0: not wanted). Returns the set of them (bit 1 << resource), 0 for none; `place` is then that
 * cgroup. Limits of the cgroups in between, which would be left, are taken along: `max` is lowered to them.
 */
unsigned cgroup_find_sharing(struct cgroup_place *place, uint64_t max[static RESOURCE_COUNT]);

/* Makes a cgroup in directory `path`, and removes what killed launchers left there. Returns 0 or -1. */
int cgroup_make(const char *path, struct cgroup *g, struct err *err);

/* The files of a resource: sets its limit. Returns 0 or -errno. */
int cgroup_limit(const struct cgroup *g, enum resource_holder version, enum resource which, uint64_t max);

/* Moves the calling process into it. Returns 0 or -errno. */
int cgroup_enter(const struct cgroup *g);

/* Adds how often the limit was met. */
void cgroup_read_hits(const struct cgroup *g, enum resource_holder version, enum resource which,
		      struct resource_hits *hits);

/* Closes the descriptors. */
void cgroup_close(struct cgroup *g);

/* Removes the cgroup, whose processes are gone, and closes the descriptors. */
void cgroup_remove(struct cgroup *g);

#endif
