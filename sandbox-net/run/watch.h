/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher while the command runs: signals and the terminal to the command, its stops and its end to the monitor. */
#ifndef SANDBOX_NET_WATCH_H
#define SANDBOX_NET_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct report;
struct terminal;

struct watch {
	int channel; /* to init */
	pid_t init_pid;
	const struct report *report;
	struct terminal *terminal;
	const char *command; /* its name, for messages */
	struct resources *resources;
	sigset_t signals; /* set by watch_block_signals() */
};

/*
 * Blocks the signals that are passed on (all but those that the caller ignores,
 * as under nohup) and stores the mask as it was in *old.
 */
void watch_block_signals(struct watch *w, sigset_t *old);

/* Starts the command and waits for its end. Returns the launcher's exit status. */
int watch_run(struct watch *w);

/* Ends init, and with it every process of the sandbox, and waits until they are gone. `init_pid` 0: there is none. */
void watch_end(pid_t init_pid, int channel);

#endif
