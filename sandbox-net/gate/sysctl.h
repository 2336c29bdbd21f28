/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel settings of the present network namespace. */
#ifndef SANDBOX_NET_SYSCTL_H
#define SANDBOX_NET_SYSCTL_H

#include <stdbool.h>

/*
 * A procfs of our own: in the shared one, all network namespaces' entries of a
 * name hang in one hash chain, which makes each write cost up to a millisecond.
 * Not permitted without root; then the shared one. Returns a descriptor for the calls below; -1 when there is none.
 */
int sysctl_open(void);

/* Writes `value` to /proc/sys/`path` as the present namespace has it. False when that did not work; `proc` may be -1. */
bool sysctl_write(int proc, const char *path, const char *value);

/*
 * For one of the form "least initial most" (tcp_rmem and the like, tcp(7)): makes `most` the most, and of the initial value too, where it
 * is more than that. False when that did not work; `proc` may be -1.
 */
bool sysctl_bound(int proc, const char *path, unsigned long most);

/* Accepts -1. */
void sysctl_close(int proc);

#endif
