/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process 1 of the sandbox: a copy of the launcher that builds the file
 * system, moves into S, gives up everything, starts the command and outlives
 * it just long enough to say how it ended. When it goes, the kernel ends
 * every other process of the sandbox.
 */
#ifndef SANDBOX_NET_INIT_H
#define SANDBOX_NET_INIT_H

#include <signal.h>

#include "sandbox-net/run/userns.h"
#include "sandbox-net/seal/seal.h"

struct init {
	struct seal seal;	   /* options, user, workspace */
	struct userns_sandbox *ns; /* S */
	struct resources *resources;
	int channel;   /* init's end */
	int terminal;  /* the controlling terminal, or -1 */
	sigset_t mask; /* the signal mask that the command gets */
	char **argv;   /* the command; a copy, since the launcher's is wiped */
	char **env;
};

/*
 * Runs init in a process made with CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
 * CLONE_NEWUTS. Never returns; errors go over the channel.
 */
_Noreturn void init_run(struct init *init);

#endif
