/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's own tools: directories of PATH in the home, which is empty
 * otherwise. What an earlier run of a command could have put there is not shown.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-net/caller/options.h"
#include "sandbox-net/caller/user.h"
#include "sandbox-net/seal/mount_table.h"
#include "sandbox-net/seal/reach.h"
#include "sandbox-net/seal/seal.h"
#include "sandbox-net/seal/seal_paths.h"

/* True when `path` lies in one of the homes. */
static bool is_in_home(const char *path, char homes[2][PATH_MAX])
{
	return (homes[0][0] && mount_path_is_below(path, homes[0])) ||
	       (homes[1][0] && mount_path_is_below(path, homes[1]));
}

/*
 * Tools that need what lies around their directory of programs: X/`dir` in PATH
 * with X/`marker` shows all of X.
 */
static const struct {
	const char *dir, *marker;
} tool_trees[] = {
	{ "bin", "pyvenv.cfg" },       /* Python's venv */
	{ "bin", "lib/node_modules" }, /* node, as nvm has it */
	{ "bin", "libexec/pyenv" },
	{ "shims", "libexec/pyenv" },
};

/* What is never shown for a marker: tools are in there, but keys and tokens too. */
static const char *const never_trees[] = { ".local", ".cargo", ".config" };

static bool may_be_tree(const char *tree, char homes[2][PATH_MAX])
{
	if (!is_in_home(tree, homes))
		return false;
	for (size_t i = 0; i < 2; i++) {
		if (!homes[i][0])
			continue;
		if (mount_path_is_at_or_below(homes[i], tree))
			return false;
		for (size_t k = 0; k < sizeof(never_trees) / sizeof(*never_trees); k++)
			if (mount_path_is_below(tree, homes[i]) &&
			    strcmp(tree + strlen(homes[i]) + 1, never_trees[k]) == 0)
				return false;
	}
	return true;
}

/*
 * True when the way to `entry` leads through what the command may write: an
 * earlier run may have put a link there, to ~/.ssh for example. What is real there is visible anyway.
 */
static bool is_in_its_hands(const struct seal *s, const char *entry)
{
	const struct options *o = s->options;
	const char *workspace = s->workspace;
	char real[PATH_MAX];
	const char *place = real;

	if (reach_through(entry, &workspace, 1))
		return true;
	for (size_t i = 0; i < o->write.n; i++)
		if (!realpath(o->write.v[i], real) || reach_through(entry, &place, 1))
			return true;
	return false;
}

/* Cuts `dir`, a directory of PATH, down to the tree that its tools need; leaves it alone when there is none. */
static void widen_to_tree(const struct seal *s, char dir[static PATH_MAX], char homes[2][PATH_MAX])
{
	char *slash = strrchr(dir, '/');
	char marker[PATH_MAX + 32];

	*slash = '\0';
	for (size_t i = 0; may_be_tree(dir, homes) && i < sizeof(tool_trees) / sizeof(*tool_trees); i++) {
		snprintf(marker, sizeof(marker), "%s/%s", dir, tool_trees[i].marker);
		if (strcmp(slash + 1, tool_trees[i].dir) == 0 && access(marker, F_OK) == 0 &&
		    !is_in_its_hands(s, marker))
			return;
	}
	*slash = '/';
}

int seal_add_tools(const struct seal *s, struct seal_plan *plan, struct err *err)
{
	char entry[PATH_MAX], real[PATH_MAX], shown[PATH_MAX], homes[2][PATH_MAX];
	const char *p = getenv("PATH");

	seal_find_homes(s->user, homes);
	for (size_t n; p && *p; p += n + (p[n] == ':')) {
		struct stat st;

		n = strcspn(p, ":");
		if (n == 0 || n >= sizeof(entry) || p[0] != '/')
			continue;
		memcpy(entry, p, n);
		entry[n] = '\0';
		if (!realpath(entry, real) || stat(real, &st) || !S_ISDIR(st.st_mode))
			continue;
		if (!is_in_home(real, homes) || is_in_its_hands(s, entry) ||
		    !reach_by_user(s->user, s->privileged, entry))
			continue;
		snprintf(shown, sizeof(shown), "%s", real);
		widen_to_tree(s, shown, homes);
		if (seal_plan_add(plan, shown, PLACE_OVERLAY, RANK_PATH, NULL, err) ||
		    seal_add_link(plan, entry, real, RANK_PATH, err))
			return -1;
	}
	return 0;
}
