/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a policy. Each entry becomes rules that say no more than the entry
 * does and no more than a rule that is there already: what they add (label,
 * `addresses:`, limits) is that rule's, and its denials come along. So nothing
 * is compared when a connection is judged, and nothing can be forgotten there.
 *
 * Limits are used up by all that comes of one rule together, and a rule with limits
 * that an entry covers comes along with it, since it would have decided before the wider one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/policy_rep.h"

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
	unsigned level, best_level[2]; /* 1: the most specific */
	bool covered;		       /* some rule covers the name or prefix, whatever its ports */
	struct err *err;
};

/* Appends `spec` with whatever else it takes from the rule. Returns 0 or -1. */
static int add(struct narrowing *n, const struct policy_rule *r, struct rule_spec *spec)
{
	struct rule_store *store = builder_store(n->b);
	int limited = policy_rule_limited(r);
	struct prefix *addrs = NULL;
	int rc;

	if (r->n_addrs) {
		addrs = reallocarray(NULL, r->n_addrs, sizeof(*addrs));
		if (!addrs)
			return err_set(n->err, "out of memory");
		memcpy(addrs, rule_addrs(n->from, r), r->n_addrs * sizeof(*addrs));
	}
	spec->addrs = addrs;
	spec->n_addrs = r->n_addrs;
	spec->line = r->line;
	spec->source = r->source == POLICY_SOURCES_MAX ? r->source : (uint16_t)(r->source + n->first_source);
	if (limited >= 0) {
		spec->limits = *policy_rule_limits(n->from, (size_t)limited);
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

/* Whether the rule decides before the one that is the best so far; they come from the most specific one on. */
static bool is_better(const struct narrowing *n, const struct policy_rule *r, size_t i)
{
	const struct policy_rule *best = n->best[i];

	if (!best || (r->n_addrs != 0) != (best->n_addrs != 0))
		return !best || r->n_addrs != 0;
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
	for (n->level = 1; name_walk_next(&w); n->level++) {
		const unsigned need = w.whole ? wanted : RULE_BELOW;

		for (uint32_t i = w.rule; i != RULE_NONE; i = rule_at(n->from, i)->next) {
			const struct policy_rule *r = rule_at(n->from, i);

			if (!(r->flags & RULE_DENY) && (r->flags & need) == need)
				weigh(n, r);
		}
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

/* Adds the best rules under the entry's own name: one for both ports where it is the same. */
static int add_best(struct narrowing *n)
{
	for (size_t i = 0; i < n->n_ports; i++) {
		bool both = i == 0 && n->n_ports == 2 && n->best[0] == n->best[1];
		struct rule_spec spec = {
			.list = ENTRY_ALLOW, .entry = n->entry, .ports = n->ports + i, .n_ports = both ? 2 : 1
		};

		if (add(n, n->best[i], &spec))
			return -1;
		i += both;
	}
	return 0;
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

/* Whether the entry covers something of the rule, which is more specific. */
static bool is_within(const struct entry *entry, const struct policy_rule *r)
{
	struct entry inner = entry_of(r);

	if (inner.is_prefix != entry->is_prefix)
		return false;
	if (inner.is_prefix)
		return inner.prefix.len > entry->prefix.len && prefix_contains(&entry->prefix, &inner.prefix.addr);
	return entry->below && (entry->name.len == 0 || name_equal(&inner.name, &entry->name) ||
				name_is_below(&inner.name, entry->name.s, entry->name.len));
}

/* Adds the rules with limits that lie within the entry, for its ports. */
static int add_limited(struct narrowing *n)
{
	for (uint32_t at = 0; at < n->from->store.n_words; at = rule_after(n->from, at)) {
		const struct policy_rule *r = rule_at(n->from, at);
		struct entry entry = entry_of(r);
		uint32_t ports[2];
		struct rule_spec spec = { .list = ENTRY_ALLOW, .entry = &entry, .ports = ports };

		if (!(r->flags & RULE_LIMITED) || r->flags & RULE_DUPLICATE || !is_within(n->entry, r))
			continue;
		for (size_t i = 0; i < n->n_ports; i++) {
			if (r != n->best[i] && gives(n, r, i))
				ports[spec.n_ports++] = n->ports[i];
		}
		if (spec.n_ports && add(n, r, &spec))
			return -1;
	}
	return 0;
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
			return err_set(n->err,
				       "%s: port %u%s is not permitted; name the port that you need, as in "
				       "HOST:443",
				       quoted, PORT_NUMBER(n->ports[i]), PORT_ANY_BYTES(n->ports[i]) ? "/tcp" : "");
	return add_best(n) || add_limited(n) ? -1 : 0;
}

/* A deny rule, as it is. */
static int copy_denial(struct narrowing *n, const struct policy_rule *r)
{
	struct rule_spec spec = { .list = ENTRY_DENY, .n_ports = r->n_ports };
	struct entry entry = entry_of(r);
	int rc;

	spec.entry = &entry;
	spec.ports = reallocarray(NULL, r->n_ports + 1u, sizeof(*spec.ports));
	if (!spec.ports)
		return err_set(n->err, "out of memory");
	memcpy(spec.ports, rule_ports(n->from, r), r->n_ports * sizeof(*spec.ports));
	rc = add(n, r, &spec);
	free(spec.ports);
	return rc;
}

static int copy_denials(struct narrowing *n)
{
	const struct policy *from = n->from;

	for (uint32_t i = 0; i < from->store.n_words; i = rule_after(from, i)) {
		const struct policy_rule *r = rule_at(from, i);

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
