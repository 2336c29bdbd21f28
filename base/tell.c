/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/tell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int tell_open(void)
{
	struct stat st;
	int fd = -1;

	/* A regular file has an offset that must stay shared, and never blocks; a socket can't be opened. */
	if (fstat(STDERR_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? STDERR_FILENO : fd;
}

/* One write that does not block: at most PIPE_BUF bytes when poll(2) says that there is room. */
static ssize_t write_some(int fd, const char *text, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	if (poll(&p, 1, TELL_WAIT_MS) != 1 || !(p.revents & POLLOUT))
		return -1;
	len = len < PIPE_BUF ? len : PIPE_BUF;
	n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 && errno == ENOTSOCK ? write(fd, text, len) : n;
}

void tell_write(int fd, const char *text, size_t len)
{
	while (fd >= 0 && len > 0) {
		ssize_t n = write_some(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void tell(int fd, const char *fmt, ...)
{
	char line[TELL_LINE_MAX];
	size_t room = sizeof(line) - 1;
	size_t len = (size_t)snprintf(line, sizeof(line), "netgate: ");
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line + len, room - len, fmt, ap);
	va_end(ap);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	line[len++] = '\n';
	tell_write(fd, line, len);
}

void tell_printable(char *text, size_t cap)
{
	text[cap - 1] = '\0';
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}
