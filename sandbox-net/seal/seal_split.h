/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a directory of the plan into its entries. */
#ifndef SANDBOX_NET_SEAL_SPLIT_H
#define SANDBOX_NET_SEAL_SPLIT_H

#include "sandbox-net/seal/seal_plan.h"

#define SEAL_SPLIT_MAX 256 /* a directory with more entries is shown as a whole, without an overlay */

/*
 * A seal_plan_split: reads the host's directory and makes each entry a place.
 * Directories become overlays, links are copied, plain files are shown (none
 * of "/": swap files and kernels), the rest is left out. A directory that can't
 * be read is left empty.
 */
int seal_split(struct seal_plan *plan, size_t place, void *arg, struct err *err);

#endif
