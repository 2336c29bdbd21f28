/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte queue. One buffer that grows by doubling up to the stated maximum;
 * consumed space at its front is won back by moving what is left, so the cost
 * of an append is bounded by that maximum, and so is the memory (but for the
 * first BYTES_FIRST bytes).
 */
#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BYTES_FIRST 512		/* first allocation */
#define BYTES_KEEP  4096	/* kept while empty */
#define BYTES_RECV  (64 * 1024) /* most bytes of one recv() */

void bytes_free(struct bytes *b)
{
	free(b->mem);
	*b = (struct bytes){ 0 };
}

/* Makes room for `n` bytes at the end. Returns 0, -ENOMEM or -ENOBUFS. */
static int bytes_reserve(struct bytes *b, size_t n, size_t max)
{
	size_t len = bytes_len(b);
	size_t cap = b->cap ? b->cap : BYTES_FIRST;
	uint8_t *mem;

	if (len > max || n > max - len)
		return -ENOBUFS;
	if (n <= b->cap - b->end)
		return 0;
	if (len + n <= b->cap) {
		memmove(b->mem, b->mem + b->start, len);
	} else {
		while (cap < len + n)
			cap = cap > max / 2 ? max : cap * 2;
		mem = malloc(cap);
		if (!mem)
			return -ENOMEM;
		if (len)
			memcpy(mem, b->mem + b->start, len);
		free(b->mem);
		b->mem = mem;
		b->cap = cap;
	}
	b->start = 0;
	b->end = len;
	return 0;
}

int bytes_append(struct bytes *b, const void *p, size_t n, size_t max)
{
	int r = bytes_reserve(b, n, max);

	if (r)
		return r;
	if (n)
		memcpy(b->mem + b->end, p, n);
	b->end += n;
	return 0;
}

void bytes_consume(struct bytes *b, size_t n)
{
	if (n < bytes_len(b)) {
		b->start += n;
		return;
	}
	b->start = 0;
	b->end = 0;
	if (b->cap > BYTES_KEEP)
		bytes_free(b);
}

/* Through a buffer on the stack, so that a connection holds memory for what came, not for what might have come. */
ssize_t bytes_recv(struct bytes *b, int fd, size_t want, size_t max)
{
	uint8_t buf[BYTES_RECV];
	size_t len = bytes_len(b);
	ssize_t n;
	int r;

	if (want == 0)
		return -EINVAL;
	if (len >= max)
		return -ENOBUFS;
	if (want > max - len)
		want = max - len;
	if (want > sizeof(buf))
		want = sizeof(buf);
	do
		n = recv(fd, buf, want, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r = bytes_append(b, buf, (size_t)n, max);
	return r ? r : n;
}

ssize_t bytes_send(struct bytes *b, int fd)
{
	while (bytes_len(b) > 0) {
		ssize_t n = send(fd, bytes_data(b), bytes_len(b), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			bytes_consume(b, (size_t)n);
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			return -errno;
	}
	return (ssize_t)bytes_len(b);
}
