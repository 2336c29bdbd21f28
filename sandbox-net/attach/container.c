/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. No shell: the name is one argument, and can't be an option. */
#include "sandbox-net/attach/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digits.h"
#include "base/err.h"
#include "sandbox-net/attach/program.h"

#define ANSWER_MAX 4096 /* bytes; the line feed and the NUL too */

/*
 * A number, whether everything is given, and names of capabilities. docker tells what was asked for beside its usual ones; what is taken
 * away from ALL is not asked. podman tells what came of it.
 */
static const char docker_format[] =
	"{{.State.Pid}} {{.HostConfig.Privileged}}{{range .HostConfig.CapAdd}} {{.}}{{end}}";
static const char podman_format[] = "{{.State.Pid}} {{.HostConfig.Privileged}}{{range .BoundingCaps}} {{.}}{{end}}"
				    "{{range .EffectiveCaps}} {{.}}{{end}}";

/* With or without "CAP_", in either case. One that is unknown here is one that nothing here depends on. */
static uint64_t capability(const char *word)
{
	char name[32];
	cap_value_t value;

	if (strcasecmp(word, "ALL") == 0)
		return UINT64_MAX;
	snprintf(name, sizeof(name), "cap_%s", strncasecmp(word, "cap_", 4) == 0 ? word + 4 : word);
	return cap_from_name(name, &value) == 0 && value < 64 ? UINT64_C(1) << value : 0;
}

static int parse(char *answer, struct container *c)
{
	const size_t len = strlen(answer);
	const char *number, *all, *word;
	uint32_t pid;

	if (len == 0 || answer[len - 1] != '\n')
		return -1;
	answer[len - 1] = '\0';
	number = strsep(&answer, " ");
	all = strsep(&answer, " ");
	if (digits_parse(number, strlen(number), INT32_MAX, &pid) || !all ||
	    (strcmp(all, "true") != 0 && strcmp(all, "false") != 0))
		return -1;
	*c = (struct container){ .pid = (pid_t)pid, .caps = *all == 't' ? UINT64_MAX : 0 };
	while ((word = strsep(&answer, " ")))
		c->caps |= capability(word);
	return 0;
}

int container_look(const char *program, const char *name, struct container *c, struct err *err)
{
	const char *format = strcmp(program, "docker") == 0 ? docker_format : podman_format;
	char *const argv[] = { (char *)program, (char *)"inspect", (char *)"--type", (char *)"container",
			       (char *)"-f",	(char *)format,	   (char *)name,     NULL };
	char answer[ANSWER_MAX], usual[PATH_MAX];
	int null, status;

	if (!*name || *name == '-')
		return err_set(err, "--%s: \"%s\": not the name or id of a container", program, name);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0)
		return err_set_errno(err, errno, "/dev/null");
	snprintf(usual, sizeof(usual), "/usr/bin/%s", program);
	status = program_run(access(usual, X_OK) == 0 ? usual : program, argv, null, STDOUT_FILENO, answer,
			     sizeof(answer), err);
	close(null);
	if (status < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, "%s does not tell about container %s", program, name);
	if (parse(answer, c))
		return err_set(err, "%s gave no number and no capabilities for container %s", program, name);
	return c->pid > 0 ? 0 : err_set(err, "container %s is not running", name);
}
