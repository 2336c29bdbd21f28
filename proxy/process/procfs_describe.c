/* SPDX-License-Identifier: Apache-2.0 */
/* One process: its entry in /proc read; see procfs.h. */
#include "proxy/process/procfs_describe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/process/procfs.h"

#define EXE_BUF 4096 /* PATH_MAX, the longest that readlink() gives */

/* The value of a line of /proc/PID/status, up to its end; NULL when there is none. `name` begins with a line feed. */
static const char *status_line(const char *text, size_t len, const char *name, const char **end)
{
	const char *at = memmem(text, len, name, strlen(name));

	if (!at)
		return NULL;
	at += strlen(name);
	*end = memchr(at, '\n', (size_t)(text + len - at));
	return *end ? at : NULL;
}

/* The number in column `n` of a line, the columns each beginning with a tab; or -1. */
static int64_t column(const char *p, const char *end, int n)
{
	int64_t v = 0;

	for (int i = 0; i <= n; i++) {
		p = memchr(p, '\t', (size_t)(end - p));
		if (!p)
			return -1;
		p++;
	}
	if (p == end || *p == '\t')
		return -1;
	for (; p < end && *p >= '0' && *p <= '9' && v <= UINT32_MAX; p++)
		v = v * 10 + (*p - '0');
	return p == end || *p == '\t' ? v : -1;
}

int procfs_parse_status(const char *text, size_t len, struct procfs_process *out)
{
	const char *end;
	const char *line = status_line(text, len, "\nUid:", &end);
	int64_t uid = line ? column(line, end, 1) : -1;
	int64_t host, pid;

	/* Of the thread group, also where the status is that of a thread. */
	line = status_line(text, len, "\nNStgid:", &end);
	host = line ? column(line, end, 0) : -1;
	if (uid < 0 || uid > UINT32_MAX || host < 1 || host > INT32_MAX)
		return -EBADMSG;
	pid = column(line, end, 1);
	out->uid = (uid_t)uid;
	out->host_pid = (pid_t)host;
	out->pid = pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
	return 0;
}

int procfs_open_process(int proc_fd, pid_t pid)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	return openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

ssize_t procfs_read(int dir, const char *name, char *buf, size_t cap)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, cap);

	if (fd >= 0)
		close(fd);
	return n;
}

int procfs_describe(int dir, struct procfs_process *out)
{
	char buf[EXE_BUF];
	ssize_t n = procfs_read(dir, "status", buf, sizeof(buf));

	memset(out, 0, sizeof(*out));
	if (n < 0 || procfs_parse_status(buf, (size_t)n, out) < 0)
		return -ENOENT;
	n = readlinkat(dir, "exe", buf, sizeof(buf));
	if (n > 0) {
		out->exe_len = (size_t)n;
		out->exe_kept = out->exe_len < sizeof(out->exe) ? out->exe_len : sizeof(out->exe);
		memcpy(out->exe, buf, out->exe_kept);
	}
	n = procfs_read(dir, "cmdline", out->cmdline, sizeof(out->cmdline));
	out->args_kept = n > 0 ? (size_t)n : 0;
	return 0;
}

/* Whether `now` may be the same process, of which `then` has the end of the path and the beginning of the arguments. */
static bool goes_on(const struct procfs_process *then, const struct procfs_process *now)
{
	size_t before = now->exe_kept - then->exe_kept;

	if (now->host_pid != then->host_pid || now->pid != then->pid || now->uid != then->uid ||
	    now->exe_len != now->exe_kept || now->exe_kept < then->exe_kept || now->args_kept < then->args_kept)
		return false;
	return memcmp(now->exe + before, then->exe, then->exe_kept) == 0 &&
	       (before == 0 || now->exe[before - 1] == '/') &&
	       memcmp(now->cmdline, then->cmdline, then->args_kept) == 0;
}

void procfs_complete(int proc_fd, struct procfs_process *p)
{
	static struct procfs_process now;
	int dir = procfs_open_process(proc_fd, p->host_pid);

	if (dir < 0)
		return;
	if (procfs_describe(dir, &now) == 0 && goes_on(p, &now))
		*p = now;
	close(dir);
}
