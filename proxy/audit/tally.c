/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded counts for the summary: entries in order of appearance, and an
 * open-addressing index over them. Of names that have no entry (any more) only a hash is kept, to tell
 * new ones from known ones.
 */
#include "proxy/audit/tally.h"

#include <assert.h>
#include <libpsl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TALLY_SLOTS (2 * TALLY_MAX)
#define TALLY_FIRST 16	 /* entries allocated at first */
#define SEEN_FIRST  1024 /* slots */

static_assert((TALLY_SLOTS & (TALLY_SLOTS - 1)) == 0, "slots are found by a mask");
static_assert(TALLY_MAX < UINT16_MAX, "a slot holds an index + 1");
static_assert((SEEN_FIRST & (SEEN_FIRST - 1)) == 0, "and it doubles");

/* A set of hashes, open-addressing, at most half full; 0 is a free slot. */
struct seen {
	uint64_t *slots;
	size_t n, cap;
	uint64_t key; /* random: nobody can choose names that collide */
	bool cut;     /* something new was not taken in */
};

struct tally {
	struct tally_entry *entries;
	size_t n, cap;
	size_t used[2];	  /* entries of each half: allowed, denied */
	uint64_t more[2]; /* what did not fit */
	struct seen seen;
	uint16_t slots[TALLY_SLOTS];
};

static_assert(TALLY_WOULD > TALLY_DIAL, "what was allowed comes first in the list");

bool tally_is_denied(enum tally_kind kind)
{
	return kind >= TALLY_WOULD;
}

struct tally *tally_new(void)
{
	struct tally *t = calloc(1, sizeof(*t));

	/* Without randomness names could be chosen that collide, which costs time and counts too few of them. */
	if (t && getrandom(&t->seen.key, sizeof(t->seen.key), 0) != sizeof(t->seen.key))
		t->seen.key = (uintptr_t)t;
	return t;
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
	free(t->seen.slots);
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

static uint64_t seen_hash(const struct seen *s, const struct tally_key *key)
{
	uint64_t h = s->key ^ (uint64_t)key->kind << 48 ^ (uint64_t)key->reason << 32 ^ key->port;

	h *= UINT64_C(1099511628211);
	for (const char *text = key->proto; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
	for (const char *text = key->what; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
	h ^= h >> 32;
	return h ? h : 1;
}

static void seen_put(uint64_t *slots, size_t cap, uint64_t h)
{
	size_t i = h & (cap - 1);

	while (slots[i] && slots[i] != h)
		i = (i + 1) & (cap - 1);
	slots[i] = h;
}

/* Room for one more. */
static bool seen_grow(struct seen *s)
{
	size_t cap = s->cap ? 2 * s->cap : SEEN_FIRST;
	uint64_t *slots;

	if (2 * s->n < s->cap)
		return true;
	slots = s->n < TALLY_NAMES_MAX ? calloc(cap, sizeof(*slots)) : NULL;
	if (!slots)
		return false;
	for (size_t i = 0; i < s->cap; i++) {
		if (s->slots[i])
			seen_put(slots, cap, s->slots[i]);
	}
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
	return true;
}

/* Whether the key is new; it is not from then on. */
static bool seen_add(struct seen *s, const struct tally_key *key)
{
	uint64_t h = seen_hash(s, key);
	size_t i;

	if (s->cap) {
		for (i = h & (s->cap - 1); s->slots[i]; i = (i + 1) & (s->cap - 1)) {
			if (s->slots[i] == h)
				return false;
		}
	}
	if (!seen_grow(s)) {
		s->cut = true;
		return false;
	}
	seen_put(s->slots, s->cap, h);
	s->n++;
	return true;
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

struct tally_entry *tally_get(struct tally *t, const struct tally_key *key, bool quiet)
{
	bool half = tally_is_denied(key->kind);
	size_t slot = find_slot(t, key);
	struct tally_entry *e;

	if (t->slots[slot])
		return &t->entries[t->slots[slot] - 1];
	if (t->used[half] == TALLY_MAX / 2 || strlen(key->what) >= TALLY_WHAT_MAX ||
	    strlen(key->proto) >= TALLY_PROTO_MAX || !grow(t)) {
		t->more[half] += !quiet && seen_add(&t->seen, key);
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

/* What somebody registered, at or above the name: the part of it that begins there. NULL when there is none. */
static const char *registrable_domain(const char *name)
{
	const psl_ctx_t *psl = psl_builtin();
	const char *parent = strchr(name, '.');

	if (psl)
		return psl_registrable_domain(psl, name);
	return parent && strchr(parent + 1, '.') ? parent + 1 : NULL;
}

struct tally_entry *tally_below(struct tally *t, enum reason reason, const char *name)
{
	const char *domain = registrable_domain(name);
	struct tally_key key = { .kind = TALLY_BELOW, .reason = reason, .proto = "", .what = domain };
	struct tally_entry *e;

	if (!domain || !strcmp(domain, name))
		return NULL;
	e = tally_get(t, &key, true);
	key.what = name;
	if (e && seen_add(&t->seen, &key))
		e->names++;
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

bool tally_is_together(const struct tally *t, size_t below)
{
	return below && t->entries[below - 1].names > TALLY_BELOW_MAX;
}

size_t tally_index(const struct tally *t, const struct tally_entry *e)
{
	return (size_t)(e - t->entries);
}

bool tally_is_cut(const struct tally *t)
{
	return t->seen.cut;
}

uint64_t tally_more(const struct tally *t, bool denied)
{
	return t->more[denied];
}
