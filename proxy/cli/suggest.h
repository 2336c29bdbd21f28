/* SPDX-License-Identifier: Apache-2.0 */
/* What a mistyped word was probably meant to be. */
#ifndef PROXY_CLI_SUGGEST_H
#define PROXY_CLI_SUGGEST_H

#include <stddef.h>

/* Longer words are like nothing. */
#define SUGGEST_WORD_MAX 32

/* At this distance or more, a word is not taken for a slip. */
#define SUGGEST_FAR 3

/*
 * How far `word` (of `len` bytes) is from `name`: 0 when `name` begins with it,
 * else the least number of bytes to insert, take out or change (Levenshtein),
 * SUGGEST_FAR at most.
 */
unsigned suggest_distance(const char *word, size_t len, const char *name);

#endif
