/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefixes, and the map of them: one hash table with open addressing, keyed
 * by the whole prefix, and for each family the list of the lengths that occur.
 * A lookup masks the address to each of those lengths, longest first, so its
 * cost is the number of different lengths, not of prefixes. Nothing is ever
 * taken out: a policy is immutable.
 */
#include "base/prefix.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"

#define PREFIX_SLOTS_FIRST 64 /* a power of two, as is every later size */
#define SLOT_EMPTY	   UINT32_MAX

struct slot {
	struct prefix key;
	uint32_t value; /* SLOT_EMPTY: nothing here */
};

struct lengths {
	uint8_t n;
	uint8_t bits[129]; /* falling */
};

struct prefix_map {
	struct slot *slots;
	size_t n_slots;
	size_t n_used; /* at most half of n_slots, so that probing ends soon */
	struct lengths v4, v6;
};

/* Clears the bits of `a` after the first `len`. Returns true when one of them was set. */
static bool addr_mask(struct addr *a, size_t len)
{
	bool cut = false;

	for (size_t i = len / 8; i < addr_size(a); i++) {
		uint8_t keep = (uint8_t)(i == len / 8 ? 0xff00 >> len % 8 : 0);

		cut |= a->b[i] & ~keep;
		a->b[i] = (uint8_t)(a->b[i] & keep);
	}
	return cut;
}

int prefix_parse(const char *text, size_t len, struct prefix *out)
{
	const char *slash = memchr(text, '/', len);
	size_t addr_len = slash ? (size_t)(slash - text) : len;
	struct prefix p = { 0 };
	uint32_t bits;

	if (addr_parse(text, addr_len, &p.addr))
		return -1;
	bits = (uint32_t)addr_size(&p.addr) * 8;
	if (slash && digits_parse(slash + 1, len - addr_len - 1, bits, &bits))
		return -1;
	p.len = (uint8_t)bits;
	if (addr_mask(&p.addr, p.len))
		return -1;
	*out = p;
	return 0;
}

bool prefix_contains(const struct prefix *p, const struct addr *a)
{
	size_t whole = p->len / 8;

	if (a->family != p->addr.family || memcmp(a->b, p->addr.b, whole) != 0)
		return false;
	return p->len % 8 == 0 || (a->b[whole] ^ p->addr.b[whole]) >> (8 - p->len % 8) == 0;
}

const char *prefix_format(const struct prefix *p, char buf[static PREFIX_STRLEN])
{
	char *at;

	addr_format(&p->addr, buf);
	at = buf + strlen(buf);
	*at++ = '/';
	*digits_put(at, p->len) = '\0';
	return buf;
}

static bool prefix_equal(const struct prefix *a, const struct prefix *b)
{
	return a->len == b->len && addr_equal(&a->addr, &b->addr);
}

/* Spreads all bits of the key over all of the result: multiply and fold, twice. */
static size_t prefix_hash(const struct prefix *p)
{
	uint64_t hi, lo, h;

	memcpy(&hi, p->addr.b, 8);
	memcpy(&lo, p->addr.b + 8, 8);
	h = (hi ^ ((uint64_t)p->len << 8 | p->addr.family)) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= h >> 32;
	h = (h ^ lo) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

/* The slot that holds `p`, or the empty one where it belongs. */
static struct slot *find_slot(struct slot *slots, size_t n_slots, const struct prefix *p)
{
	size_t i = prefix_hash(p) & (n_slots - 1);

	while (slots[i].value != SLOT_EMPTY && !prefix_equal(&slots[i].key, p))
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

static struct slot *slots_new(size_t n)
{
	struct slot *slots = calloc(n, sizeof(*slots));

	for (size_t i = 0; slots && i < n; i++)
		slots[i].value = SLOT_EMPTY;
	return slots;
}

static int map_grow(struct prefix_map *map)
{
	size_t n_slots = map->n_slots * 2;
	struct slot *slots = slots_new(n_slots);

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->n_slots; i++) {
		if (map->slots[i].value != SLOT_EMPTY)
			*find_slot(slots, n_slots, &map->slots[i].key) = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->n_slots = n_slots;
	return 0;
}

struct prefix_map *prefix_map_new(void)
{
	struct prefix_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->slots = slots_new(PREFIX_SLOTS_FIRST);
	map->n_slots = PREFIX_SLOTS_FIRST;
	if (!map->slots) {
		free(map);
		return NULL;
	}
	return map;
}

void prefix_map_free(struct prefix_map *map)
{
	if (!map)
		return;
	free(map->slots);
	free(map);
}

static void add_length(struct lengths *lengths, uint8_t len)
{
	uint8_t i = 0;

	while (i < lengths->n && lengths->bits[i] > len)
		i++;
	if (i < lengths->n && lengths->bits[i] == len)
		return;
	memmove(lengths->bits + i + 1, lengths->bits + i, (size_t)(lengths->n - i));
	lengths->bits[i] = len;
	lengths->n++;
}

int prefix_map_add(struct prefix_map *map, const struct prefix *p, uint32_t value, uint32_t *old)
{
	struct slot *slot;

	assert(value != SLOT_EMPTY && addr_size(&p->addr) > 0 && p->len <= addr_size(&p->addr) * 8);
	if (map->n_used >= map->n_slots / 2 && map_grow(map))
		return -ENOMEM;
	slot = find_slot(map->slots, map->n_slots, p);
	if (slot->value != SLOT_EMPTY) {
		if (old)
			*old = slot->value;
		return 1;
	}
	slot->key = *p;
	slot->value = value;
	map->n_used++;
	add_length(p->addr.family == ADDR_V4 ? &map->v4 : &map->v6, p->len);
	return 0;
}

bool prefix_map_visit(const struct prefix_map *map, const struct addr *a, bool (*visit)(void *arg, uint32_t value),
		      void *arg)
{
	const struct lengths *lengths = a->family == ADDR_V4 ? &map->v4 : &map->v6;
	struct prefix p = { .addr = *a };

	if (addr_size(a) == 0)
		return false;
	/* Longest first, so that each mask can be cut out of the one before. */
	for (size_t i = 0; i < lengths->n; i++) {
		const struct slot *slot;

		p.len = lengths->bits[i];
		addr_mask(&p.addr, p.len);
		slot = find_slot(map->slots, map->n_slots, &p);
		if (slot->value != SLOT_EMPTY && visit(arg, slot->value))
			return true;
	}
	return false;
}
