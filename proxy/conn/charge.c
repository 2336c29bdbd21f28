/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A rule without limits is as good as none here. */
#include "proxy/conn/charge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proxy/dns/dns_map.h"
#include "rules/policy.h"

int charge_init(struct conn_env *env)
{
	size_t n = policy_rule_limits_count(env->policy);

	if (n == 0)
		return 0;
	env->rule_budgets = calloc(n, sizeof(*env->rule_budgets));
	if (!env->rule_budgets)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct limits *limits = policy_rule_limits(env->policy, i);

		env->rule_budgets[i] = budget_of_rule(limits, &env->budget, clock_mono_us());
		if (limits->max[LIMIT_NAMES] && dns_map_limit_rule(env->map, i, limits->max[LIMIT_NAMES]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static struct budget *budget_for(const struct conn *c, const struct policy_rule *rule)
{
	int which = policy_rule_limited(rule);

	return which < 0 ? NULL : &c->env->rule_budgets[which];
}

static void give_back(struct conn *c, const struct policy_rule *rule)
{
	struct budget *b = budget_for(c, rule);

	if (b)
		budget_closed(b);
}

/* A name counts once, looked up or only connected to. */
static enum reason use_name(struct conn *c, const struct verdict *v, const struct policy_rule **rule)
{
	struct addr addr;
	int r = v->host ? dns_map_addr(c->env->map, v->host, policy_rule_limited(v->rule), ADDR_V4, &addr) : 0;

	if (r == -EDQUOT)
		*rule = v->rule;
	if (r == 0)
		return REASON_NONE;
	return r == -ENOSPC || r == -EDQUOT ? REASON_LIMIT_NAMES : REASON_INTERNAL_ERROR;
}

enum reason charge_claim(struct conn *c, const struct verdict *v, size_t len, const struct policy_rule **rule)
{
	struct budget *b = budget_for(c, v->rule);
	const struct policy_rule *limited = b ? v->rule : NULL;
	enum reason over;

	*rule = NULL;
	if (!budget_has_upload(&c->env->budget, len))
		return REASON_LIMIT_UPLOAD;
	over = use_name(c, v, rule);
	if (over != REASON_NONE)
		return over;
	*rule = limited;
	if (b && !budget_has_upload(b, len))
		return REASON_LIMIT_UPLOAD;
	if (limited == c->claimed)
		return REASON_NONE;
	if (b && limited != c->charged)
		over = budget_admit(b, true, clock_mono_us());
	if (over != REASON_NONE)
		return over;
	if (c->claimed != c->charged)
		give_back(c, c->claimed);
	c->claimed = limited;
	return REASON_NONE;
}

void charge_begin(struct conn *c)
{
	struct budget *b = budget_for(c, c->claimed);

	if (c->charged != c->claimed)
		give_back(c, c->charged);
	c->charged = c->claimed;
	c->up.allowed[FLOW_BY_RULE] = b ? budget_upload(b) : NULL;
}

void charge_end(struct conn *c)
{
	if (c->claimed != c->charged)
		give_back(c, c->claimed);
	give_back(c, c->charged);
	c->claimed = c->charged = NULL;
}

const struct policy_rule *charge_spent(const struct conn *c, size_t n)
{
	const struct budget *b = budget_for(c, c->charged);

	return b && !budget_has_upload(b, n) ? c->charged : NULL;
}

bool charge_counts_upload(const struct conn *c)
{
	return c->up.allowed[FLOW_BY_JOB] || c->env->rule_budgets;
}

bool charge_may_send(const struct conn *c, size_t n)
{
	return budget_has_upload(&c->env->budget, n) && !charge_spent(c, n);
}

uint64_t charge_idle_us(const struct conn *c)
{
	const struct budget *b = budget_for(c, c->charged);

	return b ? b->idle_us : c->env->budget.idle_us;
}
