/* SPDX-License-Identifier: Apache-2.0 */
/* What a person would have to type so that a denied request is allowed: for the summary. */
#ifndef RULES_HINT_H
#define RULES_HINT_H

#include <stddef.h>

struct endpoint;
struct name;
struct request;
struct verdict;

#define HINT_MAX 288 /* the longest flag, with the NUL */

/*
 * Writes the exact flag ("--allow api.example.com", "--allow host:22",
 * "--allow '[2a00:1450::1]:443'", quoted for a shell) into `buf` of `cap` bytes, one at least, and returns `buf`. ""
 * when no flag would help, or none should be copied without a thought: for
 * what a deny rule refuses, what is malformed, what is allowed already,
 * special-purpose addresses (the metadata service), names that only look-ups
 * have. For a request that only audit mode let through it is the flag that
 * enforcing it would need, or "" when several names were seen, since then one
 * flag may not do. The request is the one that was judged.
 */
const char *match_hint(const struct request *request, const struct verdict *verdict, char *buf, size_t cap);

#define HINT_ADDRESSES_MAX 384 /* the longest one, with the NUL */

/*
 * What lets `host` be dialled at an address that the guard refuses: "in a
 * policy, host: db.corp with addresses: [10.1.2.3/32]". Returns `buf`; "" where
 * the address is not in a range of the user's own (special_is_own()).
 */
const char *hint_addresses(const struct name *host, const struct endpoint *peer, char buf[static HINT_ADDRESSES_MAX]);

#endif
