/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy is made of. Only for rules/: everybody else uses policy.h and match.h.
 *
 * Rules lie in memory in the order in which they were given. Those of the same name form a chain in
 * that order, its head found through a hash table that holds each rule's name
 * and every ancestor of one. A lookup walks from the top-level label down and
 * ends at the first name that is not in the table, since nothing below it can
 * be: its cost is the number of labels, at most 127, not of rules.
 */
#ifndef RULES_POLICY_REP_H
#define RULES_POLICY_REP_H

#include "base/prefix.h"
#include "rules/entry.h"
#include "rules/policy.h"

#define POLICY_RULES_MAX   (1u << 22) /* rules in one policy */
#define POLICY_BYTES_MAX   (1u << 29) /* bytes of all rules with their names */
#define POLICY_CHAIN_MAX   256	      /* different rules for one and the same name or prefix */
#define POLICY_PORTS_MAX   65535      /* ports of one rule */
#define POLICY_ADDRS_MAX   1024	      /* `addresses:` of one rule */
#define POLICY_SOURCES_MAX 1024	      /* files of one policy */
#define POLICY_ENTRY_MAX   320	      /* text of a rule, cut if it has many ports */

#define RULE_NONE UINT32_MAX
#define RULE_ROOM ((NAME_LEN_MAX + 4) / 4) /* words after the last rule: a comparison may begin at its last byte */

enum rule_flag {
	RULE_DENY = 1,
	RULE_PREFIX = 2,      /* an address rule */
	RULE_APEX = 4,	      /* covers its name itself */
	RULE_BELOW = 8,	      /* covers every name below it */
	RULE_DELIBERATE = 16, /* was written with "!" */
	RULE_DUPLICATE = 32,  /* says exactly what an earlier rule says: in no chain, never printed */
};

struct policy_rule {
	uint32_t next;	/* the next rule of the same name or prefix, or RULE_NONE */
	uint32_t ports; /* first of its ports, PORT_PACK, sorted; none means all of them (deny only) */
	uint32_t addrs; /* first of the prefixes that its name may resolve into */
	uint32_t line;	/* in its source */
	uint16_t n_ports;
	uint16_t n_addrs;
	uint16_t source; /* index in sources, or POLICY_SOURCES_MAX: the command line */
	uint8_t name_len;
	uint8_t flags; /* enum rule_flag */
	char tail[];   /* its name, NUL-terminated; or, with RULE_PREFIX, its struct prefix */
};

/*
 * The arrays, which the builder fills and hands over to the policy; capacities
 * are in elements. Rules lie end to end, each with its name (one trip to memory
 * brings both), and are known by the word at which they begin.
 */
struct rule_store {
	uint32_t *words;
	uint32_t *ports;
	struct prefix *addrs;
	char **sources;
	size_t n_words, n_ports, n_addrs, n_sources;
	size_t cap_words, cap_ports, cap_addrs, cap_sources;
	size_t n_rules;
	uint32_t last; /* the last rule; RULE_NONE when there is none */
};

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

struct policy {
	struct rule_store store;
	struct name_table table;
	uint32_t root; /* chain of the rules that cover every name */
	struct prefix_map *prefixes;
	size_t n_live; /* rules that are not RULE_DUPLICATE */
	bool audit;
	uint64_t ports_used[65536 / 64]; /* ports that some allow rule names */
	char digest[POLICY_DIGEST_STRLEN];
};

/* One rule on its way into a store. */
struct rule_spec {
	enum entry_list list;
	const struct entry *entry; /* its port is not read */
	uint32_t *ports;	   /* PORT_PACK; sorted and thinned out in place */
	size_t n_ports;		   /* 0: the default of its kind */
	struct prefix *addrs;	   /* sorted in place */
	size_t n_addrs;
	uint16_t source;
	uint32_t line;
};

/* How much a builder has, to go back to. */
struct builder_mark {
	size_t n_words, n_ports, n_addrs, n_sources, n_rules;
	uint32_t last;
	int file_mode;
};

/* Appends a rule. Returns 0, or -1 when a bound is met or memory is out; then nothing has changed. */
int store_add(struct rule_store *store, const struct rule_spec *spec, struct err *err);

/* Forgets all but the first ones. */
void store_cut(struct rule_store *store, const struct builder_mark *mark);

/* Frees all arrays and makes the store empty. */
void store_free(struct rule_store *store);

/* Adds a source; its index or -1. */
int store_add_source(struct rule_store *store, const char *path, struct err *err);

/* builder.c: the inside of a builder, for policy_yaml.c and policy.c. */
struct rule_store *builder_store(struct policy_builder *b);
void builder_file_mode(struct policy_builder *b, bool audit); /* what a file says */
struct builder_mark builder_mark(const struct policy_builder *b);
void builder_rollback(struct policy_builder *b, const struct builder_mark *mark); /* forgets what came after the mark */
bool builder_audit(const struct policy_builder *b);				  /* what all of it comes to */
void builder_reset(struct policy_builder *b); /* forgets everything without freeing: it was taken over */

/* names.c: the table. Each add returns 0 or -1 with an error. */
int names_init(struct policy *p, struct err *err);
void names_prefetch(const struct policy *p, uint32_t rule); /* the rule will be added soon */
int names_add_rule(struct policy *p, uint32_t rule, struct err *err);
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
bool name_walk_next(struct name_walk *w);

/* Appends `rule` to the chain that starts at `head`, or marks it RULE_DUPLICATE. Returns 0 or -1. */
int policy_chain_add(struct policy *p, uint32_t head, uint32_t rule, struct err *err);

static inline struct policy_rule *store_rule(const struct rule_store *s, uint32_t i)
{
	return (struct policy_rule *)(s->words + i);
}

static inline const struct policy_rule *rule_at(const struct policy *p, uint32_t i)
{
	return store_rule(&p->store, i);
}

/* The rule after that at `i`, in the order in which they were given; n_words after the last one. */
static inline uint32_t rule_after(const struct policy *p, uint32_t i)
{
	const struct policy_rule *r = rule_at(p, i);
	size_t tail = r->flags & RULE_PREFIX ? sizeof(struct prefix) : r->name_len + 1u;

	return i + (uint32_t)((sizeof(*r) + tail + 3) / 4);
}

static inline const struct prefix *rule_prefix(const struct policy_rule *r)
{
	return (const struct prefix *)r->tail;
}

static inline const uint32_t *rule_ports(const struct policy *p, const struct policy_rule *r)
{
	return p->store.ports + r->ports;
}

static inline const struct prefix *rule_addrs(const struct policy *p, const struct policy_rule *r)
{
	return p->store.addrs + r->addrs;
}

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

/* print.c: the digest of the canonical text. Returns 0 or -1. */
int print_digest(const struct policy *p, char buf[static POLICY_DIGEST_STRLEN], struct err *err);

#endif
