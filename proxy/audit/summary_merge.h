/* SPDX-License-Identifier: Apache-2.0 */
/* Which counts share one row of the summary. */
#ifndef PROXY_AUDIT_SUMMARY_MERGE_H
#define PROXY_AUDIT_SUMMARY_MERGE_H

#include <stdbool.h>
#include <stdint.h>

struct tally;
struct tally_entry;

/* The look-ups that share the row of connection entry `e`: those of the same name and reason, in the first such row. */
uint64_t summary_lookups(const struct tally *t, const struct tally_entry *e);

/* What came of the connections that only audit mode let through, in the first row about them; or NULL. */
const struct tally_entry *summary_connections(const struct tally *t, const struct tally_entry *e);

/* True for an entry that has no row of its own. */
bool summary_is_hidden(const struct tally *t, const struct tally_entry *e);

#endif
