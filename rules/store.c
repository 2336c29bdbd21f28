/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays that rules lie in. A rule is 14 bytes and its name; what it says beside its name is stored once for all rules
 * of which a few before say the same, so that a long list of plain names needs no more than that. Limits are few and lie apart.
 */
#include "rules/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

#define HUGE_PAGES_FROM	  (8u << 20) /* bytes of a table */
#define TERMS_LOOKED_BACK 8	     /* a list has few kinds of rules, and they alternate */

/*
 * Room for `more` elements of `size` bytes in an array that grows by halves.
 * Returns the array, which may have moved; NULL when memory is out: then the old one stays as it is.
 */
static void *reserve(void *array, size_t *cap, size_t used, size_t more, size_t size)
{
	size_t want = *cap + *cap / 2 + 16;
	void *bigger;

	if (used + more <= *cap)
		return array;
	if (want < used + more)
		want = used + more;
	bigger = reallocarray(array, want, size);
	if (bigger)
		*cap = want;
	return bigger;
}

static int compare_ports(const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

/* Sorts, and keeps each port once: with "any bytes" where it was given both ways. Returns how many are left. */
static size_t thin_ports(uint32_t *ports, size_t n)
{
	size_t kept = 0;

	if (n > 1)
		qsort(ports, n, sizeof(*ports), compare_ports);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && PORT_NUMBER(ports[i]) == PORT_NUMBER(ports[i + 1]))
			continue;
		ports[kept++] = ports[i];
	}
	return kept;
}

static int compare_prefixes(const void *a, const void *b)
{
	const struct prefix *x = a, *y = b;
	int rc = (x->addr.family > y->addr.family) - (x->addr.family < y->addr.family);

	if (rc == 0)
		rc = memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));
	return rc ? rc : (x->len > y->len) - (x->len < y->len);
}

static size_t thin_prefixes(struct prefix *prefixes, size_t n)
{
	size_t kept = 0;

	if (n > 1)
		qsort(prefixes, n, sizeof(*prefixes), compare_prefixes);
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || compare_prefixes(&prefixes[kept - 1], &prefixes[i]) != 0)
			prefixes[kept++] = prefixes[i];
	}
	return kept;
}

/* Room for one more rule whatever it is, so that nothing after this can fail half-way. */
static int reserve_rule(struct rule_store *s, size_t n_ports, size_t n_addrs, struct err *err)
{
	size_t words = sizeof(struct policy_rule) / 4 + 2 * RULE_ROOM;
	void *mem[4];

	static_assert(sizeof(struct prefix) / 4 + 1 <= RULE_ROOM, "room for either tail and the word behind it");

	if (s->n_rules >= POLICY_RULES_MAX || (s->n_words + words) * 4 > POLICY_BYTES_MAX)
		return err_set(err,
			       "more than %u rules in one policy, or names too long for so many; use wildcards or "
			       "address prefixes",
			       POLICY_RULES_MAX);
	/* One more, so that the arrays exist even while no rule has any. */
	mem[0] = reserve(s->words, &s->cap_words, s->n_words, words, sizeof(*s->words));
	mem[1] = reserve(s->ports, &s->cap_ports, s->n_ports, n_ports + 1, sizeof(*s->ports));
	mem[2] = reserve(s->addrs, &s->cap_addrs, s->n_addrs, n_addrs + 1, sizeof(*s->addrs));
	mem[3] = reserve(s->terms, &s->cap_terms, s->n_terms, 1, sizeof(*s->terms));
	s->words = mem[0] ? mem[0] : s->words;
	s->ports = mem[1] ? mem[1] : s->ports;
	s->addrs = mem[2] ? mem[2] : s->addrs;
	s->terms = mem[3] ? mem[3] : s->terms;
	if (!mem[0] || !mem[1] || !mem[2] || !mem[3])
		return err_set(err, "out of memory after %zu rules", s->n_rules);
	return 0;
}

/* Whether a rule with `n_ports` and `n_addrs` of these from this source says so. */
static bool terms_are(const struct rule_store *s, const struct rule_terms *t, const struct rule_terms *like,
		      const uint32_t *ports, const struct prefix *addrs)
{
	return t->source == like->source && t->n_ports == like->n_ports && t->n_addrs == like->n_addrs &&
	       (t->n_ports == 0 || memcmp(s->ports + t->ports, ports, t->n_ports * sizeof(*ports)) == 0) &&
	       (t->n_addrs == 0 || memcmp(s->addrs + t->addrs, addrs, t->n_addrs * sizeof(*addrs)) == 0);
}

/* Stores terms, with room for them, unless they are among the last ones. Returns their place. */
static uint32_t put_terms(struct rule_store *s, struct rule_terms terms, const uint32_t *ports,
			  const struct prefix *addrs)
{
	for (size_t i = s->n_terms; i-- > 0 && s->n_terms - i <= TERMS_LOOKED_BACK;) {
		if (terms_are(s, &s->terms[i], &terms, ports, addrs))
			return (uint32_t)i;
	}
	terms.ports = (uint32_t)s->n_ports;
	terms.addrs = (uint32_t)s->n_addrs;
	if (terms.n_ports)
		memcpy(s->ports + s->n_ports, ports, terms.n_ports * sizeof(*ports));
	if (terms.n_addrs)
		memcpy(s->addrs + s->n_addrs, addrs, terms.n_addrs * sizeof(*addrs));
	s->n_ports += terms.n_ports;
	s->n_addrs += terms.n_addrs;
	s->terms[s->n_terms] = terms;
	return (uint32_t)s->n_terms++;
}

/* Returns their place, or -1. */
static int put_limits(struct rule_store *s, const struct limits *limits, struct err *err)
{
	struct limits *bigger;

	if (s->n_limits >= POLICY_LIMITED_MAX)
		return err_set(err, "more than %d rules with limits of their own", POLICY_LIMITED_MAX);
	bigger = reserve(s->limits, &s->cap_limits, s->n_limits, 1, sizeof(*s->limits));
	if (!bigger)
		return err_set(err, "out of memory after %zu rules", s->n_rules);
	s->limits = bigger;
	s->limits[s->n_limits] = *limits;
	return (int)s->n_limits++;
}

static bool has_limits(const struct limits *limits)
{
	for (int i = 0; i < LIMIT_RULE_COUNT && limits; i++) {
		if (limits->max[i])
			return true;
	}
	return false;
}

static uint8_t flags_of(const struct rule_spec *spec)
{
	const struct entry *e = spec->entry;
	unsigned flags = spec->list == ENTRY_DENY ? RULE_DENY : 0;

	flags |= spec->limits_shared || has_limits(spec->limits) ? RULE_LIMITED : 0;
	if (e->is_prefix)
		return (uint8_t)(flags | RULE_PREFIX);
	flags |= (e->apex ? RULE_APEX : 0) | (e->below ? RULE_BELOW : 0);
	/* A wide denial needs no confirmation, so it is the same rule with and without it. */
	flags |= e->deliberate && spec->list == ENTRY_ALLOW ? RULE_DELIBERATE : 0;
	return (uint8_t)flags;
}

int store_add(struct rule_store *s, const struct rule_spec *spec, struct err *err)
{
	static const uint32_t plain[] = { PORT_PACK(80, false), PORT_PACK(443, false) };
	bool use_default = spec->n_ports == 0 && spec->list == ENTRY_ALLOW;
	const uint32_t *ports = use_default ? plain : spec->ports;
	size_t n_ports = use_default ? 2 : thin_ports(spec->ports, spec->n_ports);
	size_t n_addrs = thin_prefixes(spec->addrs, spec->n_addrs);
	const struct entry *e = spec->entry;
	size_t tail = e->is_prefix ? sizeof(e->prefix) : e->name.len + 1u;
	uint8_t flags = flags_of(spec);
	struct rule_terms terms = { .n_ports = (uint16_t)n_ports,
				    .n_addrs = (uint16_t)n_addrs,
				    .source = spec->source };
	struct policy_rule *r;
	int limits = (int)spec->limits_at;

	if (reserve_rule(s, n_ports, n_addrs, err))
		return -1;
	if (flags & RULE_LIMITED && !spec->limits_shared)
		limits = put_limits(s, spec->limits, err);
	if (limits < 0)
		return -1;
	r = store_rule(s, (uint32_t)s->n_words);
	*r = (struct policy_rule){
		.next = RULE_NONE, /* of a name's rule, arrange.c makes the hash of it */
		.line = spec->line,
		.terms = put_terms(s, terms, ports, spec->addrs),
		.name_len = e->is_prefix ? 0 : e->name.len,
		.flags = flags,
	};
	memcpy(r->tail, e->is_prefix ? (const void *)&e->prefix : (const void *)e->name.s, tail);
	s->n_words += rule_words(r);
	if (flags & RULE_LIMITED)
		s->words[s->n_words - 1] = (uint32_t)limits;
	s->n_rules++;
	return 0;
}

void *store_table(size_t n, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *table = calloc(n, size);
	size_t skip;

	if (!table || n * size < HUGE_PAGES_FROM)
		return table;
	/* Whole pages that are this table's alone. Without huge ones it is only slower. */
	skip = -(uintptr_t)table & (page - 1);
	(void)!madvise(table + skip, (n * size - skip) & ~(page - 1), MADV_HUGEPAGE);
	return table;
}

int store_add_source(struct rule_store *s, const char *path, struct err *err)
{
	char **sources;
	char *copy;

	if (s->n_sources >= POLICY_SOURCES_MAX)
		return err_set(err, "more than %d policy files", POLICY_SOURCES_MAX);
	sources = reserve(s->sources, &s->cap_sources, s->n_sources, 1, sizeof(*s->sources));
	if (!sources)
		return err_set(err, "out of memory");
	s->sources = sources;
	copy = strdup(path);
	if (!copy)
		return err_set(err, "out of memory");
	/* The path ends up in messages and records: no line of its own making. */
	for (char *c = copy; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	s->sources[s->n_sources] = copy;
	return (int)s->n_sources++;
}

void store_cut(struct rule_store *s, const struct builder_mark *mark)
{
	while (s->n_sources > mark->n_sources)
		free(s->sources[--s->n_sources]);
	s->n_words = mark->n_words;
	s->n_terms = mark->n_terms;
	s->n_ports = mark->n_ports;
	s->n_addrs = mark->n_addrs;
	s->n_limits = mark->n_limits;
	s->n_rules = mark->n_rules;
}

void store_free(struct rule_store *s)
{
	for (size_t i = 0; i < s->n_sources; i++)
		free(s->sources[i]);
	free(s->sources);
	free(s->words);
	free(s->terms);
	free(s->ports);
	free(s->addrs);
	free(s->limits);
	memset(s, 0, sizeof(*s));
}
