/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges with a special purpose, as far as a policy speaks of them: to
 * tell a rule that names such a range on purpose from one that is only wide.
 * What may be dialled is the guard's business (proxy/upstream/guard.h).
 */
#ifndef RULES_SPECIAL_H
#define RULES_SPECIAL_H

#include <stdbool.h>

struct addr;
struct prefix;

struct special_range {
	const char *prefix;  /* text of it */
	const char *purpose; /* "private-use" */
};

/* The range that the address is in; NULL for an ordinary one. */
const struct special_range *special_of(const struct addr *a);

/* The range that the whole prefix is in; NULL when it is not in one. */
const struct special_range *special_within(const struct prefix *prefix);

/* The first range that the prefix has addresses in common with; NULL when there is none. */
const struct special_range *special_overlap(const struct prefix *prefix);

/* Wider than /8 (IPv4) or /32 (IPv6), and not inside a special range: nobody has all of it. */
bool special_is_wide(const struct prefix *prefix);

#endif
