/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a directory: the one step of planning that reads the host's directories. */
#include "sandbox-net/seal/seal_split.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/seal/seal_etc.h"

static bool is_ours(const char *dir, const char *name)
{
	if (strcmp(dir, "/etc") != 0)
		return false;
	for (size_t i = 0; i < SEAL_ETC_FILES; i++)
		if (strcmp(name, seal_etc_names[i]) == 0)
			return true;
	return false;
}

static int add_link(struct seal_plan *plan, int dir, const char *name, const char *path, struct err *err)
{
	char target[PATH_MAX];
	ssize_t n;

	n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	return seal_plan_add(plan, path, PLACE_LINK, RANK_ENTRY, target, err);
}

static int add_entry(struct seal_plan *plan, int dir, const char *dir_path, const char *name, struct err *err)
{
	const bool top = dir_path[1] == '\0';
	char path[PATH_MAX];
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0)
		return 0;
	if (is_ours(dir_path, name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
		return 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", top ? "" : dir_path, name) >= sizeof(path))
		return 0;
	if (S_ISDIR(st.st_mode))
		return seal_plan_add(plan, path, PLACE_OVERLAY, RANK_ENTRY, NULL, err);
	if (S_ISLNK(st.st_mode))
		return add_link(plan, dir, name, path, err);
	if (S_ISREG(st.st_mode) && !top)
		return seal_plan_add(plan, path, PLACE_READ_ONLY, RANK_ENTRY, NULL, err);
	return 0;
}

static size_t count_entries(DIR *d)
{
	size_t n = 0;

	while (readdir(d))
		n++;
	rewinddir(d);
	return n;
}

int seal_split(struct seal_plan *plan, size_t place, void *arg, struct err *err)
{
	char dir_path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *d;
	int rc = 0;

	(void)arg;
	snprintf(dir_path, sizeof(dir_path), "%s", plan->v[place].path);
	plan->v[place].kind = PLACE_SKELETON;
	d = opendir(dir_path);
	if (!d)
		return 0;
	if (fstat(dirfd(d), &st) == 0)
		plan->v[place].mode = st.st_mode & 0755;
	if (dir_path[1] && count_entries(d) > SEAL_SPLIT_MAX)
		plan->v[place].kind = PLACE_READ_ONLY;
	else
		while (!rc && (e = readdir(d)))
			rc = add_entry(plan, dirfd(d), dir_path, e->d_name, err);
	closedir(d);
	return rc;
}
