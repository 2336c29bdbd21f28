/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the packet counters of a gate, through a socket that came from the proxy. */
#ifndef PROXY_PROCESS_COUNTERS_H
#define PROXY_PROCESS_COUNTERS_H

#include <stdint.h>

#include "base/handoff.h"

#define COUNTERS_WAIT_MS 1000

/*
 * Asks the kernel for the named counters of GATE_NFT_TABLE in the network
 * namespace of `nft_fd` (HANDOFF_NFT; stays the caller's) and fills both arrays
 * in GATE_COUNTER order. The caller needs CAP_NET_ADMIN over the user
 * namespace that owns the gate. The descriptor is not trusted: it may be
 * anything, and another process may use the same socket meanwhile, which can only make this fail.
 *
 * Never waits longer than COUNTERS_WAIT_MS. Returns 0; -EINVAL when it is no
 * nfnetlink socket; -ENOENT when a counter is missing; -ETIMEDOUT; -EPERM; other -errno. After an
 * error the arrays are zero.
 */
int counters_read(int nft_fd, uint64_t packets[GATE_COUNTER_COUNT], uint64_t bytes[GATE_COUNTER_COUNT]);

#endif
