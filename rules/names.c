/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names by their hashes: the walk over rules, which arrange.c puts into their slots, and the set of ancestors, which only a
 * question about a name that no rule covers needs.
 */
#include "rules/policy_rep.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"

int names_init(struct policy *p, struct err *err)
{
	struct name_table *t = &p->table;
	ssize_t n = getrandom(t->key, sizeof(t->key), 0);

	if (n != sizeof(t->key))
		return err_set_errno(err, n < 0 ? errno : EIO, "no random numbers from the kernel");
	return 0;
}

/* Both halves of the product of a secret and what is hashed: each bit depends on all. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The bytes from `begin` to `end`, eight at most; the first one lowest. */
static uint64_t load_word(const char *name, size_t begin, size_t end)
{
	uint64_t word = 0;

	if (end - begin == 8)
		memcpy(&word, name + begin, 8);
	else
		memcpy(&word, name + begin, end - begin);
	return le64toh(word);
}

/* Marks each byte of the word that is a dot with 0x80, and no other. */
static uint64_t find_dots(uint64_t word)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t rest = word ^ UINT64_C(0x2e2e2e2e2e2e2e2e);

	return ~(((rest & low) + low) | rest | low);
}

void names_cut(const struct name_table *t, const char *name, size_t len, struct name_suffixes *s)
{
	uint64_t h = mix(t->key[0], t->key[1]);
	size_t n = 0;

	s->name = name;
	s->len = len;
	s->hash[n] = (uint32_t)(h >> 32);
	s->start[n++] = (uint8_t)len;
	/* From the end, eight bytes a word, so that the hash of each suffix is on the way. No byte of a name is 0. */
	for (size_t begin, end = len; end > 0; end = begin) {
		uint64_t word;

		begin = end > 8 ? end - 8 : 0;
		word = load_word(name, begin, end);

		for (uint64_t dots = find_dots(word); dots;) {
			size_t after = 8 - (size_t)__builtin_clzll(dots) / 8;
			/* Behind a dot that is the last byte there are only the words before. */
			uint64_t suffix = begin + after < end ? mix(h ^ word >> after * 8, t->key[1]) : h;

			s->hash[n] = (uint32_t)(suffix >> 32);
			s->start[n++] = (uint8_t)(begin + after);
			dots ^= UINT64_C(0x80) << (after - 1) * 8;
		}
		h = mix(h ^ word, t->key[1]);
	}
	if (len > 0) {
		s->hash[n] = (uint32_t)(h >> 32);
		s->start[n++] = 0;
	}
	s->n = n;
}

uint32_t names_hash(const struct name_table *t, const char *name, size_t len)
{
	struct name_suffixes s;

	names_cut(t, name, len, &s);
	return s.hash[s.n - 1];
}

bool names_equal(const struct policy_rule *r, uint32_t hash, const char *name, size_t len)
{
	return r->hash == hash && r->name_len == len && memcmp(r->tail, name, len) == 0;
}

static bool is_ancestor(const struct policy *p, const struct ancestor *a, uint32_t hash, const char *name, size_t len)
{
	const char *stored = (const char *)p->store.words + a->at;

	return a->hash == hash && memcmp(stored, name, len) == 0 && stored[len] == '\0';
}

static size_t first_slot(const struct name_table *t, uint32_t hash)
{
	return (size_t)((uint64_t)hash * t->n_slots >> 32);
}

/* The slot of the i-th suffix, or the empty one where it belongs; there is one, since some are always free. */
static struct ancestor *find_ancestor(const struct policy *p, const struct name_suffixes *s, size_t i)
{
	const struct name_table *t = &p->table;
	const char *name = s->name + s->start[i];
	size_t len = s->len - s->start[i];
	size_t at = first_slot(t, s->hash[i]);

	while (t->ancestors[at].at && !is_ancestor(p, &t->ancestors[at], s->hash[i], name, len))
		at = at + 1 < t->n_slots ? at + 1 : 0;
	return &t->ancestors[at];
}

/* Seven slots of ten may be used: the next one would need a bigger table. It begins with one for each rule, and a few. */
static int make_room(struct policy *p, struct err *err)
{
	struct name_table *t = &p->table;
	size_t old_n = t->n_slots;
	struct ancestor *old = t->ancestors, *bigger;

	if ((t->n_used + 1) * 10 <= old_n * 7)
		return 0;
	t->n_slots = (old_n ? old_n : p->n_live) * 3 / 2 + 16;
	bigger = store_table(t->n_slots, sizeof(*bigger));
	if (!bigger)
		return err_set(err, "out of memory for %zu names", t->n_used);
	for (size_t i = 0; i < old_n; i++) {
		size_t at = first_slot(t, old[i].hash);

		if (!old[i].at)
			continue;
		while (bigger[at].at)
			at = at + 1 < t->n_slots ? at + 1 : 0;
		bigger[at] = old[i];
	}
	free(old);
	t->ancestors = bigger;
	return 0;
}

void names_prefetch_ancestors(const struct name_table *t, const struct name_suffixes *s)
{
	if (t->n_slots)
		__builtin_prefetch(&t->ancestors[first_slot(t, s->hash[s->n - 2])], 1);
}

int names_add_ancestors(struct policy *p, const struct name_suffixes *s, struct err *err)
{
	/* From the parent up; "" is above every name. One that is there has brought its own ancestors with it. */
	for (size_t i = s->n - 1; i-- > 1;) {
		struct ancestor *a;

		if (make_room(p, err))
			return -1;
		a = find_ancestor(p, s, i);
		if (a->at)
			return 0;
		a->hash = s->hash[i];
		a->at = (uint32_t)(s->name + s->start[i] - (const char *)p->store.words);
		p->table.n_used++;
	}
	return 0;
}

/* The slot from which on a rule for the i-th suffix may lie, in words; its class has some. */
static uint32_t slot_of(const struct name_class *class, uint32_t hash)
{
	return class->first + (uint32_t)names_home(class, hash) * class->stride;
}

static const struct name_class *class_of(const struct policy *p, const struct name_suffixes *s, size_t i)
{
	return &p->table.classes[names_class(s->len - s->start[i])];
}

void name_walk_begin(struct name_walk *w, const struct policy *p, const char *name, size_t len)
{
	names_cut(&p->table, name, len, &w->s);
	w->p = p;
	w->left = w->s.n;
	w->stride = 0;
	/* All at once, each with the next cache line: one trip to memory, however many labels there are. */
	for (size_t i = w->s.n; i-- > 0;) {
		const struct name_class *class = class_of(p, &w->s, i);

		if (class->n_homes == 0)
			continue;
		rule_prefetch(rule_at(p, slot_of(class, w->s.hash[i])));
	}
}

/* Goes on to the next rule for the present suffix. */
static bool next_of_suffix(struct name_walk *w)
{
	const struct name_suffixes *s = &w->s;
	uint32_t hash = s->hash[w->left];
	const char *name = s->name + s->start[w->left];
	size_t len = s->len - s->start[w->left];

	for (;;) {
		const struct policy_rule *r = rule_at(w->p, w->next);

		if (r->flags == 0 || r->hash > hash)
			return false;
		w->next += w->stride;
		if (names_equal(r, hash, name, len)) {
			w->rule = r;
			return true;
		}
	}
}

bool name_walk_next(struct name_walk *w)
{
	const struct name_class *class;

	for (;;) {
		if (w->stride && next_of_suffix(w))
			return true;
		if (w->left == 0)
			return false;
		w->left--;
		w->whole = w->left == w->s.n - 1 && w->left > 0;
		class = class_of(w->p, &w->s, w->left);
		w->stride = class->stride;
		w->next = slot_of(class, w->s.hash[w->left]);
	}
}

bool names_each(struct name_cursor *c, const struct policy *p)
{
	for (; c->class < NAME_CLASSES; c->class ++, c->slot = 0) {
		const struct name_class *class = &p->table.classes[c->class];

		while (c->slot < class->n_slots) {
			c->at = class->first + (uint32_t)c->slot++ * class->stride;
			c->rule = rule_at(p, c->at);
			if (c->rule->flags)
				return true;
			c->next = c->at + class->stride;
		}
	}
	/* Behind the last class's last slot, which is empty, come those that are in none. */
	c->at = c->next;
	if (c->at >= p->store.n_words)
		return false;
	c->rule = rule_at(p, c->at);
	c->next += rule_words(c->rule);
	return true;
}

bool name_walk_allow_below(const struct name_walk *w)
{
	return w->p->table.n_used > 0 && find_ancestor(w->p, &w->s, w->s.n - 1)->at != 0;
}
