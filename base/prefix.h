/* SPDX-License-Identifier: Apache-2.0 */
/* Address prefixes (CIDR) and a set of them whose lookup does not grow with its size. */
#ifndef BASE_PREFIX_H
#define BASE_PREFIX_H

#include "base/addr.h"

#define PREFIX_STRLEN (ADDR_STRLEN + 4)

struct prefix {
	struct addr addr; /* host bits zero */
	uint8_t len;	  /* bits, 0 to 32 or 128 */
};

/*
 * "192.0.2.0/24", "2001:db8::/32", or an address alone (/32, /128). Host bits
 * that are set are an error: 10.0.0.1/8 is more often a slip than a wish.
 * Returns 0, or -1.
 */
int prefix_parse(const char *text, size_t len, struct prefix *out);

/* True when `a` is of the prefix's family and in it. */
bool prefix_contains(const struct prefix *p, const struct addr *a);

/* "192.0.2.0/24"; returns `buf`. */
const char *prefix_format(const struct prefix *p, char buf[static PREFIX_STRLEN]);

/* A map from prefixes to numbers: the longest match wins. */
struct prefix_map;

/* An empty map; NULL when out of memory. Freeing NULL does nothing. */
struct prefix_map *prefix_map_new(void);
void prefix_map_free(struct prefix_map *map);

/*
 * Adds `p` (host bits zero) with `value` (not UINT32_MAX). Returns 0; 1 when the same prefix is
 * already there (its value stays; *old, if not NULL, gets it); -ENOMEM.
 */
int prefix_map_add(struct prefix_map *map, const struct prefix *p, uint32_t value, uint32_t *old);

/*
 * Calls `visit` for each prefix that contains `a`, longest first, until it
 * returns true. Returns what the last call returned; false when none matches.
 * At most 129 lookups, however many prefixes there are.
 */
bool prefix_map_visit(const struct prefix_map *map, const struct addr *a, bool (*visit)(void *arg, uint32_t value),
		      void *arg);

#endif
