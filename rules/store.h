/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that rules lie in, while a builder collects them and when they are a policy. Only for rules/.
 */
#ifndef RULES_STORE_H
#define RULES_STORE_H

#include "base/prefix.h"
#include "rules/entry.h"
#include "rules/limits.h"

#define POLICY_RULES_MAX   (1u << 22) /* rules in one policy */
#define POLICY_BYTES_MAX   (1u << 29) /* bytes of all rules with their names */
#define POLICY_CHAIN_MAX   256	      /* different rules for one and the same name or prefix */
#define POLICY_PORTS_MAX   65535      /* ports of one rule */
#define POLICY_ADDRS_MAX   1024	      /* `addresses:` of one rule */
#define POLICY_SOURCES_MAX 1024	      /* files of one policy */
#define POLICY_LIMITED_MAX 1024	      /* rules with limits of their own */

#define RULE_NONE UINT32_MAX
#define RULE_ROOM ((NAME_LEN_MAX + 4) / 4) /* words after the last rule: a comparison may begin at its last byte */

enum rule_flag {
	RULE_DENY = 1,
	RULE_PREFIX = 2,      /* an address rule */
	RULE_APEX = 4,	      /* covers its name itself */
	RULE_BELOW = 8,	      /* covers every name below it */
	RULE_DELIBERATE = 16, /* was written with "!" */
	RULE_DUPLICATE = 32,  /* says exactly what an earlier rule says: decides nothing, never printed */
	RULE_LIMITED = 64,    /* has limits of its own: behind its tail, in a word of its own, which of the store's */
};

struct policy_rule {
	union {
		uint32_t hash; /* of its name */
		uint32_t next; /* with RULE_PREFIX: the next rule of the same prefix, or RULE_NONE */
	};
	uint32_t line;	/* in its source */
	uint32_t terms; /* which of the store's */
	uint8_t name_len;
	uint8_t flags; /* enum rule_flag */
	char tail[];   /* its name, NUL-terminated; or, with RULE_PREFIX, its struct prefix */
};

/* What a rule says beside its name or prefix, and where. Those of a long list are mostly the same. */
struct rule_terms {
	uint32_t ports; /* first of its ports, PORT_PACK, sorted; none means all of them (deny only) */
	uint32_t addrs; /* first of the prefixes that its name may resolve into */
	uint16_t n_ports;
	uint16_t n_addrs;
	uint16_t source; /* index in sources, or POLICY_SOURCES_MAX: the command line */
};

/*
 * The arrays, which the builder fills and hands over to the policy; capacities
 * are in elements. Rules lie end to end, each with its name (one trip to memory
 * brings both), and are known by the word at which they begin.
 */
struct rule_store {
	uint32_t *words;
	struct rule_terms *terms;
	uint32_t *ports;
	struct prefix *addrs;
	char **sources;
	struct limits *limits;
	size_t n_words, n_terms, n_ports, n_addrs, n_sources, n_limits;
	size_t cap_words, cap_terms, cap_ports, cap_addrs, cap_sources, cap_limits;
	size_t n_rules;
};

/* The rule at word `i`; moves when the store grows. */
static inline struct policy_rule *store_rule(const struct rule_store *s, uint32_t i)
{
	return (struct policy_rule *)(s->words + i);
}

/* Asks for a rule that will be read soon: both cache lines over which most of them lie, the name in the second. */
static inline void rule_prefetch(const struct policy_rule *r)
{
	__builtin_prefetch(r);
	__builtin_prefetch(r->tail + 40);
}

/* Words of a rule with what lies behind it. */
static inline uint32_t rule_words(const struct policy_rule *r)
{
	size_t tail = r->flags & RULE_PREFIX ? sizeof(struct prefix) : r->name_len + 1u;

	return (uint32_t)((offsetof(struct policy_rule, tail) + tail + 3) / 4) + (r->flags & RULE_LIMITED ? 1 : 0);
}

/* One rule on its way into a store. */
struct rule_spec {
	enum entry_list list;
	const struct entry *entry; /* its port is not read */
	uint32_t *ports;	   /* PORT_PACK; sorted and thinned out in place */
	size_t n_ports;		   /* 0: the default of its kind */
	struct prefix *addrs;	   /* sorted in place */
	size_t n_addrs;
	const struct limits *limits; /* NULL or all zero: none of its own; or, */
	bool limits_shared;	     /* those of a rule that was added before, */
	uint32_t limits_at;	     /* which are these of the store's: both use them up */
	uint16_t source;
	uint32_t line;
};

/* How much a builder has, to go back to. */
struct builder_mark {
	size_t n_words, n_terms, n_ports, n_addrs, n_sources, n_limits, n_rules;
	int file_mode;
	struct limits limits;
};

/* Appends a rule. Returns 0, or -1 when a bound is met or memory is out; then nothing has changed. */
int store_add(struct rule_store *store, const struct rule_spec *spec, struct err *err);

/* Forgets all but the first ones. */
void store_cut(struct rule_store *store, const struct builder_mark *mark);

/* Frees all arrays and makes the store empty. */
void store_free(struct rule_store *store);

/*
 * Zeroed memory for `n` elements of `size` bytes in which look-ups go to and fro; in huge pages if it is large, since nearly each
 * of them would miss the processor's table of small ones. To be freed with free(). NULL: out of memory.
 */
void *store_table(size_t n, size_t size);

/* Adds a source; its index or -1. */
int store_add_source(struct rule_store *store, const char *path, struct err *err);

#endif
