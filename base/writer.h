/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded writer, the counterpart of reader.h: bytes go to a buffer while they
 * fit. The first that don't set `full`, and nothing goes there any more, so a
 * message may be written in a run and `full` checked once. Integers are big-endian.
 */
#ifndef BASE_WRITER_H
#define BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct writer {
	uint8_t *p; /* the caller's */
	size_t len, cap;
	bool full;
};

/* `n` bytes at `p`. */
static inline void writer_put(struct writer *w, const void *p, size_t n)
{
	if (w->full || n > w->cap - w->len) {
		w->full = true;
		return;
	}
	if (n)
		memcpy(w->p + w->len, p, n);
	w->len += n;
}

/* `n` zero bytes. */
static inline void writer_zero(struct writer *w, size_t n)
{
	if (w->full || n > w->cap - w->len) {
		w->full = true;
		return;
	}
	memset(w->p + w->len, 0, n);
	w->len += n;
}

/* A byte. */
static inline void writer_u8(struct writer *w, unsigned v)
{
	writer_put(w, &(uint8_t){ (uint8_t)v }, 1);
}

/* Two bytes. */
static inline void writer_u16(struct writer *w, unsigned v)
{
	writer_put(w, (uint8_t[]){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

/* Four bytes. */
static inline void writer_u32(struct writer *w, uint32_t v)
{
	writer_u16(w, v >> 16);
	writer_u16(w, v & 0xffff);
}

/* A number whose place is already there: a length, a count, a checksum. */
static inline void writer_set_u16(struct writer *w, size_t at, size_t v)
{
	if (w->full)
		return;
	w->p[at] = (uint8_t)(v >> 8);
	w->p[at + 1] = (uint8_t)v;
}

#endif
