/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the immutable policy: chains, tables, the digest. Everything that
 * could fail, allocate or read randomness happens here, so that what asks the
 * policy later can do none of it.
 */
#include "rules/policy_rep.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/special.h"

#define BUILD_AHEAD 128	   /* words of rules */
#define BUILD_LARGE 100000 /* rules */

static bool same_rule(const struct policy *p, const struct policy_rule *a, const struct policy_rule *b)
{
	unsigned mask = RULE_DENY | RULE_PREFIX | RULE_APEX | RULE_BELOW;

	if ((a->flags & mask) != (b->flags & mask) || rule_terms(p, a)->n_ports != rule_terms(p, b)->n_ports || rule_terms(p, a)->n_addrs != rule_terms(p, b)->n_addrs)
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

int policy_chain_add(struct policy *p, uint32_t head, uint32_t rule, struct err *err)
{
	char label[POLICY_RULE_LABEL_MAX], other[POLICY_RULE_LABEL_MAX];
	uint32_t at = head;
	size_t n = 1;

	for (; !same_rule(p, rule_at(p, at), rule_at(p, rule)); n++) {
		if (limits_clash(p, rule_at(p, at), rule_at(p, rule)))
			return err_set(err,
				       "%s: %s has other limits for the same host and port; write one rule with the "
				       "limits that are meant",
				       policy_rule_label(p, rule_at(p, rule), label),
				       policy_rule_label(p, rule_at(p, at), other));
		if (rule_at(p, at)->next == RULE_NONE)
			break;
		at = rule_at(p, at)->next;
	}
	if (same_rule(p, rule_at(p, at), rule_at(p, rule))) {
		store_rule(&p->store, rule)->flags |= RULE_DUPLICATE;
		return 0;
	}
	if (n >= POLICY_CHAIN_MAX)
		return err_set(err,
			       "%s: more than %d rules for one host or prefix; put its ports in one rule: \"ports: "
			       "[...]\"",
			       policy_rule_label(p, rule_at(p, rule), label), POLICY_CHAIN_MAX);
	store_rule(&p->store, at)->next = rule;
	return 0;
}

static int add_prefix(struct policy *p, uint32_t rule, struct err *err)
{
	uint32_t head;
	int rc = prefix_map_add(p->prefixes, rule_prefix(rule_at(p, rule)), rule, &head);

	if (rc == 1)
		return policy_chain_add(p, head, rule, err);
	return rc ? err_set(err, "out of memory for %zu rules", p->store.n_rules) : 0;
}

/* True when a deny rule takes away whatever the allow rule gives. Needs the ancestors of all deny rules. */
static bool is_denied_whole(const struct policy *p, const struct policy_rule *r)
{
	struct name_walk w;

	name_walk_begin(&w, p, r->tail, r->name_len);
	while (name_walk_next(&w)) {
		unsigned need = w.whole ? r->flags & (RULE_APEX | RULE_BELOW) : RULE_BELOW;

		for (uint32_t i = w.rule; i != RULE_NONE; i = rule_at(p, i)->next) {
			const struct policy_rule *by = rule_at(p, i);

			if (by->flags & RULE_DENY && (by->flags & need) == need && rule_ports_within(p, r, by))
				return true;
		}
	}
	return false;
}

/* The rule after `i`. Slots are cache misses: those of the rules up to `*ahead` are asked for meanwhile. */
static uint32_t next_rule(const struct policy *p, uint32_t i, uint32_t *ahead)
{
	while (*ahead < p->store.n_words && *ahead < i + BUILD_AHEAD) {
		if (!(rule_at(p, *ahead)->flags & RULE_PREFIX))
			names_prefetch(p, *ahead);
		*ahead = rule_after(p, *ahead);
	}
	return rule_after(p, i);
}

/* Ancestors of denied names first: only with them can it be told which allowed ones are left. */
static int add_ancestors(struct policy *p, bool any_deny, struct err *err)
{
	for (unsigned list = 0; list < 2; list++) {
		uint32_t ahead = 0;

		for (uint32_t i = 0; i < p->store.n_words; i = next_rule(p, i, &ahead)) {
			const struct policy_rule *r = rule_at(p, i);
			bool deny = (r->flags & RULE_DENY) != 0;

			if (deny != (list == 0) || r->flags & (RULE_PREFIX | RULE_DUPLICATE))
				continue;
			if (names_add_ancestors(p, i, !deny && !(any_deny && is_denied_whole(p, r)), err))
				return -1;
		}
	}
	return 0;
}

static int add_rules(struct policy *p, struct err *err)
{
	bool any_deny = false;
	uint32_t ahead = 0;

	for (uint32_t i = 0; i < p->store.n_words; i = next_rule(p, i, &ahead)) {
		const struct policy_rule *r = rule_at(p, i);

		if (r->flags & RULE_PREFIX ? add_prefix(p, i, err) : names_add_rule(p, i, err))
			return -1;
		any_deny |= (r->flags & RULE_DENY) != 0;
		if (r->flags & RULE_DUPLICATE)
			continue;
		p->n_live++;
		for (size_t k = 0; k < rule_terms(p, r)->n_ports && !(r->flags & RULE_DENY); k++) {
			uint16_t port = PORT_NUMBER(rule_ports(p, r)[k]);

			p->ports_used[port / 64] |= UINT64_C(1) << port % 64;
		}
	}
	return add_ancestors(p, any_deny, err);
}

/* Gives back what the rules' memory has grown beyond need, but for the room after the last name. */
static void shrink(struct rule_store *s)
{
	size_t want = s->n_words + RULE_ROOM;
	void *mem = s->n_rules ? reallocarray(s->words, want, sizeof(*s->words)) : NULL;

	if (!mem)
		return;
	s->words = mem;
	s->cap_words = want;
	memset(s->words + s->n_words, 0, RULE_ROOM * sizeof(*s->words));
}

struct policy *policy_build(struct policy_builder *b, struct err *err)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (!p) {
		err_set(err, "out of memory");
		return NULL;
	}
	p->store = *builder_store(b);
	p->audit = builder_audit(b);
	p->limits = builder_limits(b);
	p->root = RULE_NONE;
	builder_reset(b);
	shrink(&p->store);
	p->prefixes = prefix_map_new();
	if (!p->prefixes)
		err_set(err, "out of memory");
	if (!p->prefixes || names_init(p, err) || add_rules(p, err) || print_digest(p, p->digest, err)) {
		policy_free(p);
		return NULL;
	}
	/* A third of what a large load has used would stay with the allocator for nothing. */
	if (p->store.n_rules >= BUILD_LARGE)
		malloc_trim(0);
	return p;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	prefix_map_free(p->prefixes);
	free(p->table.slots);
	store_free(&p->store);
	free(p);
}

bool policy_is_audit(const struct policy *p)
{
	return p->audit;
}

const struct limits *policy_limits(const struct policy *p)
{
	return &p->limits;
}

size_t policy_size(const struct policy *p)
{
	return p->n_live;
}

const char *policy_digest(const struct policy *p, char buf[static POLICY_DIGEST_STRLEN])
{
	memcpy(buf, p->digest, POLICY_DIGEST_STRLEN);
	return buf;
}

/*
 * On purpose, that is: not by a prefix so wide that the address just happens
 * to be in it. A special-purpose address needs a prefix inside its own range.
 */
static bool exempts(const struct prefix *prefix, const struct addr *a)
{
	return prefix_contains(prefix, a) && !special_is_wide(prefix) && (!special_of(a) || special_within(prefix));
}

bool policy_rule_exempts(const struct policy *p, const struct policy_rule *rule, const struct addr *a)
{
	if (!rule || rule->flags & RULE_DENY)
		return false;
	if (rule->flags & RULE_PREFIX)
		return exempts(rule_prefix(rule), a);
	for (size_t i = 0; i < rule_terms(p, rule)->n_addrs; i++) {
		if (exempts(&rule_addrs(p, rule)[i], a))
			return true;
	}
	return false;
}
