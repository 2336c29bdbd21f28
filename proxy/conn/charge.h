/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose budgets a connection uses up: the job's, and beside it that of the rule
 * that let it through, if that has limits of its own; the smaller one binds.
 *
 * A decision claims a place in the budget of its rule; when it takes effect the
 * claim becomes the charge, in place of what another rule had been charged before.
 * So a connection counts once for a rule however many requests on it the rule
 * decides, and for one rule at a time.
 */
#ifndef PROXY_CONN_CHARGE_H
#define PROXY_CONN_CHARGE_H

#include "proxy/conn/conn.h"

/* Makes the budgets of the rules (env->rule_budgets, to be freed) and tells the map of their names. Returns 0 or -ENOMEM. */
int charge_init(struct conn_env *env);

/*
 * Is there room in all budgets for what this verdict allows, with `len` bytes to send
 * at once? Then the claim is made, and REASON_NONE returned. Else why not; *rule: whose limit it is, NULL: the job's.
 */
enum reason charge_claim(struct conn *c, const struct verdict *verdict, size_t len, const struct policy_rule **rule);

/* What was claimed takes effect: from here on it is the connection's. Does nothing when it is already. */
void charge_begin(struct conn *c);

/* The connection is over: gives back what was claimed and charged. */
void charge_end(struct conn *c);

/* Whether what the connection sends counts against a limit, or may by the next verdict: the job's, or that of any rule. */
bool charge_counts_upload(const struct conn *c);

/* True when the budgets have room for `n` bytes more (at least one). */
bool charge_may_send(const struct conn *c, size_t n);

/* The rule that has no room for them; NULL: it has, or there is none. */
const struct policy_rule *charge_spent(const struct conn *c, size_t n);

/* How long nothing may move on the connection, in microseconds. */
uint64_t charge_idle_us(const struct conn *c);

#endif
