/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names ↔ synthetic addresses of one job: each allowed name that is asked for
 * gets an address of its own, and no address is ever given to a second name.
 */
#ifndef PROXY_DNS_DNS_MAP_H
#define PROXY_DNS_DNS_MAP_H

#include <stddef.h>

#include "base/addr.h"
#include "base/name.h"

struct dns_map;

#define DNS_MAP_MAX 65536 /* distinct names a job may use, or fewer if set; above it: SERVFAIL and limit_names */

struct dns_map *dns_map_new(void); /* NULL: ENOMEM */
/* At most so many names from now on, and never more than DNS_MAP_MAX. */
void dns_map_limit(struct dns_map *m, size_t max);
/* The same for the names that a rule lets through, whose limits the policy numbers `rule`. Returns 0 or -ENOMEM. */
int dns_map_limit_rule(struct dns_map *m, size_t rule, size_t max);
void dns_map_free(struct dns_map *m);

/*
 * The address of `name` in `family`, made when it is new. `rule`: the number of
 * the limits of the rule that lets it through, -1: none; a name that is new to
 * such a rule counts there, too. Returns 0; -ENOSPC at the limit; -EDQUOT at the rule's; -ENOMEM.
 */
int dns_map_addr(struct dns_map *m, const struct name *name, int rule, enum addr_family family, struct addr *out);

/* The name that an address was given to; NULL for any other address. Borrowed, lives as long as the map. */
const struct name *dns_map_name(const struct dns_map *m, const struct addr *a);

/* True for every address of the pools, given out or not. */
bool dns_map_covers(const struct addr *a);

#endif
