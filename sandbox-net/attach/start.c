/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

#define START_SAID_MAX 4096 /* bytes of what netgate says */

static int find_netgate(char path[static PATH_MAX], struct err *err)
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 16);

	if (n < 0)
		return err_set_errno(err, errno, "/proc/self/exe");
	path[n] = '\0';
	snprintf(strrchr(path, '/') + 1, 16, "netgate");
	if (access(path, X_OK))
		return err_set_errno(err, errno, "%s is missing; install it beside sandbox-net", path);
	return 0;
}

int start_possible(struct err *err)
{
	char path[PATH_MAX];

	return find_netgate(path, err);
}

/* Reads what netgate says, up to its end: that of the one that stays has another standard error by then. */
static void hear(int fd, char said[static START_SAID_MAX])
{
	size_t len = 0;
	char scrap[512];
	ssize_t n;

	while ((n = read(fd, scrap, sizeof(scrap))) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		for (ssize_t i = 0; i < n && len < START_SAID_MAX - 1; i++)
			said[len++] = scrap[i];
	}
	said[len] = '\0';
}

/* Runs netgate and waits for its end. Returns its wait status, or -1. */
static int run_netgate(const char *path, char *const *argv, char said[static START_SAID_MAX], struct err *err)
{
	int ends[2], status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_set_errno(err, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		if (dup2(ends[1], STDERR_FILENO) >= 0)
			execv(path, argv);
		fprintf(stderr, "cannot run %s: %s\n", path, strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	if (pid > 0)
		hear(ends[0], said);
	close(ends[0]);
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

/* Its last line, without its name: what went wrong. */
static int refused(char *said, struct err *err)
{
	size_t len = strlen(said);
	const char *line;

	while (len > 0 && said[len - 1] == '\n')
		said[--len] = '\0';
	line = strrchr(said, '\n');
	line = line ? line + 1 : said;
	if (strncmp(line, "netgate: ", 9) == 0)
		line += 9;
	return err_set(err, "the gate was not started%s%s", *line ? ": " : "", line);
}

int start_gate(const char *job, char *const *options, size_t n, struct err *err)
{
	const char *const head[] = { "netgate", "--job", job, "--detach", "--wait", START_WAIT };
	const size_t n_head = sizeof(head) / sizeof(*head);
	char **argv = calloc(n_head + n + 1, sizeof(*argv));
	char path[PATH_MAX], said[START_SAID_MAX] = "";
	int status;

	if (!argv || find_netgate(path, err)) {
		free(argv);
		return argv ? -1 : err_set(err, "out of memory");
	}
	memcpy(argv, head, sizeof(head));
	memcpy(argv + n_head, options, n * sizeof(*argv));
	status = run_netgate(path, argv, said, err);
	free(argv);
	if (status < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return refused(said, err);
	fputs(said, stderr);
	return 0;
}
