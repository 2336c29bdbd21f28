/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in the foreground of the controlling terminal. */
#include "sandbox-net/run/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

void terminal_open(struct terminal *t)
{
	t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	t->given = false;
}

void terminal_close(struct terminal *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

bool terminal_is_ours(const struct terminal *t)
{
	return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

/* From the background, tcsetpgrp() raises SIGTTOU unless that is blocked (tcsetpgrp(3)). */
static int set_foreground(int fd, pid_t pgrp)
{
	sigset_t ttou, old;
	int rc;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &old);
	rc = tcsetpgrp(fd, pgrp);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return rc;
}

bool terminal_give(struct terminal *t, pid_t pgrp)
{
	if (!terminal_is_ours(t))
		return false;
	t->given = set_foreground(t->fd, pgrp) == 0;
	return t->given;
}

void terminal_take_back(struct terminal *t)
{
	if (t->given)
		set_foreground(t->fd, getpgrp());
	t->given = false;
}

void terminal_step_forward(int fd)
{
	set_foreground(fd, getpid());
}
