/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of the process that becomes the command. */
#ifndef SANDBOX_NET_EXEC_H
#define SANDBOX_NET_EXEC_H

#include <stdbool.h>

struct init;

/*
 * In a child of init: a process group of its own, the terminal if it is given,
 * no descriptor but 0, 1 and 2, exec. Never returns: what goes wrong is told over
 * the channel, and the exit status is 126 or 127.
 */
_Noreturn void exec_command(const struct init *init, bool terminal);

/* The shell's exit status for an exec that failed with `errnum`: 127 not found, 126 otherwise. */
int exec_status(int errnum);

#endif
