/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of a job: built once from flags and YAML, immutable afterwards.
 * A policy file is loaded aside and swapped, never edited. An empty one allows nothing.
 */
#ifndef RULES_POLICY_H
#define RULES_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/addr.h"
#include "rules/limits.h"

struct err;
struct policy;
struct policy_rule;

#define POLICY_RULE_LABEL_MAX 256
#define POLICY_DIGEST_STRLEN  65 /* SHA-256 in hex and the NUL */

/* Builder: collects entries; policy_build() makes the immutable object. */
struct policy_builder;

/* NULL: out of memory. */
struct policy_builder *policy_builder_new(void);
/* Accepts NULL. */
void policy_builder_free(struct policy_builder *b);

/*
 * One --allow entry: HOST, HOST:PORT, HOST:PORT/tcp, *.HOST, .HOST, CIDR:PORT
 * or [IP6]/LEN:PORT (docs/policy.md). --deny: the same, and without a port it
 * means all of them. Returns 0, or -1 with what is wrong and what to write instead.
 */
int policy_builder_allow(struct policy_builder *b, const char *entry, struct err *err);
int policy_builder_deny(struct policy_builder *b, const char *entry, struct err *err);

/* mode: audit (true) or enforce (false). A command line's --audit wins over files. */
void policy_builder_audit(struct policy_builder *b, bool audit);

/* One limit as --max-upload and its like have it (limits.h); of several values the smallest counts. Returns 0 or -1. */
int policy_builder_limit(struct policy_builder *b, enum limit which, const char *text, struct err *err);

/*
 * Adds the entries of a YAML policy, read whole from `f` before anything
 * counts; `path` is only for messages and rule labels. Errors say
 * "path:line:col: what, and what to write instead". Returns 0 or -1.
 */
int policy_builder_yaml(struct policy_builder *b, FILE *f, const char *path, struct err *err);

/*
 * Of the policy `from`, only what the entries (as for policy_builder_allow()) say: each must be allowed by it, with
 * every port that it names. The rules keep the labels, `addresses:` and limits that they have there; its denials, its
 * mode and the limits of the job come along. Copies what it needs. Returns 0; or -1 with the entry that is not
 * permitted, and the builder is then fit only to be freed.
 */
int policy_builder_narrow(struct policy_builder *b, const struct policy *from, const char *const *entries, size_t n,
			  struct err *err);

/* The immutable policy; the builder is empty afterwards (and must still be freed). NULL with an error. */
struct policy *policy_build(struct policy_builder *b, struct err *err);
void policy_free(struct policy *p);

/* True in mode audit. */
bool policy_is_audit(const struct policy *p);

/* What the job may use up. Borrowed, lives as long as the policy. */
const struct limits *policy_limits(const struct policy *p);

/* How many limits of rules there are: each is for what one rule decides, and holds beside the job's. */
size_t policy_rule_limits_count(const struct policy *p);

/* The i-th of them; only the first LIMIT_RULE_COUNT are ever set. */
const struct limits *policy_rule_limits(const struct policy *p, size_t i);

/* Which of them are this rule's; -1: it has none, or is NULL. */
int policy_rule_limited(const struct policy_rule *rule);

/* Number of allow and deny rules. */
size_t policy_size(const struct policy *p);

/* SHA-256 of the canonical text; returns `buf`. Two policies that decide alike because they say the same have the same one. */
const char *policy_digest(const struct policy *p, char buf[static POLICY_DIGEST_STRLEN]);

/* Writes the canonical policy as YAML that loads back to the same policy. Returns 0 or -errno. */
int policy_print(const struct policy *p, FILE *out);

/*
 * Calls `warn` with one line for each rule that is too wide, never used
 * because another one covers or denies it, or lists a public DNS-over-HTTPS
 * resolver. Returns the number of warnings.
 * With `deliberate` also for what can't be there by mistake, since it has to be said expressly: a wildcard over a public suffix (`!`), and
 * private addresses that a rule opens.
 */
size_t policy_warnings(const struct policy *p, bool deliberate, void (*warn)(void *arg, const char *text), void *arg);

/* "policy.yaml:4" or "--allow api.example.com"; returns `buf`. "" for a NULL rule. */
const char *policy_rule_label(const struct policy *p, const struct policy_rule *rule,
			      char buf[static POLICY_RULE_LABEL_MAX]);

/*
 * True when the rule lets `a` be dialled although the guard refuses such
 * addresses: it is in an `addresses:` prefix of a name's rule, or in an address
 * rule's own prefix. A prefix that is only wide does not count: not one wider
 * than /8 (IPv4) or /32 (IPv6), and for a special-purpose address only one inside that
 * special range (10.2.0.0/16 exempts 10.2.0.1, 0.0.0.0/0 exempts nothing).
 * False for a NULL rule.
 */
bool policy_rule_exempts(const struct policy *p, const struct policy_rule *rule, const struct addr *a);

/*
 * True when a deny rule refuses this address and port, whatever name resolved
 * to it; each IPv4 address that an IPv6 one embeds counts too. `*rule` (if
 * `rule` is not NULL) gets that rule. To be asked for each address before it is dialled.
 */
bool policy_denies_addr(const struct policy *p, const struct addr *a, uint16_t port, const struct policy_rule **rule);

#endif
