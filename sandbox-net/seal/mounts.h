/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few mount operations that building a tree takes, on descriptors all the
 * way (fsopen(2), open_tree(2), move_mount(2), mount_setattr(2)): no path is
 * walked twice, so none can be swapped in between. Linux 5.12 and later.
 */
#ifndef SANDBOX_NET_MOUNTS_H
#define SANDBOX_NET_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>

#define MOUNTS_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) /* on all that we mount, device nodes of /dev excepted */

struct err;

/*
 * Opens absolute `path` below directory `root` (O_PATH), following no symbolic
 * link in any component and never leaving it. Returns the descriptor or -errno.
 */
int mounts_open(int root, const char *path);

/* A detached copy of what `source` (a descriptor) shows, with its mounts when `recursive`. Returns it or -errno. */
int mounts_clone(int source, bool recursive, uint64_t attrs);

/*
 * A detached read-only overlay over the directories `upper` and `lower`
 * (descriptors; where both have a name, `upper` is seen). Returns it or -errno.
 */
int mounts_overlay(int upper, int lower);

/* A detached new instance of file system `type`; `options` is a NULL-terminated list of key, value, … Returns it or -errno. */
int mounts_new(const char *type, const char *const *options, uint64_t attrs);

/* Attaches detached mount `mount` at `target` (a descriptor) and closes it. Returns 0 or -errno. */
int mounts_attach(int mount, int target);

#endif
