/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controlling terminal. The command has a process group of its own; while
 * the launcher's group is the one in the foreground, the command's takes its
 * place, so that Ctrl-C and Ctrl-Z reach the command and nobody else.
 */
#ifndef SANDBOX_NET_TERMINAL_H
#define SANDBOX_NET_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
	int fd;	    /* the controlling terminal, CLOEXEC; -1: there is none */
	bool given; /* the command's group was made the foreground one */
};

/* Opens the caller's controlling terminal, if there is one. */
void terminal_open(struct terminal *t);

/* Closes it. */
void terminal_close(struct terminal *t);

/* True when the caller's process group is in the foreground. */
bool terminal_is_ours(const struct terminal *t);

/* Makes `pgrp` the foreground group if the caller's is. Returns true when it did. */
bool terminal_give(struct terminal *t, pid_t pgrp);

/* Makes the caller's group the foreground one again, if it had been given away. */
void terminal_take_back(struct terminal *t);

/* In the command itself, in a group of its own: steps into the foreground. */
void terminal_step_forward(int fd);

#endif
