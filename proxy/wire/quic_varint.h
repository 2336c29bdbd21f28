/* SPDX-License-Identifier: Apache-2.0 */
/* QUIC's variable-length integers (RFC 9000 §16), read through the bounded reader. */
#ifndef PROXY_WIRE_QUIC_VARINT_H
#define PROXY_WIRE_QUIC_VARINT_H

#include "base/reader.h"

/* An integer of 1, 2, 4 or 8 bytes, which the first two bits tell; 0 when there are fewer left. */
static inline uint64_t quic_varint(struct reader *r)
{
	uint8_t first = reader_u8(r);
	uint64_t v = first & 0x3f;

	for (size_t more = (1U << (first >> 6)) - 1; more > 0; more--)
		v = v << 8 | reader_u8(r);
	return r->bad ? 0 : v;
}

/* The next `n` bytes, `n` as large as an integer on the wire may be; as reader_take(). */
static inline struct reader quic_take(struct reader *r, uint64_t n)
{
	if (n > r->left)
		r->bad = true;
	return reader_take(r, r->bad ? 0 : (size_t)n);
}

#endif
