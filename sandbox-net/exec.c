/* SPDX-License-Identifier: Apache-2.0 */
/* From init's child to the command. */
#include "sandbox-net/exec.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sandbox-net/channel.h"
#include "sandbox-net/init.h"
#include "sandbox-net/seccomp.h"
#include "sandbox-net/terminal.h"

int exec_status(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR ? 127 : 126;
}

_Noreturn void exec_command(const struct init *init, const struct sock_fprog *filter, bool terminal)
{
	/* With 0, a core_pattern that names a program runs it all the same; with 1 the kernel starts none (core(5)). */
	const struct rlimit core = { 1, 1 };
	int errnum;

	setpgid(0, 0);
	if (terminal)
		terminal_step_forward(init->terminal);
	setrlimit(RLIMIT_CORE, &core);
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) || channel_send(init->channel, CHANNEL_STARTED, 0, NULL) ||
	    seccomp_apply(filter)) {
		errnum = errno ? errno : EIO;
	} else {
		sigprocmask(SIG_SETMASK, &init->mask, NULL);
		execvpe(init->argv[0], init->argv, init->env);
		errnum = errno;
	}
	channel_send(init->channel, CHANNEL_EXEC, errnum, NULL);
	_exit(exec_status(errnum));
}
