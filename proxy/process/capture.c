/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/process/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_MAX 65536
#define FINISH_MAX \
	64 /* reads at the end; a pipe holds 64 KiB unless somebody made it larger (at most 1 MiB without privilege) */

int capture_open(struct capture *c, size_t max, int *write_end)
{
	int ends[2];

	*c = (struct capture){ .fd = -1, .max = max };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	c->fd = ends[0];
	*write_end = ends[1];
	return 0;
}

static void keep(struct capture *c, const char *bytes, size_t n)
{
	size_t room = c->max - c->len;

	n = n < room ? n : room;
	if (c->len + n > c->cap) {
		size_t cap = 2 * c->cap > c->len + n ? 2 * c->cap : c->len + n;
		char *more = realloc(c->bytes, cap);

		if (!more)
			return;
		c->bytes = more;
		c->cap = cap;
	}
	if (n > 0)
		memcpy(c->bytes + c->len, bytes, n);
	c->len += n;
}

/* False when there is nothing (more) to be had now. */
static bool read_some(struct capture *c)
{
	static char bytes[READ_MAX];
	ssize_t n = read(c->fd, bytes, sizeof(bytes));

	if (n > 0) {
		c->total += (uint64_t)n;
		keep(c, bytes, (size_t)n);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close(c->fd);
	c->fd = -1;
	return false;
}

void capture_read(struct capture *c)
{
	if (c->fd >= 0)
		(void)read_some(c);
}

void capture_finish(struct capture *c)
{
	for (int i = 0; i < FINISH_MAX && c->fd >= 0 && read_some(c); i++)
		;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

void capture_free(struct capture *c)
{
	free(c->bytes);
	*c = (struct capture){ .fd = -1 };
}
