/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded reader: the only way in which parsers read lengths and fields.
 *
 * A read past the end sets `bad`, returns 0 (or an empty reader) and leaves
 * nothing to read; it never touches a byte outside. So a parser may read a
 * run of fields and check `bad` once. Integers are big-endian.
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *p; /* next byte; borrowed */
	size_t left;	  /* bytes from p on */
	bool bad;	  /* a read went past the end */
};

/* A reader over `len` bytes at `p`, which stay the caller's. Where `p` is NULL there is nothing to read. */
static inline struct reader reader_over(const void *p, size_t len)
{
	return (struct reader){ .p = p ? p : (const uint8_t *)"", .left = p ? len : 0, .bad = false };
}

/* The next `n` bytes as a reader of their own; an empty bad one when there are fewer. */
static inline struct reader reader_take(struct reader *r, size_t n)
{
	struct reader sub = { .p = r->p, .left = n, .bad = false };

	if (r->bad || n > r->left) {
		r->bad = true;
		r->left = 0;
		return (struct reader){ .p = r->p, .left = 0, .bad = true };
	}
	r->p += n;
	r->left -= n;
	return sub;
}

/* An unsigned integer of `n` bytes, 1 to 4; 0 when there are fewer left. */
static inline uint32_t reader_uint(struct reader *r, size_t n)
{
	struct reader sub = reader_take(r, n);
	uint32_t v = 0;

	for (size_t i = 0; i < sub.left; i++)
		v = v << 8 | sub.p[i];
	return v;
}

/* The next byte. */
static inline uint8_t reader_u8(struct reader *r)
{
	return (uint8_t)reader_uint(r, 1);
}

/* The next two bytes. */
static inline uint16_t reader_u16(struct reader *r)
{
	return (uint16_t)reader_uint(r, 2);
}

/* The next three bytes. */
static inline uint32_t reader_u24(struct reader *r)
{
	return reader_uint(r, 3);
}

/* The next four bytes. */
static inline uint32_t reader_u32(struct reader *r)
{
	return reader_uint(r, 4);
}

/* True when everything was read and nothing went past the end: trailing garbage is an error to a strict parser. */
static inline bool reader_done(const struct reader *r)
{
	return !r->bad && r->left == 0;
}

#endif
