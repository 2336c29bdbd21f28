/* SPDX-License-Identifier: Apache-2.0 */
/* From init's child to the command. */
#include "sandbox-net/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sandbox-net/channel.h"
#include "sandbox-net/init.h"
#include "sandbox-net/terminal.h"

int exec_status(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR ? 127 : 126;
}

/* The host's /dev/null becomes the sandbox's, whose mode root's command can't change. */
static void use_own_null(void)
{
	struct stat st;
	int fd;

	for (int i = 0; i < 3; i++) {
		if (fstat(i, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
			continue;
		fd = open("/dev/null", (fcntl(i, F_GETFL) & O_ACCMODE) | O_CLOEXEC);
		if (fd >= 0)
			dup2(fd, i);
	}
}

_Noreturn void exec_command(const struct init *init, bool terminal)
{
	int errnum;

	setpgid(0, 0);
	if (terminal)
		terminal_step_forward(init->terminal);
	use_own_null();
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) || channel_send(init->channel, CHANNEL_STARTED, 0, NULL)) {
		errnum = errno ? errno : EIO;
	} else {
		sigprocmask(SIG_SETMASK, &init->mask, NULL);
		execvpe(init->argv[0], init->argv, init->env);
		errnum = errno;
	}
	channel_send(init->channel, CHANNEL_EXEC, errnum, NULL);
	_exit(exec_status(errnum));
}
