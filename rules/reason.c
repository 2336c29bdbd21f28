/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the reasons. */
#include "rules/reason.h"

#include <assert.h>
#include <stddef.h>

static const char *const words[] = { [REASON_NONE] = "none",
#define X(id, word) [REASON_##id] = word,
				     REASONS
#undef X
};

static_assert(sizeof(words) / sizeof(*words) == REASON_COUNT, "a reason without a word");

const char *reason_word(enum reason reason)
{
	return (size_t)reason < REASON_COUNT ? words[reason] : "none";
}
