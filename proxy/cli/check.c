/* SPDX-License-Identifier: Apache-2.0 */
/* netgate check POLICY: loads it, warns on stderr, prints the canonical policy on stdout. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/cli/commands.h"
#include "proxy/cli/policy_load.h"
#include "rules/policy.h"

static void warn(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "warning: %s\n", line);
}

/* A policy that can't be read is not an invalid one. Returns 0 or -1. */
static int check_readable(const char *path, struct err *err)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return 0;
	if (access(path, R_OK) || stat(path, &st))
		return err_set_errno(err, errno, "cannot read the policy %s", path);
	return S_ISDIR(st.st_mode) ? err_set_errno(err, EISDIR, "cannot read the policy %s", path) : 0;
}

int command_check(int argc, char **argv)
{
	struct err err = { "" };
	struct policy *p;
	int r;

	if (argc != 3)
		return help_misused("check");
	if (check_readable(argv[2], &err))
		return command_fail(2, &err);
	p = policy_load_file(argv[2], &err);
	if (!p)
		return command_fail(1, &err);
	policy_warnings(p, true, warn, NULL);
	r = policy_print(p, stdout);
	if (r == 0 && fflush(stdout) != 0)
		r = -errno;
	policy_free(p);
	if (r == 0)
		return 0;
	err_set_errno(&err, -r, "cannot print the policy");
	return command_fail(2, &err);
}
