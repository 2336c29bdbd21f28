/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/gate/alone.h"

#include <stdio.h>

#include "base/err.h"
#include "base/handoff.h"
#include "sandbox-net/gate/rules.h"

#define ALONE_RULES_MAX 1024

/* Afresh for a namespace that had a gate before. %s: the link. Forwarded packets pass both hooks. */
static const char rules_format[] = "table inet " GATE_NFT_TABLE "\ndelete table inet " GATE_NFT_TABLE "\n"
				   "table inet " GATE_NFT_TABLE " {\n"
				   " chain arriving {\n  type filter hook prerouting priority -450; policy drop;\n  "
				   "iifname { \"lo\", \"%s\" } accept\n }\n"
				   " chain leaving {\n  type filter hook postrouting priority 300; policy drop;\n  "
				   "oifname { \"lo\", \"%s\" } accept\n }\n"
				   "}\n";

int alone_load(const char *link, struct err *err)
{
	char rules[ALONE_RULES_MAX];

	if (snprintf(rules, sizeof(rules), rules_format, link, link) >= (int)sizeof(rules))
		return err_set(err, "%s: too long a name", link);
	return rules_load(rules, NULL, err);
}
