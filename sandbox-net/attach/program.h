/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program to its end, and keeps what it says. */
#ifndef SANDBOX_NET_ATTACH_PROGRAM_H
#define SANDBOX_NET_ATTACH_PROGRAM_H

#include <stddef.h>

struct err;

/*
 * Runs `file`, searched for in PATH unless it has a '/', with `argv` and `in` as its standard input. What it writes to `out`
 * (STDOUT_FILENO or STDERR_FILENO) up to the end of that goes into `said`, the first `cap` - 1 bytes, NUL-terminated; no shell is
 * between. Returns its wait status (127 with a line on its standard error where it can't be run), or -1.
 */
int program_run(const char *file, char *const argv[], int in, int out, char *said, size_t cap, struct err *err);

#endif
