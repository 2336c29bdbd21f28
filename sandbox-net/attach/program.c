/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static _Noreturn void child(const char *file, char *const argv[], int in, int out, int pipe_end)
{
	if ((in == STDIN_FILENO || dup2(in, STDIN_FILENO) >= 0) && dup2(pipe_end, out) >= 0)
		execvp(file, argv);
	fprintf(stderr, "sandbox-net: cannot run %s: %s\n", file, strerror(errno));
	_exit(127);
}

/* Reads to the end, so that the program never waits for us, and keeps what there is room for. */
static void hear(int fd, char *said, size_t cap)
{
	size_t len = 0;
	char scrap[512];
	ssize_t n;

	while ((n = read(fd, scrap, sizeof(scrap))) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		for (ssize_t i = 0; i < n && len < cap - 1; i++)
			said[len++] = scrap[i];
	}
	said[len] = '\0';
}

int program_run(const char *file, char *const argv[], int in, int out, char *said, size_t cap, struct err *err)
{
	int ends[2], status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_set_errno(err, errno, "pipe");
	pid = fork();
	if (pid == 0)
		child(file, argv, in, out, ends[1]);
	close(ends[1]);
	if (pid > 0)
		hear(ends[0], said, cap);
	close(ends[0]);
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}
