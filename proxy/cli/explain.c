/* SPDX-License-Identifier: Apache-2.0 */
/* netgate explain POLICY WHAT: what would happen, and which rule decides. */
#include "rules/explain.h"

#include <stdio.h>

#include "proxy/cli/commands.h"
#include "proxy/cli/policy_load.h"
#include "rules/policy.h"

int command_explain(int argc, char **argv)
{
	struct err err = { "" };
	struct policy *p;
	int r;

	if (argc != 4)
		return help_misused("explain");
	p = policy_load_file(argv[2], &err);
	if (!p)
		return command_fail(2, &err);
	r = explain(p, argv[3], stdout, &err);
	policy_free(p);
	return r < 0 ? command_fail(2, &err) : r;
}
