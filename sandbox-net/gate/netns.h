/* SPDX-License-Identifier: Apache-2.0 */
/* Work in another network namespace. */
#ifndef SANDBOX_NET_NETNS_H
#define SANDBOX_NET_NETNS_H

#include <stddef.h>

struct err;

/*
 * Runs work(arg, fds, err) in a child process that may go to other network
 * namespaces, and waits for it. The caller stays where it is: without root,
 * one that left the host's network namespace could not come back.
 *
 * `work` returns 0, having set fds[0 … n_fds-1], which then become the caller's
 * (CLOEXEC); or -1 with err set. It works in the caller's memory, with descriptors
 * of its own. Returns 0; or -1 with err set, and every fds[i] is -1.
 */
int netns_run(int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds, size_t n_fds, struct err *err);

/*
 * The same in memory of its own, where what else it does is lost: for work that enters a user namespace whose root,
 * who may be hostile, could look into the process.
 */
int netns_run_apart(int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds, size_t n_fds,
		    struct err *err);

/* Moves this process to the network namespace of descriptor `netns`. Returns 0 or -1. */
int netns_enter(int netns, struct err *err);

/* Moves this process to a new, empty network namespace. Returns 0 or -1. */
int netns_new(struct err *err);

#endif
