/* SPDX-License-Identifier: Apache-2.0 */
/* Mount operations on descriptors. */
#include "sandbox-net/seal/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int mounts_open(int root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH,
	};
	long fd;

	while (*path == '/')
		path++;
	fd = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

int mounts_clone(int source, bool recursive, uint64_t attrs)
{
	struct mount_attr attr = { .attr_set = attrs };
	unsigned at = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);
	int fd, rc;

	fd = open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | at);
	if (fd < 0)
		return -errno;
	if (attrs && mount_setattr(fd, "", at, &attr, sizeof(attr))) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* Creates the superblock that `fs` describes and a detached mount of it; closes `fs`. */
static int create(int fs, uint64_t attrs)
{
	int fd = -1, rc;

	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
	rc = fd < 0 ? -errno : fd;
	close(fs);
	return rc;
}

int mounts_new(const char *type, const char *const *options, uint64_t attrs)
{
	int fs;

	fs = fsopen(type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	for (; options && options[0]; options += 2) {
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[0], options[1], 0)) {
			int rc = -errno;

			close(fs);
			return rc;
		}
	}
	return create(fs, attrs);
}

int mounts_overlay(int upper, int lower)
{
	char dirs[64];
	/* Redirects that some other overlay left in extended attributes mean nothing here. */
	const char *const options[] = { "lowerdir", dirs, "redirect_dir", "nofollow", NULL };

	/* By descriptor: a path could hold the ':' and ',' that separate things here, and would show in mountinfo. */
	snprintf(dirs, sizeof(dirs), "/proc/self/fd/%d:/proc/self/fd/%d", upper, lower);
	return mounts_new("overlay", options, MOUNT_ATTR_RDONLY | MOUNTS_SAFE);
}

int mounts_attach(int mount, int target)
{
	int rc = 0;

	if (move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
		rc = -errno;
	close(mount);
	return rc;
}
