/* SPDX-License-Identifier: Apache-2.0 */
/* A policy for tests of what only names it: no rules are loaded, a rule is its label and perhaps limits. */
#ifndef TESTS_UNIT_RULES_STUB_H
#define TESTS_UNIT_RULES_STUB_H

#include "rules/match.h"
#include "rules/policy.h"

struct policy_rule {
	const char *label;
	bool limited; /* by rule_limits of the policy */
};

struct policy {
	bool audit;
	struct limits limits, rule_limits;
};

#endif
