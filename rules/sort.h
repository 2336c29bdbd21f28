/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts a policy's rules by numbers: a million in a few passes, each of which goes through memory in order. Only for rules/. */
#ifndef RULES_SORT_H
#define RULES_SORT_H

#include <stddef.h>
#include <stdint.h>

/* A key of 64 bits, its upper half first, and a rule. Not one number: with eight-byte alignment it would be a third larger. */
struct sort_item {
	uint32_t key[2];
	uint32_t rule;
};

/* Sorts `n` items by their keys; those with equal keys stay as they are. Returns 0, or -1 when memory is out. */
int sort_items(struct sort_item *items, size_t n);

#endif
