/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a policy. Each entry becomes rules that say no more than the entry
 * does and no more than a rule that is there already: what they add (label,
 * `addresses:`, limits) is that rule's, and its denials come along. So nothing
 * is compared when a connection is judged, and nothing can be forgotten there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/policy_rep.h"

struct narrowing {
	struct policy_builder *b;
	const struct policy *from;
	const struct entry *entry;
	int first_source;   /* index in the builder of the first source of `from` */
	uint32_t ports[2];  /* wanted, PORT_PACK */
	bool port_given[2]; /* some rule gives it */
	size_t n_ports;
	bool covered; /* some rule covers the name or prefix, whatever its ports */
	bool failed;
	struct err *err;
};

/* Appends `spec` with whatever else it takes from the rule. Returns 0 or -1. */
static int add(struct narrowing *n, const struct policy_rule *r, struct rule_spec *spec)
{
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
	rc = store_add(builder_store(n->b), spec, n->err);
	free(addrs);
	return rc;
}

/* Takes from a rule that covers the entry the ports that both have. */
static void take(struct narrowing *n, const struct policy_rule *r)
{
	struct rule_spec spec = { .list = ENTRY_ALLOW, .entry = n->entry };
	uint32_t ports[2];

	n->covered = true;
	for (size_t i = 0; i < n->n_ports; i++) {
		uint32_t given = rule_find_port(n->from, r, PORT_NUMBER(n->ports[i]));

		if (!given || (PORT_ANY_BYTES(n->ports[i]) && !PORT_ANY_BYTES(given)))
			continue;
		n->port_given[i] = true;
		ports[spec.n_ports++] = n->ports[i];
	}
	spec.ports = ports;
	if (spec.n_ports && add(n, r, &spec))
		n->failed = true;
}

static void take_from_names(struct narrowing *n)
{
	const unsigned wanted = (n->entry->apex ? RULE_APEX : 0) | (n->entry->below ? RULE_BELOW : 0);
	struct name_walk w;

	name_walk_begin(&w, n->from, n->entry->name.s, n->entry->name.len);
	while (!n->failed && name_walk_next(&w)) {
		const unsigned need = w.whole ? wanted : RULE_BELOW;

		for (uint32_t i = w.rule; i != RULE_NONE && !n->failed; i = rule_at(n->from, i)->next) {
			const struct policy_rule *r = rule_at(n->from, i);

			if (!(r->flags & RULE_DENY) && (r->flags & need) == need)
				take(n, r);
		}
	}
}

static bool visit_prefix(void *arg, uint32_t head)
{
	struct narrowing *n = arg;

	for (uint32_t i = head; i != RULE_NONE && !n->failed; i = rule_at(n->from, i)->next) {
		const struct policy_rule *r = rule_at(n->from, i);

		if (!(r->flags & RULE_DENY) && rule_prefix(r)->len <= n->entry->prefix.len)
			take(n, r);
	}
	return n->failed;
}

static int narrow_to(struct narrowing *n, const char *text)
{
	char quoted[ENTRY_QUOTE_MAX];
	struct entry entry;

	if (entry_parse(ENTRY_ALLOW, text, strlen(text), &entry, n->err))
		return -1;
	n->entry = &entry;
	n->covered = n->port_given[0] = n->port_given[1] = false;
	n->n_ports = entry.port ? 1 : 2;
	n->ports[0] = entry.port ? entry.port : PORT_PACK(80, false);
	n->ports[1] = PORT_PACK(443, false);
	if (entry.is_prefix)
		prefix_map_visit(n->from->prefixes, &entry.prefix.addr, visit_prefix, n);
	else
		take_from_names(n);
	if (n->failed)
		return -1;
	entry_quote(text, strlen(text), quoted);
	if (!n->covered)
		return err_set(n->err, "%s is not permitted", quoted);
	for (size_t i = 0; i < n->n_ports; i++)
		if (!n->port_given[i])
			return err_set(n->err,
				       "%s: port %u%s is not permitted; name the port that you need, as in "
				       "HOST:443",
				       quoted, PORT_NUMBER(n->ports[i]), PORT_ANY_BYTES(n->ports[i]) ? "/tcp" : "");
	return 0;
}

/* A deny rule, as it is. */
static int copy_denial(struct narrowing *n, const struct policy_rule *r)
{
	struct rule_spec spec = { .list = ENTRY_DENY, .n_ports = r->n_ports };
	struct entry entry = { .is_prefix = r->flags & RULE_PREFIX,
			       .apex = r->flags & RULE_APEX,
			       .below = r->flags & RULE_BELOW };
	int rc;

	if (entry.is_prefix) {
		entry.prefix = *rule_prefix(r);
	} else {
		entry.name.len = r->name_len;
		memcpy(entry.name.s, r->tail, r->name_len + 1u);
	}
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
	if (copy_denials(&narrowing))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (narrow_to(&narrowing, entries[i]))
			return -1;
	return 0;
}
