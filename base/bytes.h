/* SPDX-License-Identifier: Apache-2.0 */
/* A byte queue with a stated maximum: append at the end, consume at the front. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bytes {
	uint8_t *mem;
	size_t start; /* first byte not consumed yet */
	size_t end;   /* one past the last byte */
	size_t cap;   /* allocated */
};

/* All zero is an empty queue. Frees the memory and makes it empty again. */
void bytes_free(struct bytes *b);

/* How many bytes are held. */
static inline size_t bytes_len(const struct bytes *b)
{
	return b->end - b->start;
}

/* The first of them, valid until the next call that changes the queue; may be NULL when there are none. */
static inline const uint8_t *bytes_data(const struct bytes *b)
{
	return b->mem ? b->mem + b->start : NULL;
}

/* Appends a copy of `n` bytes. Returns 0; -ENOMEM; -ENOBUFS when it would hold more than `max` (nothing changes). */
int bytes_append(struct bytes *b, const void *p, size_t n, size_t max);

/* Forgets the first `n` bytes (at most all). When nothing is left, memory is kept for reuse only up to 4 KB. */
void bytes_consume(struct bytes *b, size_t n);

/*
 * recv() up to `want` bytes (1 to 64 KB) onto the end, never beyond `max` held, without blocking.
 * Returns the number; 0 at end of stream; -EAGAIN; -ENOBUFS when `max` is reached; -errno. After -ENOMEM bytes of
 * the stream are lost: the connection must end.
 */
ssize_t bytes_recv(struct bytes *b, int fd, size_t want, size_t max);

/*
 * send() from the front, without SIGPIPE and without blocking, and consumes what went.
 * Returns what is still held, or -errno (never -EAGAIN).
 */
ssize_t bytes_send(struct bytes *b, int fd);

#endif
