/* SPDX-License-Identifier: Apache-2.0 */
/* The packet rules of a gate as text. */
#ifndef SANDBOX_NET_RULES_TEXT_H
#define SANDBOX_NET_RULES_TEXT_H

#include "sandbox-net/gate/rules.h"

/*
 * The sets in nft(8) syntax, where $NAME stands for a variable's value; an index is a number there. A set is read
 * behind the text of `after`, which it adds to; RULES_SETS: none.
 */
extern const struct rules_text {
	const char *text;
	enum rules_set after;
} rules_texts[RULES_SETS];

/* The variables' names in it. */
extern const char *const rules_variable_names[RULES_VARIABLES];

#endif
