/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. No shell: the name is one argument, and can't be an option. */
#include "sandbox-net/attach/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digits.h"
#include "base/err.h"

#define ANSWER_MAX 32 /* bytes; a pid and a line feed */

static _Noreturn void inspect(const char *program, const char *name, int out)
{
	char *const argv[] = { (char *)program, (char *)"inspect",	  (char *)"--type", (char *)"container",
			       (char *)"-f",	(char *)"{{.State.Pid}}", (char *)name,	    NULL };
	int null = open("/dev/null", O_RDONLY);
	char path[PATH_MAX];

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	snprintf(path, sizeof(path), "/usr/bin/%s", program);
	execv(path, argv);
	execvp(program, argv);
	fprintf(stderr, "sandbox-net: cannot run %s: %s\n", program, strerror(errno));
	_exit(127);
}

/* Reads to the end; returns the number of bytes kept. */
static size_t read_answer(int fd, char answer[static ANSWER_MAX])
{
	size_t len = 0;
	char scrap[512];
	ssize_t n;

	while ((n = read(fd, scrap, sizeof(scrap))) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		for (ssize_t i = 0; i < n && len < ANSWER_MAX; i++)
			answer[len++] = scrap[i];
	}
	return len;
}

int container_pid(const char *program, const char *name, pid_t *pid, struct err *err)
{
	char answer[ANSWER_MAX];
	int ends[2], status = 0;
	uint32_t number = 0;
	size_t len;
	pid_t child;

	if (!*name || *name == '-')
		return err_set(err, "--%s: the name or id of a container", program);
	if (pipe2(ends, O_CLOEXEC))
		return err_set_errno(err, errno, "pipe");
	child = fork();
	if (child == 0)
		inspect(program, name, ends[1]);
	close(ends[1]);
	len = child < 0 ? 0 : read_answer(ends[0], answer);
	close(ends[0]);
	if (child < 0)
		return err_set_errno(err, errno, "fork");
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, "%s does not tell the process of container %s", program, name);
	if (len < 2 || answer[len - 1] != '\n' || digits_parse(answer, len - 1, INT32_MAX, &number))
		return err_set(err, "%s gave no number for the process of container %s", program, name);
	if (number == 0)
		return err_set(err, "container %s is not running", name);
	*pid = (pid_t)number;
	return 0;
}
