/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for, checked against what nobody means, and what is always so: the plan before the host's mounts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/caller/options.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/seal/mount_table.h"
#include "sandbox-net/seal/reach.h"
#include "sandbox-net/seal/seal.h"
#include "sandbox-net/seal/seal_etc.h"
#include "sandbox-net/seal/seal_paths.h"
#include "sandbox-net/seal/seal_split.h"

static int real_path(const char *option, const char *path, char out[static PATH_MAX], struct err *err)
{
	if (!realpath(path, out))
		return err_set_errno(err, errno, "%s %s", option, path);
	return 0;
}

void seal_find_homes(const struct user *u, char homes[2][PATH_MAX])
{
	const char *env = u->is_caller ? getenv("HOME") : NULL;

	homes[0][0] = homes[1][0] = '\0';
	if (u->home[0] != '/' || !realpath(u->home, homes[0]))
		homes[0][0] = '\0';
	if (!env || env[0] != '/' || !realpath(env, homes[1]) || strcmp(homes[0], homes[1]) == 0)
		homes[1][0] = '\0';
}

/* Directories that belong to the system: a "home" in there (daemon: /usr/sbin) isn't one, and nobody works in them. */
static bool is_system_dir(const char *path)
{
	static const char *const dirs[] = { "/usr",    "/bin", "/sbin", "/lib", "/lib32", "/lib64",
					    "/libx32", "/etc", "/boot", "/dev", "/proc",  "/sys" };

	if (strcmp(path, "/") == 0 || strcmp(path, "/var") == 0)
		return true;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		if (mount_path_is_at_or_below(path, dirs[i]))
			return true;
	return false;
}

/* Why `path` is too much to hand over as a workspace that one just happens to be in; NULL when it is not. */
static const char *too_wide(const char *path, const struct user *u)
{
	static const char *const shared[] = { "/tmp", "/var/tmp", "/run", "/home" };
	char homes[2][PATH_MAX];

	seal_find_homes(u, homes);
	if (strcmp(path, "/") == 0)
		return "the whole file system";
	for (size_t i = 0; i < 2; i++) {
		if (!homes[i][0] || is_system_dir(homes[i]))
			continue;
		if (strcmp(path, homes[i]) == 0)
			return "the home directory, with its keys and tokens";
		if (mount_path_is_below(homes[i], path))
			return "above the home directory";
	}
	if (is_system_dir(path))
		return "a directory of the system";
	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		if (strcmp(path, shared[i]) == 0)
			return "shared with every other program, sockets included";
	return NULL;
}

/* True when a --write path is `path` or above it; false too for those that don't exist, which is reported later. */
static bool is_written_on_purpose(const struct options *o, const char *path)
{
	char real[PATH_MAX];

	for (size_t i = 0; i < o->write.n; i++)
		if (realpath(o->write.v[i], real) && mount_path_is_at_or_below(path, real))
			return true;
	return false;
}

int seal_choose_workspace(struct seal *s, struct err *err)
{
	const struct options *o = s->options;
	char here[PATH_MAX], base[PATH_MAX];
	const char *why;
	struct stat st;

	s->workspace[0] = '\0';
	if (!getcwd(here, sizeof(here)))
		return errno == ENOENT ? err_set(err, "the current directory was removed; change to another one")
				       : err_set_errno(err, errno, "the current directory; change to another one");
	if (real_path("--workspace", o->workspace ? o->workspace : here, base, err))
		return -1;
	if (stat(base, &st) || !S_ISDIR(st.st_mode))
		return err_set(err, "--workspace %s: not a directory", base);
	if (!reach_by_user(s->user, s->privileged, o->workspace ? o->workspace : base))
		return err_set(err, "--workspace %s: user %s has no way to it", base, s->user->name);
	if (o->fs == OPTIONS_FS_SEALED && !is_written_on_purpose(o, base)) {
		why = too_wide(base, s->user);
		if (why)
			return err_set(
				err,
				"the workspace would be %s: %s. Change to a project's directory or name one with "
				"--workspace DIR; to make all of it writable on purpose, --write %s",
				base, why, base);
		snprintf(s->workspace, sizeof(s->workspace), "%s", base);
	}
	if ((o->fs == OPTIONS_FS_SEALED && is_written_on_purpose(o, here)) || mount_path_is_at_or_below(here, base))
		snprintf(s->cwd, sizeof(s->cwd), "%s", here);
	else
		snprintf(s->cwd, sizeof(s->cwd), "%s", base);
	return 0;
}

/* A directory of ours, at the real place of `path`; none when the host has no such path. */
static int add_fresh(struct seal_plan *plan, const char *path, enum place_kind kind, mode_t mode, struct err *err)
{
	char real[PATH_MAX];

	if (!realpath(path, real)) {
		if (strchr(path + 1, '/'))
			return 0;
		snprintf(real, sizeof(real), "%s", path);
	}
	if (seal_plan_add(plan, real, kind, RANK_FRESH, NULL, err))
		return -1;
	if (mode)
		seal_plan_at(plan, real)->mode = mode;
	return 0;
}

/* What programs ask of /sys: how many processors and memory nodes there are, and the size of huge pages. */
static int add_sys(struct seal_plan *plan, struct err *err)
{
	static const char *const shown[] = { "/sys/devices/system/cpu", "/sys/devices/system/node",
					     "/sys/kernel/mm/transparent_hugepage" };

	if (add_fresh(plan, "/sys", PLACE_SKELETON, 0, err))
		return -1;
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		if (add_fresh(plan, shown[i], PLACE_READ_ONLY, 0, err))
			return -1;
	return 0;
}

static int add_homes(const struct seal *s, struct seal_plan *plan, struct err *err)
{
	static const char *const all[] = { "/home", "/root" };
	char homes[2][PATH_MAX], real[PATH_MAX];
	struct place *p;

	for (size_t i = 0; i < 2; i++) {
		if (add_fresh(plan, all[i], PLACE_SKELETON, 0, err))
			return -1;
		p = seal_plan_at(plan, realpath(all[i], real) ? real : all[i]);
		if (p)
			p->home = true;
	}
	seal_find_homes(s->user, homes);
	for (size_t i = 0; i < 2; i++) {
		if (!homes[i][0] || is_system_dir(homes[i]))
			continue;
		if (add_fresh(plan, homes[i], PLACE_SCRATCH, 0, err))
			return -1;
		p = seal_plan_at(plan, homes[i]);
		p->users = p->home = true;
	}
	return 0;
}

static int add_fresh_places(const struct seal *s, struct seal_plan *plan, struct err *err)
{
	if (add_fresh(plan, "/dev", PLACE_DEV, 0, err) || add_fresh(plan, "/proc", PLACE_PROC, 0, err) ||
	    add_sys(plan, err))
		return -1;
	if (s->options->fs == OPTIONS_FS_HOST)
		return 0;
	if (add_fresh(plan, "/tmp", PLACE_SCRATCH, 01777, err) || add_fresh(plan, "/run", PLACE_SCRATCH, 0755, err) ||
	    add_fresh(plan, "/var/tmp", PLACE_SCRATCH, 01777, err))
		return -1;
	return add_homes(s, plan, err);
}

int seal_add_link(struct seal_plan *plan, const char *given, const char *real, enum place_rank rank, struct err *err)
{
	const struct place *above = seal_plan_above(plan, given);

	if (given[0] != '/' || strcmp(given, real) == 0 || strstr(given, "/.") || strstr(given, "//") ||
	    given[strlen(given) - 1] == '/' || seal_plan_at(plan, given))
		return 0;
	if (!above || (above->kind != PLACE_SKELETON && above->kind != PLACE_SCRATCH))
		return 0;
	return seal_plan_add(plan, given, PLACE_LINK, rank, real, err);
}

/* One --read or --write: a directory or a plain file, and none of those that are always the sandbox's own. */
static int add_asked(struct seal_plan *plan, const char *given, bool writable, struct err *err)
{
	const char *option = writable ? "--write" : "--read";
	char real[PATH_MAX];
	struct stat st;

	if (real_path(option, given, real, err))
		return -1;
	if (stat(real, &st))
		return err_set_errno(err, errno, "%s %s", option, given);
	if (strcmp(real, "/") == 0)
		return err_set(err, "%s /: for the whole tree, say --fs host", option);
	if (mount_path_is_at_or_below(real, "/proc") || mount_path_is_at_or_below(real, "/sys") ||
	    mount_path_is_at_or_below(real, "/dev"))
		return err_set(err, "%s %s: /proc, /sys and /dev are always the sandbox's own", option, given);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, "%s %s: neither a directory nor a plain file", option, given);
	if (seal_plan_add(plan, real,
			  writable		? PLACE_REAL
			  : S_ISDIR(st.st_mode) ? PLACE_OVERLAY
						: PLACE_READ_ONLY,
			  writable ? RANK_WRITE : RANK_READ, NULL, err))
		return -1;
	return seal_add_link(plan, given, real, writable ? RANK_WRITE : RANK_READ, err);
}

/* True when one of `paths` is `path` itself, by whatever name. */
static bool is_named(const struct options_paths *paths, const char *path)
{
	char real[PATH_MAX];

	for (size_t i = 0; i < paths->n; i++)
		if (realpath(paths->v[i], real) && strcmp(real, path) == 0)
			return true;
	return false;
}

/*
 * The workspace: real, or only shown when --read names it. A --read above it
 * may mean either, so it takes a word about the workspace itself.
 */
static int add_workspace(const struct seal *s, struct seal_plan *plan, struct err *err)
{
	const struct options *o = s->options;
	char real[PATH_MAX];

	if (is_named(&o->read, s->workspace))
		return 0;
	for (size_t i = 0; i < o->read.n && !is_written_on_purpose(o, s->workspace); i++)
		if (realpath(o->read.v[i], real) && mount_path_is_below(s->workspace, real))
			return err_set(
				err,
				"--read %s: the workspace %s is in there, and would be writable all the same. Say "
				"--read %s too to have it read-only, or --write %s",
				o->read.v[i], s->workspace, s->workspace, s->workspace);
	return seal_plan_add(plan, s->workspace, PLACE_REAL, RANK_WRITE, NULL, err);
}

/* True when a directory lies between a writable place and `path`: it can be renamed, with the mount that hides `path`. */
static bool is_movable(const struct seal *s, const char *path)
{
	const struct options *o = s->options;
	char real[PATH_MAX];

	if (s->workspace[0] && !is_named(&o->read, s->workspace) && mount_path_is_below(path, s->workspace) &&
	    strchr(path + strlen(s->workspace) + 1, '/'))
		return true;
	for (size_t i = 0; i < o->write.n; i++)
		if (realpath(o->write.v[i], real) && mount_path_is_below(path, real) &&
		    strchr(path + strlen(real) + 1, '/'))
			return true;
	return false;
}

static int add_hidden(const struct seal *s, struct seal_plan *plan, const char *given, struct err *err)
{
	char real[PATH_MAX];

	if (!realpath(given, real))
		return err_set_errno(err, errno, "--hide %s", given);
	if (s->workspace[0] && mount_path_is_at_or_below(s->workspace, real))
		return err_set(err,
			       "%s must not be seen by the command, but is the workspace or above it: keep the log in "
			       "another directory, or name another workspace with --workspace DIR",
			       real);
	if (s->options->fs == OPTIONS_FS_SEALED && is_movable(s, real))
		return err_set(
			err,
			"%s must stay out of the command's hands, but lies below a directory that the command may "
			"write, and so rename: keep the log outside of it, or directly in the workspace",
			real);
	return seal_plan_add(plan, real, PLACE_HIDDEN, RANK_HIDE, NULL, err);
}

/*
 * For root, what is shown unasked is what nobody may see; the way to what was
 * asked for must not end in a directory that nobody may enter: that one becomes a skeleton.
 */
static int open_way(struct seal_plan *plan, const char *path, struct err *err)
{
	char above[PATH_MAX];
	struct stat st;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (seal_plan_at(plan, above) && seal_plan_at(plan, above)->rank >= RANK_READ)
			return 0;
		if (stat(above, &st) == 0 && !(st.st_mode & S_IXOTH))
			return seal_plan_at(plan, above)
				       ? 0
				       : seal_plan_add(plan, above, PLACE_SKELETON, RANK_FRESH, NULL, err);
	}
	return 0;
}

static int open_ways(const struct seal *s, struct seal_plan *plan, struct err *err)
{
	for (size_t i = 0; s->user->uid == 0 && i < plan->n; i++) {
		char path[PATH_MAX];

		if (plan->v[i].rank != RANK_READ && plan->v[i].rank != RANK_WRITE)
			continue;
		snprintf(path, sizeof(path), "%s", plan->v[i].path); /* the plan may move */
		if (open_way(plan, path, err))
			return -1;
	}
	return 0;
}

static int add_requests(const struct seal *s, struct seal_plan *plan, struct err *err)
{
	const struct options *o = s->options;

	if (o->fs == OPTIONS_FS_SEALED) {
		if (seal_add_tools(s, plan, err))
			return -1;
		for (size_t i = 0; i < o->read.n; i++)
			if (add_asked(plan, o->read.v[i], false, err))
				return -1;
		if (s->workspace[0] && add_workspace(s, plan, err))
			return -1;
		for (size_t i = 0; i < o->write.n; i++)
			if (add_asked(plan, o->write.v[i], true, err))
				return -1;
		if (open_ways(s, plan, err))
			return -1;
	}
	for (size_t i = 0; i < o->hide.n; i++)
		if (add_hidden(s, plan, o->hide.v[i], err))
			return -1;
	return 0;
}

/* With the host's tree: our name service files over its own, and the resolvers that listen on Unix sockets taken out. */
static int add_host_etc(struct seal_plan *plan, struct err *err)
{
	static const char *const resolvers[] = { "/run/systemd/resolve", "/run/nscd", "/var/run/nscd" };
	char path[64], real[PATH_MAX];

	for (size_t i = 0; i < sizeof(resolvers) / sizeof(*resolvers); i++)
		if (realpath(resolvers[i], real) && add_fresh(plan, real, PLACE_SKELETON, 0, err))
			return -1;
	for (size_t i = 0; i < SEAL_ETC_FILES; i++) {
		snprintf(path, sizeof(path), "/etc/%s", seal_etc_names[i]);
		if (realpath(path, real) &&
		    seal_plan_add(plan, real, PLACE_ETC_FILE, RANK_FRESH, seal_etc_names[i], err))
			return -1;
	}
	return 0;
}

/* /etc has our files on top, however it is shown. */
static int add_etc(struct seal_plan *plan, struct err *err)
{
	struct place *p = seal_plan_at(plan, "/etc");

	if (!p || p->kind == PLACE_LINK)
		return 0;
	if (p->kind == PLACE_REAL)
		return add_host_etc(plan, err);
	p->kind = PLACE_ETC;
	return 0;
}

static int add_sealed_tree(const struct seal *s, struct seal_plan *plan, const struct mount_table *t, struct err *err)
{
	char path[64];

	if (seal_plan_add(plan, "/", PLACE_SKELETON, RANK_ENTRY, NULL, err) ||
	    seal_split(plan, (size_t)(seal_plan_at(plan, "/") - plan->v), NULL, err) || add_etc(plan, err) ||
	    seal_plan_add_mounts(plan, t, s->privileged ? NULL : seal_split, NULL, err))
		return -1;
	for (size_t i = 0; i < SEAL_ETC_FILES; i++) {
		snprintf(path, sizeof(path), "/etc/%s", seal_etc_names[i]);
		seal_plan_drop(plan, path, RANK_MOUNT);
	}
	return 0;
}

/* The real thing around it: the command can't touch what is hidden, but a file that takes its name is another one. */
static bool hides_in_reach(const struct seal_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct place *above;

		if (plan->v[i].rank != RANK_HIDE)
			continue;
		above = seal_plan_above(plan, plan->v[i].path);
		if (above && above->kind == PLACE_REAL)
			return true;
	}
	return false;
}

int seal_make_plan(struct seal *s, struct seal_plan *plan, struct err *err)
{
	struct mount_table t;
	int rc;

	*plan = (struct seal_plan){ 0 };
	if (add_fresh_places(s, plan, err) || add_requests(s, plan, err))
		return -1;
	if (mount_table_read(&t, err))
		return -1;
	if (s->options->fs == OPTIONS_FS_HOST)
		rc = seal_plan_add(plan, "/", PLACE_REAL, RANK_WRITE, NULL, err) || add_host_etc(plan, err) ? -1 : 0;
	else
		rc = add_sealed_tree(s, plan, &t, err);
	if (!rc)
		rc = seal_plan_hide_aliases(plan, &t, err);
	s->hides_in_reach = hides_in_reach(plan);
	mount_table_free(&t);
	return rc;
}
