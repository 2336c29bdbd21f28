/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/seal/reach.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/seal/mount_table.h"
#include "sandbox-net/seal/seal_creds.h"

#define LINKS_MAX 40 /* as the kernel: path_resolution(7) */

bool reach_by_user(const struct user *u, bool privileged, const char *path)
{
	gid_t groups[USER_GROUPS_MAX];
	struct seal_creds saved;
	struct err err;
	int n, fd = -1;

	if (!privileged || u->uid == 0)
		return true;
	n = getgroups(USER_GROUPS_MAX, groups);
	if (n < 0 || (u->n_groups != SIZE_MAX && setgroups(u->n_groups, u->groups)))
		return false;
	if (seal_creds_take(&saved, u->uid, u->gid, &err) == 0) {
		fd = open(path, O_PATH | O_CLOEXEC);
		if (seal_creds_restore(&saved, &err)) {
			close(fd);
			fd = -1;
		}
	}
	if (setgroups((size_t)n, groups) || fd < 0)
		return false;
	close(fd);
	return true;
}

static bool is_at(const char *path, const char *const *places, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (places[i] && places[i][0] && (strcmp(path, places[i]) == 0 || mount_path_is_below(path, places[i])))
			return true;
	return false;
}

/* Takes the last name off. */
static void strip(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

bool reach_through(const char *path, const char *const *places, size_t n)
{
	char rest[PATH_MAX], at[PATH_MAX] = "", target[PATH_MAX], next[PATH_MAX];
	int links = 0;

	if (path[0] != '/' || snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return true;
	for (;;) {
		size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/");
		size_t end = strlen(at);
		ssize_t got;

		if (len == 0)
			return false;
		if (end + 1 + len >= sizeof(at))
			return true;
		snprintf(at + end, sizeof(at) - end, "/%.*s", (int)len, rest + skip);
		memmove(rest, rest + skip + len, strlen(rest + skip + len) + 1);
		if (strcmp(at + end, "/.") == 0 || strcmp(at + end, "/..") == 0) {
			bool up = at[end + 2] == '.';

			at[end] = '\0';
			if (up)
				strip(at);
			continue;
		}
		if (is_at(at, places, n))
			return true;
		got = readlink(at, target, sizeof(target) - 1);
		if (got < 0)
			continue;
		target[got] = '\0';
		if (++links > LINKS_MAX || snprintf(next, sizeof(next), "%s%s", target, rest) >= (int)sizeof(next))
			return true;
		memcpy(rest, next, strlen(next) + 1);
		if (target[0] == '/')
			at[0] = '\0';
		else
			strip(at);
	}
}
