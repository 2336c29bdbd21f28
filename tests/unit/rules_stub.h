/* SPDX-License-Identifier: Apache-2.0 */
/* A policy for tests of what only names it: no rules are loaded, a rule is its label. */
#ifndef TESTS_UNIT_RULES_STUB_H
#define TESTS_UNIT_RULES_STUB_H

#include "rules/match.h"
#include "rules/policy.h"

struct policy_rule {
	const char *label;
};

struct policy {
	bool audit;
};

#endif
