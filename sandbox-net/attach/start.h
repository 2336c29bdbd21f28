/* SPDX-License-Identifier: Apache-2.0 */
/* A gate of its own for a sandbox that is attached. */
#ifndef SANDBOX_NET_START_H
#define SANDBOX_NET_START_H

#include <stddef.h>

struct err;

#define START_WAIT "60s" /* how long the gate waits for us */

/*
 * Runs `netgate --job JOB --detach --wait START_WAIT OPTIONS`, the netgate beside this program, and waits until it listens.
 * The `n` options are netgate's own; those that say how a gate is named, how it waits and what it prints are not for whoever gives a
 * policy, and are refused. Returns 0, and what it said is on standard error; or -1 with its reason.
 */
int start_gate(const char *job, char *const *options, size_t n, struct err *err);

#endif
