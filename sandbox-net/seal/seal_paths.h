/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the plan that come from what was asked for and from the user's home. Private to the sealing. */
#ifndef SANDBOX_NET_SEAL_PATHS_H
#define SANDBOX_NET_SEAL_PATHS_H

#include <limits.h>

#include "sandbox-net/seal/seal_plan.h"

struct err;
struct seal;
struct user;

/* The user's homes: that of the user database and, for the caller, that of the environment. At most two, "" for none. */
void seal_find_homes(const struct user *u, char homes[2][PATH_MAX]);

/* A path given through a symbolic link that will not be there any more gets a link to where it really is. Returns 0 or -1. */
int seal_add_link(struct seal_plan *plan, const char *given, const char *real, enum place_rank rank, struct err *err);

/* Directories of PATH in a home hold the user's tools: shown, read-only. Returns 0 or -1. */
int seal_add_tools(const struct seal *s, struct seal_plan *plan, struct err *err);

#endif
