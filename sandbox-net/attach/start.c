/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/start.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/program.h"

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

/* Its last line (or that of who could not run it), without the name in front: what went wrong. */
static int refused(char *said, struct err *err)
{
	static const char *const names[] = { "netgate: ", "sandbox-net: " };
	size_t len = strlen(said);
	const char *line;

	while (len > 0 && said[len - 1] == '\n')
		said[--len] = '\0';
	line = strrchr(said, '\n');
	line = line ? line + 1 : said;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(line, names[i], strlen(names[i])) == 0)
			line += strlen(names[i]);
	return err_set(err, "the gate was not started%s%s", *line ? ": " : "", line);
}

/* Whether a word is such an option, or would be taken for its beginning (getopt_long(3)). */
static bool is_ours(const char *word)
{
	static const char *const ours[] = { "job",	"keep", "wait",	   "detach", "pid-file",
					    "ready-fd", "help", "version", "json" };
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return false;
	len = strcspn(word + 2, "=");
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours) && len > 0; i++)
		if (strncmp(word + 2, ours[i], len) == 0)
			return true;
	return false;
}

int start_gate(const char *job, char *const *options, size_t n, struct err *err)
{
	const char *const head[] = { "netgate", "--job", job, "--detach", "--wait", START_WAIT };
	const size_t n_head = sizeof(head) / sizeof(*head);
	char **argv = calloc(n_head + n + 1, sizeof(*argv));
	char path[PATH_MAX], said[START_SAID_MAX] = "";
	int status;

	for (size_t i = 0; i < n; i++)
		if (is_ours(options[i])) {
			free(argv);
			return err_set(err, "%s: a gate of a sandbox's own is named, waits and ends by itself",
				       options[i]);
		}
	if (!argv || find_netgate(path, err)) {
		free(argv);
		return argv ? -1 : err_set(err, "out of memory");
	}
	memcpy(argv, head, sizeof(head));
	memcpy(argv + n_head, options, n * sizeof(*argv));
	/* What stays in the background has another standard error by then. */
	status = program_run(path, argv, STDIN_FILENO, STDERR_FILENO, said, sizeof(said), err);
	free(argv);
	if (status < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return refused(said, err);
	fputs(said, stderr);
	return 0;
}
