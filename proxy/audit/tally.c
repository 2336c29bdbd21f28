/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded counts for the summary: entries in order of appearance, and an open-addressing index over them. */
#include "proxy/audit/tally.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TALLY_SLOTS (2 * TALLY_MAX)
#define TALLY_FIRST 16 /* entries allocated at first */

static_assert((TALLY_SLOTS & (TALLY_SLOTS - 1)) == 0, "slots are found by a mask");
static_assert(TALLY_MAX < UINT16_MAX, "a slot holds an index + 1");

struct tally {
	struct tally_entry *entries;
	size_t n, cap;
	size_t used[2];	  /* entries of each half: allowed, denied */
	uint64_t more[2]; /* what did not fit */
	uint16_t slots[TALLY_SLOTS];
};

static_assert(TALLY_WOULD > TALLY_DIAL, "what was allowed comes first in the list");

bool tally_is_denied(enum tally_kind kind)
{
	return kind >= TALLY_WOULD;
}

struct tally *tally_new(void)
{
	return calloc(1, sizeof(struct tally));
}

void tally_free(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		free(t->entries[i].hint);
		free(t->entries[i].detail);
	}
	free(t->entries);
	free(t);
}

/* FNV-1a; a flood of collisions costs at most one pass over the table. */
static uint32_t hash_text(uint32_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h;
}

static uint32_t key_hash(const struct tally_key *key)
{
	uint32_t h = 2166136261u ^ (uint32_t)key->kind << 24 ^ (uint32_t)key->reason << 16 ^ key->port;

	return hash_text(hash_text(h * 16777619u, key->proto), key->what);
}

static bool key_is(const struct tally_entry *e, const struct tally_key *key)
{
	return e->kind == key->kind && e->reason == key->reason && e->port == key->port &&
	       !strcmp(e->proto, key->proto) && !strcmp(e->what, key->what);
}

/* The slot of `key`, or the free one where it belongs; at most half of the slots are ever taken. */
static size_t find_slot(const struct tally *t, const struct tally_key *key)
{
	size_t slot = key_hash(key) & (TALLY_SLOTS - 1);

	while (t->slots[slot] && !key_is(&t->entries[t->slots[slot] - 1], key))
		slot = (slot + 1) & (TALLY_SLOTS - 1);
	return slot;
}

static bool grow(struct tally *t)
{
	size_t cap = t->cap ? 2 * t->cap : TALLY_FIRST;
	struct tally_entry *entries;

	if (t->n < t->cap)
		return true;
	entries = reallocarray(t->entries, cap, sizeof(*entries));
	if (!entries)
		return false;
	t->entries = entries;
	t->cap = cap;
	return true;
}

struct tally_entry *tally_find(const struct tally *t, const struct tally_key *key)
{
	size_t slot = find_slot(t, key);

	return t->slots[slot] ? &t->entries[t->slots[slot] - 1] : NULL;
}

struct tally_entry *tally_get(struct tally *t, const struct tally_key *key, uint64_t n)
{
	bool half = tally_is_denied(key->kind);
	size_t slot = find_slot(t, key);
	struct tally_entry *e;

	if (t->slots[slot])
		return &t->entries[t->slots[slot] - 1];
	if (t->used[half] == TALLY_MAX / 2 || strlen(key->what) >= TALLY_WHAT_MAX ||
	    strlen(key->proto) >= TALLY_PROTO_MAX || !grow(t)) {
		t->more[half] += n;
		return NULL;
	}
	e = &t->entries[t->n++];
	*e = (struct tally_entry){ .kind = key->kind, .reason = key->reason, .port = key->port };
	memcpy(e->what, key->what, strlen(key->what) + 1);
	memcpy(e->proto, key->proto, strlen(key->proto) + 1);
	t->used[half]++;
	t->slots[slot] = (uint16_t)t->n;
	return e;
}

void tally_text(char **slot, const char *text)
{
	free(*slot);
	*slot = text && *text ? strdup(text) : NULL;
}

size_t tally_size(const struct tally *t)
{
	return t->n;
}

const struct tally_entry *tally_at(const struct tally *t, size_t i)
{
	return &t->entries[i];
}

uint64_t tally_more(const struct tally *t, bool denied)
{
	return t->more[denied];
}
