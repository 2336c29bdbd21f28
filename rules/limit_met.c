/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "rules/limit_met.h"

#include <stdio.h>

#include "rules/match.h"

/* The limit that a reason speaks of; LIMIT_COUNT: none. */
static enum limit limit_of(enum reason reason)
{
	switch (reason) {
	case REASON_LIMIT_UPLOAD:
		return LIMIT_UPLOAD;
	case REASON_LIMIT_CONNECTIONS:
		return LIMIT_CONNECTIONS;
	case REASON_LIMIT_RATE:
		return LIMIT_RATE;
	case REASON_LIMIT_NAMES:
		return LIMIT_NAMES;
	default:
		return LIMIT_COUNT;
	}
}

const char *limit_met(const struct policy *p, const struct verdict *v, char buf[static LIMITS_TEXT_MAX])
{
	enum limit which = limit_of(v->reason);
	int limited = policy_rule_limited(v->rule);
	const struct limits *limits = limited < 0 ? policy_limits(p) : policy_rule_limits(p, (size_t)limited);

	buf[0] = '\0';
	if (which != LIMIT_COUNT && limits->max[which])
		limits_format(which, limits->max[which], buf);
	return buf;
}

const char *limit_met_text(const struct policy *p, const struct verdict *v, const char *rule,
			   char buf[static LIMIT_MET_MAX])
{
	char value[LIMITS_TEXT_MAX], label[POLICY_RULE_LABEL_MAX];
	const char *whose = "the job";

	buf[0] = '\0';
	if (!*limit_met(p, v, value))
		return buf;
	if (v->rule)
		whose = rule ? rule : policy_rule_label(p, v->rule, label);
	snprintf(buf, LIMIT_MET_MAX, "%s: %s of %s", limits_key(limit_of(v->reason)), value, whose);
	return buf;
}
