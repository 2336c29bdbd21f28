/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit a denial met, and whose it is: for the record, the summary and the body of a 403. */
#ifndef RULES_LIMIT_MET_H
#define RULES_LIMIT_MET_H

#include "rules/policy.h"

struct verdict;

#define LIMIT_MET_MAX (LIMITS_TEXT_MAX + POLICY_RULE_LABEL_MAX + 32) /* the longest text, with the NUL */

/*
 * The value of the limit that a verdict of reason LIMIT_… met, as a policy has it ("1MiB"): of the verdict's rule, or without
 * one of the job. "" for other reasons, and where the policy sets none: then it was a bound of netgate's own. Returns `buf`.
 */
const char *limit_met(const struct policy *p, const struct verdict *v, char buf[static LIMITS_TEXT_MAX]);

/* The same as "upload: 1MiB of the job", or of `rule` where it is a rule's; `rule` NULL: its label. Returns `buf`. */
const char *limit_met_text(const struct policy *p, const struct verdict *v, const char *rule,
			   char buf[static LIMIT_MET_MAX]);

#endif
