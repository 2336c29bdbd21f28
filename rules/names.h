/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a policy: a hash table that holds each rule's name and every
 * ancestor of one. A lookup walks from the top-level label down and ends at
 * the first name that is not in the table, since nothing below it can be: its
 * cost is the number of labels, at most 127, not of rules. Only for rules/.
 */
#ifndef RULES_NAMES_H
#define RULES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name.h"

struct err;
struct policy;

/* What a slot refers to, in the top bits of `ref`; 0 is an empty slot. */
#define REF_RULE	(1u << 31) /* the head of a chain; its word */
#define REF_NAME	(1u << 30) /* only an ancestor; the byte at which its text begins in some rule's name */
#define REF_ALLOW_BELOW (1u << 29) /* some allowed name lies below */
#define REF_INDEX	(REF_ALLOW_BELOW - 1)

struct name_slot {
	uint32_t hash;
	uint32_t ref;
};

struct name_table {
	struct name_slot *slots;
	size_t n_slots;
	size_t n_used;
	uint64_t key[2]; /* random, so that nobody can choose names that collide */
};

/* An empty table with a random key. Returns 0 or -1. */
int names_init(struct policy *p, struct err *err);

/* Asks for the slots that adding the rule will touch: it will be added soon. */
void names_prefetch(const struct policy *p, uint32_t rule);

/* Adds a rule under its name, to that name's chain if there is one. Returns 0 or -1. */
int names_add_rule(struct policy *p, uint32_t rule, struct err *err);

/*
 * Adds the ancestors of a rule's name; `allowed` when the rule allows something that no deny takes away.
 * Those of the deny rules come first. Returns 0 or -1.
 */
int names_add_ancestors(struct policy *p, uint32_t rule, bool allowed, struct err *err);

#define NAME_LABELS_MAX (NAME_LEN_MAX / 2 + 1)

/* A walk over the chains of rules that may cover a name, from the most specific one to that of every name. */
struct name_walk {
	uint32_t rule;	  /* the present chain's head */
	bool whole;	  /* it is the name's own: RULE_APEX covers; else RULE_BELOW does */
	bool allow_below; /* some allowed name lies below this one; true from the beginning on */
	size_t n;	  /* labels of the name */
	size_t left;	  /* chains not yet visited, those that are RULE_NONE included */
	uint32_t chain[NAME_LABELS_MAX + 1];
};

/* `name` is canonical, `len` its length; 0 is the name above all others. */
void name_walk_begin(struct name_walk *w, const struct policy *p, const char *name, size_t len);

/* Goes to the next chain that has a rule. False when there is none. */
bool name_walk_next(struct name_walk *w);

#endif
