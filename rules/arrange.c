/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the rules of a policy where lookups go (names.h): sorts them by class and hash, leaves out what is said twice, and
 * copies every rule into its slot. Address rules, which a map finds, and duplicates, which nobody looks for, come after all
 * classes. A hash is random: which rule is found to be wrong first must not depend on it, so that it is the first
 * one given.
 */
#include "rules/policy_rep.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/sort.h"

struct arranging {
	struct policy *p;
	uint32_t *words;	 /* the rules as they were given */
	struct sort_item *items; /* of each name's rule: its class, its hash, and the word at which it was given */
	size_t n;		 /* of them; later, of those that are no duplicates */
	size_t rest;		 /* words of all rules that are not in a class */
	uint32_t failed;	 /* the first rule that can't stay; RULE_NONE */
	struct err why;
};

static struct policy_rule *given_rule(const struct arranging *a, uint32_t i)
{
	return (struct policy_rule *)(a->words + i);
}

static bool same_rule(const struct policy *p, const struct policy_rule *a, const struct policy_rule *b)
{
	unsigned mask = RULE_DENY | RULE_PREFIX | RULE_APEX | RULE_BELOW;

	if ((a->flags & mask) != (b->flags & mask) || rule_terms(p, a)->n_ports != rule_terms(p, b)->n_ports ||
	    rule_terms(p, a)->n_addrs != rule_terms(p, b)->n_addrs)
		return false;
	if (memcmp(rule_ports(p, a), rule_ports(p, b), rule_terms(p, a)->n_ports * sizeof(uint32_t)) != 0)
		return false;
	for (size_t i = 0; i < rule_terms(p, a)->n_addrs; i++) {
		const struct prefix *x = &rule_addrs(p, a)[i], *y = &rule_addrs(p, b)[i];

		if (x->len != y->len || !addr_equal(&x->addr, &y->addr))
			return false;
	}
	return rule_limits_equal(p, a, b);
}

/* True when it would depend on their order whose limits count: both have some, and they give a port to the same names. */
static bool limits_clash(const struct policy *p, const struct policy_rule *a, const struct policy_rule *b)
{
	unsigned covers = RULE_PREFIX | RULE_APEX | RULE_BELOW;

	if (!(a->flags & b->flags & RULE_LIMITED) || !(a->flags & b->flags & covers) ||
	    policy_rule_limited(a) == policy_rule_limited(b))
		return false;
	for (size_t i = 0; i < rule_terms(p, a)->n_ports; i++) {
		if (rule_find_port(p, b, PORT_NUMBER(rule_ports(p, a)[i])))
			return true;
	}
	return false;
}

/*
 * A rule beside the n-th one that was given before for the same name or prefix. Returns 0; 1: both say the same; -1: they
 * can't stand side by side.
 */
static int compare_given(const struct policy *p, const struct policy_rule *before, size_t n,
			 const struct policy_rule *r, struct err *err)
{
	char label[POLICY_RULE_LABEL_MAX], other[POLICY_RULE_LABEL_MAX];

	if (same_rule(p, before, r))
		return 1;
	if (limits_clash(p, before, r))
		return err_set(
			err,
			"%s: %s has other limits for the same host and port; write one rule with the limits that "
			"are meant",
			policy_rule_label(p, r, label), policy_rule_label(p, before, other));
	if (n >= POLICY_CHAIN_MAX)
		return err_set(err,
			       "%s: more than %d rules for one host or prefix; put its ports in one rule: \"ports: "
			       "[...]\"",
			       policy_rule_label(p, r, label), POLICY_CHAIN_MAX);
	return 0;
}

static uint32_t class_of(const struct sort_item *item)
{
	return item->key[0];
}

static uint32_t hash_of(const struct sort_item *item)
{
	return item->key[1];
}

/* All rules of names, as they were given. Classes have slots that the longest of them need. */
static void collect(struct arranging *a)
{
	for (uint32_t i = 0; i < a->p->store.n_words; i += rule_words(given_rule(a, i))) {
		struct policy_rule *r = given_rule(a, i);
		uint32_t c = names_class(r->name_len), *stride = &a->p->table.classes[c].stride;

		if (r->flags & RULE_PREFIX) {
			a->rest += rule_words(r);
			continue;
		}
		r->hash = names_hash(&a->p->table, r->tail, r->name_len);
		a->items[a->n++] = (struct sort_item){ .key = { c, r->hash }, .rule = i };
		if (rule_words(r) > *stride)
			*stride = rule_words(r);
	}
}

/* Whether the rule stays, beside the `n` before it, which have the same hash and do. One that can't is noted. */
static bool stays(struct arranging *a, const struct sort_item *before, size_t n, uint32_t given)
{
	struct policy_rule *r = given_rule(a, given);
	struct err why = { "" };
	size_t n_same = 0;

	for (size_t i = 0; i < n; i++) {
		const struct policy_rule *other = given_rule(a, before[i].rule);
		int same = 0;

		if (names_equal(other, r->hash, r->tail, r->name_len))
			same = compare_given(a->p, other, ++n_same, r, &why);
		if (same > 0) {
			r->flags |= RULE_DUPLICATE;
			a->rest += rule_words(r);
		} else if (same < 0 && given < a->failed) {
			a->failed = given;
			a->why = why;
		}
		if (same)
			return false;
	}
	return true;
}

/* Leaves only items that stay. Those of the same name come in the order in which they were given. */
static void thin_out(struct arranging *a)
{
	struct sort_item *items = a->items;
	size_t kept = 0, first = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (kept == 0 || memcmp(items[i].key, items[first].key, sizeof(items[i].key)) != 0)
			first = kept;
		if (first == kept || stays(a, items + first, kept - first, items[i].rule))
			items[kept++] = items[i];
	}
	a->n = kept;
}

/* The slot of its class for an item, when the one before it has the slot before `end`. */
static size_t next_slot(const struct name_class *class, const struct sort_item *item, size_t end)
{
	size_t home = names_home(class, hash_of(item));

	return home > end ? home : end;
}

/* Room for each class, one after the other, with an empty slot at its end. Returns their words. */
static size_t lay_out(struct arranging *a)
{
	size_t words = 0, n;

	for (size_t i = 0; i < a->n; i += n) {
		struct name_class *class = &a->p->table.classes[class_of(&a->items[i])];
		size_t end = 0;

		for (n = 1; i + n < a->n && class_of(&a->items[i + n]) == class_of(&a->items[i]);)
			n++;
		class->n_homes = (uint32_t)(n + n / 4);
		class->first = (uint32_t)words;
		for (size_t k = i; k < i + n; k++)
			end = next_slot(class, &a->items[k], end) + 1;
		class->n_slots = (uint32_t)(end > class->n_homes ? end : class->n_homes) + 1;
		words += (size_t) class->n_slots * class->stride;
	}
	return words;
}

/* Notes a rule that is no duplicate. */
static void count_live(struct policy *p, const struct policy_rule *r)
{
	p->n_live++;
	p->any_deny |= (r->flags & RULE_DENY) != 0;
	for (size_t i = 0; i < rule_terms(p, r)->n_ports && !(r->flags & RULE_DENY); i++) {
		uint16_t port = PORT_NUMBER(rule_ports(p, r)[i]);

		p->ports_used[port / 64] |= UINT64_C(1) << port % 64;
	}
}

static void copy_rule(struct arranging *a, const struct policy_rule *r, uint32_t at)
{
	memcpy(a->p->store.words + at, r, rule_words(r) * sizeof(uint32_t));
	if (!(r->flags & RULE_DUPLICATE))
		count_live(a->p, r);
}

/* Copies the rules of names into their slots. Where each was given, its hash becomes the word at which it is now. */
static void fill(struct arranging *a)
{
	size_t end = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct sort_item *item = &a->items[i];
		const struct name_class *class = &a->p->table.classes[class_of(item)];
		struct policy_rule *r = given_rule(a, item->rule);
		uint32_t at;

		/* In the order of hashes each rule is a cache miss. */
		if (i + RULES_AHEAD < a->n)
			rule_prefetch(given_rule(a, item[RULES_AHEAD].rule));
		end = next_slot(class, item, i > 0 && class_of(item) == class_of(item - 1) ? end : 0) + 1;
		at = class->first + (uint32_t)(end - 1) * class->stride;
		copy_rule(a, r, at);
		r->hash = at;
	}
}

/* The prefix of the rule, which is to be at `at`. Returns 0; 1: it is a duplicate; -1. */
static int add_prefix(struct policy *p, const struct policy_rule *r, uint32_t at, struct err *err)
{
	uint32_t i;
	int rc = prefix_map_add(p->prefixes, rule_prefix(r), at, &i);

	if (rc < 0)
		return err_set(err, "out of memory for %zu rules", p->store.n_rules);
	for (size_t n = 1; rc == 1; n++) {
		int same = compare_given(p, rule_at(p, i), n, r, err);

		if (same)
			return same;
		if (rule_at(p, i)->next == RULE_NONE)
			break;
		i = rule_at(p, i)->next;
	}
	if (rc == 1)
		store_rule(&p->store, i)->next = at;
	return 0;
}

/* Notes where each rule is, and puts those that are in no class from word `at` on. Returns 0 or -1. */
static int finish(struct arranging *a, uint32_t at, struct err *err)
{
	struct policy *p = a->p;
	uint32_t given = 0;

	for (size_t i = 0; i < p->store.n_rules; i++) {
		struct policy_rule *r = given_rule(a, given);
		int same = r->flags & RULE_PREFIX ? add_prefix(p, r, at, err) : 0;

		if (given == a->failed)
			same = err_set(err, "%s", a->why.text);
		if (same < 0)
			return -1;
		if (same)
			r->flags |= RULE_DUPLICATE;
		p->given[i] = r->flags & (RULE_PREFIX | RULE_DUPLICATE) ? at : r->hash;
		if (p->given[i] == at) {
			copy_rule(a, r, at);
			at += rule_words(r);
		}
		given += rule_words(r);
	}
	return 0;
}

static int arrange_all(struct arranging *a, struct err *err)
{
	struct policy *p = a->p;
	size_t words;

	collect(a);
	if (sort_items(a->items, a->n))
		return err_set(err, "out of memory for %zu rules", p->store.n_rules);
	thin_out(a);
	words = lay_out(a);
	/* All zero: what no rule is put into is an empty slot. */
	p->store.cap_words = words + a->rest + RULE_ROOM;
	p->store.words = store_table(p->store.cap_words, sizeof(*p->store.words));
	if (!p->store.words)
		return err_set(err, "out of memory for %zu rules", p->store.n_rules);
	fill(a);
	free(a->items); /* 12 MB of a million rules, at the time at which most is in use */
	a->items = NULL;
	if (finish(a, (uint32_t)words, err))
		return -1;
	p->store.n_words = words + a->rest;
	return 0;
}

int policy_arrange(struct policy *p, uint32_t *given, struct err *err)
{
	struct arranging *a = calloc(1, sizeof(*a));
	int rc = -1;

	p->given = calloc(p->store.n_rules + 1, sizeof(*p->given));
	if (a)
		a->items = calloc(p->store.n_rules + 1, sizeof(*a->items));
	if (!a || !p->given || !a->items) {
		err_set(err, "out of memory for %zu rules", p->store.n_rules);
	} else {
		a->p = p;
		a->words = given;
		a->failed = RULE_NONE;
		rc = arrange_all(a, err);
	}
	free(a ? a->items : NULL);
	free(a);
	return rc;
}
