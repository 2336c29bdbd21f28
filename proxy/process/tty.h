/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controlling terminal's modes. A command that is killed, or that means
 * ill, leaves echo off or raw input on; what netgate found is put back.
 */
#ifndef PROXY_PROCESS_TTY_H
#define PROXY_PROCESS_TTY_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct tty {
	int fd;	   /* the controlling terminal, CLOEXEC; -1: there is none */
	bool ours; /* netgate's process group was in its foreground at the start */
	struct termios modes;
};

/* Opens the controlling terminal, if there is one, and keeps its modes. */
void tty_save(struct tty *t);

/* True when netgate's process group was in the foreground at the start and is so now. */
bool tty_is_ours(const struct tty *t);

/*
 * Puts the modes back if netgate's group is in the foreground. It steps there
 * when the launcher was killed and could not do so: in the foreground is then
 * `command`, the command's group (0: not known), or one that is no more. Never waits.
 */
void tty_restore(const struct tty *t, pid_t command);

/* Closes it. */
void tty_close(struct tty *t);

#endif
