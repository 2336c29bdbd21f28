/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job may still use up: pure accounting, without a clock or a socket.
 * There is one budget a job, and one a rule that has limits; the job's one thread is the only one that spends them, so that they are exact.
 */
#ifndef PROXY_CONN_BUDGET_H
#define PROXY_CONN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "rules/limits.h"
#include "rules/reason.h"

#define BUDGET_UNLIMITED UINT64_MAX
#define BUDGET_IDLE_S	 3600 /* how long nothing may move on a connection, unless the policy says otherwise */

struct budget {
	uint64_t upload;	 /* bytes that may still be sent upstream */
	uint64_t open, open_max; /* connections */
	struct bucket rate;	 /* of new connections; rate 0: any */
	uint64_t idle_us;
};

/*
 * The whole budget. `open_max`: as many connections as descriptors allow,
 * which holds beside what the policy says.
 */
struct budget budget_of(const struct limits *limits, uint64_t open_max, uint64_t now_us);

/* That of a rule: for what the rule decides, beside `job`, whose bounds it inherits where the rule says nothing or more. */
struct budget budget_of_rule(const struct limits *limits, const struct budget *job, uint64_t now_us);

/*
 * One more connection: REASON_NONE; or LIMIT_CONNECTIONS or LIMIT_RATE, and it must be refused.
 * With `holds` it counts as open until budget_closed(); one of the gate's DNS does not, which has a bound of its own.
 */
enum reason budget_admit(struct budget *b, bool holds, uint64_t now_us);
void budget_closed(struct budget *b);

/* True when something may still be sent upstream, and at least `n` bytes. */
bool budget_has_upload(const struct budget *b, uint64_t n);

/* The counter that a flow upstream has to observe (flow.h); NULL when there is no limit. */
uint64_t *budget_upload(struct budget *b);

#endif
