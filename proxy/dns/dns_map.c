/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names ↔ synthetic addresses. The n-th name that is asked for has the n-th
 * address: names are never removed, so an address never changes its name.
 * Address → name is an index into an array; name → index is a balanced tree
 * (tsearch(3), red-black), because the sandbox chooses the names and could aim
 * at the collisions of a hash.
 *
 * Last octets 0 and 255 are left out: some programs take such addresses for a
 * network or a broadcast address.
 */
#include "proxy/dns/dns_map.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"

#define PER_BLOCK  254 /* names in each /24 */
#define FIRST_SIZE 64

/* GATE_POOL4 and GATE_POOL6 of base/handoff.h, in binary. */
static const struct prefix pool4 = { { ADDR_V4, { 198, 18 } }, 15 };
static const struct prefix pool6 = { { ADDR_V6, { 0xfd, 0x6e, 0x65, 0x74, 0x67, 0x61, 0x50 } }, 96 };

_Static_assert((DNS_MAP_MAX + PER_BLOCK - 1) / PER_BLOCK <= 1 << (24 - 15), "the pool holds DNS_MAP_MAX names");

struct mapping {
	struct name name; /* first: the tree compares entries by it */
	uint32_t index;
};

/* Which names, by index, a rule with a limit on them has let through. */
struct used {
	uint64_t *bits;
	size_t words, n;
	size_t max; /* 0: no limit */
};

struct dns_map {
	void *tree;
	struct mapping **entries; /* by index; each at its place for good, since names are lent out */
	size_t n, size, max;
	struct used *rules;
	size_t n_rules;
};

struct dns_map *dns_map_new(void)
{
	struct dns_map *m = calloc(1, sizeof(*m));

	if (m)
		m->max = DNS_MAP_MAX;
	return m;
}

void dns_map_limit(struct dns_map *m, size_t max)
{
	if (max < m->max)
		m->max = max;
}

int dns_map_limit_rule(struct dns_map *m, size_t rule, size_t max)
{
	struct used *rules;

	if (rule >= m->n_rules) {
		rules = reallocarray(m->rules, rule + 1, sizeof(*rules));
		if (!rules)
			return -ENOMEM;
		memset(rules + m->n_rules, 0, (rule + 1 - m->n_rules) * sizeof(*rules));
		m->rules = rules;
		m->n_rules = rule + 1;
	}
	m->rules[rule].max = max;
	return 0;
}

static void keep(void *node)
{
	(void)node;
}

void dns_map_free(struct dns_map *m)
{
	if (!m)
		return;
	tdestroy(m->tree, keep);
	for (size_t i = 0; i < m->n; i++)
		free(m->entries[i]);
	free(m->entries);
	for (size_t i = 0; i < m->n_rules; i++)
		free(m->rules[i].bits);
	free(m->rules);
	free(m);
}

static int compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->len == y->len ? memcmp(x->s, y->s, x->len) : (int)x->len - (int)y->len;
}

static int grow(struct dns_map *m)
{
	size_t size = m->size ? 2 * m->size : FIRST_SIZE;
	struct mapping **entries;

	if (m->n < m->size)
		return 0;
	entries = reallocarray(m->entries, size, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	m->entries = entries;
	m->size = size;
	return 0;
}

/* Adds a name that is not there. Returns 0, -ENOSPC or -ENOMEM. */
static int add(struct dns_map *m, const struct name *name, uint32_t *index)
{
	struct mapping *e;

	if (m->n >= m->max)
		return -ENOSPC;
	if (grow(m))
		return -ENOMEM;
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->name = *name;
	e->index = (uint32_t)m->n;
	if (!tsearch(e, &m->tree, compare)) {
		free(e);
		return -ENOMEM;
	}
	*index = e->index;
	m->entries[m->n++] = e;
	return 0;
}

static bool is_used(const struct used *u, uint32_t index)
{
	return index / 64 < u->words && u->bits[index / 64] >> index % 64 & 1;
}

/* Counts a name that is not used yet. Returns 0 or -ENOMEM. */
static int use(struct used *u, uint32_t index)
{
	size_t words = index / 64 + 1;
	uint64_t *bits;

	if (words > u->words) {
		bits = reallocarray(u->bits, 2 * words, sizeof(*bits));
		if (!bits)
			return -ENOMEM;
		memset(bits + u->words, 0, (2 * words - u->words) * sizeof(*bits));
		u->bits = bits;
		u->words = 2 * words;
	}
	u->bits[index / 64] |= UINT64_C(1) << index % 64;
	u->n++;
	return 0;
}

/* The index of a name, made when it is new, and counted for a rule with a limit. Returns as dns_map_addr(). */
static int find_or_add(struct dns_map *m, const struct name *name, int rule, uint32_t *index)
{
	struct used *u = rule >= 0 && (size_t)rule < m->n_rules && m->rules[rule].max ? &m->rules[rule] : NULL;
	struct mapping *const *node = tfind(name, &m->tree, compare);
	int r;

	if (node && (!u || is_used(u, (*node)->index))) {
		*index = (*node)->index;
		return 0;
	}
	if (u && u->n >= u->max)
		return -EDQUOT;
	if (node)
		*index = (*node)->index;
	r = node ? 0 : add(m, name, index);
	return r || !u ? r : use(u, *index);
}

/* The offset into the pool of the name with this index, and back. */
static uint32_t offset_of(uint32_t index)
{
	return index / PER_BLOCK * 256 + index % PER_BLOCK + 1;
}

int dns_map_addr(struct dns_map *m, const struct name *name, int rule, enum addr_family family, struct addr *out)
{
	struct addr v4;
	uint32_t index;
	int r = find_or_add(m, name, rule, &index);

	if (r)
		return r;
	index = offset_of(index);
	v4 = pool4.addr;
	v4.b[1] = (uint8_t)(v4.b[1] | index >> 16);
	v4.b[2] = (uint8_t)(index >> 8);
	v4.b[3] = (uint8_t)index;
	if (family == ADDR_V4) {
		*out = v4;
	} else {
		*out = pool6.addr;
		memcpy(out->b + 12, v4.b, 4);
	}
	return 0;
}

const struct name *dns_map_name(const struct dns_map *m, const struct addr *a)
{
	const uint8_t *b = a->family == ADDR_V6 ? a->b + 12 : a->b;
	struct addr v4 = { .family = ADDR_V4 };
	uint32_t offset, index;

	memcpy(v4.b, b, 4);
	if (!dns_map_covers(a) || !prefix_contains(&pool4, &v4) || b[3] == 0 || b[3] == 255)
		return NULL;
	offset = (uint32_t)(b[1] & 1) << 16 | (uint32_t)b[2] << 8 | b[3];
	index = offset / 256 * PER_BLOCK + offset % 256 - 1;
	return index < m->n ? &m->entries[index]->name : NULL;
}

bool dns_map_covers(const struct addr *a)
{
	return prefix_contains(&pool4, a) || prefix_contains(&pool6, a);
}
