/* SPDX-License-Identifier: Apache-2.0 */
/* The address ranges that the guard refuses, as data. */
#ifndef PROXY_UPSTREAM_GUARD_TABLE_H
#define PROXY_UPSTREAM_GUARD_TABLE_H

#include "base/addr.h"

/* The prefix and name of the refused range that holds `a` ("10.0.0.0/8 private-use"); NULL when there is none. Static. */
const char *guard_table_find(const struct addr *a);

#endif
