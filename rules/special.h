/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges with a special purpose, as far as a policy speaks of them: to
 * tell a rule that names such a range on purpose from one that is only wide.
 * What may be dialled is the guard's business (proxy/upstream/guard.h).
 */
#ifndef RULES_SPECIAL_H
#define RULES_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>

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

/* What a rule for the loopback does not do, and what does. */
#define SPECIAL_SANDBOX_TEXT \
	"localhost and 127.0.0.0/8 are the sandbox itself; to reach a service of this host, give it another name " \
	"with addresses: [127.0.0.1/32]"

/*
 * True in ranges that people use for networks and services of their own:
 * private-use, unique local, shared address space, loopback. Not for link-local
 * addresses and metadata services of clouds, which no hint should lead to.
 */
bool special_is_own(const struct addr *a);

/* True when the whole prefix is loopback. */
bool special_is_loopback(const struct prefix *prefix);

/* True for "localhost" and every name below it (RFC 6761 section 6.3), canonical. */
bool special_is_localhost(const char *name, size_t len);

/* Wider than /8 (IPv4) or /32 (IPv6), and not inside a special range: nobody has all of it. */
bool special_is_wide(const struct prefix *prefix);

#endif
