/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/process/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

void tty_save(struct tty *t)
{
	*t = (struct tty){ .fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC) };
	if (t->fd < 0)
		return;
	if (tcgetattr(t->fd, &t->modes) < 0)
		tty_close(t);
	else
		t->ours = tcgetpgrp(t->fd) == getpgrp();
}

void tty_close(struct tty *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

bool tty_is_ours(const struct tty *t)
{
	return t->fd >= 0 && t->ours && tcgetpgrp(t->fd) == getpgrp();
}

static bool is_abandoned(const struct tty *t, pid_t command)
{
	pid_t group = tcgetpgrp(t->fd);

	return t->ours && group > 1 && (group == command || (kill(-group, 0) < 0 && errno == ESRCH));
}

void tty_restore(const struct tty *t, pid_t command)
{
	sigset_t ttou, old;

	if (t->fd < 0)
		return;
	/* From the background, both calls below raise it (tcsetpgrp(3), tcsetattr(3)). */
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &old);
	if (is_abandoned(t, command))
		(void)tcsetpgrp(t->fd, getpgrp());
	/* Not TCSADRAIN: the command can stop the output (Ctrl-S), which would hold up the end. */
	if (tcgetpgrp(t->fd) == getpgrp())
		(void)tcsetattr(t->fd, TCSANOW, &t->modes);
	sigprocmask(SIG_SETMASK, &old, NULL);
}
