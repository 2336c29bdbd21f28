/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/gate/alone.h"

#include "sandbox-net/gate/rules.h"

int alone_load(struct err *err)
{
	return rules_load(RULES_ALONE, &(struct rules_values){ 0 }, err);
}
