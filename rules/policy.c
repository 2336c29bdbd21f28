/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the immutable policy: its rules in place, tables, the digest. Everything that
 * could fail, allocate or read randomness happens here, so that what asks the
 * policy later can do none of it.
 */
#include "rules/policy_rep.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/special.h"

#define BUILD_LARGE	100000 /* rules */
#define ANCESTORS_AHEAD 16     /* names */

/* True when a deny rule takes away whatever the allow rule gives. */
static bool is_denied_whole(const struct policy *p, const struct policy_rule *r)
{
	struct name_walk w;

	name_walk_begin(&w, p, r->tail, r->name_len);
	while (name_walk_next(&w)) {
		unsigned need = w.whole ? r->flags & (RULE_APEX | RULE_BELOW) : RULE_BELOW;

		if (w.rule->flags & RULE_DENY && (w.rule->flags & need) == need && rule_ports_within(p, r, w.rule))
			return true;
	}
	return false;
}

/* Adds what is above each allowed name that no denial takes away. */
static int add_ancestors(struct policy *p, struct err *err)
{
	/* A slot is a cache miss: those of some names are asked for before the first of them is looked at. */
	struct name_suffixes names[ANCESTORS_AHEAD];
	struct name_cursor c = { 0 };
	size_t n = 0;
	int rc = 0;

	while (rc == 0 && names_each(&c, p)) {
		const struct policy_rule *r = c.rule;

		if (r->flags & (RULE_DENY | RULE_DUPLICATE) || r->name_len == 0 ||
		    (p->any_deny && is_denied_whole(p, r)))
			continue;
		if (n >= ANCESTORS_AHEAD)
			rc = names_add_ancestors(p, &names[n % ANCESTORS_AHEAD], err);
		names_cut(&p->table, r->tail, r->name_len, &names[n % ANCESTORS_AHEAD]);
		names_prefetch_ancestors(&p->table, &names[n++ % ANCESTORS_AHEAD]);
	}
	for (size_t i = 0; i < n && i < ANCESTORS_AHEAD && rc == 0; i++)
		rc = names_add_ancestors(p, &names[i], err);
	return rc;
}

struct policy *policy_build(struct policy_builder *b, struct err *err)
{
	struct policy *p = calloc(1, sizeof(*p));
	uint32_t *given;
	int rc;

	if (!p) {
		err_set(err, "out of memory");
		return NULL;
	}
	p->store = *builder_store(b);
	p->audit = builder_audit(b);
	p->limits = builder_limits(b);
	builder_reset(b);
	given = p->store.words;
	p->store.words = NULL;
	p->prefixes = prefix_map_new();
	if (!p->prefixes)
		rc = err_set(err, "out of memory");
	else
		rc = names_init(p, err) || policy_arrange(p, given, err) ? -1 : 0;
	free(given);
	if (rc || add_ancestors(p, err) || print_digest(p, p->digest, err)) {
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
	free(p->table.ancestors);
	free(p->given);
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
