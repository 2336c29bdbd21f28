/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a policy. Each entry becomes rules that say no more than the entry
 * does and no more than a rule that is there already: what they add (label,
 * `addresses:`, limits) is that rule's, and its denials come along. So nothing
 * is compared when a connection is judged, and nothing can be forgotten there.
 *
 * A rule that an entry covers comes along with it, for it may have decided before the wider one. What is left must choose
 * among its rules as the policy does (match.c). A rule that gives any bytes loses that rank when the entry asks for less;
 * where that could make a difference, the entry is refused.
 *
 * Limits are used up by all that comes of one rule together.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/policy_rep.h"

enum { KIND_PLAIN = 1, KIND_ANY_BYTES = 2, KIND_SPECIAL = 4 /* it has `addresses:` or limits */ };

struct narrowing {
	struct policy_builder *b;
	const struct policy *from;
	const struct entry *entry;
	int first_source;  /* index in the builder of the first source of `from` */
	int64_t *limits;   /* for each of `from`: where it is in the builder; -1: not yet */
	uint32_t ports[2]; /* wanted, PORT_PACK */
	size_t n_ports;
	/* The rule that decides for each port: of all that cover the entry, as match() would choose. */
	const struct policy_rule *best[2];
	size_t level, best_level[2]; /* the same for rules of the same name or prefix */
	unsigned kinds[2];	     /* KIND_… of the rules that are taken for each port */
	unsigned decided
		[2];  /* RULE_APEX, RULE_BELOW: what more specific rules than the best decide of the entry's name */
	bool covered; /* some rule covers the name or prefix, whatever its ports */
	struct err *err;
};

/* Appends `spec` with whatever else it takes from the rule. Returns 0 or -1. */
static int add(struct narrowing *n, const struct policy_rule *r, struct rule_spec *spec)
{
	struct rule_store *store = builder_store(n->b);
	int limited = policy_rule_limited(r);
	struct prefix *addrs = NULL;
	int rc;

	if (rule_terms(n->from, r)->n_addrs) {
		addrs = reallocarray(NULL, rule_terms(n->from, r)->n_addrs, sizeof(*addrs));
		if (!addrs)
			return err_set(n->err, "out of memory");
		memcpy(addrs, rule_addrs(n->from, r), rule_terms(n->from, r)->n_addrs * sizeof(*addrs));
	}
	spec->addrs = addrs;
	spec->n_addrs = rule_terms(n->from, r)->n_addrs;
	spec->line = r->line;
	spec->source = rule_terms(n->from, r)->source == POLICY_SOURCES_MAX
			       ? rule_terms(n->from, r)->source
			       : (uint16_t)(rule_terms(n->from, r)->source + n->first_source);
	if (limited >= 0) {
		spec->limits = policy_rule_limits(n->from, (size_t)limited);
		spec->limits_shared = n->limits[limited] >= 0;
		spec->limits_at = spec->limits_shared ? (uint32_t)n->limits[limited] : 0;
	}
	rc = store_add(store, spec, n->err);
	free(addrs);
	if (rc == 0 && limited >= 0 && !spec->limits_shared)
		n->limits[limited] = (int64_t)store->n_limits - 1;
	return rc;
}

/* Whether the rule gives the i-th port that is wanted. */
static bool gives(const struct narrowing *n, const struct policy_rule *r, size_t i)
{
	uint32_t given = rule_find_port(n->from, r, PORT_NUMBER(n->ports[i]));

	return given && (!PORT_ANY_BYTES(n->ports[i]) || PORT_ANY_BYTES(given));
}

/* The rank of a rule for the i-th port, as match() has it. */
static int rank_of(const struct narrowing *n, const struct policy_rule *r, size_t i)
{
	uint32_t given = rule_find_port(n->from, r, PORT_NUMBER(n->ports[i]));

	return (PORT_ANY_BYTES(given) ? 2 : 0) + (rule_terms(n->from, r)->n_addrs ? 1 : 0);
}

/* Whether the rule decides before the one that is the best so far; they come from the most specific one on. */
static bool is_better(const struct narrowing *n, const struct policy_rule *r, size_t i)
{
	const struct policy_rule *best = n->best[i];
	int rank = rank_of(n, r, i), best_rank = best ? rank_of(n, best, i) : -1;

	if (rank != best_rank)
		return rank > best_rank;
	return n->level == n->best_level[i] && r->flags & ~(unsigned)best->flags & RULE_LIMITED;
}

/* Looks at a rule that covers the entry. */
static void weigh(struct narrowing *n, const struct policy_rule *r)
{
	n->covered = true;
	for (size_t i = 0; i < n->n_ports; i++) {
		if (gives(n, r, i) && is_better(n, r, i)) {
			n->best[i] = r;
			n->best_level[i] = n->level;
		}
	}
}

static void weigh_names(struct narrowing *n)
{
	const unsigned wanted = (n->entry->apex ? RULE_APEX : 0) | (n->entry->below ? RULE_BELOW : 0);
	struct name_walk w;

	name_walk_begin(&w, n->from, n->entry->name.s, n->entry->name.len);
	while (name_walk_next(&w)) {
		const unsigned need = w.whole ? wanted : RULE_BELOW;

		n->level = w.left;
		if (!(w.rule->flags & RULE_DENY) && (w.rule->flags & need) == need)
			weigh(n, w.rule);
	}
}

static bool visit_prefix(void *arg, uint32_t head)
{
	struct narrowing *n = arg;

	n->level++;
	for (uint32_t i = head; i != RULE_NONE; i = rule_at(n->from, i)->next) {
		const struct policy_rule *r = rule_at(n->from, i);

		if (!(r->flags & RULE_DENY) && rule_prefix(r)->len <= n->entry->prefix.len)
			weigh(n, r);
	}
	return false;
}

/* A rule's own name or prefix. */
static struct entry entry_of(const struct policy_rule *r)
{
	struct entry entry = { .is_prefix = r->flags & RULE_PREFIX,
			       .apex = r->flags & RULE_APEX,
			       .below = r->flags & RULE_BELOW };

	if (entry.is_prefix) {
		entry.prefix = *rule_prefix(r);
	} else {
		entry.name.len = r->name_len;
		memcpy(entry.name.s, r->tail, r->name_len + 1u);
	}
	return entry;
}

/* Whether the entry's name is the rule's own. */
static bool is_same_name(const struct entry *entry, const struct policy_rule *r)
{
	return !entry->is_prefix && !(r->flags & RULE_PREFIX) && r->name_len == entry->name.len &&
	       memcmp(r->tail, entry->name.s, r->name_len) == 0;
}

/* What the entry covers of a rule that does not cover all of the entry. False: nothing. */
static bool find_part(const struct entry *entry, const struct policy_rule *r, struct entry *part)
{
	*part = entry_of(r);
	if (part->is_prefix != entry->is_prefix)
		return false;
	if (part->is_prefix)
		return part->prefix.len > entry->prefix.len && prefix_contains(&entry->prefix, &part->prefix.addr);
	if (!is_same_name(entry, r))
		return entry->below &&
		       (entry->name.len == 0 || name_is_below(&part->name, entry->name.s, entry->name.len));
	part->apex &= entry->apex;
	part->below &= entry->below;
	return (part->apex || part->below) && (part->apex != entry->apex || part->below != entry->below);
}

static void take_port(struct narrowing *n, const struct policy_rule *r, size_t i, struct rule_spec *spec)
{
	spec->ports[spec->n_ports++] = n->ports[i];
	n->kinds[i] |= rank_of(n, r, i) >= 2 ? KIND_ANY_BYTES : KIND_PLAIN;
	n->kinds[i] |= rule_terms(n->from, r)->n_addrs || r->flags & RULE_LIMITED ? KIND_SPECIAL : 0;
}

/* Adds a rule for `part` of the entry, with the ports for which it may decide before the best one. */
static int add_part(struct narrowing *n, const struct policy_rule *r, const struct entry *part)
{
	const unsigned flags = (part->apex ? RULE_APEX : 0) | (part->below ? RULE_BELOW : 0);
	uint32_t ports[2];
	struct rule_spec spec = { .list = ENTRY_ALLOW, .entry = part, .ports = ports };

	for (size_t i = 0; i < n->n_ports; i++) {
		if (!gives(n, r, i) || rank_of(n, r, i) < rank_of(n, n->best[i], i))
			continue;
		take_port(n, r, i, &spec);
		n->decided[i] |= is_same_name(n->entry, r) ? flags : 0;
	}
	return spec.n_ports ? add(n, r, &spec) : 0;
}

/* Adds a best rule for all of the entry, but for what is decided already. */
static int add_best(struct narrowing *n, const struct policy_rule *r, unsigned decided)
{
	struct entry rest = *n->entry;
	uint32_t ports[2];
	struct rule_spec spec = { .list = ENTRY_ALLOW, .entry = &rest, .ports = ports };

	rest.apex &= !(decided & RULE_APEX);
	rest.below &= !(decided & RULE_BELOW);
	for (size_t i = 0; i < n->n_ports; i++) {
		if (r == n->best[i] && (is_same_name(n->entry, r) || decided == n->decided[i]))
			take_port(n, r, i, &spec);
	}
	return rest.is_prefix || rest.apex || rest.below ? add(n, r, &spec) : 0;
}

/* Adds the rules that the entry comes to. Of several for one name the first one decides: their order stays. */
static int add_rules(struct narrowing *n)
{
	struct entry part;

	for (size_t i = 0; i < n->from->store.n_rules; i++) {
		const struct policy_rule *r = rule_at(n->from, n->from->given[i]);
		int rc = 0;

		if (r->flags & (RULE_DENY | RULE_DUPLICATE))
			continue;
		if (is_same_name(n->entry, r) && (r == n->best[0] || r == n->best[1]))
			rc = add_best(n, r, 0);
		else if (find_part(n->entry, r, &part))
			rc = add_part(n, r, &part);
		if (rc)
			return -1;
	}
	for (size_t i = 0; i < n->n_ports; i++) {
		bool added = i == 1 && n->best[1] == n->best[0] && n->decided[1] == n->decided[0];

		if (!added && !is_same_name(n->entry, n->best[i]) && add_best(n, n->best[i], n->decided[i]))
			return -1;
	}
	return 0;
}

/* Whether match() would choose among the rules for the i-th port as it does in the whole policy. */
static bool is_faithful(const struct narrowing *n, size_t i)
{
	return PORT_ANY_BYTES(n->ports[i]) || n->kinds[i] != (KIND_PLAIN | KIND_ANY_BYTES | KIND_SPECIAL);
}

static int narrow_to(struct narrowing *n, const char *text)
{
	char quoted[ENTRY_QUOTE_MAX];
	struct entry entry;

	if (entry_parse(ENTRY_ALLOW, text, strlen(text), &entry, n->err))
		return -1;
	n->entry = &entry;
	n->covered = false;
	n->best[0] = n->best[1] = NULL;
	n->kinds[0] = n->kinds[1] = n->decided[0] = n->decided[1] = 0;
	n->level = 0;
	n->n_ports = entry.port ? 1 : 2;
	n->ports[0] = entry.port ? entry.port : PORT_PACK(80, false);
	n->ports[1] = PORT_PACK(443, false);
	if (entry.is_prefix)
		prefix_map_visit(n->from->prefixes, &entry.prefix.addr, visit_prefix, n);
	else
		weigh_names(n);
	entry_quote(text, strlen(text), quoted);
	if (!n->covered)
		return err_set(n->err, "%s is not permitted", quoted);
	for (size_t i = 0; i < n->n_ports; i++)
		if (!n->best[i])
			return err_set(n->err, "%s: port %u%s is not permitted%s", quoted, PORT_NUMBER(n->ports[i]),
				       PORT_ANY_BYTES(n->ports[i]) ? "/tcp" : "",
				       entry.port ? "; other ports of it are"
						  : "; without a port, it stands for 80 and 443: name the one that you "
						    "need, as in HOST:443");
	if (add_rules(n))
		return -1;
	for (size_t i = 0; i < n->n_ports; i++)
		if (!is_faithful(n, i))
			return err_set(n->err,
				       "%s: port %u is permitted in different ways below it; name the hosts that you "
				       "need, or HOST:%u/tcp",
				       quoted, PORT_NUMBER(n->ports[i]), PORT_NUMBER(n->ports[i]));
	return 0;
}

/* A deny rule, as it is. */
static int copy_denial(struct narrowing *n, const struct policy_rule *r)
{
	struct rule_spec spec = { .list = ENTRY_DENY, .n_ports = rule_terms(n->from, r)->n_ports };
	struct entry entry = entry_of(r);
	int rc;

	spec.entry = &entry;
	spec.ports = reallocarray(NULL, rule_terms(n->from, r)->n_ports + 1u, sizeof(*spec.ports));
	if (!spec.ports)
		return err_set(n->err, "out of memory");
	memcpy(spec.ports, rule_ports(n->from, r), rule_terms(n->from, r)->n_ports * sizeof(*spec.ports));
	rc = add(n, r, &spec);
	free(spec.ports);
	return rc;
}

static int copy_denials(struct narrowing *n)
{
	const struct policy *from = n->from;

	for (size_t i = 0; i < from->store.n_rules; i++) {
		const struct policy_rule *r = rule_at(from, from->given[i]);

		if (r->flags & RULE_DENY && !(r->flags & RULE_DUPLICATE) && copy_denial(n, r))
			return -1;
	}
	return 0;
}

int policy_builder_narrow(struct policy_builder *b, const struct policy *from, const char *const *entries, size_t n,
			  struct err *err)
{
	struct narrowing narrowing = { .b = b, .from = from, .err = err };
	int rc;

	for (size_t i = 0; i < from->store.n_sources; i++) {
		int at = store_add_source(builder_store(b), from->store.sources[i], err);

		if (at < 0)
			return -1;
		if (i == 0)
			narrowing.first_source = at;
	}
	builder_file_mode(b, from->audit);
	for (unsigned which = 0; which < LIMIT_COUNT; which++)
		if (from->limits.max[which])
			builder_limit(b, which, from->limits.max[which]);
	narrowing.limits = reallocarray(NULL, from->store.n_limits + 1, sizeof(*narrowing.limits));
	if (!narrowing.limits)
		return err_set(err, "out of memory");
	for (size_t i = 0; i < from->store.n_limits; i++)
		narrowing.limits[i] = -1;
	rc = copy_denials(&narrowing);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = narrow_to(&narrowing, entries[i]);
	free(narrowing.limits);
	return rc;
}
