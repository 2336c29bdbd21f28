/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of the staging file system that lie behind skeleton and scratch places. */
#include "sandbox-net/seal/seal_backing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/seal/mount_table.h"
#include "sandbox-net/seal/seal_etc.h"

static bool is_skeleton(const struct place *p)
{
	return p->kind == PLACE_SKELETON || p->kind == PLACE_SCRATCH;
}

/* True when what will lie at `p` is a file rather than a directory. */
static bool is_file(int host_root, const struct place *p)
{
	struct stat st;

	if (p->kind == PLACE_ETC_FILE)
		return true;
	if (p->kind != PLACE_READ_ONLY && p->kind != PLACE_REAL)
		return false;
	return fstatat(host_root, p->path[1] ? p->path + 1 : ".", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !S_ISDIR(st.st_mode);
}

int seal_enter_dir(int dir, const char *name, const struct user *owner)
{
	int fd, made;

	made = mkdirat(dir, name, 0755) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made && owner && fchown(fd, owner->uid, owner->gid)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* The last component: a directory, an empty file or a link. */
static int make_leaf(int host_root, int dir, const char *name, const struct place *p, const struct user *owner)
{
	int fd;

	if (p->kind == PLACE_LINK)
		return symlinkat(p->link, dir, name) && errno != EEXIST ? -errno : 0;
	if (is_file(host_root, p)) {
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
		fd = fd < 0 ? -errno : fd;
	} else {
		fd = seal_enter_dir(dir, name, owner);
	}
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Makes the way from directory `top`, which stays open, to place `p`; `rest` is its path from there. */
static int make_way(int host_root, int top, const char *rest, const struct place *p, const struct user *owner)
{
	char name[NAME_MAX + 1];
	int dir = dup(top), next, rc;
	size_t n;

	while (dir >= 0) {
		rest += *rest == '/';
		n = strcspn(rest, "/");
		if (n == 0 || n > NAME_MAX) {
			close(dir);
			return -ENAMETOOLONG;
		}
		memcpy(name, rest, n);
		name[n] = '\0';
		rest += n;
		if (!*rest) {
			rc = make_leaf(host_root, dir, name, p, owner);
			close(dir);
			return rc;
		}
		next = seal_enter_dir(dir, name, owner);
		close(dir);
		dir = next;
	}
	return dir;
}

int seal_make_backing(int stage, int host_root, const struct seal_plan *plan, size_t i, const struct user *user,
		      struct err *err)
{
	const struct place *p = &plan->v[i];
	const struct user *owner = p->users ? user : NULL;
	char name[32];
	int dir, rc;

	snprintf(name, sizeof(name), "p%zu", i);
	dir = seal_enter_dir(stage, name, owner);
	if (dir < 0)
		return err_set_errno(err, -dir, "cannot prepare %s", p->path);
	for (size_t k = i + 1; k < plan->n && is_skeleton(p); k++) {
		const struct place *inside = &plan->v[k];

		if (!mount_path_is_below(inside->path, p->path))
			break;
		if (inside->parent != i)
			continue;
		rc = make_way(host_root, dir, inside->path + (p->path[1] ? strlen(p->path) : 0), inside, owner);
		if (rc) {
			close(dir);
			return err_set_errno(err, -rc, "cannot prepare %s", inside->path);
		}
	}
	if (strcmp(p->path, "/etc") == 0 && is_skeleton(p) && seal_etc_write(dir, host_root, err)) {
		close(dir);
		return -1;
	}
	if (fchmod(dir, p->mode)) {
		close(dir);
		return err_set_errno(err, errno, "cannot prepare %s", p->path);
	}
	return dir;
}
