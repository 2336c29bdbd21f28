/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/start.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

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

int start_gate(const char *job, char *const *options, size_t n, struct err *err)
{
	const char *const head[] = { "netgate", "--job", job, "--detach", "--wait", START_WAIT };
	const size_t n_head = sizeof(head) / sizeof(*head);
	char **argv = calloc(n_head + n + 1, sizeof(*argv));
	char path[PATH_MAX];
	int status = 0;
	pid_t pid;

	if (!argv || find_netgate(path, err)) {
		free(argv);
		return argv ? -1 : err_set(err, "out of memory");
	}
	memcpy(argv, head, sizeof(head));
	memcpy(argv + n_head, options, n * sizeof(*argv));
	pid = fork();
	if (pid == 0) {
		execv(path, argv);
		fprintf(stderr, "sandbox-net: cannot run %s: %s\n", path, strerror(errno));
		_exit(127);
	}
	free(argv);
	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, "the gate was not started");
	return 0;
}
