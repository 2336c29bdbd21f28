/* SPDX-License-Identifier: Apache-2.0 */
/* From init's child to the command. */
#include "sandbox-net/run/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sandbox-net/run/channel.h"
#include "sandbox-net/run/init.h"
#include "sandbox-net/run/terminal.h"

#define INTERPRETER_MAX 128

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

/* Opens what execvpe() would have found; -1 when there is nothing of that name. */
static int open_command(const char *name)
{
	const char *p = strchr(name, '/') ? "" : getenv("PATH");
	char path[PATH_MAX];
	int fd;

	if (!p || !*p)
		return open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	for (size_t n; *p; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		snprintf(path, sizeof(path), "%.*s%s%s", (int)n, p, n ? "/" : "", name);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* The program that a script's first line names; "" when it is no script, or the name is not fit to be shown. */
static void read_interpreter(int fd, char out[static INTERPRETER_MAX])
{
	char line[INTERPRETER_MAX] = "";
	size_t start, n;

	out[0] = '\0';
	if (pread(fd, line, sizeof(line) - 1, 0) < 3 || strncmp(line, "#!", 2) != 0)
		return;
	start = 2 + strspn(line + 2, " \t");
	n = strcspn(line + start, " \t\r\n");
	for (size_t i = 0; i < n; i++)
		if (line[start + i] < '!' || line[start + i] > '~')
			return;
	snprintf(out, INTERPRETER_MAX, "%.*s", (int)n, line + start);
}

/* Why a command was not found, in more words than the kernel's: the file may be there, and what runs it not. */
static void say_not_found(const char *name, char why[static CHANNEL_TEXT_MAX])
{
	const char *plain =
		strchr(name, '/') ? "no such file in the sandbox" : "command not found in the sandbox's PATH";
	char interpreter[INTERPRETER_MAX];
	int fd = open_command(name);

	if (fd < 0) {
		snprintf(why, CHANNEL_TEXT_MAX, "%s%s", plain,
			 strchr(name, ' ') ? " (it is one word; for a shell's line, sh -c '...')" : "");
		return;
	}
	read_interpreter(fd, interpreter);
	close(fd);
	if (interpreter[0])
		snprintf(why, CHANNEL_TEXT_MAX, "its interpreter %s is not there", interpreter);
	else
		snprintf(why, CHANNEL_TEXT_MAX, "the file is there, but not the loader that it names");
}

_Noreturn void exec_command(const struct init *init, bool terminal)
{
	char why[CHANNEL_TEXT_MAX] = "";
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
	if (errnum == ENOENT)
		say_not_found(init->argv[0], why);
	channel_send(init->channel, CHANNEL_EXEC, errnum, why);
	_exit(exec_status(errnum));
}
