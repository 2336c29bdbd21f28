/* SPDX-License-Identifier: Apache-2.0 */
/* The DNS sockets before the policy is in force: each datagram gets the launcher's nonce back (base/handoff.h). */
#ifndef PROXY_PROCESS_PROBE_H
#define PROXY_PROCESS_PROBE_H

#include <stdint.h>

struct event_base;
struct probe;

/* Answers on both sockets with the HANDOFF_NONCE bytes at `nonce` (all borrowed). NULL: out of memory. */
struct probe *probe_new(struct event_base *base, int udp4, int udp6, const uint8_t *nonce);
/* Datagrams answered so far. */
uint64_t probe_answered(const struct probe *p);
void probe_free(struct probe *p);

#endif
