/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Radix sort, a byte a pass, from the lowest on; bytes that are the same in all keys take none. First by the upper halves of
 * the keys; those with the same upper half, mostly few, by the lower ones.
 */
#include "rules/sort.h"

#include <stdlib.h>
#include <string.h>

#define HALF_BYTES 4
#define SORT_FEW   32 /* items: fewer are sorted by insertion */

static uint8_t key_byte(const struct sort_item *item, size_t half, size_t i)
{
	return (uint8_t)(item->key[half] >> (24 - i * 8));
}

/* Copies all items, in the order of their i-th byte; `count` says how often each value of it occurs, and is used up. */
static void sort_by_byte(const struct sort_item *from, struct sort_item *to, size_t n, size_t half, size_t i,
			 uint32_t *count)
{
	uint32_t at = 0;

	for (size_t value = 0; value < 256; value++) {
		uint32_t here = count[value];

		count[value] = at;
		at += here;
	}
	for (size_t k = 0; k < n; k++)
		to[count[key_byte(&from[k], half, i)]++] = from[k];
}

/* Sorts by one half of the keys; `spare` has room for all items. */
static void sort_by_half(struct sort_item *items, struct sort_item *spare, size_t n, size_t half)
{
	uint32_t count[HALF_BYTES][256] = { 0 };
	struct sort_item *from = items, *to = spare;

	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < HALF_BYTES; i++)
			count[i][key_byte(&items[k], half, i)]++;
	for (size_t i = HALF_BYTES; i-- > 0;) {
		if (count[i][key_byte(&from[0], half, i)] == n)
			continue;
		sort_by_byte(from, to, n, half, i, count[i]);
		to = from;
		from = from == items ? spare : items;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
}

/* Sorts a few items by the lower half of their keys. */
static void sort_few(struct sort_item *items, size_t n)
{
	for (size_t k = 1; k < n; k++) {
		struct sort_item item = items[k];
		size_t at = k;

		for (; at > 0 && items[at - 1].key[1] > item.key[1]; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

int sort_items(struct sort_item *items, size_t n)
{
	struct sort_item *spare;
	size_t same;

	if (n < 2)
		return 0;
	spare = reallocarray(NULL, n, sizeof(*spare));
	if (!spare)
		return -1;
	sort_by_half(items, spare, n, 0);
	for (size_t i = 0; i < n; i += same) {
		for (same = 1; i + same < n && items[i + same].key[0] == items[i].key[0];)
			same++;
		if (same < SORT_FEW)
			sort_few(items + i, same);
		else
			sort_by_half(items + i, spare, same, 1);
	}
	free(spare);
	return 0;
}
