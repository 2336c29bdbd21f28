/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names: open addressing over every name that a rule has, and
 * every ancestor of one, eight bytes a slot. Invariant once a policy is built:
 * when a name is in the table, so are all its ancestors, and when one has
 * REF_ALLOW_BELOW, so have they. Adding ancestors may stop at the first that
 * is already as wanted, and a walk at the first that is missing.
 */
#include "rules/policy_rep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"

/* Of the name's labels from the right; each call brings in one more. A multiplication by a secret odd number a word. */
static uint64_t hash_label(const uint64_t key[2], uint64_t h, const char *label, size_t len)
{
	uint64_t word;

	h ^= len;
	while (len > sizeof(word)) {
		memcpy(&word, label, sizeof(word));
		h = (h ^ word) * key[1];
		h ^= h >> 32;
		label += sizeof(word);
		len -= sizeof(word);
	}
	word = 0;
	memcpy(&word, label, len);
	h = (h ^ word) * key[1];
	h ^= h >> 29;
	return h * key[1];
}

static bool same_name(const struct policy *p, uint32_t ref, const char *name, size_t len)
{
	uint32_t at = ref & REF_INDEX;
	const char *stored = ref & REF_RULE ? rule_at(p, at)->tail : (const char *)p->store.words + at;

	return memcmp(stored, name, len) == 0 && stored[len] == '\0';
}

static size_t first_slot(const struct name_table *t, uint32_t hash)
{
	return (size_t)((uint64_t)hash * t->n_slots >> 32);
}

/* The slot of the name, or the empty one where it belongs. */
static struct name_slot *find_slot(const struct policy *p, uint32_t hash, const char *name, size_t len)
{
	const struct name_table *t = &p->table;
	size_t i = first_slot(t, hash);

	while (t->slots[i].ref && (t->slots[i].hash != hash || !same_name(p, t->slots[i].ref, name, len)))
		i = i + 1 < t->n_slots ? i + 1 : 0;
	return &t->slots[i];
}

/* A table for `n_slots`, with what is in the present one. */
static int resize(struct name_table *t, size_t n_slots, struct err *err)
{
	struct name_table bigger = *t;

	bigger.n_slots = n_slots;
	bigger.slots = calloc(n_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return err_set(err, "out of memory for %zu names", t->n_used);
	for (size_t i = 0; i < t->n_slots; i++) {
		size_t at = first_slot(&bigger, t->slots[i].hash);

		if (!t->slots[i].ref)
			continue;
		while (bigger.slots[at].ref)
			at = at + 1 < n_slots ? at + 1 : 0;
		bigger.slots[at] = t->slots[i];
	}
	free(t->slots);
	*t = bigger;
	return 0;
}

int names_init(struct policy *p, struct err *err)
{
	ssize_t n = getrandom(p->table.key, sizeof(p->table.key), 0);

	if (n != sizeof(p->table.key))
		return err_set_errno(err, n < 0 ? errno : EIO, "no random numbers from the kernel");
	p->table.key[1] |= 1;
	/* With room for every rule's own name. */
	return resize(&p->table, p->store.n_rules + p->store.n_rules / 2 + 16, err);
}

/* Seven slots of ten may be used: the next one would need a bigger table. */
static int make_room(struct name_table *t, struct err *err)
{
	if ((t->n_used + 1) * 10 <= t->n_slots * 7)
		return 0;
	return resize(t, t->n_slots + t->n_slots / 2, err);
}

/* Cuts the name into its suffixes at label boundaries, shortest first, with their hashes. Returns how many. */
static size_t cut_suffixes(const uint64_t key[2], const char *name, size_t len, uint32_t *hash, uint8_t *start)
{
	size_t end = len;
	uint64_t h = key[0];
	size_t n = 0;

	for (size_t i = len; i-- > 0;) {
		if (i > 0 && name[i - 1] != '.')
			continue;
		h = hash_label(key, h, name + i, end - i);
		hash[n] = (uint32_t)(h >> 32);
		start[n++] = (uint8_t)i;
		end = i ? i - 1 : 0;
	}
	return n;
}

void names_prefetch(const struct policy *p, uint32_t rule)
{
	const struct policy_rule *r = rule_at(p, rule);
	uint32_t hash[NAME_LABELS_MAX];
	uint8_t start[NAME_LABELS_MAX];
	size_t n = cut_suffixes(p->table.key, r->tail, r->name_len, hash, start);

	/* The name's own slot, for names_add_rule(), and its parent's, for names_add_ancestors(). */
	for (size_t i = n; i-- > 0 && i + 2 >= n;)
		__builtin_prefetch(&p->table.slots[first_slot(&p->table, hash[i])], 1);
}

int names_add_rule(struct policy *p, uint32_t rule, struct err *err)
{
	const struct policy_rule *r = rule_at(p, rule);
	const char *name = r->tail;
	uint32_t hash[NAME_LABELS_MAX];
	uint8_t start[NAME_LABELS_MAX];
	struct name_slot *slot;
	size_t n;

	if (r->name_len == 0) {
		if (p->root != RULE_NONE)
			return policy_chain_add(p, p->root, rule, err);
		p->root = rule;
		return 0;
	}
	n = cut_suffixes(p->table.key, name, r->name_len, hash, start);
	slot = find_slot(p, hash[n - 1], name, r->name_len);
	if (slot->ref)
		return policy_chain_add(p, slot->ref & REF_INDEX, rule, err);
	slot->hash = hash[n - 1];
	slot->ref = REF_RULE | rule;
	p->table.n_used++;
	return 0;
}

int names_add_ancestors(struct policy *p, uint32_t rule, bool allowed, struct err *err)
{
	const struct policy_rule *r = rule_at(p, rule);
	const char *name = r->tail;
	uint32_t below = allowed ? REF_ALLOW_BELOW : 0;
	uint32_t hash[NAME_LABELS_MAX];
	uint8_t start[NAME_LABELS_MAX];
	size_t n = cut_suffixes(p->table.key, name, r->name_len, hash, start);

	/* From the parent up. A name that has been reached before has brought its ancestors with it. */
	while (n-- > 1) {
		const char *suffix = name + start[n - 1];
		struct name_slot *slot;

		if (make_room(&p->table, err))
			return -1;
		slot = find_slot(p, hash[n - 1], suffix, r->name_len - start[n - 1]);
		if (slot->ref & (allowed ? REF_ALLOW_BELOW : REF_NAME))
			return 0;
		if (!slot->ref) {
			slot->hash = hash[n - 1];
			slot->ref = REF_NAME | (uint32_t)(suffix - (const char *)p->store.words);
			p->table.n_used++;
		}
		slot->ref |= below;
	}
	return 0;
}

static void prefetch_target(const struct policy *p, uint32_t hash)
{
	const struct name_slot *slot = &p->table.slots[first_slot(&p->table, hash)];

	if (slot->hash != hash || !slot->ref)
		return;
	if (slot->ref & REF_RULE)
		__builtin_prefetch(rule_at(p, slot->ref & REF_INDEX));
	else
		__builtin_prefetch((const char *)p->store.words + (slot->ref & REF_INDEX));
}

void name_walk_begin(struct name_walk *w, const struct policy *p, const char *name, size_t len)
{
	uint32_t hash[NAME_LABELS_MAX];
	uint8_t start[NAME_LABELS_MAX];
	size_t i;

	w->allow_below = false;
	w->chain[0] = p->root;
	w->n = cut_suffixes(p->table.key, name, len, hash, start);
	/* All slots at once, then all that they refer to: two trips to memory, however many labels there are. */
	for (i = 0; i < w->n; i++)
		__builtin_prefetch(&p->table.slots[first_slot(&p->table, hash[i])]);
	for (i = 0; i < w->n; i++)
		prefetch_target(p, hash[i]);
	for (i = 0; i < w->n; i++) {
		const struct name_slot *slot = find_slot(p, hash[i], name + start[i], len - start[i]);

		if (!slot->ref)
			break;
		w->chain[i + 1] = slot->ref & REF_RULE ? slot->ref & REF_INDEX : RULE_NONE;
		w->allow_below = i + 1 == w->n && slot->ref & REF_ALLOW_BELOW;
	}
	w->left = i + 1;
}

bool name_walk_next(struct name_walk *w)
{
	while (w->left > 0) {
		w->rule = w->chain[--w->left];
		w->whole = w->left > 0 && w->left == w->n;
		if (w->rule != RULE_NONE)
			return true;
	}
	return false;
}
