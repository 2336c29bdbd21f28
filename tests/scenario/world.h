/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real proxy/conn, with dialer, guard, audit, rules and budgets, on the fake loop and the fake network: a job
 * from its start record to its end record. There is one at a time.
 */
#ifndef TESTS_SCENARIO_WORLD_H
#define TESTS_SCENARIO_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct policy;
struct tube;

#define WORLD_OPEN_MAX 100 /* connections that the descriptors would suffice for */

/* Begins. `policy` stays the caller's, until the end. */
void world_begin(const struct policy *policy);

/*
 * Ends the job, with what is still open, and takes everything down. Fails when anything is left: a connection, a
 * descriptor, an event, a count.
 */
void world_end(void);

/* Ends every connection, as at the end of the command. */
void world_job_ends(void);

/*
 * What a look-up answers from now on: `n` addresses of a family after `us` (LOOP_FOREVER: never), or none and `error`.
 * A name of which nothing was said has one public IPv4 address of its own, at once.
 */
void world_answer(const char *name, enum addr_family family, const struct addr *addrs, size_t n, const char *error,
		  uint64_t us);

/* A client connects to "a.test:443" (the address that the gate's DNS gives the name), to "192.0.2.1:443" or to the gate. NULL: no address is left for the name. */
struct tube *world_connect(const char *to);

/* True when an address rule of the policy has this destination, whatever is spoken. */
bool world_allows_addr(const struct endpoint *dst);

/* Connections that are open. */
size_t world_open(void);

#endif
