/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy is made of. Only for rules/: everybody else uses policy.h and match.h.
 *
 * Rules lie in memory where a lookup of their names goes (names.h); those of
 * the same name one after the other in the order in which they were given. Address rules come after all of them. Those of
 * the same prefix form a chain in that order, its head found through a map of prefixes.
 */
#ifndef RULES_POLICY_REP_H
#define RULES_POLICY_REP_H

#include "rules/names.h"
#include "rules/policy.h"
#include "rules/store.h"

#define POLICY_ENTRY_MAX 320 /* text of a rule, cut if it has many ports */
#define RULES_AHEAD	 16  /* how many rules before its turn one is asked for, where each is a cache miss */

struct policy {
	struct rule_store store;
	struct name_table table;
	uint32_t *given; /* all rules in the order in which they were given: the word of each */
	struct prefix_map *prefixes;
	size_t n_live; /* rules that are not RULE_DUPLICATE */
	bool audit;
	bool any_deny; /* some rule is a denial */
	struct limits limits;
	uint64_t ports_used[65536 / 64]; /* ports that some allow rule names */
	char digest[POLICY_DIGEST_STRLEN];
};

/* builder.c: the inside of a builder, for policy_yaml.c and policy.c. */
struct rule_store *builder_store(struct policy_builder *b);
void builder_file_mode(struct policy_builder *b, bool audit); /* what a file says */
void builder_limit(struct policy_builder *b, enum limit which, uint64_t value);
struct builder_mark builder_mark(const struct policy_builder *b);
void builder_rollback(struct policy_builder *b, const struct builder_mark *mark); /* forgets what came after the mark */
bool builder_audit(const struct policy_builder *b);				  /* what all of it comes to */
struct limits builder_limits(const struct policy_builder *b);
void builder_reset(struct policy_builder *b); /* forgets everything without freeing: it was taken over */

/* The rule at word `i` of the store. */
static inline const struct policy_rule *rule_at(const struct policy *p, uint32_t i)
{
	return store_rule(&p->store, i);
}

/* Of a rule with RULE_PREFIX. */
static inline const struct prefix *rule_prefix(const struct policy_rule *r)
{
	return (const struct prefix *)r->tail;
}

/* What the rule says beside its name or prefix. */
static inline const struct rule_terms *rule_terms(const struct policy *p, const struct policy_rule *r)
{
	return &p->store.terms[r->terms];
}

/* Its n_ports PORT_PACKs. */
static inline const uint32_t *rule_ports(const struct policy *p, const struct policy_rule *r)
{
	return p->store.ports + rule_terms(p, r)->ports;
}

/* The prefixes of its `addresses:`. */
static inline const struct prefix *rule_addrs(const struct policy *p, const struct policy_rule *r)
{
	return p->store.addrs + rule_terms(p, r)->addrs;
}

/* Whether both have the same limits of their own, or none. */
bool rule_limits_equal(const struct policy *p, const struct policy_rule *a, const struct policy_rule *b);

/* The PORT_PACK of `port` in the rule; 0 when it is not there. A rule without ports has none: ask n_ports first. */
uint32_t rule_find_port(const struct policy *p, const struct policy_rule *r, uint16_t port);

/* Whether every port (and "any bytes") of `r` is one of `by` too; both of the same list, or `by` a deny. */
bool rule_ports_within(const struct policy *p, const struct policy_rule *r, const struct policy_rule *by);

/* True for the ports of a plain HOST entry: 80 and 443. */
bool ports_are_default(const uint32_t *ports, size_t n);

/* "*.example.com", "203.0.113.0/24", "[2001:db8::]/32" when a port follows; returns `buf`. */
const char *rule_pattern(const struct policy_rule *r, bool port_follows, char buf[static POLICY_ENTRY_MAX]);

/* The rule as an entry: "api.example.com", "host:22/tcp", "host:22,443"; returns `buf`. */
const char *rule_entry(const struct policy *p, const struct policy_rule *r, char buf[static POLICY_ENTRY_MAX]);

/*
 * arrange.c: puts the rules that lie in `given`, store.n_words of them in words, where they are looked for, into memory of
 * the policy's own; `given` is not of use any more. Returns 0 or -1.
 */
int policy_arrange(struct policy *p, uint32_t *given, struct err *err);

/* print.c: the digest of the canonical text. Returns 0 or -1. */
int print_digest(const struct policy *p, char buf[static POLICY_DIGEST_STRLEN], struct err *err);

#endif
