/* SPDX-License-Identifier: Apache-2.0 */
/* netgate check POLICY: loads it, warns on stderr, prints the canonical policy on stdout. */
#include <stdio.h>

#include "proxy/cli/commands.h"
#include "proxy/cli/policy_load.h"
#include "rules/policy.h"

static void warn(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "warning: %s\n", line);
}

int command_check(int argc, char **argv)
{
	struct err err = { "" };
	struct policy *p;
	int failed;

	if (argc != 3)
		return help_misused("check");
	p = policy_load_file(argv[2], &err);
	if (!p)
		return command_fail(1, &err);
	policy_warnings(p, warn, NULL);
	failed = policy_print(p, stdout) < 0 || fflush(stdout) != 0;
	policy_free(p);
	return failed;
}
