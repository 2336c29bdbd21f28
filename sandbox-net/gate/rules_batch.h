/* SPDX-License-Identifier: Apache-2.0 */
/* The rules as messages to the kernel, made from their text when netgate is built (rules_batch.gen.c). */
#ifndef SANDBOX_NET_RULES_BATCH_H
#define SANDBOX_NET_RULES_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "sandbox-net/gate/rules.h"

/* Where the value of a variable goes. */
struct rules_place {
	uint16_t offset;
	uint8_t variable; /* enum rules_variable */
};

/* One nfnetlink batch, from its NFNL_MSG_BATCH_BEGIN to its NFNL_MSG_BATCH_END. Only the last message between them asks for an answer. */
struct rules_batch {
	const uint8_t *bytes;
	size_t len;
	const struct rules_place *places;
	size_t n_places;
};

extern const struct rules_batch rules_batches[RULES_SETS];

/* How many bytes a variable has. */
static inline size_t rules_value_size(enum rules_variable variable)
{
	switch (variable) {
	case RULES_GATE6:
	case RULES_SANDBOX6:
	case RULES_TAP:
		return 16;
	default:
		return 4;
	}
}

#endif
