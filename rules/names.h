/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the rules for a name are found. The rules themselves are the table: those whose names take the same room are a
 * class, which has slots of that size, sorted by the names' hashes. A rule lies in the slot that its hash says or, where that
 * is taken, in one soon after it, and a lookup ends at the first slot that is empty or has a larger hash. So it waits for
 * memory once, for all slots of the name and of what it is below together, whether there is a rule or not; its cost is the
 * number of labels, at most 127, not of rules. Only for rules/.
 */
#ifndef RULES_NAMES_H
#define RULES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name.h"

struct err;
struct policy;
struct policy_rule;

/* A name above one that is allowed, at any distance. */
struct ancestor {
	uint32_t hash;
	uint32_t
		at; /* the byte of the policy's rules at which its text begins, in some rule's name; 0: an empty slot */
};

#define NAME_CLASSES ((NAME_LEN_MAX + 4) / 4 + 1)

struct name_class {
	uint32_t first;	  /* the word at which its first slot begins */
	uint32_t n_homes; /* slots that a hash can say: five for four rules; 0: there is no rule */
	uint32_t n_slots; /* with those behind that rules were moved on to, and an empty one */
	uint32_t stride;  /* words of a slot; one whose rule has no flags is empty */
};

struct name_table {
	uint64_t key[2]; /* random, so that nobody can choose names that collide */
	struct name_class classes[NAME_CLASSES];
	struct ancestor *ancestors; /* open addressing; those of a name that is in it are in it, too */
	size_t n_slots, n_used;
};

/* The class of a name of `len` bytes: the words that it takes with its NUL. */
static inline uint32_t names_class(size_t len)
{
	return (uint32_t)(len + 4) / 4;
}

/* The slot of its class where a name with this hash would best lie. */
static inline size_t names_home(const struct name_class *class, uint32_t hash)
{
	return (size_t)((uint64_t)hash * class->n_homes >> 32);
}

#define NAME_SUFFIXES_MAX (NAME_LEN_MAX / 2 + 2)

/* A name and all that it is below, shortest first: "", "com", "example.com", … */
struct name_suffixes {
	const char *name;
	size_t len, n;
	uint32_t hash[NAME_SUFFIXES_MAX];
	uint8_t start[NAME_SUFFIXES_MAX];
};

/* A random key. Returns 0 or -1. */
int names_init(struct policy *p, struct err *err);

/* Cuts a canonical name of `len` bytes, which must stay where it is; 0: the name above all others. */
void names_cut(const struct name_table *t, const char *name, size_t len, struct name_suffixes *s);

/* The hash of a canonical name: the last one of its suffixes. */
uint32_t names_hash(const struct name_table *t, const char *name, size_t len);

/* Whether the rule's name is this one. */
bool names_equal(const struct policy_rule *r, uint32_t hash, const char *name, size_t len);

/* Asks for the slot of the name right above, for names_add_ancestors(). There must be one: a name is not "". */
void names_prefetch_ancestors(const struct name_table *t, const struct name_suffixes *s);

/* Adds all that the name of some rule, which the suffixes are of, is below. Returns 0 or -1. */
int names_add_ancestors(struct policy *p, const struct name_suffixes *s, struct err *err);

/* All rules in the order in which they lie in memory; all zero at the beginning. */
struct name_cursor {
	const struct policy_rule *rule;
	uint32_t at; /* the rule's word */
	uint32_t next;
	size_t class, slot;
};

/* Goes to the next rule. False when there is none. */
bool names_each(struct name_cursor *c, const struct policy *p);

/* A walk over the rules that may cover a name: from the most specific ones to those for every name; for each name in the order given. */
struct name_walk {
	const struct policy *p;
	const struct policy_rule *rule;
	bool whole;	       /* it is for the name itself: RULE_APEX covers; else RULE_BELOW does */
	size_t left;	       /* names above the one that the rule is for: the level of the rule */
	uint32_t next, stride; /* the slot to be looked at, in words */
	struct name_suffixes s;
};

/* `name` is canonical, `len` its length; 0 is the name above all others. It must stay where it is. */
void name_walk_begin(struct name_walk *w, const struct policy *p, const char *name, size_t len);

/* Goes to the next rule. False when there is none. */
bool name_walk_next(struct name_walk *w);

/* Whether some allowed name lies below the one that the walk is for. */
bool name_walk_allow_below(const struct name_walk *w);

#endif
