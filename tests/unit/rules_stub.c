/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of rules/ that the audit log calls, without a policy. */
#include "tests/unit/rules_stub.h"

#include <stdio.h>

bool policy_is_audit(const struct policy *p)
{
	return p->audit;
}

size_t policy_size(const struct policy *p)
{
	(void)p;
	return 3;
}

const char *policy_digest(const struct policy *p, char buf[static POLICY_DIGEST_STRLEN])
{
	(void)p;
	snprintf(buf, POLICY_DIGEST_STRLEN, "%064d", 7);
	return buf;
}

const char *policy_rule_label(const struct policy *p, const struct policy_rule *rule,
			      char buf[static POLICY_RULE_LABEL_MAX])
{
	(void)p;
	snprintf(buf, POLICY_RULE_LABEL_MAX, "%s", rule ? rule->label : "");
	return buf;
}

const struct limits *policy_limits(const struct policy *p)
{
	return &p->limits;
}

int policy_rule_limited(const struct policy_rule *rule)
{
	return rule && rule->limited ? 0 : -1;
}

const struct limits *policy_rule_limits(const struct policy *p, size_t i)
{
	(void)i;
	return &p->rule_limits;
}

const char *proto_word(enum proto proto)
{
	static const char *const words[] = { "tcp", "tls", "http", "dns" };

	return words[proto];
}

const char *name_from_word(enum name_from from)
{
	static const char *const words[] = { "sni", "host", "connect", "socks5", "dns" };

	return words[from];
}
